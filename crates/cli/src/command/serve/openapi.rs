//! The OpenAPI description of the API.

use serde_json::{Map, Value, json};

use super::endpoint::{ENDPOINTS, Endpoint, PARTS};
use super::field::{Field, Kind, SUBMISSION};
use super::tokens::Role;

/// Returns the description.
pub fn openapi() -> Value {
    let mut paths = Map::new();
    for endpoint in ENDPOINTS {
        let method = if endpoint.role == Role::Read { "get" } else { "post" };
        paths.entry(endpoint.path).or_insert_with(|| json!({}))[method] = operation(endpoint);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "trialrun serve",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Runs, trials, trends and comparisons of a record, and the queue of its workers.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "paths": paths,
        "components": {
            "securitySchemes": {
                "bearer": { "type": "http", "scheme": "bearer", "description": "A token with the role `read` or `run`" },
                "basic": {
                    "type": "http", "scheme": "basic",
                    "description": "A token as the password of any user; only for requests that read",
                },
            },
            "schemas": {
                "Problem": {
                    "type": "object",
                    "description": "Reason why a request was not answered (RFC 9457)",
                    "required": ["title", "status", "detail"],
                    "properties": {
                        "title": { "type": "string" }, "status": { "type": "integer" }, "detail": { "type": "string" },
                    },
                },
            },
        },
    })
}

/// Returns the generated sections of the reference, by name.
pub fn reference() -> Vec<(String, String)> {
    let mut addresses = String::from("| address | role | |\n| --- | --- | --- |\n");
    for endpoint in ENDPOINTS {
        let method = if endpoint.role == Role::Read { "GET" } else { "POST" };
        let named = |fields: &[Field]| fields.iter().map(|field| format!("`{}`", field.name)).collect::<Vec<_>>();
        let takes = [named(endpoint.parameters), named(endpoint.fields)].concat();
        let takes = if takes.is_empty() || endpoint.path == "/api/runs" && endpoint.role == Role::Run {
            String::new()
        } else {
            format!(" Takes {}.", takes.join(", "))
        };
        let (path, role, summary) = (endpoint.path, endpoint.role.name(), endpoint.summary);
        addresses.push_str(&format!("| `{method} {path}` | `{role}` | {summary}.{takes} |\n"));
    }
    let mut fields = String::from("| field | type | |\n| --- | --- | --- |\n");
    for field in &SUBMISSION {
        fields.push_str(&format!("| `{}` | {} | {}. |\n", field.name, field.kind.noun(), field.description));
    }
    vec![("http addresses".to_owned(), addresses), ("http fields".to_owned(), fields)]
}

fn operation(endpoint: &Endpoint) -> Value {
    let parts = endpoint.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let description = |part: &str| PARTS.iter().find(|(name, _)| *name == part).map(|(_, description)| *description);
    let mut parameters: Vec<Value> = parts
        .map(|part| {
            json!({
                "name": part, "in": "path", "required": true, "description": description(part),
                "schema": { "type": "string" },
            })
        })
        .collect();
    parameters.extend(endpoint.parameters.iter().map(
        |field| json!({ "name": field.name, "in": "query", "description": field.description, "schema": schema(field) }),
    ));
    let (status, answer) = endpoint.answer;
    let mut operation = json!({
        "operationId": id(endpoint),
        "summary": endpoint.summary,
        "security": if endpoint.role == Role::Read { json!([{ "bearer": [] }, { "basic": [] }]) } else { json!([{ "bearer": [] }]) },
        "responses": {
            status.to_string(): {
                "description": answer, "content": { "application/json": { "schema": { "type": "object" } } },
            },
            "default": {
                "description": "The request was not answered",
                "content": { "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } } },
            },
        },
    });
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    if status == 201 {
        operation["responses"]["202"] = json!({
            "description": "The run was started, but is not recorded yet; `run` is null",
            "content": { "application/json": { "schema": { "type": "object" } } },
        });
    }
    if !endpoint.fields.is_empty() {
        let property = |field: &Field| {
            let mut schema = schema(field);
            schema["description"] = field.description.into();
            (field.name.to_owned(), schema)
        };
        let properties: Map<String, Value> = endpoint.fields.iter().map(property).collect();
        let schema = json!({ "type": "object", "additionalProperties": false, "properties": properties });
        operation["requestBody"] = json!({ "content": { "application/json": { "schema": schema } } });
    }
    operation
}

/// Returns a name for an operation: `getRunsTrials`, `postRunsCancel`.
fn id(endpoint: &Endpoint) -> String {
    let method = if endpoint.role == Role::Read { "get" } else { "post" };
    let one = if endpoint.path.ends_with('}') { "One" } else { "" };
    let parts = endpoint.path.split('/').skip(2).filter(|part| !part.starts_with('{'));
    let capitalised = |part: &str| part[..1].to_ascii_uppercase() + &part[1..];
    format!("{method}{}{one}", parts.map(capitalised).collect::<String>())
}

fn schema(field: &Field) -> Value {
    match field.kind {
        Kind::Text => json!({ "type": "string" }),
        Kind::Texts => json!({ "type": "array", "items": { "type": "string" } }),
        Kind::Number => json!({ "type": "number", "minimum": 0 }),
        Kind::Trials => json!({ "oneOf": [{ "type": "integer", "minimum": 1 }, { "type": "string" }] }),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_operation_is_described_and_only_those_of_bearers_change_something() {
        let description = openapi();
        let mut ids = HashSet::new();
        for (path, operations) in description["paths"].as_object().unwrap() {
            for (method, operation) in operations.as_object().unwrap() {
                let id = operation["operationId"].as_str().unwrap();
                assert!(ids.insert(id.to_owned()), "{id} is not unique");
                let takes_basic =
                    operation["security"].as_array().unwrap().iter().any(|way| way.get("basic").is_some());
                assert_eq!(takes_basic, method == "get", "{method} {path}");
                let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
                let in_path = parameters.iter().filter(|parameter| parameter["in"] == "path").count();
                assert_eq!(in_path, path.matches('{').count(), "{path}");
                assert!(parameters.iter().all(|parameter| parameter["description"].is_string()), "{path}");
            }
        }
        assert_eq!(ids.len(), ENDPOINTS.len());
        assert!(ids.contains("getRunsTrialsOne") && ids.contains("postRuns"), "{ids:?}");
    }
}

//! Parameters of a tool, from a schema in code: JSON Schema, Zod and similar libraries, or a class with fields.

use super::python_fields::class_fields;
use super::rust;
use super::value::{Code, Entry, Link, Value, find};
use crate::profile::Parameter;

/// Methods that make a schema optional.
const OPTIONAL: [&str; 6] = ["optional", "nullish", "default", "catch", "prefault", "exactOptional"];

/// Maximum depth of nested schemas.
const DEEPEST: usize = 8;

/// Returns the parameters that a schema describes; `None` if the value is not the schema of an object.
pub(super) fn parameters(code: &Code<'_>, schema: &Value) -> Option<Vec<Parameter>> {
    object(code, schema, 0)
}

fn object(code: &Code<'_>, schema: &Value, depth: usize) -> Option<Vec<Parameter>> {
    if depth > DEEPEST {
        return None;
    }
    match code.resolved(schema.clone()) {
        Value::Map(entries) => of_map(code, &entries, depth),
        Value::Chain(links) => of_chain(code, &links, depth),
        Value::Text(_) | Value::List(_) | Value::Other => None,
    }
}

/// Reads JSON Schema, or a map from names to schemas.
fn of_map(code: &Code<'_>, entries: &[Entry], depth: usize) -> Option<Vec<Parameter>> {
    if let Some(properties) = find(entries, "properties") {
        let Value::Map(properties) = code.resolved(properties.clone()) else { return None };
        let names = |value: &Value| match code.resolved(value.clone()) {
            Value::List(items) => items.iter().filter_map(|item| Some(item.as_text()?.text.clone())).collect(),
            _ => Vec::new(),
        };
        let required: Vec<String> = find(entries, "required").map(names).unwrap_or_default();
        let parameter = |entry: &Entry| {
            let required = required.contains(&entry.key);
            Parameter { required, ..one(code, &entry.key, &entry.value, depth + 1) }
        };
        return Some(properties.iter().filter(|entry| !entry.key.is_empty()).map(parameter).collect());
    }
    let kind = find(entries, "type").map(|kind| code.resolved(kind.clone()));
    if kind.is_some_and(|kind| kind.as_text().is_some_and(|kind| kind.text.eq_ignore_ascii_case("object"))) {
        return Some(Vec::new());
    }
    let is_schema = |entry: &Entry| match code.resolved(entry.value.clone()) {
        Value::Map(inner) => find(&inner, "type").is_some_and(|kind| kind.as_text().is_some()),
        Value::Chain(links) => is_library(&links),
        _ => false,
    };
    (!entries.is_empty() && entries.iter().all(is_schema))
        .then(|| entries.iter().map(|entry| one(code, &entry.key, &entry.value, depth + 1)).collect())
}

/// Returns `true` if a chain begins like a schema from a library: `z.`, `t.`, `Type.`, `v.`.
fn is_library(links: &[Link]) -> bool {
    links.len() > 1 && ["z", "zod", "t", "Type", "v", "s", "schema", "Schema"].contains(&links[0].name.as_str())
}

fn of_chain(code: &Code<'_>, links: &[Link], depth: usize) -> Option<Vec<Parameter>> {
    let argument = |link: &Link| Some(link.arguments.as_deref()?.first()?.value.clone());
    let mut found: Option<Vec<Parameter>> = None;
    for link in links {
        match link.name.as_str() {
            "object" | "strictObject" | "looseObject" | "Object" | "extend" | "merge" | "safeExtend" => {
                let inner = argument(link).map(|inner| code.resolved(inner));
                let added = match inner {
                    Some(Value::Map(entries)) => {
                        entries.iter().map(|entry| one(code, &entry.key, &entry.value, depth + 1)).collect()
                    }
                    Some(other) => object(code, &other, depth + 1).unwrap_or_default(),
                    None => Vec::new(),
                };
                found.get_or_insert_default().extend(added);
            }
            "jsonSchema" | "zodSchema" | "zodToJsonSchema" | "valibotSchema" | "toJSONSchema" | "from_value"
            | "object_schema" => {
                found = found.or(argument(link).and_then(|inner| object(code, &inner, depth + 1)));
            }
            "model_json_schema" | "schema" | "schema_json" | "schema_for" | "schema_for_type" => {}
            // The base in `Base.extend({…})`, or a class.
            name => {
                let base = Value::Chain(vec![Link { name: name.to_owned(), arguments: None }]);
                let of_class = || class_fields(code, name).or_else(|| rust::struct_fields(code, name));
                found = found.or_else(|| match code.resolved(base.clone()) {
                    Value::Chain(same) if same.len() == 1 => of_class(),
                    other => object(code, &other, depth + 1),
                });
            }
        }
    }
    found
}

/// Returns the parameter that a schema describes.
fn one(code: &Code<'_>, name: &str, schema: &Value, depth: usize) -> Parameter {
    let mut parameter = Parameter { name: name.to_owned(), required: true, ..Parameter::default() };
    match code.resolved(schema.clone()) {
        Value::Map(entries) => {
            let description = find(&entries, "description").and_then(Value::as_text);
            parameter.description = description.map(|text| text.text.clone());
            parameter.kind = match find(&entries, "type").map(|kind| code.resolved(kind.clone())) {
                Some(Value::Text(kind)) => Some(kind.text.to_ascii_lowercase()),
                Some(Value::List(kinds)) => {
                    let kinds: Vec<String> =
                        kinds.iter().filter_map(|kind| Some(kind.as_text()?.text.clone())).collect();
                    Some(kinds.join(" or ")).filter(|kinds| !kinds.is_empty())
                }
                _ => None,
            };
            let is_true = |key: &str| find(&entries, key).is_some_and(|v| v.is_name("true") || v.is_name("True"));
            parameter.required = !is_true("nullable") && !is_true("optional");
        }
        Value::Chain(links) => of_library(code, &links, &mut parameter, depth),
        Value::Text(_) | Value::List(_) | Value::Other => {}
    }
    parameter
}

fn of_library(code: &Code<'_>, links: &[Link], parameter: &mut Parameter, depth: usize) {
    for link in links.iter().skip(1) {
        let arguments = link.arguments.as_deref().unwrap_or_default();
        let name = link.name.as_str();
        if matches!(name, "describe" | "description") {
            let text = arguments.first().and_then(|entry| code.resolved(entry.value.clone()).as_text().cloned());
            parameter.description = text.map(|text| text.text);
        } else if name.eq_ignore_ascii_case("optional") && parameter.kind.is_none() && depth <= DEEPEST {
            // `Type.Optional(Type.String())`
            if let Some(inner) = arguments.first() {
                *parameter = one(code, &parameter.name, &inner.value, depth + 1);
            }
            parameter.required = false;
        } else if OPTIONAL.contains(&name) {
            parameter.required = false;
        } else if name == "int" {
            parameter.kind = Some("integer".to_owned());
        } else if parameter.kind.is_none() {
            parameter.kind = kind_of(name).map(str::to_owned);
            let options = arguments.last().map(|entry| &entry.value);
            let text = options.and_then(|options| Some(options.get("description")?.as_text()?.text.clone()));
            parameter.description = parameter.description.take().or(text);
        }
    }
}

/// Returns the JSON Schema type for a function of a schema library.
fn kind_of(name: &str) -> Option<&'static str> {
    Some(match name.to_ascii_lowercase().as_str() {
        "string" | "enum" | "nativeenum" | "literal" | "email" | "url" | "uuid" | "date" | "datetime" | "iso"
        | "stringenum" | "picklist" => "string",
        "number" | "float" | "float32" | "float64" => "number",
        "int" | "integer" | "bigint" | "int32" => "integer",
        "boolean" => "boolean",
        "array" | "tuple" | "set" => "array",
        "object" | "strictobject" | "looseobject" | "record" | "map" | "discriminatedunion" => "object",
        "any" | "unknown" | "union" => "any",
        "null" => "null",
        _ => return None,
    })
}

//! JSON Schema for the assertions, for editors. It has every type with its fields, and is generated from the table.

use serde_json::{Map, Value, json};

use crate::assertion_type::{Assertion, Field, Parameter, TITLE, camel_case};
use crate::assertions::ASSERTIONS;

/// Alternative names of fields: the assertion, the field, and its alternative name.
const SECOND_NAMES: [(&str, &str, &str); 2] = [("command", "run", "command"), ("tests_pass", "command", "run")];

/// Returns the schema for an assertion in a file: a type alone, a map with a `type`, or a map with the type as its
/// key. A map with a `type` must also have the `needed` keys.
pub fn assertion_schema(needed: &[&str]) -> Value {
    let written: Vec<&Assertion> = ASSERTIONS.iter().filter(|assertion| !assertion.is_implicit()).collect();
    let names: Vec<String> = written.iter().flat_map(|assertion| names_of(assertion)).collect();
    let alone: Vec<String> =
        written.iter().filter(|assertion| needs_nothing(assertion)).flat_map(|assertion| names_of(assertion)).collect();
    let mut typed = vec![json!({ "properties": { "type": { "enum": names } }, "required": needed })];
    typed.extend(written.iter().map(|assertion| {
        let mut fields = fields_of(assertion);
        fields.extend(common());
        fields.insert("type".to_owned(), json!({}));
        json!({
            "if": { "properties": { "type": { "enum": names_of(assertion) } } },
            "then": map_of(assertion, &fields),
        })
    }));
    let mut keys = common();
    for assertion in &written {
        let value = json!({ "description": assertion.summary, "anyOf": brief(assertion) });
        keys.extend(names_of(assertion).into_iter().map(|name| (name, value.clone())));
    }
    let one: Vec<Value> = names.iter().map(|name| json!({ "required": [name] })).collect();
    let has_type = json!({ "type": "object", "required": ["type"] });
    json!({
        "description": "An assertion: a `type` with its fields, a map with the type as its only key apart from `id`, \
                        `weight` and `title`, or only the name of a type that needs no arguments.",
        "type": ["object", "string"],
        "allOf": [
            { "if": { "type": "string" }, "then": { "enum": alone } },
            { "if": has_type, "then": { "allOf": typed } },
            {
                "if": { "type": "object", "not": has_type },
                "then": { "properties": keys, "oneOf": one, "additionalProperties": false },
            },
        ],
    })
}

/// Returns the name and all aliases of `assertion`, in snake case and in camel case.
fn names_of(assertion: &Assertion) -> Vec<String> {
    let names = std::iter::once(&assertion.name).chain(assertion.aliases);
    names.flat_map(|name| spellings(name)).collect()
}

/// Returns `name`, and its spelling in camel case if that differs.
fn spellings(name: &str) -> impl Iterator<Item = String> + use<> {
    let camel = camel_case(name);
    let other = (camel != name).then_some(camel);
    std::iter::once(name.to_owned()).chain(other)
}

/// Returns `true` if `assertion` has no required field.
fn needs_nothing(assertion: &Assertion) -> bool {
    !assertion.fields.iter().any(|field| field.required)
}

/// Returns the keys that every assertion has in addition to its type and its fields.
fn common() -> Map<String, Value> {
    let text = json!({ "type": "string", "minLength": 1 });
    [("id", text.clone()), ("weight", json!({ "type": "number", "exclusiveMinimum": 0 })), ("title", text)]
        .into_iter()
        .map(|(key, schema)| (key.to_owned(), schema))
        .collect()
}

/// Returns the fields of `assertion` in all their spellings.
fn fields_of(assertion: &Assertion) -> Map<String, Value> {
    let mut fields = Map::new();
    for field in assertion.fields {
        let mut schema = shape(field.holds);
        if let Some(schema) = schema.as_object_mut() {
            schema.insert("description".to_owned(), json!(field.doc));
        }
        fields.extend(names_of_field(assertion, field).into_iter().map(|name| (name, schema.clone())));
    }
    fields
}

fn names_of_field(assertion: &Assertion, field: &Field) -> Vec<String> {
    let second = SECOND_NAMES.iter().find(|(owner, name, _)| (*owner, *name) == (assertion.name, field.name));
    spellings(field.name).chain(second.map(|(_, _, other)| (*other).to_owned())).collect()
}

/// Returns the schema for a map of `fields` without other keys. The required fields of `assertion` must be present.
fn map_of(assertion: &Assertion, fields: &Map<String, Value>) -> Value {
    let required = assertion.fields.iter().filter(|field| field.required).map(|field| {
        let names = names_of_field(assertion, field);
        json!({ "anyOf": names.iter().map(|name| json!({ "required": [name] })).collect::<Vec<_>>() })
    });
    let mut schema = json!({ "type": "object", "properties": fields, "additionalProperties": false });
    let required: Vec<Value> = required.collect();
    if let (false, Some(schema)) = (required.is_empty(), schema.as_object_mut()) {
        schema.insert("allOf".to_owned(), required.into());
    }
    schema
}

/// Returns the schemas for the value of a type that is used as a key.
fn brief(assertion: &Assertion) -> Vec<Value> {
    let field = |name: &str| assertion.fields.iter().find(|field| field.name == name);
    let fields = || map_of(assertion, &fields_of(assertion));
    let of = |field: Option<&Field>| field.map(|field| shape(field.holds));
    let mut ways: Vec<Value> = match assertion.parameters.first() {
        Some(Parameter::Value(name)) => of(field(name)).into_iter().chain([fields()]).collect(),
        Some(Parameter::Map(name)) => of(field(name)).into_iter().collect(),
        Some(Parameter::Fields) => {
            let first = assertion.fields.iter().find(|field| field.required).or(assertion.fields.first());
            of(first.filter(|field| **field != TITLE)).into_iter().chain([fields()]).collect()
        }
        None => Vec::new(),
    };
    if needs_nothing(assertion) {
        ways.push(json!({ "enum": [true, null] }));
    }
    ways
}

/// Returns the schema for a value that the table describes as `words`.
fn shape(words: &str) -> Value {
    let text = || json!({ "type": "string" });
    let texts = || json!({ "type": "array", "items": text() });
    let starts = |front: &str| words.starts_with(front);
    match words {
        "string or list of strings" => json!({ "anyOf": [text(), texts()] }),
        "list of strings" | "list of paths" => texts(),
        "list of strings, or of maps" => json!({ "type": "array", "items": { "type": ["string", "object"] } }),
        "list of steps, at least 1" => json!({ "type": "array", "minItems": 1, "items": {
            "type": "object",
            "properties": {
                "tool": text(),
                "args_match": { "type": ["string", "object"] },
                "argsMatch": { "type": ["string", "object"] },
                "capture": texts(),
            },
            "required": ["tool"],
            "additionalProperties": false,
        } }),
        "duration" => json!({ "anyOf": [
            { "type": "integer", "minimum": 1 },
            { "type": "string", "pattern": "^\\s*[0-9.]+\\s*(ms|s|m|h)\\s*$" },
        ] }),
        "true or false" | "`true` or `false`" => json!({ "type": "boolean" }),
        "number above 0" => json!({ "type": "number", "exclusiveMinimum": 0 }),
        "map" => json!({ "type": "object" }),
        "map or list" => json!({ "type": ["object", "array"] }),
        _ if starts("true, ") => json!({ "type": ["boolean", "string", "array", "object"] }),
        _ if starts("string") || starts("regular expression") || starts("path") => text(),
        _ if starts("map of regular expressions") => json!({ "type": ["string", "object"] }),
        _ if starts("whole number") => bounded("integer", words),
        _ if starts("number") => json!({ "type": "number" }),
        _ if starts("JSON Schema") => json!({ "type": ["object", "boolean"] }),
        _ => literals(words).map_or_else(|| json!({}), |names| json!({ "enum": names })),
    }
}

/// Returns the schema for a number with the bounds in `words`: `from 0`, `at least 1`, `2 to 100`.
fn bounded(kind: &str, words: &str) -> Value {
    let numbers: Vec<u64> = words.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect();
    match numbers[..] {
        [least] => json!({ "type": kind, "minimum": least }),
        [least, most] => json!({ "type": kind, "minimum": least, "maximum": most }),
        _ => json!({ "type": kind }),
    }
}

/// Parses a list of literal words: `` `all` or `any` ``.
fn literals(words: &str) -> Option<Vec<String>> {
    let words = words.replace(" or ", ", ");
    let word = |word: &str| word.trim().strip_prefix('`')?.strip_suffix('`').map(str::to_owned);
    words.split(", ").map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_assertion_field_has_a_json_schema() {
        let is_open = ["any value", "expectation", "any value that JSON can say"];
        for assertion in ASSERTIONS {
            for field in assertion.fields.iter().filter(|field| !is_open.contains(&field.holds)) {
                assert_ne!(shape(field.holds), json!({}), "{}.{}: {}", assertion.name, field.name, field.holds);
            }
        }
        assert_eq!(shape("whole number, 2 to 100"), json!({"type": "integer", "minimum": 2, "maximum": 100}));
        assert_eq!(shape("`all` or `any`"), json!({"enum": ["all", "any"]}));
    }
}

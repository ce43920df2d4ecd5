//! Reference and schema of `evals.json`.

use serde_json::{Map, Value, json};

use super::schema;
use crate::format::{ASSERTION_KEYS, ASSERTION_TYPES, AssertionType};

/// Draft that this format has always used.
const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Returns the JSON Schema of `evals.json`, for editors and other programs.
pub fn evals_schema() -> Value {
    let mut schema = Value::Object(schema::document("evals"));
    at(&mut schema, "/definitions/case/properties/id", |id| {
        let refused = json!({ "anyOf": [{ "const": "." }, { "pattern": r"\.\." }] });
        let text = json!({ "type": "string", "minLength": 1, "pattern": ID, "not": refused });
        id.insert("anyOf".to_owned(), json!([text, { "type": "integer" }]));
    });
    at(&mut schema, "/definitions/case/properties/prompt", |prompt| {
        prompt.insert("pattern".to_owned(), json!("\\S"));
    });
    at(&mut schema, "/definitions/case", |case| {
        let both = |one: &str, is: bool, other: &str| {
            json!({ "not": {
                "properties": { one: { "const": is }, other: { "const": true } }, "required": [one, other]
            } })
        };
        let contradictions =
            [both("should_trigger", false, "force_skill_invocation"), both("stage_files", true, "commit_files")];
        case.insert("allOf".to_owned(), json!(contradictions));
    });
    at(&mut schema, "/definitions/assertion", |assertion| {
        let types: Vec<Value> = ASSERTION_TYPES.iter().map(needed).collect();
        assertion.insert("allOf".to_owned(), Value::Array(types));
    });
    if let Value::Object(schema) = &mut schema {
        schema.insert("$schema".to_owned(), json!(DRAFT));
        let definitions = schema.remove("definitions").unwrap_or_default();
        schema.insert("$defs".to_owned(), definitions);
    }
    refer_to_defs(&mut schema);
    schema
}

/// Pattern for an id that is a string, without its dots.
const ID: &str = r"^[^\s/\\\u0000-\u001f]([^/\\\u0000-\u001f]*[^\s/\\\u0000-\u001f])?$";

fn at(schema: &mut Value, pointer: &str, change: impl FnOnce(&mut Map<String, Value>)) {
    if let Some(part) = schema.pointer_mut(pointer).and_then(Value::as_object_mut) {
        change(part);
    }
}

/// Returns the condition that an assertion of this type has all required keys, and no keys that it does not support.
fn needed(one: &AssertionType) -> Value {
    let known = |key: &&str| ["type", "text"].contains(key) || one.needs.contains(key) || one.may.contains(key);
    let needless = ASSERTION_KEYS.iter().filter(|key| !known(key));
    let needless: Map<String, Value> = needless.map(|key| ((*key).to_owned(), Value::Bool(false))).collect();
    json!({
        "if": { "properties": { "type": { "const": one.name } }, "required": ["type"] },
        "then": { "required": one.needs, "properties": needless },
    })
}

/// Renames references to `$defs`, the name for definitions in this draft.
fn refer_to_defs(schema: &mut Value) {
    match schema {
        Value::Object(entries) => {
            for (key, value) in entries.iter_mut() {
                match value {
                    Value::String(reference) if key == "$ref" => {
                        *reference = reference.replacen("#/definitions/", "#/$defs/", 1);
                    }
                    other => refer_to_defs(other),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(refer_to_defs),
        _ => {}
    }
}

//! The protocol's own schemas of results and errors.

use serde_json::{Map, Value, json};

use crate::era::Era;
use crate::rule::SchemaCheck;

/// Beginning of a reference to a definition.
const DEFINITIONS: &str = "#/$defs/";

/// Returns the errors of `value`, which should be of the type `name` of the protocol.
pub(crate) fn errors(era: Era, name: &str, value: &Value, check: SchemaCheck) -> Vec<String> {
    let text = match era {
        Era::Sessions => include_str!("schema/2025-11-25.json"),
        Era::Stateless => include_str!("schema/2026-07-28.json"),
    };
    let Ok(all) = serde_json::from_str::<Value>(text) else {
        return vec![format!("the schema of version {era} cannot be read")];
    };
    // Most types need few of the definitions, and a schema takes long to compile.
    let mut needed = Map::new();
    collect(name, &all["$defs"], &mut needed);
    let schema = json!({"$ref": format!("{DEFINITIONS}{name}"), "$defs": needed});
    match check(&schema, value) {
        Ok(errors) => errors.into_iter().map(|error| format!("`{name}`: {error}")).collect(),
        Err(reason) => vec![format!("`{name}`: {reason}")],
    }
}

/// Collects the definition `name`, and those that it refers to.
fn collect(name: &str, all: &Value, needed: &mut Map<String, Value>) {
    if needed.contains_key(name) {
        return;
    }
    needed.insert(name.to_owned(), all[name].clone());
    let mut values = vec![&all[name]];
    while let Some(value) = values.pop() {
        match value {
            Value::Object(entries) => values.extend(entries.values()),
            Value::Array(items) => values.extend(items),
            Value::String(text) => {
                if let Some(other) = text.strip_prefix(DEFINITIONS) {
                    collect(other, all, needed);
                }
            }
            _ => {}
        }
    }
}

//! The protocol's own schemas of results and errors.

use serde_json::{Value, json};

use crate::era::Era;
use crate::rule::SchemaCheck;

/// Returns the errors of `value`, which should be of the type `name` of the protocol.
pub(crate) fn errors(era: Era, name: &str, value: &Value, check: SchemaCheck) -> Vec<String> {
    let text = match era {
        Era::Sessions => include_str!("schema/2025-11-25.json"),
        Era::Stateless => include_str!("schema/2026-07-28.json"),
    };
    let Ok(mut schema) = serde_json::from_str::<Value>(text) else {
        return vec![format!("the schema of version {era} cannot be read")];
    };
    schema["$ref"] = json!(format!("#/$defs/{name}"));
    match check(&schema, value) {
        Ok(errors) => errors.into_iter().map(|error| format!("`{name}`: {error}")).collect(),
        Err(reason) => vec![format!("`{name}`: {reason}")],
    }
}

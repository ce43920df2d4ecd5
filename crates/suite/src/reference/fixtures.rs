//! Schemas of the keys of fixtures files.

use serde_json::{Map, Value, json};

use super::table::Table;
use crate::fixture_settings::field::{Field, Kind, STRICT};

/// Returns the schema of a map with these keys, which the tables of `sections` describe.
pub(super) fn map_schema(sections: &[(&str, &[Field])], is_open: bool) -> Value {
    let mut properties = Map::new();
    for (section, fields) in sections {
        let table = Table::all().find(|table| table.section == *section);
        for field in *fields {
            let row = table.iter().flat_map(|table| &table.fields).find(|row| row.key == field.key);
            let mut schema = schema_of(field.kind);
            schema["description"] = json!(row.map(|row| row.about).unwrap_or_default());
            properties.insert(field.key.to_owned(), schema);
        }
    }
    json!({ "type": "object", "properties": properties, "additionalProperties": is_open })
}

fn schema_of(kind: Kind) -> Value {
    let text = || json!({ "type": "string", "minLength": 1 });
    let texts = || json!({ "type": "array", "items": text() });
    let flag_or = |more: Value| json!({ "anyOf": [{ "type": "boolean" }, more] });
    match kind {
        Kind::Any => json!({}),
        Kind::Text => text(),
        Kind::AnyText => json!({ "type": "string" }),
        Kind::Texts => texts(),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::FlagOr(text) => json!({ "enum": [true, false, text] }),
        Kind::Skip => flag_or(json!({ "type": "string" })),
        Kind::Skips => json!({ "anyOf": [
            {
                "type": "object",
                "patternProperties": { "^[0-9]+$": { "type": "boolean" } },
                "additionalProperties": false,
            },
            { "type": "array", "items": { "type": ["boolean", "null"] } },
        ] }),
        Kind::Strict => json!({ "anyOf": [
            { "type": "boolean" }, { "enum": STRICT }, { "type": "array", "items": { "enum": STRICT } }
        ] }),
        Kind::Positive => json!({ "type": "number", "exclusiveMinimum": 0 }),
        Kind::Weight => json!({ "type": "number", "minimum": 0 }),
        Kind::Tools => json!({ "type": ["boolean", "string", "object", "array"] }),
        Kind::Parser => json!({ "enum": ["text", "json"] }),
        Kind::Operators => json!({ "anyOf": [
            { "type": "object", "additionalProperties": { "type": "string" } }, texts()
        ] }),
        Kind::Schema => json!({ "type": ["boolean", "object", "string"] }),
        Kind::Map => json!({ "type": "object" }),
        Kind::Duration => duration(),
        Kind::Whole => json!({ "type": "integer", "minimum": 1 }),
    }
}

/// Returns the schema of a duration.
pub(super) fn duration() -> Value {
    json!({ "anyOf": [
        { "type": "integer", "minimum": 1 },
        { "type": "string", "pattern": "^\\s*[0-9.]+\\s*(ms|s|m|h)\\s*$" }
    ] })
}

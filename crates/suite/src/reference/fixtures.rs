//! Fixtures files: table of their keys, and schema for editors.

use serde_json::{Map, Value, json};

use super::DRAFT;
use crate::fixture_settings::field::{FIELDS, FRONT_FIELDS, Field as FixtureField, Kind as FixtureKind, STRICT};

/// Table of keys as Markdown.
pub(super) fn table(fields: &[FixtureField]) -> String {
    let row = |field: &FixtureField| format!("| `{}` | {} | {} |\n", field.key, field.kind.words(), field.about);
    format!("| key | value | meaning |\n| --- | --- | --- |\n{}", fields.iter().map(row).collect::<String>())
}

/// A JSON Schema for fixtures files in YAML and JSON, for editors.
pub fn fixture_schema() -> Value {
    let mut definitions = Map::new();
    let map = map_schema(FIELDS.iter().chain(FRONT_FIELDS), true);
    definitions.insert("document".to_owned(), map);
    definitions.insert("case".to_owned(), map_schema(FIELDS, true));
    json!({
        "$schema": DRAFT,
        "title": "fixtures",
        "anyOf": [
            { "type": "array", "items": { "$ref": "#/definitions/case" } },
            { "$ref": "#/definitions/document" },
        ],
        "definitions": definitions,
    })
}

/// The schema of a map with these keys.
pub(super) fn map_schema<'f>(fields: impl IntoIterator<Item = &'f FixtureField>, open: bool) -> Value {
    let mut properties = Map::new();
    for field in fields {
        let mut schema = schema_of(field.kind);
        schema.insert("description".to_owned(), json!(field.about));
        properties.insert(field.key.to_owned(), Value::Object(schema));
    }
    json!({ "type": "object", "properties": properties, "additionalProperties": open })
}

fn schema_of(kind: FixtureKind) -> Map<String, Value> {
    let text = || json!({ "type": "string", "minLength": 1 });
    let texts = || json!({ "type": "array", "items": text() });
    let flag_or = |more: Value| json!({ "anyOf": [{ "type": "boolean" }, more] });
    let schema = match kind {
        FixtureKind::Any => json!({}),
        FixtureKind::Text => text(),
        FixtureKind::AnyText => json!({ "type": "string" }),
        FixtureKind::Texts => texts(),
        FixtureKind::Flag => json!({ "type": "boolean" }),
        FixtureKind::Skip => flag_or(json!({ "type": "string" })),
        FixtureKind::Skips => json!({ "anyOf": [
            {
                "type": "object",
                "patternProperties": { "^[0-9]+$": { "type": "boolean" } },
                "additionalProperties": false,
            },
            { "type": "array", "items": { "type": ["boolean", "null"] } },
        ] }),
        FixtureKind::Strict => json!({ "anyOf": [
            { "type": "boolean" }, { "enum": STRICT }, { "type": "array", "items": { "enum": STRICT } }
        ] }),
        FixtureKind::Scoring => json!({ "enum": [true, false, "auto"] }),
        FixtureKind::Positive => json!({ "type": "number", "exclusiveMinimum": 0 }),
        FixtureKind::Weight => json!({ "type": "number", "minimum": 0 }),
        FixtureKind::Confidence => json!({ "enum": [true, false, "force"] }),
        FixtureKind::Tools => json!({ "type": ["boolean", "string", "object", "array"] }),
        FixtureKind::Parser => json!({ "enum": ["text", "json"] }),
        FixtureKind::Operators => json!({ "anyOf": [
            { "type": "object", "additionalProperties": { "type": "string" } }, texts()
        ] }),
        FixtureKind::Schema => json!({ "type": ["boolean", "object", "string"] }),
        FixtureKind::Map => json!({ "type": "object" }),
        FixtureKind::Duration => json!({ "anyOf": [
            { "type": "integer", "minimum": 1 },
            { "type": "string", "pattern": "^\\s*[0-9.]+\\s*(ms|s|m|h)\\s*$" }
        ] }),
        FixtureKind::Whole => json!({ "type": "integer", "minimum": 1 }),
        FixtureKind::LogVars => json!({ "enum": [true, false, "error"] }),
    };
    match schema {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Request, load};

    #[test]
    fn the_example_loads() {
        let page = include_str!("../../../../docs/reference/fixtures.md");
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        std::fs::write(root.join("hello.fixture.yaml"), super::super::tests::example(page)).unwrap();
        let loaded = load(&Request {
            root: root.to_owned(),
            skills_dir: root.join("skills"),
            cwd: root.to_owned(),
            targets: vec!["hello.fixture.yaml".to_owned()],
            ..Request::default()
        });
        assert_eq!(loaded.diagnostics, []);
        let suite = &loaded.suites[0];
        assert_eq!((suite.name.as_str(), suite.cases.len()), ("hello", 3));
        assert_eq!(suite.cases[1].messages[0].text, "Say hello to Ann in German.");
    }

    #[test]
    fn the_schema_has_every_key() {
        let schema = fixture_schema();
        for field in FIELDS.iter().chain(FRONT_FIELDS) {
            assert!(schema["definitions"]["document"]["properties"][field.key].is_object(), "{}", field.key);
        }
        assert!(schema["definitions"]["case"]["properties"]["agent"].is_null());
    }
}

//! The same for fixtures files: their page, and the schema for editors.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::DRAFT;
use crate::format::{FIELDS, FRONT_FIELDS, FixtureField, FixtureKind, STRICT};

/// What a fixtures file is.
const WHAT: &str = "\
# Fixtures files

Many cases in one file: each an input for the agent and what is expected of its answer. A file is called \
`NAME.fixture.yaml`, or with `.yml`, `.json`, `.jsonl`, `.ts`, `.mts`, `.js` or `.mjs` at its end; `.fixtures.` in place \
of `.fixture.` is as good. It is found where scenarios are found, and is a suite of its own, called `NAME`. A file among \
the tests of a skill puts that skill to the test.
";

/// A file that shows how one looks.
const EXAMPLE: &str = "\
input: { language: English }   # defaults of every case
message: \"Say hello to {{name}} in {{language}}.\"
---
- title: greets by name
  input: { name: Ann }
  output: Hello Ann
- title: greets in another language
  input: { name: Ann, language: German }
  output: /hallo|guten tag/i
- title: stays polite
  input: { name: \"\" }
  scoring: true
  passScore: 80
  expect:
    output:
      $and:
        - { $expect: /hello/i, $score: 80 }
        - { $not: /who are you/i, $score: 20 }
";

/// How it is read.
const READING: &str = "\
## What is in a file

A YAML file holds a *front matter*, a map with what all cases have in common, then `---`, then a list of cases; or each \
case in a document of its own. Without front matter it is a list of cases, or one case. JSON is a list of cases or one \
case; `.jsonl` has a case in each line.

A module (`.ts`, `.js` and so on) has the list as its default export, or as `export const fixtures`; its front matter is \
`export const config`. There regular expressions are written as they are in the language, and functions may stand where \
something is expected: `output: (actual, fixture) => actual.length > 10 || \"too short\"`.

Two YAML tags have a meaning: `!re /hello/i` is a regular expression, `!json-schema` stands before a JSON Schema.

What a case does not say itself is taken from the front matter, and what that does not say from `fixtures.defaults` of \
the configuration. Of `input` and `outputSchema` maps are filled in at every depth; lists are never mixed. `output` and \
`expect` are taken as they are.

## What the agent is sent

An input that is text is the message. Otherwise it is `message` of the case or the front matter, usually with templates; \
without it `prompt`, `message` or `query` of the input, else the input as JSON. With neither input nor message it is \
`Begin.`.

## Variables

Any other key is a variable. In templates, names mean, in this order: a key of the case; `userConfig.data` of the \
configuration; a key of an input that is a map; a key of the front matter; `scriptConfig` of the configuration. `input` \
is the whole input. Scripts, `$expr` and functions get the same values as `args` or `data`, except that there \
`userConfig.data` and the input go before the case. A key that is nearly called like one below, and that no template \
uses, is warned of.
";

/// The reference of fixtures files, in Markdown.
pub fn fixtures_reference() -> String {
    let mut text = String::from(WHAT);
    // Writing to a string cannot fail.
    let _ = write!(text, "\n```yaml\n{EXAMPLE}```\n\n{READING}");
    for (title, about, fields) in [
        ("Keys of a case", "All of them may be in the front matter, too. `null` is as if it were not written.", FIELDS),
        ("Keys of the front matter", "Settings of the whole file. They are no variables.", FRONT_FIELDS),
    ] {
        let _ = write!(text, "\n## {title}\n\n{about}\n\n{}", table(fields));
    }
    text
}

/// Rows of keys, in Markdown.
pub(super) fn table(fields: &[FixtureField]) -> String {
    let mut text = String::from("| key | value | |\n| --- | --- | --- |\n");
    for field in fields {
        let _ = writeln!(text, "| `{}` | {} | {} |", field.key, field.kind.words(), field.about);
    }
    text
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
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        std::fs::write(root.join("hello.fixture.yaml"), EXAMPLE).unwrap();
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
    fn the_page_and_the_schema_name_every_key() {
        let page = fixtures_reference();
        let schema = fixture_schema();
        for field in FIELDS.iter().chain(FRONT_FIELDS) {
            assert!(page.contains(&format!("| `{}` |", field.key)), "{}", field.key);
            assert!(schema["definitions"]["document"]["properties"][field.key].is_object(), "{}", field.key);
        }
        assert!(schema["definitions"]["case"]["properties"]["agent"].is_null());
    }
}

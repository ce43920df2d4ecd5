//! Reference for the fields of scenarios, conversations, skill evaluations, fixtures files and configurations, and
//! schemas for editors. Tests compare them with the keys that the readers know.

mod evals;
mod schema;

use serde_json::{Map, Value, json};

use self::schema::DRAFT;
use crate::format::run;
use crate::table::Table;

pub use self::evals::evals_schema;

/// Returns the generated sections of the reference pages, as names and Markdown.
pub fn reference() -> Vec<(String, String)> {
    let fields = Table::all().map(|table| (table.section, table.text.to_owned()));
    let opening = ("scenario opening", format!("```text\n{}\n```", run("NAME")));
    fields.chain([opening]).map(|(name, text)| (name.to_owned(), text)).collect()
}

/// Returns the JSON Schema of scenario files, for editors. `assertion` is the schema of an entry in `assertions`.
pub fn scenario_schema(assertion: Value) -> Value {
    let mut schema = schema::document("scenario");
    let only = |key: &str| json!({ "required": [key] });
    schema.insert("oneOf".to_owned(), json!([only("skill"), only("system_prompt"), only("system_prompt_file")]));
    let both = |one: &str, other: &str| json!({ "not": { "required": [one, other] } });
    schema
        .insert("allOf".to_owned(), json!([both("user_prompt", "user_prompts"), both("token_budget", "token-budget")]));
    with_assertion(schema, assertion)
}

/// Returns the JSON Schema of conversations, for editors. `assertion` is the schema of an entry in `assertions`.
pub fn conversation_schema(assertion: Value) -> Value {
    let mut schema = schema::document("conversation");
    schema.insert("anyOf".to_owned(), json!([{ "required": ["turns"] }, { "required": ["user"] }]));
    with_assertion(schema, assertion)
}

/// Returns the JSON Schema of tests of MCP servers, for editors. `assertion` is the schema of an entry in `expect`.
pub fn mcp_schema(assertion: Value) -> Value {
    with_assertion(schema::document("mcp"), assertion)
}

fn with_assertion(mut schema: Map<String, Value>, assertion: Value) -> Value {
    schema["definitions"]["assertion"] = assertion;
    Value::Object(schema)
}

/// Returns the JSON Schema of fixtures files in YAML and JSON, for editors.
pub fn fixture_schema() -> Value {
    json!({
        "$schema": DRAFT,
        "title": "fixtures",
        "anyOf": [
            { "type": "array", "items": { "$ref": "#/definitions/case" } },
            { "$ref": "#/definitions/document" },
        ],
        "definitions": {
            "document": schema::map_of(&["fixtures case", "fixtures front matter"], true),
            "case": schema::map_of(&["fixtures case"], true),
        },
    })
}

/// Returns the JSON Schema of the project's configuration, for editors.
pub fn config_schema() -> Value {
    Value::Object(schema::document("configuration"))
}

#[cfg(test)]
mod tests;

//! The schemas of the JSON report and of the JSON form of a comparison, for programs that validate their input, and
//! the sections of the reference pages that are generated from them.

use serde_json::{Map, Value};

/// The schemas as written by hand. Fields may be added later, so unknown fields are not rejected.
const REPORT: &str = include_str!("report.schema.json");
const COMPARISON: &str = include_str!("../compare/compare.schema.json");

/// Returns the JSON Schema of the JSON report.
pub fn report_schema() -> Value {
    serde_json::from_str(REPORT).unwrap_or_default()
}

/// Returns the JSON Schema for the JSON form of a comparison.
pub fn comparison_schema() -> Value {
    serde_json::from_str(COMPARISON).unwrap_or_default()
}

/// Returns the generated sections of the reference pages, as names and Markdown: one for each document and each
/// definition of its schema.
pub fn reference() -> Vec<(String, String)> {
    [("report", report_schema()), ("compare", comparison_schema())]
        .into_iter()
        .flat_map(|(document, schema)| sections(document, &schema))
        .collect()
}

fn sections(document: &str, schema: &Value) -> Vec<(String, String)> {
    let definitions = schema.get("$defs").and_then(Value::as_object).into_iter().flatten();
    let section = |(name, value): (&String, &Value)| {
        let text = if value.get("properties").is_some() { table(value) } else { kind(value) };
        (format!("{document} {name}"), text)
    };
    std::iter::once((document.to_owned(), table(schema))).chain(definitions.map(section)).collect()
}

fn table(object: &Value) -> String {
    let row = |(name, value): (&String, &Value)| {
        let about = value.get("description").and_then(Value::as_str).unwrap_or_default();
        format!("| `{name}` | {} | {about} |\n", kind(value))
    };
    let properties = object.get("properties").and_then(Value::as_object).into_iter().flatten();
    format!("| key | value | meaning |\n| --- | --- | --- |\n{}", properties.map(row).collect::<String>())
}

/// Returns the values that `schema` allows, in words.
fn kind(schema: &Value) -> String {
    let text = |key: &str| schema.get(key).and_then(Value::as_str);
    if let Some(name) = text("$ref").and_then(|path| path.rsplit('/').next()) {
        return format!("[`{name}`](#{name})");
    }
    if let Some(one) = schema.get("const") {
        return format!("`{one}`");
    }
    if let Some(choices) = schema.get("enum").and_then(Value::as_array) {
        let word = |choice: &Value| format!("`{}`", choice.as_str().map_or_else(|| choice.to_string(), str::to_owned));
        return choices.iter().map(word).collect::<Vec<_>>().join(", ");
    }
    if let Some(choices) = schema.get("anyOf").and_then(Value::as_array) {
        return choices.iter().rev().map(kind).collect::<Vec<_>>().join(" or ");
    }
    match schema.get("type") {
        Some(Value::Array(kinds)) => {
            let kinds: Vec<String> = kinds.iter().filter_map(Value::as_str).map(|kind| word(kind, schema)).collect();
            kinds.join(" or ")
        }
        Some(Value::String(one)) => word(one, schema),
        _ => "any".to_owned(),
    }
}

fn word(kind: &str, schema: &Value) -> String {
    let word = match kind {
        "boolean" => "`true` or `false`",
        "array" => {
            return match schema.get("items") {
                Some(items) => format!("list of {}", self::kind(items)),
                None => "list".to_owned(),
            };
        }
        "object" => {
            let keys = schema.get("properties").and_then(Value::as_object).map(Map::keys).into_iter().flatten();
            let keys: Vec<&str> = keys.map(String::as_str).collect();
            return if keys.is_empty() { "map".to_owned() } else { format!("`{{{}}}`", keys.join(", ")) };
        }
        "null" => "`null`",
        other => other,
    };
    word.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_of_the_report_is_in_its_section() {
        let (sections, schema) = (reference(), report_schema());
        for (name, definition) in schema["$defs"].as_object().unwrap() {
            let section = &sections.iter().find(|(section, _)| section[..] == format!("report {name}")).unwrap().1;
            for field in definition["properties"].as_object().map(Map::keys).into_iter().flatten() {
                assert!(section.contains(&format!("\n| `{field}` | ")), "{name}.{field}");
            }
        }
        let summary = &sections.iter().find(|(name, _)| name == "report summary").unwrap().1;
        assert!(summary.contains("| `judge_usage` | [`tokens`](#tokens) or `null` |"), "{summary}");
    }
}

//! The schema of the JSON report, for editors and for programs that validate their input, and the sections of the
//! reference page that are generated from it.

use serde_json::{Map, Value};

/// The schema as it is written: fields may be added, so it does not reject unknown ones.
const SCHEMA: &str = include_str!("report.schema.json");

/// Returns the JSON Schema of the JSON report.
pub fn report_schema() -> Value {
    serde_json::from_str(SCHEMA).unwrap_or_default()
}

/// Returns the generated sections of the reference page, as names and Markdown: the document and each definition of
/// the schema.
pub fn reference() -> Vec<(String, String)> {
    let schema = report_schema();
    let definitions = schema.get("$defs").and_then(Value::as_object).into_iter().flatten();
    let section = |(name, value): (&String, &Value)| {
        let text = if value.get("properties").is_some() { table(value) } else { kind(value) };
        (format!("report {name}"), text)
    };
    std::iter::once(("report".to_owned(), table(&schema))).chain(definitions.map(section)).collect()
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

//! Formats values, names and counts for messages.

use serde_json::Value;

/// Number of characters of a value that are shown.
const SHOWN: usize = 60;

/// Returns the type of a value in the terms of JSON Schema, with its article.
pub(super) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.as_f64().is_some_and(|number| number.fract() != 0.0) => "a fraction",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Returns the value as JSON, cut if it is long.
pub(super) fn shown(value: &Value) -> String {
    model::text::shortened(&value.to_string(), SHOWN)
}

/// Returns "must be "a", "b" or "c"".
pub(super) fn must_be_one_of(options: &[Value]) -> String {
    let options: Vec<String> = options.iter().map(shown).collect();
    format!("must be {}", joined(&options, "or"))
}

/// Returns "`a`, `b` and `c`".
pub(super) fn listed<T: AsRef<str>>(names: &[T], last: &str) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{}`", name.as_ref())).collect();
    joined(&names, last)
}

/// Returns "a, b and c", with `last` in place of "and".
pub(super) fn joined(names: &[String], last: &str) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., end] => format!("{} {last} {end}", first.join(", ")),
    }
}

/// Formats a count: "1 item", "2 items", "3 properties".
pub(super) fn counted(count: u64, noun: &str) -> String {
    match (count, noun) {
        (1, _) => format!("1 {noun}"),
        (_, "property") => format!("{count} properties"),
        _ => format!("{count} {noun}s"),
    }
}

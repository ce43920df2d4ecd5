//! Texts that are JSON where a map or a list was asked for. They do not match, for a text is what the agent gave; but it
//! is worth knowing.

use serde::de::IgnoredAny;
use serde_json::Value;

/// What a message says in addition where `actual` is the JSON of a map or a list.
pub fn remark(actual: Option<&Value>) -> &'static str {
    match actual {
        Some(Value::String(text)) if is_json(text) => "; the text is JSON, which is parsed with `responseParser: json`",
        _ => "",
    }
}

fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '[']) && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

//! Access to JSON of uncertain shape.

use serde_json::Value;

/// Returns the text under `key`.
pub(crate) fn text<'a>(from: &'a Value, key: &str) -> Option<&'a str> {
    from.get(key).and_then(Value::as_str)
}

/// Returns a copy of the text under `key`.
pub(crate) fn owned(from: &Value, key: &str) -> Option<String> {
    text(from, key).map(str::to_owned)
}

/// Returns the items of the list under `key`; empty if there is no list.
pub(crate) fn items<'a>(from: &'a Value, key: &str) -> &'a [Value] {
    from.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Returns the arguments of a call; `null` or a missing value becomes an empty object.
pub(crate) fn arguments(from: &Value, key: &str) -> Value {
    from.get(key).filter(|input| !input.is_null()).cloned().unwrap_or_else(|| Value::Object(serde_json::Map::new()))
}

/// Returns a string unchanged and anything else as JSON; null becomes empty.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns the text in a list of blocks, one block per line; anything else as in [`plain`]. Images and documents are
/// named, not shown.
pub(crate) fn texts(content: &Value) -> String {
    let Value::Array(blocks) = content else { return plain(content) };
    let shown = |block: &Value| match (text(block, "text"), text(block, "type")) {
        (Some(text), _) => text.to_owned(),
        (None, Some("image" | "input_image")) => "[image]".to_owned(),
        (None, Some("document")) => "[document]".to_owned(),
        _ => block.to_string(),
    };
    blocks.iter().map(shown).collect::<Vec<_>>().join("\n")
}

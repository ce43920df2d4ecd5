//! Values stored with a failure: the complete value if it is small, otherwise a short description. A list may fail a
//! hundred times, but must not be stored a hundred times.

use serde_json::Value;

/// Maximum size of the JSON of a value that is stored completely, in bytes.
const MAX_JSON_BYTES: usize = 64 * 1024;

/// Size to which the JSON of a larger value is cut, in bytes.
const CUT: usize = 2_000;

/// Returns the value, or a short description of a large one.
pub fn truncated(value: &Value) -> Value {
    if room_after(value, MAX_JSON_BYTES).is_some() { value.clone() } else { described(value) }
}

/// Returns the value, or a short description if it is not small.
pub fn shortened(value: Value) -> Value {
    if room_after(&value, CUT).is_some() { value } else { described(&value) }
}

fn described(value: &Value) -> Value {
    Value::String(match value {
        Value::String(text) => format!("{}… ({} characters)", beginning(text), text.chars().count()),
        Value::Array(items) => format!("{}… (a list of {} items)", json_of(value), items.len()),
        Value::Object(map) => format!("{}… (a map of {} keys)", json_of(value), map.len()),
        other => other.to_string(),
    })
}

/// Estimates how many of `room` bytes are left after the JSON of `value`. Returns `None` if the JSON does not fit.
fn room_after(value: &Value, room: usize) -> Option<usize> {
    match value {
        Value::String(text) => room.checked_sub(text.len() + 2),
        Value::Array(items) => {
            items.iter().try_fold(room.checked_sub(2)?, |room, item| room_after(item, room.checked_sub(1)?))
        }
        Value::Object(map) => map
            .iter()
            .try_fold(room.checked_sub(2)?, |room, (key, item)| room_after(item, room.checked_sub(key.len() + 4)?)),
        Value::Null | Value::Bool(_) | Value::Number(_) => room.checked_sub(4),
    }
}

fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(CUT)]
}

/// Returns the first bytes of the JSON, without serialising the rest.
fn json_of(value: &Value) -> String {
    let mut begun = vec![0; CUT];
    let mut room = begun.as_mut_slice();
    // Writing fails when the buffer is full.
    let _ = serde_json::to_writer(&mut room, value);
    let written = CUT - room.len();
    let whole = begun[..written].utf8_chunks().next().map(|chunk| chunk.valid().to_owned());
    whole.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_small_value_is_kept_unchanged() {
        for value in [json!(null), json!("text"), json!([1, {"a": [true]}]), json!("x".repeat(MAX_JSON_BYTES - 2))] {
            assert_eq!(truncated(&value), value);
        }
    }

    #[test]
    fn the_beginning_and_the_size_of_a_large_value_are_kept() {
        let list: Value = (0..20_000).map(|id| json!({ "id": id, "text": "é" })).collect();
        let text_of = |value: &Value| truncated(value).as_str().unwrap().to_owned();
        let list = text_of(&list);
        assert!(list.starts_with(r#"[{"id":0,"text":"é"},"#) && list.ends_with("… (a list of 20000 items)"), "{list}");
        let text = text_of(&json!("é".repeat(40_000)));
        assert!(text.starts_with("éé") && text.ends_with("… (40000 characters)"), "{text}");
        let map = text_of(&json!({ "a": "x".repeat(MAX_JSON_BYTES) }));
        assert!(map.starts_with(r#"{"a":"xx"#) && map.ends_with("… (a map of 1 keys)"), "{map}");
        assert!([list, text, map].iter().all(|text| text.len() < CUT + 100));
    }
}

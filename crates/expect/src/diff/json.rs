//! Compares JSON documents leaf by leaf.

use serde_json::{Map, Value};

use super::Part;
use super::spaces::trimmed;
use crate::value::same;

/// Returns `true` if `text` is a JSON object or array.
pub(super) fn is_container(text: &str) -> bool {
    let text = trimmed(text);
    let braced = |open, close| text.starts_with(open) && text.ends_with(close);
    (braced('{', '}') || braced('[', ']')) && serde_json::from_str::<Value>(text).is_ok()
}

/// Returns the leaves that differ: numbers, strings, `true`, `false`, `null`, and empty objects and arrays where the
/// other document has another kind of value, or none. If either text is not valid JSON, both are compared as trimmed
/// texts.
pub(super) fn parts(expected: &str, actual: &str) -> Vec<Part> {
    let (expected, actual) = (trimmed(expected), trimmed(actual));
    let mut parts = Vec::new();
    match (serde_json::from_str(expected), serde_json::from_str(actual)) {
        (Ok(expected), Ok(actual)) => compare(&expected, &actual, "", &mut parts),
        _ if expected != actual => {
            parts.push(part(expected.to_owned(), "", Value::String(expected.to_owned()), false));
            parts.push(part(actual.to_owned(), "", Value::String(actual.to_owned()), true));
        }
        _ => {}
    }
    parts
}

/// Returns the part for a value that only one of the documents has: the actual one if `added`, otherwise the expected
/// one.
fn part(value: String, path: &str, val: Value, added: bool) -> Part {
    Part { value, added, removed: !added, path: Some(path.to_owned()), val: Some(val) }
}

fn compare(expected: &Value, actual: &Value, path: &str, parts: &mut Vec<Part>) {
    match (expected, actual) {
        // If one of them is empty, the leaves of the other are the whole difference.
        (Value::Object(expected), Value::Object(actual)) => {
            for key in keys(expected, actual) {
                either(expected.get(key), actual.get(key), &at_key(path, key), parts);
            }
        }
        (Value::Array(expected), Value::Array(actual)) => {
            for index in 0..expected.len().max(actual.len()) {
                either(expected.get(index), actual.get(index), &at_index(path, index), parts);
            }
        }
        _ if same(expected, actual) => {}
        _ => {
            leaves(expected, path, false, parts);
            leaves(actual, path, true, parts);
        }
    }
}

fn either(expected: Option<&Value>, actual: Option<&Value>, path: &str, parts: &mut Vec<Part>) {
    match (expected, actual) {
        (Some(expected), Some(actual)) => compare(expected, actual, path, parts),
        (Some(expected), None) => leaves(expected, path, false, parts),
        (None, Some(actual)) => leaves(actual, path, true, parts),
        (None, None) => {}
    }
}

/// Returns the keys of both objects, sorted and without duplicates.
fn keys<'v>(expected: &'v Map<String, Value>, actual: &'v Map<String, Value>) -> Vec<&'v str> {
    let mut keys: Vec<&str> = expected.keys().chain(actual.keys()).map(String::as_str).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

fn leaves(value: &Value, path: &str, added: bool, parts: &mut Vec<Part>) {
    match value {
        Value::Object(entries) if !entries.is_empty() => {
            for key in keys(entries, &Map::new()) {
                if let Some(value) = entries.get(key) {
                    leaves(value, &at_key(path, key), added, parts);
                }
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                leaves(item, &at_index(path, index), added, parts);
            }
        }
        leaf => {
            let text = if path.is_empty() { leaf.to_string() } else { format!("{path}: {leaf}") };
            parts.push(part(text, path, leaf.clone(), added));
        }
    }
}

fn at_key(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn at_index(path: &str, index: usize) -> String {
    format!("{path}[{index}]")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(expected: &str, actual: &str) -> Vec<String> {
        let mark = |part: &Part| format!("{}{}", if part.added { '+' } else { '-' }, part.value);
        parts(expected, actual).iter().map(mark).collect()
    }

    #[test]
    fn layout_key_order_and_number_notation_are_ignored() {
        assert!(shown("{\"a\":1,\"b\":[2,null]}", "{ \"b\": [2.0, null], \"a\": 1e0 }\n").is_empty());
    }

    #[test]
    fn differing_leaves_are_reported_in_path_order() {
        let (expected, actual) = (r#"{"d":"x","a":2,"b":{"c":[1,3]}}"#, r#"{"a":1,"b":{"c":[1,2,4]}}"#);
        assert_eq!(shown(expected, actual), ["-a: 2", "+a: 1", "-b.c[1]: 3", "+b.c[1]: 2", "+b.c[2]: 4", "-d: \"x\""]);
    }

    #[test]
    fn empty_objects_and_lists_are_leaves() {
        assert_eq!(shown("{}", "[]"), ["-{}", "+[]"]);
        assert_eq!(shown("{\"a\":{}}", "{\"a\":[]}"), ["-a: {}", "+a: []"]);
        assert_eq!(shown("{\"a\":1,\"b\":[]}", "{\"a\":1}"), ["-b: []"]);
        assert_eq!(shown("{\"a\":{\"b\":1}}", "{\"a\":{}}"), ["-a.b: 1"]);
        assert_eq!(shown("{\"a\":{}}", "{\"a\":{\"b\":1}}"), ["+a.b: 1"]);
        assert_eq!(shown("[[],1]", "[[{}],1]"), ["+[0][0]: {}"]);
        assert!(shown("[]", "[ ]").is_empty());
    }

    #[test]
    fn values_at_the_root_are_compared() {
        assert_eq!(shown("1", "2"), ["-1", "+2"]);
        assert_eq!(shown("[0]", "0"), ["-[0]: 0", "+0"]);
        assert!(shown("1", " 1.0").is_empty());
    }

    #[test]
    fn invalid_json_is_compared_as_text() {
        assert_eq!(shown("hello", "hell"), ["-hello", "+hell"]);
        assert_eq!(shown("hello", "\"hello\""), ["-hello", "+\"hello\""]);
        assert!(shown("hello", " hello ").is_empty());
        assert_eq!(parts("hello", "1")[0].path.as_deref(), Some(""));
    }

    #[test]
    fn a_key_with_a_dot_is_not_two_keys() {
        assert_eq!(shown("{\"a.b\":1}", "{\"a\":{\"b\":1}}"), ["+a.b: 1", "-a.b: 1"]);
    }

    #[test]
    fn large_whole_numbers_are_compared_exactly() {
        assert_eq!(shown("[9007199254740992]", "[9007199254740993]").len(), 2);
        assert_eq!(shown("[18446744073709551615]", "[18446744073709551614]").len(), 2);
    }
}

//! Looks up a value by a key or a path such as `users[0].name`, in the same way as lodash.

use std::borrow::Cow;

use serde_json::Value;

/// Returns the value under `key` in a map or a list: first as a literal key, then as a path. `length` of a list or a
/// string is its length.
pub fn get<'a>(value: &'a Value, key: &str) -> Option<Cow<'a, Value>> {
    if let Some(found) = own(value, key) {
        return Some(found);
    }
    let steps = steps(key);
    if steps.len() < 2 && steps.first().is_none_or(|step| step == key) {
        return None;
    }
    let mut at = Cow::Borrowed(value);
    for step in &steps {
        at = match at {
            Cow::Borrowed(value) => own(value, step)?,
            Cow::Owned(_) => return None,
        };
    }
    Some(at)
}

/// Returns the first step of a path, a map key or a list index, without brackets.
pub fn head(key: &str) -> Cow<'_, str> {
    steps(key).into_iter().next().unwrap_or(Cow::Borrowed(key))
}

/// Returns the path of `key` below `parent`.
pub fn below(parent: &str, key: &str) -> String {
    if key.is_empty() {
        parent.to_owned()
    } else if parent.is_empty() || key.starts_with('[') {
        format!("{parent}{key}")
    } else {
        format!("{parent}.{key}")
    }
}

fn own<'a>(value: &'a Value, key: &str) -> Option<Cow<'a, Value>> {
    match value {
        Value::Object(map) => map.get(key).map(Cow::Borrowed),
        Value::Array(items) if key == "length" => Some(Cow::Owned(items.len().into())),
        Value::Array(items) => items.get(index(key)?).map(Cow::Borrowed),
        Value::String(text) if key == "length" => Some(Cow::Owned(text.encode_utf16().count().into())),
        Value::String(text) => {
            let c = text.chars().nth(index(key)?)?;
            Some(Cow::Owned(Value::String(c.into())))
        }
        _ => None,
    }
}

/// Parses an index: `0` and `12`, but not `012`.
fn index(key: &str) -> Option<usize> {
    let is_plain = key == "0" || (!key.starts_with('0') && !key.starts_with('+'));
    is_plain.then(|| key.parse().ok()).flatten()
}

/// Returns the steps of `a.b[0]["c d"]`.
fn steps(path: &str) -> Vec<Cow<'_, str>> {
    let mut steps = Vec::new();
    let mut rest = path;
    if let Some(after) = rest.strip_prefix('.') {
        steps.push(Cow::Borrowed(""));
        rest = after;
    }
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('[')
            && let Some((step, next)) = bracketed(after)
        {
            steps.push(step);
            rest = next.strip_prefix('.').unwrap_or(next);
            if rest.is_empty() && next.starts_with('.') {
                steps.push(Cow::Borrowed(""));
            }
            continue;
        }
        let end =
            rest.char_indices().skip(1).find(|(_, c)| matches!(c, '.' | '[')).map_or(rest.len(), |(offset, _)| offset);
        let (step, next) = if rest.starts_with('.') { ("", rest) } else { rest.split_at(end) };
        steps.push(Cow::Borrowed(step));
        match next.strip_prefix('.') {
            Some("") => {
                steps.push(Cow::Borrowed(""));
                rest = "";
            }
            Some(after) => rest = after,
            None => rest = next,
        }
    }
    steps
}

/// Returns the step in brackets at the beginning of `text`, without its quotes, and the rest.
fn bracketed(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''));
    let Some(quote) = quote else {
        let (step, next) = text.split_once(']')?;
        return Some((Cow::Borrowed(step), next));
    };
    let mut step = String::new();
    let mut escaped = false;
    for (offset, c) in text.char_indices().skip(1) {
        if escaped {
            step.push(c);
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if c == quote {
            return Some((Cow::Owned(step), text[offset + 1..].strip_prefix(']')?));
        } else {
            step.push(c);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(value: &Value, key: &str) -> Option<Value> {
        get(value, key).map(Cow::into_owned)
    }

    #[test]
    fn a_literal_key_takes_precedence_over_a_path() {
        let value = json!({"a.b": 1, "a": {"b": 2, "c": [10, {"d e": 3}]}, "": {"x": 4}});
        assert_eq!(found(&value, "a.b"), Some(json!(1)));
        assert_eq!(found(&value, "a.c[0]"), Some(json!(10)));
        assert_eq!(found(&value, "a.c[1][\"d e\"]"), Some(json!(3)));
        assert_eq!(found(&value, "a['c'].1['d e']"), Some(json!(3)));
        assert_eq!(found(&value, "a.c.length"), Some(json!(2)));
        assert_eq!(found(&value, "a.c.length.x"), None);
        assert_eq!(found(&value, "a.x"), None);
        assert_eq!(found(&value, ".x"), Some(json!(4)));
    }

    #[test]
    fn list_items_are_found_only_by_whole_numbers() {
        let value = json!([5, 6]);
        assert_eq!(found(&value, "1"), Some(json!(6)));
        assert_eq!(found(&value, "[1]"), Some(json!(6)));
        assert_eq!(found(&value, "01"), None);
        assert_eq!(found(&value, "-1"), None);
        assert_eq!(found(&value, "length"), Some(json!(2)));
    }

    #[test]
    fn the_first_step_of_a_path_is_found_in_every_notation() {
        let heads = ["a.b", "a[0].b", "['x y'].z", "[\"x y\"]", "[0]", "a", ""].map(head);
        assert_eq!(heads, ["a", "a", "x y", "x y", "0", "a", ""]);
    }

    #[test]
    fn malformed_paths_find_nothing() {
        for path in ["", ".", "..", "[", "[]", "[\"", "[\"a", "a[", "a]", "a..b", "a.", "[[0]]", "\u{1f600}."] {
            assert_eq!(found(&json!({"q": 1}), path), None, "{path}");
        }
    }
}

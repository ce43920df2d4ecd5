//! Finds the first difference between two requests.

use serde_json::{Map, Value};

use crate::normalization::HISTORY;

/// Number of characters that an excerpt shows before and after the first difference.
const BEFORE: usize = 20;
const AFTER: usize = 60;

/// Difference between a recorded request and a new one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Difference {
    /// JSON pointer to the difference.
    pub(crate) pointer: String,
    /// Excerpt of the recorded value; `None` if the recorded request has no such value.
    pub(crate) recorded: Option<String>,
    /// Excerpt of the new value; `None` if the new request has no such value.
    pub(crate) actual: Option<String>,
}

/// Returns the first difference, or `None` if the requests are equal. The conversation is compared last.
pub(crate) fn first_difference(recorded: &Value, actual: &Value) -> Option<Difference> {
    let (Value::Object(old), Value::Object(new)) = (recorded, actual) else {
        return compare(recorded, actual, "");
    };
    let of_fields = |is_history: bool| {
        let keys = keys(old, new).filter(move |key| HISTORY.contains(key) == is_history);
        keys.into_iter().find_map(|key| compare_field(old, new, key, ""))
    };
    of_fields(false).or_else(|| of_fields(true))
}

/// Returns how similar two requests are: the number of equal fields, and the number of equal conversation items before
/// the first difference.
pub(crate) fn similarity(recorded: &Value, actual: &Value) -> (usize, usize) {
    let (Value::Object(old), Value::Object(new)) = (recorded, actual) else { return (0, 0) };
    let equal = keys(old, new).filter(|key| !HISTORY.contains(key) && old.get(*key) == new.get(*key)).count();
    let history = HISTORY.iter().filter_map(|key| Some((old.get(*key)?.as_array()?, new.get(*key)?.as_array()?)));
    let history = history.map(|(old, new)| old.iter().zip(new).take_while(|(old, new)| old == new).count());
    (equal, history.sum())
}

fn keys<'a>(old: &'a Map<String, Value>, new: &'a Map<String, Value>) -> impl Iterator<Item = &'a str> {
    old.keys().chain(new.keys().filter(|key| !old.contains_key(*key))).map(String::as_str)
}

fn compare(old: &Value, new: &Value, pointer: &str) -> Option<Difference> {
    match (old, new) {
        _ if old == new => None,
        (Value::Object(old), Value::Object(new)) => {
            keys(old, new).find_map(|key| compare_field(old, new, key, pointer))
        }
        (Value::Array(old), Value::Array(new)) => (0..old.len().max(new.len())).find_map(|at| {
            let pointer = format!("{pointer}/{at}");
            match (old.get(at), new.get(at)) {
                (Some(old), Some(new)) => compare(old, new, &pointer),
                (old, new) => Some(Difference { pointer, recorded: old.map(excerpt), actual: new.map(excerpt) }),
            }
        }),
        (Value::String(old), Value::String(new)) => {
            let at = old.chars().zip(new.chars()).take_while(|(old, new)| old == new).count();
            let pointer = pointer.to_owned();
            Some(Difference { pointer, recorded: Some(around(old, at)), actual: Some(around(new, at)) })
        }
        _ => {
            let pointer = pointer.to_owned();
            Some(Difference { pointer, recorded: Some(excerpt(old)), actual: Some(excerpt(new)) })
        }
    }
}

fn compare_field(old: &Map<String, Value>, new: &Map<String, Value>, key: &str, pointer: &str) -> Option<Difference> {
    let pointer = format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"));
    match (old.get(key), new.get(key)) {
        (Some(old), Some(new)) => compare(old, new, &pointer),
        (old, new) => Some(Difference { pointer, recorded: old.map(excerpt), actual: new.map(excerpt) }),
    }
}

/// Returns the beginning of a value as text.
fn excerpt(value: &Value) -> String {
    match value {
        Value::String(text) => around(text, 0),
        other => format!("`{}`", cut(&other.to_string(), 0, BEFORE + AFTER)),
    }
}

/// Returns an excerpt around the character `at`.
fn around(text: &str, at: usize) -> String {
    let start = at.saturating_sub(BEFORE);
    format!("\"{}\"", cut(text, start, at - start + AFTER))
}

/// Returns up to `most` characters from `start`, on one line.
fn cut(text: &str, start: usize, most: usize) -> String {
    let mut rest = text.chars().skip(start);
    let shown: String = rest.by_ref().take(most).map(|c| if c.is_control() { ' ' } else { c }).collect();
    let (before, after) = (if start > 0 { "…" } else { "" }, if rest.next().is_some() { "…" } else { "" });
    format!("{before}{shown}{after}")
}

//! Comparison and formatting of values in JavaScript style, without its coercions.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::io;

use model::{Node, NodeKind, Source};
use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};
use serde_json::{Number, Value};

/// Returns `true` if two values are deeply equal. 1 and 1.0 are the same number, and the order of keys does not
/// matter.
pub fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare_numbers(left, right) == Some(Ordering::Equal),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(key, left)| right.get(key).is_some_and(|right| same(left, right)))
        }
        _ => left == right,
    }
}

/// Compares two numbers or two strings, strings by UTF-16 units. Returns `None` for anything else.
pub fn compare(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare_numbers(left, right),
        (Value::String(left), Value::String(right)) => Some(left.encode_utf16().cmp(right.encode_utf16())),
        _ => None,
    }
}

/// Compares numbers by their exact values, regardless of their notation. As floats, large neighbouring integers would
/// be equal, and sorting would be inconsistent.
fn compare_numbers(left: &Number, right: &Number) -> Option<Ordering> {
    match (as_integer(left), as_integer(right)) {
        (Some(left), Some(right)) => Some(left.cmp(&right)),
        (Some(left), None) => Some(compare_with_float(left, right.as_f64()?)),
        (None, Some(right)) => Some(compare_with_float(right, left.as_f64()?).reverse()),
        (None, None) => left.as_f64()?.partial_cmp(&right.as_f64()?),
    }
}

fn as_integer(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

fn compare_with_float(whole: i128, float: f64) -> Ordering {
    // Outside the range, the conversion saturates, beyond any number that can be written as an integer.
    let by_whole = whole.cmp(&(float.trunc() as i128));
    by_whole.then_with(|| 0.0.partial_cmp(&float.fract()).unwrap_or(Ordering::Equal))
}

/// Returns a string unchanged, and anything else as compact JSON.
pub fn text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(json(other)),
    }
}

/// Returns compact JSON, with integers without a fraction.
pub fn json(value: &Value) -> String {
    let mut out = Vec::new();
    let written = value.serialize(&mut Serializer::with_formatter(&mut out, WholeFloats));
    written.ok().and_then(|()| String::from_utf8(out).ok()).unwrap_or_default()
}

/// Compact format in which floats without a fraction are written like integers.
struct WholeFloats;

impl Formatter for WholeFloats {
    fn write_f64<W: io::Write + ?Sized>(&mut self, writer: &mut W, float: f64) -> io::Result<()> {
        if float.fract() == 0.0 && float.abs() < 1e15 {
            write!(writer, "{float:.0}")
        } else {
            CompactFormatter.write_f64(writer, float)
        }
    }
}

/// Returns the tree for a value that comes from code rather than a file.
pub fn node_of(value: &Value) -> Node {
    Node::from_json(value, &Source::new("", ""))
}

/// Returns the map `node` without `key`.
pub fn without(node: &Node, key: &str) -> Node {
    let NodeKind::Map(entries) = &node.kind else { return node.clone() };
    let rest = entries.iter().filter(|(other, _)| other.value != key).cloned().collect();
    Node { kind: NodeKind::Map(rest), ..node.clone() }
}

/// Returns the type of a value, with its article, or "a missing value".
pub fn kind(value: Option<&Value>) -> &'static str {
    match value {
        None => "a missing value",
        Some(Value::Null) => "null",
        Some(Value::Bool(_)) => "a boolean",
        Some(Value::Number(_)) => "a number",
        Some(Value::String(_)) => "a string",
        Some(Value::Array(_)) => "a list",
        Some(Value::Object(_)) => "a map",
    }
}

/// Formats a value on one line for messages, cut if it is long.
pub fn shown(value: Option<&Value>) -> String {
    const MAX_CHARS: usize = 80;
    let Some(value) = value else { return "a missing value".into() };
    model::text::shortened(&json(value), MAX_CHARS)
}

/// Like `shown`, but without quotes around a string. For use after other words.
pub fn describe(value: &Value) -> String {
    match value {
        Value::String(text) if text.chars().nth(80).is_none() => text.clone(),
        other => shown(Some(other)),
    }
}

/// Returns `true` if the value is truthy in JavaScript.
pub fn truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64().is_some_and(|number| number != 0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(_) | Value::Object(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_compared_by_value() {
        let large = 9_007_199_254_740_993_i64;
        assert!(same(&json!(1), &json!(1.0)) && same(&json!(0), &json!(-0.0)));
        assert!(!same(&json!(large), &json!(large as f64)));
        assert!(same(&json!([1, {"a": 2.0}]), &json!([1.0, {"a": 2}])));
        assert!(!same(&json!(1), &json!(true)) && !same(&json!(0), &json!(null)) && !same(&json!("1"), &json!(1)));
        for (left, right, wanted) in [
            (json!(large), json!(large as f64), Ordering::Greater),
            (json!(u64::MAX), json!(i64::MIN), Ordering::Greater),
            (json!(u64::MAX), json!(1e300), Ordering::Less),
            (json!(i64::MIN), json!(-1e300), Ordering::Greater),
            (json!(2), json!(2.5), Ordering::Less),
            (json!(-2), json!(-2.5), Ordering::Greater),
            (json!(-0.5), json!(0), Ordering::Less),
            (json!(0.1), json!(0.1), Ordering::Equal),
        ] {
            assert_eq!(compare(&left, &right), Some(wanted), "{left} {right}");
            assert_eq!(compare(&right, &left), Some(wanted.reverse()), "{right} {left}");
        }
    }
}

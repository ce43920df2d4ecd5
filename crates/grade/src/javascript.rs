//! JavaScript's conversion of values to strings. Patterns over arguments have always been matched against these
//! strings.

use serde_json::{Map, Number, Value};

/// Returns `String(value)`, except that `null` becomes empty text: a number in its shortest form, the items of a list
/// joined by commas, an object as `[object Object]`.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(value) => value.to_string(),
        Value::Number(value) => number(value),
        Value::String(value) => value.clone(),
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(","),
        Value::Object(_) => "[object Object]".into(),
    }
}

/// Returns `JSON.stringify(value, null, 2)`.
pub(crate) fn pretty(value: &Value) -> String {
    let mut out = String::new();
    write_pretty(&mut out, value, 0);
    out
}

fn write_pretty(out: &mut String, value: &Value, depth: usize) {
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.push_str(&"  ".repeat(depth));
    };
    match value {
        Value::Number(value) => out.push_str(&number(value)),
        Value::Array(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                out.push(if index == 0 { '[' } else { ',' });
                line(out, depth + 1);
                write_pretty(out, item, depth + 1);
            }
            line(out, depth);
            out.push(']');
        }
        Value::Object(entries) if !entries.is_empty() => {
            for (index, (key, item)) in entries.iter().enumerate() {
                out.push(if index == 0 { '{' } else { ',' });
                line(out, depth + 1);
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push_str(": ");
                write_pretty(out, item, depth + 1);
            }
            line(out, depth);
            out.push('}');
        }
        Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            out.push_str(&value.to_string());
        }
    }
}

/// Returns an own property of the arguments. Properties that objects inherit in JavaScript do not count.
pub(crate) fn argument<'a>(input: &'a Value, name: &str) -> Option<&'a Value> {
    input.as_object().and_then(|input: &Map<String, Value>| input.get(name))
}

/// Formats a number as JavaScript does, but an integer of up to 64 bits with all its digits: it may be an id.
fn number(number: &Number) -> String {
    match number.as_f64().filter(|_| number.is_f64()) {
        Some(value) => dragonbox_ecma::Buffer::new().format(value).to_owned(),
        None => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_printed_as_in_javascript() {
        let json = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        for (value, expected) in [
            ("null", ""),
            ("true", "true"),
            ("5", "5"),
            ("5.0", "5"),
            ("-0.0", "0"),
            ("1.5", "1.5"),
            ("0.000001", "0.000001"),
            ("0.0000001", "1e-7"),
            ("1e21", "1e+21"),
            ("1e20", "100000000000000000000"),
            ("-1.25e30", "-1.25e+30"),
            ("1.2345e20", "123450000000000000000"),
            ("9007199254740993", "9007199254740993"),
            ("18446744073709551615", "18446744073709551615"),
            ("-9223372036854775808", "-9223372036854775808"),
            ("[1, [2, null], \"x\"]", "1,2,,x"),
            ("{\"a\": 1}", "[object Object]"),
        ] {
            assert_eq!(text(&json(value)), expected, "{value}");
        }
    }

    #[test]
    fn pretty_text_matches_json_stringify() {
        let value = json!({"a": [1.0, {"b": "x\"\n"}], "c": [], "d": {}, "e": null});
        let expected = "{\n  \"a\": [\n    1,\n    {\n      \"b\": \"x\\\"\\n\"\n    }\n  ],\n  \"c\": [],\n  \"d\": {},\n  \"e\": null\n}";
        assert_eq!(pretty(&value), expected);
    }

    #[test]
    fn inherited_properties_are_not_arguments() {
        assert_eq!(argument(&json!({"a": 1}), "a"), Some(&json!(1)));
        assert_eq!(argument(&json!({"a": 1}), "toString"), None);
        assert_eq!(argument(&json!("text"), "length"), None);
    }
}

//! Values as the text that external runtimes exchange with the program. What JSON does not have is a map with the single
//! key `$`: a list of a kind and its parts.

use std::sync::Arc;

use serde_json::{Map, Value as Json, json};

use crate::value::{Function, Value};

/// Key of a value that JSON does not have.
const SPECIAL: &str = "$";

/// Converts `value` for the runtime with number `runtime`. Functions of other runtimes, and functions of the program that
/// must return at once, become undefined.
pub(super) fn encode(value: &Value, runtime: u64) -> Json {
    let special = |parts: Json| json!({ SPECIAL: parts });
    match value {
        Value::Undefined | Value::Native(_) => special(json!(["undefined"])),
        Value::Null => Json::Null,
        Value::Bool(value) => Json::Bool(*value),
        Value::Number(number) => match serde_json::Number::from_f64(*number) {
            Some(plain) if *number != 0.0 || number.is_sign_positive() => Json::Number(plain),
            _ => special(json!(["number", if *number == 0.0 { "-0".to_owned() } else { named(*number) }])),
        },
        Value::String(text) => Json::String(text.clone()),
        Value::List(items) => Json::Array(items.iter().map(|item| encode(item, runtime)).collect()),
        Value::Map(entries) if entries.iter().any(|(key, _)| key == SPECIAL || key == "__proto__") => {
            let entries: Vec<Json> = entries.iter().map(|(key, value)| json!([key, encode(value, runtime)])).collect();
            special(json!(["map", entries]))
        }
        Value::Map(entries) => {
            Json::Object(entries.iter().map(|(key, value)| (key.clone(), encode(value, runtime))).collect())
        }
        Value::Regex { source, flags } => special(json!(["regex", source, flags])),
        Value::Function(function) if function.runtime == runtime => special(json!(["function", function.index])),
        Value::Function(_) => special(json!(["undefined"])),
        Value::HostFunction(host) => {
            let bound: Vec<Json> = host.bound.iter().map(|value| encode(value, runtime)).collect();
            special(json!(["host", &*host.name, bound]))
        }
    }
}

/// Returns the name of a number that JSON does not have, as in JavaScript.
fn named(number: f64) -> String {
    match number {
        number if number.is_nan() => "NaN".to_owned(),
        number if number > 0.0 => "Infinity".to_owned(),
        _ => "-Infinity".to_owned(),
    }
}

/// Converts a value from the runtime with number `runtime`.
pub(super) fn decode(value: Json, runtime: u64) -> Value {
    match value {
        Json::Array(items) => Value::List(items.into_iter().map(|item| decode(item, runtime)).collect()),
        Json::Object(mut entries) => match entries.remove(SPECIAL) {
            Some(Json::Array(parts)) if entries.is_empty() => special(parts, runtime),
            Some(_) | None => map(entries, runtime),
        },
        plain => Value::from(plain),
    }
}

fn map(entries: Map<String, Json>, runtime: u64) -> Value {
    Value::Map(entries.into_iter().map(|(key, value)| (key, decode(value, runtime))).collect())
}

fn special(parts: Vec<Json>, runtime: u64) -> Value {
    let mut parts = parts.into_iter();
    let kind = parts.next().and_then(|kind| kind.as_str().map(str::to_owned)).unwrap_or_default();
    let text = |parts: &mut std::vec::IntoIter<Json>| match parts.next() {
        Some(Json::String(text)) => text,
        _ => String::new(),
    };
    match kind.as_str() {
        "number" => Value::Number(text(&mut parts).parse().unwrap_or(f64::NAN)),
        "regex" => Value::Regex { source: text(&mut parts), flags: text(&mut parts) },
        "function" => {
            let index = parts.next().and_then(|index| u32::try_from(index.as_u64()?).ok());
            let name = Arc::from(text(&mut parts));
            let length = parts.next().and_then(|length| usize::try_from(length.as_u64()?).ok()).unwrap_or_default();
            index.map_or(Value::Undefined, |index| Value::Function(Function { runtime, index, name, length }))
        }
        "map" => {
            let Some(Json::Array(entries)) = parts.next() else { return Value::Undefined };
            let entry = |entry: Json| {
                let Json::Array(pair) = entry else { return None };
                let [Json::String(key), value] = <[Json; 2]>::try_from(pair).ok()? else { return None };
                Some((key, decode(value, runtime)))
            };
            Value::Map(entries.into_iter().filter_map(entry).collect())
        }
        _ => Value::Undefined,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::HostFunction;

    #[test]
    fn values_that_json_does_not_have_survive_the_way_to_a_runtime_and_back() {
        let function = |runtime| Value::Function(Function { runtime, index: 3, name: "f".into(), length: 2 });
        let value = Value::Map(vec![
            ("list".into(), Value::List(vec![Value::Undefined, Value::Null, true.into(), "x".into()])),
            ("numbers".into(), Value::List([1.5, f64::INFINITY, f64::NEG_INFINITY].map(Value::Number).to_vec())),
            ("$".into(), Value::Map(vec![("__proto__".into(), 1.0.into())])),
            ("regex".into(), Value::Regex { source: "a".into(), flags: "i".into() }),
        ]);
        assert_eq!(decode(encode(&value, 1), 1), value);
        let Value::Number(zero) = decode(encode(&Value::Number(-0.0), 1), 1) else { panic!("not a number") };
        assert!(zero == 0.0 && zero.is_sign_negative());
        assert_eq!(encode(&function(1), 1), json!({"$": ["function", 3]}));
        assert_eq!(encode(&function(2), 1), json!({"$": ["undefined"]}));
        assert_eq!(decode(json!({"$": ["function", 3, "f", 2]}), 1), function(1));
        let host = HostFunction::new("ask").bind(vec![1.0.into()]);
        assert_eq!(encode(&host.into(), 1), json!({"$": ["host", "ask", [1.0]]}));
    }

    #[test]
    fn a_malformed_value_is_undefined_or_a_plain_map() {
        for text in [r#"{"$":[]}"#, r#"{"$":["function"]}"#, r#"{"$":["map",5]}"#, r#"{"$":["other",1]}"#] {
            assert_eq!(decode(serde_json::from_str(text).unwrap(), 1), Value::Undefined, "{text}");
        }
        assert_eq!(decode(json!({"$": 5, "a": 1}), 1), Value::from(json!({"a": 1})));
    }
}

//! Helpers shared by several wire formats.

use model::Tokens;
use serde_json::{Map, Value};

use super::Rejection;
use crate::{Reply, Request};

pub(super) fn rejection(message: impl Into<String>) -> Rejection {
    Rejection { message: message.into() }
}

/// Parses the body of a request.
pub(super) fn object(body: &[u8]) -> Result<Map<String, Value>, Rejection> {
    match serde_json::from_slice(body) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(rejection("the request body must be a JSON object")),
        Err(error) => Err(rejection(format!("the request body is not valid JSON: {error}"))),
    }
}

/// Takes the name of the model.
pub(super) fn model(fields: &mut Map<String, Value>) -> Result<String, Rejection> {
    match fields.remove("model") {
        Some(Value::String(model)) => Ok(model),
        _ => Err(rejection("model: a string is required")),
    }
}

/// Takes the value under `key` if it is text; any other value stays in place, so that nothing unknown is lost.
pub(super) fn take_text(fields: &mut Map<String, Value>, key: &str) -> Option<String> {
    fields.get(key)?.as_str()?;
    match fields.remove(key) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

/// Takes the value under `key` if it is a whole number.
pub(super) fn take_whole(fields: &mut Map<String, Value>, key: &str) -> Option<u64> {
    let number = fields.get(key)?.as_u64()?;
    fields.remove(key);
    Some(number)
}

/// Takes the value under `key` if it is a number.
pub(super) fn take_number(fields: &mut Map<String, Value>, key: &str) -> Option<f64> {
    let number = fields.get(key)?.as_f64()?;
    fields.remove(key);
    Some(number)
}

/// Returns the text under `key`.
pub(super) fn text<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key).and_then(Value::as_str)
}

/// Returns the whole number under a path of keys.
pub(super) fn whole(value: &Value, path: &[&str]) -> Option<u64> {
    path.iter().try_fold(value, |value, key| value.get(key)).and_then(Value::as_u64)
}

/// Splits a text into two parts, so that clients have pieces to assemble; an empty text yields none.
pub(super) fn halves(text: &str) -> impl Iterator<Item = &str> {
    let (first, second) = text.split_at(text.ceil_char_boundary(text.len() / 2));
    [first, second].into_iter().filter(|part| !part.is_empty())
}

/// Returns the usage of a reply, for formats that cannot represent an unknown usage.
pub(super) fn used(reply: &Reply) -> Tokens {
    reply.tokens.unwrap_or_default()
}

/// Estimates the tokens at about four bytes per token: enough for a client that uses it to decide whether to compact.
pub(super) fn estimate(request: &Request) -> u64 {
    let mut bytes = 0;
    request.each_text(&mut |text| bytes += text.len() as u64);
    bytes.div_ceil(4)
}

/// Parses the arguments of a call that a vendor sends as text; text that is not JSON is kept as text.
pub(super) fn arguments(written: &str) -> Value {
    if written.trim().is_empty() {
        return Value::Object(Map::new());
    }
    serde_json::from_str(written).unwrap_or_else(|_| Value::String(written.to_owned()))
}

/// Formats the arguments of a call as text.
pub(super) fn written(arguments: &Value) -> String {
    match arguments {
        // They were not JSON when they were received.
        Value::String(text) => text.clone(),
        Value::Null => "{}".to_owned(),
        other => other.to_string(),
    }
}

/// Returns the entries of `object` that are not in `known`.
pub(super) fn rest(object: &Value, known: &[&str]) -> Map<String, Value> {
    let entries = object.as_object().into_iter().flatten();
    let unknown = entries.filter(|(key, value)| !known.contains(&key.as_str()) && !value.is_null());
    unknown.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Adds the entries of `extra` that `body` does not have.
pub(super) fn add(body: &mut Map<String, Value>, extra: &Map<String, Value>) {
    for (key, value) in extra {
        if !body.contains_key(key) {
            body.insert(key.clone(), value.clone());
        }
    }
}

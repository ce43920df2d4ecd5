//! What several wire formats need.

use model::Tokens;
use serde_json::{Map, Value};

use super::Rejection;
use crate::{Reply, Request};

pub(super) fn rejection(message: impl Into<String>) -> Rejection {
    Rejection { message: message.into() }
}

/// The body of a request.
pub(super) fn object(body: &[u8]) -> Result<Map<String, Value>, Rejection> {
    match serde_json::from_slice(body) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(rejection("the request body must be a JSON object")),
        Err(error) => Err(rejection(format!("the request body is not valid JSON: {error}"))),
    }
}

/// The name of the model that is asked for.
pub(super) fn model(fields: &mut Map<String, Value>) -> Result<String, Rejection> {
    match fields.remove("model") {
        Some(Value::String(model)) => Ok(model),
        _ => Err(rejection("model: a string is required")),
    }
}

/// Takes `key` out if it is text; anything else stays where it is, so that nothing unknown is lost.
pub(super) fn take_text(fields: &mut Map<String, Value>, key: &str) -> Option<String> {
    fields.get(key)?.as_str()?;
    match fields.remove(key) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

/// Takes `key` out if it is a whole number.
pub(super) fn take_whole(fields: &mut Map<String, Value>, key: &str) -> Option<u64> {
    let number = fields.get(key)?.as_u64()?;
    fields.remove(key);
    Some(number)
}

/// Takes `key` out if it is a number.
pub(super) fn take_number(fields: &mut Map<String, Value>, key: &str) -> Option<f64> {
    let number = fields.get(key)?.as_f64()?;
    fields.remove(key);
    Some(number)
}

/// The text under `key`.
pub(super) fn text<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key).and_then(Value::as_str)
}

/// The whole number under a path of keys.
pub(super) fn whole(value: &Value, path: &[&str]) -> Option<u64> {
    path.iter().try_fold(value, |value, key| value.get(key)).and_then(Value::as_u64)
}

/// A text in two parts, so that clients have something to put together; nothing at all for an empty one.
pub(super) fn halves(text: &str) -> impl Iterator<Item = &str> {
    let mut middle = text.len() / 2;
    while !text.is_char_boundary(middle) {
        middle += 1;
    }
    let (first, second) = text.split_at(middle);
    [first, second].into_iter().filter(|part| !part.is_empty())
}

/// What a reply used, for formats that have no way to say that nobody knows.
pub(super) fn used(reply: &Reply) -> Tokens {
    reply.tokens.unwrap_or_default()
}

/// About four bytes a token; enough for a client that decides by it whether to make room.
pub(super) fn estimate(request: &Request) -> u64 {
    let mut bytes = 0;
    request.each_text(&mut |text| bytes += text.len() as u64);
    bytes.div_ceil(4)
}

/// The arguments of a call as vendors write them that send text: what is not JSON stays the text it is.
pub(super) fn arguments(written: &str) -> Value {
    if written.trim().is_empty() {
        return Value::Object(Map::new());
    }
    serde_json::from_str(written).unwrap_or_else(|_| Value::String(written.to_owned()))
}

/// The arguments of a call as text.
pub(super) fn written(arguments: &Value) -> String {
    match arguments {
        // They were no JSON when they came.
        Value::String(text) => text.clone(),
        Value::Null => "{}".to_owned(),
        other => other.to_string(),
    }
}

/// What `object` holds beside `known`.
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

//! Parts of requests and replies that several wire formats have in common.

use model::{Tokens, foreign_json};
use serde_json::{Map, Value, json};

use super::Rejection;
use crate::{Reply, Request, ToolSpec};

/// A vendor's error codes by status.
pub(super) struct ErrorCodes(pub(super) &'static [(u16, &'static str)]);

impl ErrorCodes {
    /// Returns the code for an error with `status`; `code` is set if it is not the usual one.
    pub(super) fn code<'c>(&self, status: u16, code: Option<&'c str>) -> &'c str {
        let usual = |status: u16| self.0.iter().find(|(known, _)| *known == status).map(|(_, code)| *code);
        let general = if status < 500 { 400 } else { 500 };
        code.or_else(|| usual(status)).or_else(|| usual(general)).unwrap_or_default()
    }

    /// Returns the status for an error with `code`.
    pub(super) fn status(&self, code: Option<&str>) -> u16 {
        let known = code.and_then(|code| self.0.iter().find(|(_, known)| *known == code));
        known.map_or(500, |(status, _)| *status)
    }

    /// Formats an error in the same way as OpenAI.
    pub(super) fn openai_error(&self, status: u16, code: Option<&str>, message: &str) -> Value {
        let code = self.code(status, code);
        json!({"error": {"message": message, "type": code, "param": null, "code": code}})
    }
}

pub(super) fn rejection(message: impl Into<String>) -> Rejection {
    Rejection { message: message.into() }
}

/// Parses the body of a request.
pub(super) fn object(body: &[u8]) -> Result<Map<String, Value>, Rejection> {
    match foreign_json::parse_slice(body) {
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

/// Takes the value under `key` if it is a string; any other value stays, so that nothing unknown is lost.
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

/// Takes the list under `key`, which is required.
pub(super) fn take_list(fields: &mut Map<String, Value>, key: &str) -> Result<Vec<Value>, Rejection> {
    match fields.remove(key) {
        Some(Value::Array(items)) => Ok(items),
        _ => Err(rejection(format!("{key}: a list is required"))),
    }
}

/// Takes the list of tools, which may be missing.
pub(super) fn take_tools(fields: &mut Map<String, Value>) -> Result<Vec<Value>, Rejection> {
    if fields.get("tools").is_none_or(Value::is_null) {
        fields.remove("tools");
        return Ok(Vec::new());
    }
    take_list(fields, "tools")
}

/// Takes the field that requests a stream.
pub(super) fn take_stream(fields: &mut Map<String, Value>) -> bool {
    fields.remove("stream") == Some(Value::Bool(true))
}

/// Reads a function that the model may call. `schema` is the key for the schema of its arguments.
pub(super) fn function(mut extra: Map<String, Value>, schema: &str) -> Result<ToolSpec, Rejection> {
    let Some(name) = take_text(&mut extra, "name") else { return Err(rejection("tools: each needs a `name`")) };
    let description = take_text(&mut extra, "description");
    let input_schema = extra.remove(schema).unwrap_or_default();
    Ok(ToolSpec { name, description, input_schema, extra })
}

/// Formats a function that the model may call. `schema` is the key for the schema of its arguments.
pub(super) fn function_json(tool: &ToolSpec, schema: &str) -> Map<String, Value> {
    let mut function = Map::new();
    put(&mut function, "name", Some(&*tool.name));
    put(&mut function, "description", tool.description.as_deref());
    put(&mut function, schema, Some(tool.input_schema.clone()).filter(|schema| !schema.is_null()));
    add(&mut function, &tool.extra);
    function
}

/// Returns the system prompt before the conversation; `None` if there is none.
pub(super) fn system(request: &Request) -> Option<String> {
    let texts: Vec<&str> = request.system.iter().map(String::as_str).filter(|text| !text.is_empty()).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

/// Adds the entry `key` if it has a value.
pub(super) fn put(body: &mut Map<String, Value>, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        body.insert(key.to_owned(), value.into());
    }
}

/// Adds a list under `key` unless it is empty.
pub(super) fn put_list(body: &mut Map<String, Value>, key: &str, items: Vec<Value>) {
    put(body, key, Some(items).filter(|items| !items.is_empty()));
}

/// Returns the text under `key`.
pub(super) fn text<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key).and_then(Value::as_str)
}

/// Returns the whole number under a path of keys.
pub(super) fn whole(value: &Value, path: &[&str]) -> Option<u64> {
    path.iter().try_fold(value, |value, key| value.get(key)).and_then(Value::as_u64)
}

/// Splits a string into two parts, so that clients have pieces to assemble; an empty string yields none.
pub(super) fn halves(text: &str) -> impl Iterator<Item = &str> {
    let (first, second) = text.split_at(text.ceil_char_boundary(text.len() / 2));
    [first, second].into_iter().filter(|part| !part.is_empty())
}

/// Returns the usage of a reply, for formats that cannot represent an unknown usage.
pub(super) fn used(reply: &Reply) -> Tokens {
    reply.tokens.unwrap_or_default()
}

/// Estimates the tokens at about four bytes per token, which is sufficient for a client that uses it to decide whether
/// to compact.
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
    foreign_json::parse(written).unwrap_or_else(|_| Value::String(written.to_owned()))
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

/// Adds the entries of `extra` that `body` does not have.
pub(super) fn add(body: &mut Map<String, Value>, extra: &Map<String, Value>) {
    for (key, value) in extra {
        if !body.contains_key(key) {
            body.insert(key.clone(), value.clone());
        }
    }
}

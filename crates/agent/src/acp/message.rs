//! Messages of JSON-RPC, one per line. Fields are read one by one: agents send extensions, and ids of the wrong type.

use model::foreign_json;
use serde_json::{Value, json};

use crate::json::{owned, text};

/// Error code of an agent that wants a sign-in first.
const AUTH_REQUIRED: i64 = -32000;
/// Error code for a file that does not exist.
pub(super) const NOT_FOUND: i64 = -32002;
/// Error code for a method that is not offered.
pub(super) const NO_METHOD: i64 = -32601;
/// Error code for parameters that cannot be used.
pub(super) const BAD_PARAMETERS: i64 = -32602;
/// Error code for everything else.
pub(super) const INTERNAL: i64 = -32603;

/// Meaning of a line on an agent's stdout.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Incoming {
    /// The response to the request with this number.
    Response(u64, Result<Value, RpcError>),
    /// A request of the agent, with the id to which the response belongs.
    Request {
        /// Id, of any type.
        id: Value,
        /// Name of the method.
        method: String,
        /// Parameters.
        params: Value,
    },
    /// A notification of the agent.
    Notification {
        /// Name of the method.
        method: String,
        /// Parameters.
        params: Value,
    },
    /// An error without the id of a request: the agent could not read the one that was sent.
    Rejected(RpcError),
    /// A response whose id cannot be that of a request.
    Stray(Value),
    /// A line that is not a message, such as a line of a log.
    Noise,
    /// A line that begins like a message and is not valid JSON. It may contain an action of the agent.
    Damaged,
    /// A message with more levels or values than can be read.
    TooDeep,
}

impl Incoming {
    /// Reads a line.
    pub(super) fn read(line: &str) -> Self {
        let message = match foreign_json::parse(line) {
            Ok(message @ Value::Object(_)) => message,
            Err(error) if is_object(line) && foreign_json::is_too_large(&error) => return Self::TooDeep,
            Err(_) if is_object(line) && PARTS.iter().any(|part| line.contains(part)) => return Self::Damaged,
            _ => return Self::Noise,
        };
        let params = || message.get("params").cloned().unwrap_or(Value::Null);
        let id = message.get("id").filter(|id| !id.is_null());
        let error = message.get("error").filter(|error| !error.is_null()).map(RpcError::read);
        let is_response = error.is_some() || message.get("result").is_some() || message.get("jsonrpc").is_some();
        match (owned(&message, "method"), id) {
            (Some(method), Some(id)) => Self::Request { id: id.clone(), method, params: params() },
            (Some(method), None) => Self::Notification { method, params: params() },
            (None, Some(id)) if is_response => match (number(id), error) {
                (None, _) => Self::Stray(id.clone()),
                (Some(number), Some(error)) => Self::Response(number, Err(error)),
                (Some(number), None) => {
                    Self::Response(number, Ok(message.get("result").cloned().unwrap_or(Value::Null)))
                }
            },
            (None, None) if message.get("jsonrpc").is_some() => error.map_or(Self::Noise, Self::Rejected),
            (None, _) => Self::Noise,
        }
    }
}

/// Parts of a message by which a damaged one is recognised.
const PARTS: [&str; 3] = ["\"jsonrpc\"", "\"method\"", "\"sessionUpdate\""];

fn is_object(line: &str) -> bool {
    line.trim_start().starts_with('{')
}

/// Returns the number of a request. Some agents return it as a string or with a fraction.
fn number(id: &Value) -> Option<u64> {
    let written = |id: &Value| id.as_str().and_then(|id| id.parse().ok());
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
    let whole = |id: &Value| id.as_f64().filter(|id| *id >= 0.0 && *id < 1e15 && id.fract() == 0.0).map(|id| id as u64);
    id.as_u64().or_else(|| written(id)).or_else(|| whole(id))
}

/// An error that an agent returned.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RpcError {
    /// Code, 0 if it has none.
    pub(super) code: i64,
    /// Message, followed by the details.
    pub(super) message: String,
}

impl RpcError {
    fn read(error: &Value) -> Self {
        let data = error.get("data").unwrap_or(&Value::Null);
        let detail = ["details", "message", "error"].iter().find_map(|key| text(data, key));
        let detail = detail.or_else(|| data.as_str()).map(str::to_owned);
        let detail = detail.or_else(|| data.is_object().then(|| data.to_string()));
        let detail = detail.filter(|detail| !detail.trim().is_empty());
        let message = match error {
            Value::String(message) => message.clone(),
            _ => owned(error, "message").unwrap_or_else(|| error.to_string()),
        };
        let message = match detail {
            Some(detail) if !message.contains(&detail) => format!("{message}: {detail}"),
            _ => message,
        };
        let code = error.get("code").and_then(Value::as_i64).unwrap_or_default();
        Self { code, message: model::text::shortened(&message, 600) }
    }

    /// Returns `true` if the agent wants a sign-in first.
    pub(super) fn wants_sign_in(&self) -> bool {
        self.code == AUTH_REQUIRED
    }

    /// Returns the HTTP status that some agents use as the code, or name in the message. Other numbers in it, such as a
    /// time in milliseconds, are not one.
    pub(super) fn status(&self) -> Option<u16> {
        let status = |code: i64| u16::try_from(code).ok().filter(|status| (400..600).contains(status));
        let written = |word: &str| word.trim_matches(|c: char| !c.is_ascii_digit()).parse().ok().and_then(status);
        let words: Vec<&str> = self.message.split_whitespace().collect();
        let introduces = |word: &str| {
            let word = word.to_ascii_lowercase();
            let ends = ["status", "code", "error", "http", "got", "returned"];
            word.ends_with(':') || word.starts_with("http/") || ends.iter().any(|end| word.ends_with(end))
        };
        let named = |at: usize| {
            let is_introduced =
                at == 0 || introduces(words[at - 1]) || words[at].to_ascii_lowercase().contains("status");
            written(words[at]).filter(|_| is_introduced)
        };
        status(self.code).or_else(|| (0..words.len()).find_map(named))
    }
}

impl std::fmt::Display for RpcError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

/// Returns the line of a request.
pub(super) fn request(id: u64, method: &str, params: &Value) -> String {
    format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
}

/// Returns the line of a notification.
pub(super) fn notification(method: &str, params: &Value) -> String {
    format!("{}\n", json!({"jsonrpc": "2.0", "method": method, "params": params}))
}

/// Returns the line of a response.
pub(super) fn response(id: &Value, result: Result<Value, (i64, String)>) -> String {
    match result {
        Ok(result) => format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "result": result})),
        Err((code, message)) => {
            format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_log_are_not_messages() {
        for line in
            ["", "Starting…", "[1]", "{}", "{\"level\":\"info\"}", "{level: info}", "{\"id\":\"abc\"}", "{\"id\":1}"]
        {
            assert_eq!(Incoming::read(line), Incoming::Noise, "{line}");
        }
        assert_eq!(Incoming::read("{\"jsonrpc\":\"2.0\",\"id\":1,"), Incoming::Damaged);
        assert_eq!(Incoming::read("{\"method\":\"session/update\",\"params\":{"), Incoming::Damaged);
        assert_eq!(Incoming::read(&format!("{{\"a\":{}", "[".repeat(100_000))), Incoming::TooDeep);
    }

    #[test]
    fn a_response_is_found_whatever_the_type_of_its_id() {
        for id in ["7", "\"7\"", "7.0"] {
            let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}");
            assert_eq!(Incoming::read(&line), Incoming::Response(7, Ok(json!({}))), "{id}");
        }
        let stray = Incoming::read("{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":{}}");
        assert_eq!(stray, Incoming::Stray(json!("a")));
        let rejected =
            Incoming::read("{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"no\"}}");
        assert_eq!(rejected, Incoming::Rejected(RpcError { code: -32700, message: "no".into() }));
        let Incoming::Request { id, .. } = Incoming::read("{\"id\":\"u-1\",\"method\":\"fs/read_text_file\"}") else {
            panic!("a request")
        };
        assert_eq!(response(&id, Ok(Value::Null)), "{\"jsonrpc\":\"2.0\",\"id\":\"u-1\",\"result\":null}\n");
    }

    #[test]
    fn an_error_has_its_details() {
        let read = |error: Value| RpcError::read(&error);
        let error = read(json!({"code": -32603, "message": "Internal error", "data": {"details": "400 scripted 400"}}));
        assert_eq!(
            (error.to_string().as_str(), error.status()),
            ("Internal error: 400 scripted 400 (-32603)", Some(400))
        );
        assert_eq!(read(json!({"code": 429, "message": "slow down"})).status(), Some(429));
        for (message, status) in [
            ("503 Service Unavailable", Some(503)),
            ("API Error: 500 {}", Some(500)),
            ("unexpected status 502, retry", Some(502)),
            ("failed (status_code=429)", Some(429)),
            ("no answer after 500 ms", None),
            ("cannot read 404 files", None),
        ] {
            assert_eq!(read(json!({"code": -32603, "message": message})).status(), status, "{message}");
        }
        assert!(read(json!({"code": -32000, "message": "Authentication required"})).wants_sign_in());
        assert_eq!(read(json!("odd")), RpcError { code: 0, message: "odd".into() });
    }
}

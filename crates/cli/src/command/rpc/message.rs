//! JSON-RPC 2.0 messages.

use model::foreign_json;
use serde::Deserialize;
use serde_json::{Value, json};
use session::ErrorKind;

use crate::error::CliError;
use crate::exit;

/// The line is not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// The line is not a JSON-RPC 2.0 message.
pub const INVALID_REQUEST: i64 = -32600;
/// The server does not have the method.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The parameters are wrong.
pub const INVALID_PARAMS: i64 = -32602;
/// A bug in trialrun.
pub const INTERNAL_ERROR: i64 = -32603;
/// `initialize` must come first, and only once.
pub const NOT_INITIALIZED: i64 = -32000;
/// The client speaks another version of the protocol.
pub const WRONG_PROTOCOL: i64 = -32001;
/// A test or the configuration has an error. `data.problems` lists all.
pub const INVALID_TESTS: i64 = -32002;
/// The request cannot be carried out; nothing ran.
pub const REFUSED: i64 = -32003;
/// The selection is empty; nothing ran.
pub const NOTHING_SELECTED: i64 = -32004;
/// The machine is at fault.
pub const ENVIRONMENT: i64 = -32005;
/// From the client: what its agent needs cannot be reached, so the trial is broken, not failed.
pub const UNREACHABLE: i64 = -32050;

/// Error of a request.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcError {
    /// One of the constants in this module.
    pub code: i64,
    /// Description in one line.
    pub message: String,
    /// Details; null if there are none.
    pub data: Value,
}

impl RpcError {
    /// Creates an error without details.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: Value::Null }
    }

    /// Creates an error about parameters.
    pub fn params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }
}

impl From<CliError> for RpcError {
    /// Converts an error of a command. Its text may come from anywhere, so control characters are shown.
    fn from(error: CliError) -> Self {
        let (code, exit_code) = match error.kind() {
            ErrorKind::Usage => (REFUSED, exit::INVALID),
            ErrorKind::Nothing => (NOTHING_SELECTED, exit::NOTHING),
            ErrorKind::Environment | ErrorKind::Stopped => (ENVIRONMENT, exit::INCOMPLETE),
        };
        let hints: Vec<String> = error.hints().iter().map(|hint| report::clean(hint)).collect();
        Self {
            code,
            message: report::clean(&error.to_string()),
            data: json!({ "exit_code": exit_code, "hints": hints }),
        }
    }
}

/// A message from the client.
#[derive(Debug, PartialEq)]
pub enum Incoming {
    /// Request, which gets one response.
    Request {
        /// Number or string that the response repeats.
        id: Value,
        /// Name of the method.
        method: String,
        /// Parameters; an empty map if there are none.
        params: Value,
    },
    /// Message without a response.
    Notification,
    /// Answer to a callback.
    Reply {
        /// Number of the callback.
        id: u64,
        /// The answer.
        reply: Result<Value, RpcError>,
    },
}

/// Parts of a message that are readable even if others are not.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    id: Value,
    #[serde(default)]
    method: Option<String>,
}

/// A line that is not a message.
#[derive(Debug, PartialEq)]
pub struct InvalidMessage {
    /// Id of the request, or null.
    pub id: Value,
    /// The problem.
    pub error: RpcError,
}

impl InvalidMessage {
    fn new(id: Value, error: RpcError) -> Box<Self> {
        Box::new(Self { id, error })
    }
}

/// Parses a line. An answer to a callback may have at most `most_of_reply` bytes.
///
/// # Errors
/// Returns an error if the line is not a message.
pub fn parse(line: &[u8], most_of_reply: usize) -> Result<Incoming, Box<InvalidMessage>> {
    let mut map = match foreign_json::parse_slice(line) {
        Ok(Value::Object(map)) => map,
        Ok(_) => {
            let error = RpcError::new(INVALID_REQUEST, "a message must be an object; batches are not supported");
            return Err(InvalidMessage::new(Value::Null, error));
        }
        Err(error) => return unreadable(line, &error),
    };
    let id = map.remove("id").unwrap_or_default();
    let invalid = |id, message: &str| Err(InvalidMessage::new(id, RpcError::new(INVALID_REQUEST, message)));
    if map.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return invalid(id, "`jsonrpc` must be \"2.0\"");
    }
    let Some(method) = map.get("method") else {
        let Some(number) = id.as_u64() else {
            return invalid(Value::Null, "a message needs a `method`, or the `id` of a callback");
        };
        let reply = match (map.remove("result"), map.remove("error")) {
            (_, Some(Value::Object(error))) => Err(RpcError {
                code: error.get("code").and_then(Value::as_i64).unwrap_or(INTERNAL_ERROR),
                message: error
                    .get("message")
                    .and_then(Value::as_str)
                    .unwrap_or("an error without a message")
                    .to_owned(),
                data: error.get("data").cloned().unwrap_or_default(),
            }),
            (Some(_), None) if line.len() > most_of_reply => {
                Err(RpcError::new(INVALID_REQUEST, format!("its answer has more than {} MiB", most_of_reply >> 20)))
            }
            (Some(result), None) => Ok(result),
            _ => Err(RpcError::new(INVALID_REQUEST, "the answer has neither a `result` nor an `error`")),
        };
        return Ok(Incoming::Reply { id: number, reply });
    };
    let Some(method) = method.as_str().map(str::to_owned) else { return invalid(id, "`method` must be a string") };
    let params = match map.remove("params") {
        None | Some(Value::Null) => json!({}),
        Some(params @ Value::Object(_)) => params,
        Some(_) => return Err(InvalidMessage::new(id, RpcError::params("`params` must be an object"))),
    };
    match id {
        Value::Null => Ok(Incoming::Notification),
        Value::String(_) | Value::Number(_) => Ok(Incoming::Request { id, method, params }),
        _ => invalid(Value::Null, "`id` must be a number or a string"),
    }
}

/// Returns the result for a line that cannot be read completely. If it answers a callback, the callback fails.
fn unreadable(line: &[u8], error: &serde_json::Error) -> Result<Incoming, Box<InvalidMessage>> {
    let Ok(head) = serde_json::from_slice::<Head>(line) else {
        let error = RpcError::new(PARSE_ERROR, format!("the line is not valid JSON: {error}"));
        return Err(InvalidMessage::new(Value::Null, error));
    };
    let error = RpcError::new(INVALID_REQUEST, format!("the message cannot be read: {error}"));
    match (head.method, head.id.as_u64()) {
        (None, Some(id)) => Ok(Incoming::Reply { id, reply: Err(error) }),
        _ => Err(InvalidMessage::new(head.id, error)),
    }
}

/// Returns the line of a response.
pub fn response(id: &Value, answer: Result<Value, RpcError>) -> String {
    let response = match answer {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(RpcError { code, message, data: Value::Null }) => {
            json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
        }
        Err(RpcError { code, message, data }) => {
            json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message, "data": data } })
        }
    };
    response.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Incoming, (Value, i64)> {
        parse(line.as_bytes(), 1 << 20).map_err(|invalid| (invalid.id, invalid.error.code))
    }

    #[test]
    fn requests_and_replies_are_told_apart() {
        let request = Incoming::Request { id: json!("a"), method: "list".into(), params: json!({}) };
        assert_eq!(read(r#"{"jsonrpc":"2.0","id":"a","method":"list"}"#), Ok(request));
        assert_eq!(read(r#"{"jsonrpc":"2.0","method":"list"}"#), Ok(Incoming::Notification));
        let reply = Incoming::Reply { id: 3, reply: Ok(json!("x\u{fffd}")) };
        assert_eq!(read(r#"{"jsonrpc":"2.0","id":3,"result":"x\ud800"}"#), Ok(reply));
        let error = RpcError::new(1, "no");
        let reply = Incoming::Reply { id: 3, reply: Err(error) };
        assert_eq!(read(r#"{"jsonrpc":"2.0","id":3,"error":{"code":1,"message":"no"}}"#), Ok(reply));
    }

    #[test]
    fn what_is_not_a_message_is_an_error_with_its_id() {
        for (line, id, code) in [
            ("{", json!(null), PARSE_ERROR),
            ("[]", json!(null), INVALID_REQUEST),
            (r#"{"id":1,"method":"list"}"#, json!(1), INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":[1],"method":"list"}"#, json!(null), INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"method":2}"#, json!(1), INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"method":"list","params":[]}"#, json!(1), INVALID_PARAMS),
        ] {
            assert_eq!(read(line), Err((id, code)), "{line}");
        }
    }

    #[test]
    fn an_answer_that_is_too_large_or_too_deep_still_reaches_its_callback() {
        let deep = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{}{}}}"#, "[".repeat(5000), "]".repeat(5000));
        let large = format!(r#"{{"jsonrpc":"2.0","id":7,"result":"{}"}}"#, "x".repeat(2 << 20));
        let none = r#"{"jsonrpc":"2.0","id":7}"#.to_owned();
        for (line, expected) in [(deep, "cannot be read"), (large, "more than 1 MiB"), (none, "neither")] {
            let Ok(Incoming::Reply { id: 7, reply: Err(error) }) = read(&line) else { panic!("{expected}") };
            assert!(error.message.contains(expected), "{}", error.message);
        }
    }

    #[test]
    fn messages_are_read_without_a_panic() {
        let seeds = [
            r#"{"jsonrpc":"2.0","id":"a","method":"list","params":{"x":[1,null]}}"#,
            r#"{"jsonrpc":"2.0","id":3,"error":{"code":1}}"#,
        ];
        testkit::fuzz(&seeds.map(|seed| seed.as_bytes().to_vec()), |line| drop(parse(line, 1 << 20)));
    }
}

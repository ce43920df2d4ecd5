//! Client side of a wire format.

use serde_json::{Map, Value};

use crate::{Reply, Request};

/// Formats requests to a provider and reads its responses.
pub(crate) trait Dialect: Send + Sync {
    /// Returns the path and query of a request below the vendor's address.
    fn target(&self, _request: &Request, _stream: bool) -> String {
        String::new()
    }

    /// Formats the body of a request.
    fn ask(&self, request: &Request, stream: bool) -> Map<String, Value>;

    /// Reads a response that is one document.
    fn reply(&self, request: &Request, document: Value) -> Result<Reply, BadResponse>;

    /// Starts to assemble a streamed response.
    fn assemble(&self, request: &Request) -> Box<dyn Assemble>;

    /// Returns the framing of a stream.
    fn framing(&self) -> Framing {
        Framing::Events
    }
}

/// Framing of the pieces of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Server-sent events.
    Events,
    /// One JSON document per line.
    Lines,
}

/// A response that is being received.
pub(crate) trait Assemble: Send {
    /// Processes the next piece.
    fn take(&mut self, piece: Value) -> Result<Progress, BadResponse>;

    /// Returns the part of the reply that has arrived; `None` if the format cannot be read before its end.
    fn so_far(&self) -> Option<Reply> {
        None
    }

    /// Returns the reply after the stream has ended; `None` if something is missing.
    fn finish(self: Box<Self>) -> Option<Reply>;
}

/// Progress of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// More pieces follow.
    More,
    /// The response is complete, whatever follows.
    Complete,
}

/// Reason why a response cannot be used.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum BadResponse {
    /// The response is not in the expected format. Contains a description.
    Unreadable(String),
    /// The response is an error, with a success status or in the middle of a stream.
    Reported(ReportedError),
}

impl BadResponse {
    /// Creates the reason for a missing part.
    pub(crate) fn lacks(what: &str) -> Self {
        Self::Unreadable(format!("the response has no {what}"))
    }
}

/// An error as reported by a provider.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ReportedError {
    /// Error codes. Some vendors send several.
    pub(crate) codes: Vec<String>,
    /// Error message.
    pub(crate) message: String,
}

impl ReportedError {
    /// Reads an error in any vendor's format: `{"error": {"message", "type", "code"}}`, `{"error": "text"}`,
    /// `{"message"}` or `{"detail"}`.
    pub(crate) fn from_document(document: &Value) -> Option<Self> {
        let error = document.get("error").filter(|error| !error.is_null()).unwrap_or(document);
        if let Some(message) = error.as_str() {
            return Some(Self { codes: Vec::new(), message: message.to_owned() });
        }
        let mut codes: Vec<String> = ["code", "type", "status"]
            .iter()
            .filter_map(|key| match error.get(key)? {
                Value::String(kind) => Some(kind.clone()),
                Value::Number(number) => Some(number.to_string()),
                _ => None,
            })
            .filter(|kind| kind != "error")
            .collect();
        if let Some(inner) = error.pointer("/innererror/code").and_then(Value::as_str) {
            codes.push(inner.to_owned());
        }
        let message = ["message", "detail", "msg"].iter().find_map(|key| match error.get(key)? {
            Value::String(text) => Some(text.clone()),
            Value::Null => None,
            other => Some(other.to_string()),
        });
        if message.is_none() && codes.is_empty() {
            return None;
        }
        Some(Self { message: message.unwrap_or_else(|| codes.join(", ")), codes })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn errors_are_parsed_in_every_vendors_format() {
        let parsed = |document: Value| {
            ReportedError::from_document(&document).map(|error| (error.codes.join("/"), error.message))
        };
        let pair = |kinds: &str, message: &str| Some((kinds.to_owned(), message.to_owned()));
        assert_eq!(
            parsed(json!({"error": {"message": "no", "type": "invalid_request_error", "param": null, "code": "c"}})),
            pair("c/invalid_request_error", "no")
        );
        assert_eq!(
            parsed(json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})),
            pair("overloaded_error", "Overloaded")
        );
        assert_eq!(parsed(json!({"error": "model 'x' not found"})), pair("", "model 'x' not found"));
        assert_eq!(parsed(json!({"detail": [{"msg": "bad"}]})), pair("", r#"[{"msg":"bad"}]"#));
        assert_eq!(parsed(json!({"message": "m", "code": 404})), pair("404", "m"));
        assert_eq!(parsed(json!({"choices": []})), None);
        assert_eq!(parsed(json!("x")), pair("", "x"));
    }
}

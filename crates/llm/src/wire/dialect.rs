//! The client's side of a wire format.

use serde_json::{Map, Value};

use crate::{Reply, Request};

/// How a provider is asked, and how its answer is read.
pub(crate) trait Dialect: Send + Sync {
    /// The body of a request.
    fn ask(&self, request: &Request, stream: bool) -> Map<String, Value>;

    /// Reads an answer that came as one document.
    fn reply(&self, request: &Request, document: Value) -> Result<Reply, Spoilt>;

    /// Begins to put an answer together that comes in pieces.
    fn gather(&self, request: &Request) -> Box<dyn Gather>;

    /// How the pieces of a stream are told apart.
    fn framing(&self) -> Framing {
        Framing::Events
    }
}

/// How the pieces of a stream are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Server-sent events.
    Events,
    /// A JSON document a line.
    Lines,
}

/// An answer on its way.
pub(crate) trait Gather: Send {
    /// Takes in the next piece.
    fn take(&mut self, piece: Value) -> Result<Progress, Spoilt>;

    /// The answer, after the stream has ended by itself; `None` if something is missing from it.
    fn finish(self: Box<Self>) -> Option<Reply>;
}

/// How far an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// More is to come.
    More,
    /// It is complete, whatever else comes.
    Complete,
}

/// Why an answer is none.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Spoilt {
    /// It is not in the format; what is wrong with it.
    Unreadable(String),
    /// It is an error that is told with a status of success, or in the middle of a stream.
    Reported(Told),
}

impl Spoilt {
    /// Something that has to be there is not.
    pub(crate) fn lacks(what: &str) -> Self {
        Self::Unreadable(format!("the answer has no {what}"))
    }
}

/// What a provider says of an error.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Told {
    /// Its words for it, of the several that a vendor may have.
    pub(crate) kinds: Vec<String>,
    /// What it says to people.
    pub(crate) message: String,
}

impl Told {
    /// Reads an error as any of the vendors writes it: `{"error": {"message", "type", "code"}}`, `{"error": "text"}`,
    /// `{"message"}` or `{"detail"}`.
    pub(crate) fn of(document: &Value) -> Option<Self> {
        let error = document.get("error").filter(|error| !error.is_null()).unwrap_or(document);
        if let Some(message) = error.as_str() {
            return Some(Self { kinds: Vec::new(), message: message.to_owned() });
        }
        let mut kinds: Vec<String> = ["code", "type", "status"]
            .iter()
            .filter_map(|key| match error.get(key)? {
                Value::String(kind) => Some(kind.clone()),
                Value::Number(number) => Some(number.to_string()),
                _ => None,
            })
            .filter(|kind| kind != "error")
            .collect();
        if let Some(inner) = error.pointer("/innererror/code").and_then(Value::as_str) {
            kinds.push(inner.to_owned());
        }
        let message = ["message", "detail", "msg"].iter().find_map(|key| match error.get(key)? {
            Value::String(text) => Some(text.clone()),
            Value::Null => None,
            other => Some(other.to_string()),
        });
        if message.is_none() && kinds.is_empty() {
            return None;
        }
        Some(Self { message: message.unwrap_or_else(|| kinds.join(", ")), kinds })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_error_is_read_in_every_vendors_form() {
        let told = |document: Value| Told::of(&document).map(|told| (told.kinds.join("/"), told.message));
        let pair = |kinds: &str, message: &str| Some((kinds.to_owned(), message.to_owned()));
        assert_eq!(
            told(json!({"error": {"message": "no", "type": "invalid_request_error", "param": null, "code": "c"}})),
            pair("c/invalid_request_error", "no")
        );
        assert_eq!(
            told(json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})),
            pair("overloaded_error", "Overloaded")
        );
        assert_eq!(told(json!({"error": "model 'x' not found"})), pair("", "model 'x' not found"));
        assert_eq!(told(json!({"detail": [{"msg": "bad"}]})), pair("", r#"[{"msg":"bad"}]"#));
        assert_eq!(told(json!({"message": "m", "code": 404})), pair("404", "m"));
        assert_eq!(told(json!({"choices": []})), None);
        assert_eq!(told(json!("x")), pair("", "x"));
    }
}

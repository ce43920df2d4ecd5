//! Wire formats of the vendors, in both directions. Servers ([`WIRES`]) read requests and write replies; clients write
//! requests and read replies. Each format is one file or folder.
//!
//! A format does not know about sockets, tokens or faults. It formats a reply as one document and as a stream of
//! events, and it formats errors; the server decides which parts to send.

pub(crate) mod anthropic;
pub(crate) mod chat_completions;
mod dialect;
#[cfg(test)]
mod fuzz;
pub(crate) mod gemini;
pub(crate) mod ollama;
mod parts;
pub(crate) mod responses;

use serde_json::{Map, Value};

pub(crate) use self::dialect::{Assemble, BadResponse, Dialect, Framing, Progress, ReportedError};
use crate::{Reply, Request};

/// All wire formats, in the order in which users see them.
pub static WIRES: &[&dyn Wire] =
    &[&anthropic::Messages, &responses::Responses, &chat_completions::ChatCompletions, &gemini::GenerateContent];

/// Name under which the path of a request, with its query, is looked up among its headers.
pub const PATH: &str = ":path";

/// Returns the client side of one of [`WIRES`].
pub(crate) fn dialect_of(wire: &dyn Wire) -> Option<&'static dyn Dialect> {
    match wire.name() {
        "anthropic" => Some(&anthropic::Client),
        "openai-responses" => Some(&responses::Client),
        "openai" => Some(&chat_completions::Client { limit: "max_tokens", requests_usage: true }),
        "gemini" => Some(&gemini::Client),
        _ => None,
    }
}

/// Returns the wire format for requests to `path`, which may lack the version or have a query. `None` if such requests
/// are not conversations.
pub fn wire_of_path(path: &str) -> Option<&'static dyn Wire> {
    let path = path.split('?').next().unwrap_or_default();
    WIRES.iter().find(|wire| wire.is_at(path)).copied()
}

/// Returns a request as a JSON document in the first of [`WIRES`].
pub fn request_document(request: &Request) -> Value {
    Value::Object(anthropic::Client.ask(request, false))
}

/// Vendor's format of requests and replies.
pub trait Wire: Send + Sync {
    /// Returns its name, such as `anthropic`.
    fn name(&self) -> &'static str;

    /// Returns the path of its requests, without the query. The method is `POST`.
    fn path(&self) -> &'static str;

    /// Returns `true` if requests to `path` are in this format. `path` has no query.
    fn serves(&self, path: &str) -> bool {
        path == self.path()
    }

    /// Returns `true` if `path` ends like a path of this format. Some providers include its beginning in their address.
    fn is_at(&self, path: &str) -> bool {
        path.ends_with(self.path().strip_prefix("/v1").unwrap_or(self.path()))
    }

    /// Reads a request. `header` looks up a header by its lower-case name, and the path as [`PATH`].
    fn read<'h>(&self, header: &dyn Fn(&str) -> Option<&'h str>, body: &[u8]) -> Result<Incoming, Rejection> {
        self.read_fields(header, parts::object(body)?)
    }

    /// Reads a request from the fields of its body.
    fn read_fields<'h>(
        &self,
        header: &dyn Fn(&str) -> Option<&'h str>,
        fields: Map<String, Value>,
    ) -> Result<Incoming, Rejection>;

    /// Formats the reply as one document.
    fn whole(&self, reply: &Reply) -> Value;

    /// Formats the reply as a stream of events.
    fn stream(&self, reply: &Reply) -> SseStream;

    /// Formats an error as the body of a response with `status`. `kind` is the vendor's error code, if it is not the
    /// usual one.
    fn error(&self, status: u16, kind: Option<&str>, message: &str) -> Value;

    /// Formats an error in the middle of a stream.
    fn error_event(&self, kind: Option<&str>, message: &str) -> SseEvent;

    /// Returns the status of an error of type `kind` outside a stream.
    fn status_of(&self, kind: Option<&str>) -> u16;

    /// Answers a small endpoint other than the one for messages, such as one that counts tokens.
    fn aside(&self, _method: &str, _path: &str, _body: &[u8]) -> Option<Result<Value, Rejection>> {
        None
    }
}

/// Received request.
#[derive(Debug, Clone, PartialEq)]
pub struct Incoming {
    /// Request.
    pub request: Request,
    /// True if the reply must be a stream.
    pub stream: bool,
}

/// A request that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Rejection {
    /// Description of the problem.
    pub message: String,
}

/// A reply as a stream, split into the parts between which it can be interrupted.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SseStream {
    /// Events before the content.
    pub opening: Vec<SseEvent>,
    /// Events with the content.
    pub content: Vec<SseEvent>,
    /// Events after the content.
    pub closing: Vec<SseEvent>,
}

/// Server-sent event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseEvent {
    /// Name, if the format names events.
    pub event: Option<&'static str>,
    /// Data on one line.
    pub data: String,
}

impl std::fmt::Display for SseEvent {
    /// Formats the event as it is sent.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(event) = self.event {
            writeln!(f, "event: {event}")?;
        }
        write!(f, "data: {}\n\n", self.data)
    }
}

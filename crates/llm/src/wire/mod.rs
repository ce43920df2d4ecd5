//! The vendors' wire formats, in both directions: bytes of a request in and a reply's bytes out for those who serve
//! ([`WIRES`]), a request's body out and a reply in for those who ask. One file or folder each.
//!
//! A format knows nothing of sockets, tokens or faults. It says how a reply looks as one document and as a stream of
//! events, and how an error looks; whoever serves it decides what is sent of that.

pub(crate) mod anthropic;
pub(crate) mod chat_completions;
mod dialect;
pub(crate) mod ollama;
mod parts;
pub(crate) mod responses;

use serde_json::Value;

pub(crate) use self::dialect::{Dialect, Framing, Gather, Progress, Spoilt, Told};
use crate::{Reply, Request};

/// Every wire format, in the order users see them.
pub static WIRES: &[&dyn Wire] = &[&anthropic::Messages, &responses::Responses, &chat_completions::ChatCompletions];

/// A vendor's way to write requests and replies.
pub trait Wire: Send + Sync {
    /// Its name, such as `anthropic`.
    fn name(&self) -> &'static str;

    /// The method of its requests.
    fn method(&self) -> &'static str;

    /// The path of its requests, without the query.
    fn path(&self) -> &'static str;

    /// Reads a request. `header` looks a header up by its lower-case name.
    fn read<'h>(&self, header: &dyn Fn(&str) -> Option<&'h str>, body: &[u8]) -> Result<Incoming, Rejection>;

    /// The reply as one document.
    fn whole(&self, reply: &Reply) -> Value;

    /// The reply as a stream of events.
    fn stream(&self, reply: &Reply) -> SseStream;

    /// An error as the body of a response with `status`. `kind` is the vendor's word, if it is not the usual one.
    fn error(&self, status: u16, kind: Option<&str>, message: &str) -> Value;

    /// An error in the middle of a stream.
    fn error_event(&self, kind: Option<&str>, message: &str) -> SseEvent;

    /// The status that an error of `kind` has when it is not within a stream.
    fn status_of(&self, kind: Option<&str>) -> u16;

    /// The answer of a small endpoint beside the one for messages, such as one that counts tokens.
    fn aside(&self, method: &str, path: &str, body: &[u8]) -> Option<Result<Value, Rejection>>;
}

/// A request as it arrived.
#[derive(Debug, Clone, PartialEq)]
pub struct Incoming {
    /// What is asked.
    pub request: Request,
    /// Whether the answer is to be a stream.
    pub stream: bool,
}

/// A request that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Rejection {
    /// What is wrong with it.
    pub message: String,
}

/// A reply as a stream, in the parts where it can break.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SseStream {
    /// Before any content.
    pub opening: Vec<SseEvent>,
    /// The content.
    pub content: Vec<SseEvent>,
    /// After the content.
    pub closing: Vec<SseEvent>,
}

/// One server-sent event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseEvent {
    /// Its name, where the format names events.
    pub event: Option<&'static str>,
    /// What it carries, on one line.
    pub data: String,
}

impl std::fmt::Display for SseEvent {
    /// The event as it is sent.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(event) = self.event {
            writeln!(f, "event: {event}")?;
        }
        write!(f, "data: {}\n\n", self.data)
    }
}

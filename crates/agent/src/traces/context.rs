//! The trace that a message belongs to.

use spans::{SpanId, TraceId};
use uuid::Uuid;

/// Ids of a message: those of a trace, and of the span that stands for the message in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TraceContext {
    pub(crate) trace: TraceId,
    pub(crate) span: SpanId,
}

impl TraceContext {
    /// Creates the ids for a message.
    pub(crate) fn new() -> Self {
        let span = Uuid::new_v4().into_bytes();
        Self { trace: TraceId(Uuid::new_v4().into_bytes().to_vec()), span: SpanId(span[8..].to_vec()) }
    }

    /// Returns the ids as a W3C `traceparent`.
    pub(crate) fn traceparent(&self) -> String {
        format!("00-{}-{}-01", self.trace, self.span)
    }
}

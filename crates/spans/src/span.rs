//! A span, as its program sent it.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

/// Work that a program reports, with its beginning and its end.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// Trace that it belongs to.
    pub trace: TraceId,
    /// Id, unique in its trace.
    pub id: SpanId,
    /// Span that it is part of.
    pub parent: Option<SpanId>,
    /// Name.
    pub name: String,
    /// Library that created it, with its version.
    pub scope: Arc<str>,
    /// Attributes of the program.
    pub resource: Arc<Map<String, Value>>,
    /// Beginning, in nanoseconds since 1970.
    pub start_ns: u64,
    /// End, in nanoseconds since 1970.
    pub end_ns: u64,
    /// Attributes.
    pub attributes: Map<String, Value>,
    /// True if its program dropped attributes, because there were too many.
    pub dropped_attributes: bool,
    /// Events in order.
    pub events: Vec<SpanEvent>,
    /// Message of the error with which it ended; may be empty.
    pub error: Option<String>,
}

/// Event during a span.
#[derive(Debug, Clone, PartialEq)]
pub struct SpanEvent {
    /// Name.
    pub name: String,
    /// Attributes.
    pub attributes: Map<String, Value>,
}

/// Id of a trace.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TraceId(pub Vec<u8>);

/// Id of a span.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpanId(pub Vec<u8>);

impl SpanId {
    /// Returns `true` if there is none: it has no bytes, or only zeros.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|byte| *byte == 0)
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Debug for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Returns the bytes of hexadecimal text; `None` if it is not hexadecimal.
pub(crate) fn bytes(hexadecimal: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, rest) = hexadecimal.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|[high, low]| Some((digit(*high)? << 4) | digit(*low)?)).collect()
}

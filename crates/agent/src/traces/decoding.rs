//! Reads the body of an export request.

use std::io::Read;

use flate2::read::GzDecoder;
use spans::{Span, SpanEvent, SpanId, TraceId};

/// Maximum size of a request, as it is sent and uncompressed, in bytes; the usual limit of collectors.
pub(super) const MAX_BYTES: usize = 20 << 20;

/// Content of a request.
#[derive(Debug, Default)]
pub(super) struct Content {
    pub(super) spans: Vec<Span>,
    /// Events of spans that were sent as log records.
    pub(super) events: Vec<(TraceId, SpanId, SpanEvent)>,
    /// Uncompressed size in bytes.
    pub(super) bytes: usize,
}

/// Kind of a request, from its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    Traces,
    Logs,
    /// Accepted and ignored.
    Metrics,
}

/// Reads the body of a request. The error says why it cannot be read.
pub(super) fn read(signal: Signal, kind: &str, encoding: &str, body: &[u8]) -> Result<Content, String> {
    let inflated = inflate(encoding, body, MAX_BYTES)?;
    let body = inflated.as_deref().unwrap_or(body);
    let is_json = match kind.split(';').next().unwrap_or_default().trim() {
        "application/x-protobuf" => false,
        "application/json" => true,
        other => return Err(format!("its content type `{}` is unknown", model::text::shortened(other, 60))),
    };
    let mut content = Content { bytes: body.len(), ..Content::default() };
    match (signal, is_json) {
        (Signal::Traces, false) => content.spans = spans::read_protobuf(body)?,
        (Signal::Traces, true) => content.spans = spans::read_json(body)?,
        (Signal::Logs, false) => content.events = spans::read_protobuf_events(body)?,
        (Signal::Logs, true) => content.events = spans::read_json_events(body)?,
        (Signal::Metrics, _) => {}
    }
    Ok(content)
}

/// Returns a compressed body without its compression, of at most `most` bytes; `None` if it is not compressed.
pub(super) fn inflate(encoding: &str, body: &[u8], most: usize) -> Result<Option<Vec<u8>>, String> {
    match encoding.trim() {
        "" | "identity" => Ok(None),
        "gzip" => {
            let mut inflated = Vec::new();
            let read = GzDecoder::new(body).take(most as u64 + 1).read_to_end(&mut inflated);
            read.map_err(|error| format!("it is not gzip: {error}"))?;
            if inflated.len() > most {
                return Err(too_large());
            }
            Ok(Some(inflated))
        }
        other => Err(format!("its encoding `{}` is unknown", model::text::shortened(other, 60))),
    }
}

/// Returns the reason why a request is refused that is too large.
pub(super) fn too_large() -> String {
    format!("it has more than {} MiB", MAX_BYTES >> 20)
}

//! Spans of instrumented programs, in the protocol of OpenTelemetry (OTLP), and what an agent did according to them.
//!
//! [`read_protobuf`] and [`read_json`] read the export requests of a program, or the lines of a file with them.
//! [`trace_from_spans`] turns spans into the steps of a trace: model requests, tool calls with their results, tokens and
//! sub-agents. It reads the semantic conventions for generative AI in their old and new forms, OpenInference,
//! OpenLLMetry, and the attributes of the AI SDK and of Google's Agent Development Kit. Nothing here does I/O.
//!
//! ```
//! let request = r#"{"resourceSpans": [{"scopeSpans": [{"spans": [{
//!     "traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b174", "name": "execute_tool find_order",
//!     "startTimeUnixNano": "1", "endTimeUnixNano": "2",
//!     "attributes": [
//!         {"key": "gen_ai.operation.name", "value": {"stringValue": "execute_tool"}},
//!         {"key": "gen_ai.tool.name", "value": {"stringValue": "find_order"}}
//!     ]
//! }]}]}]}"#;
//! let spans = trialrun_spans::read_json(request.as_bytes()).expect("an export request");
//! let seen = trialrun_spans::trace_from_spans(&spans);
//! let trace = model::Trace::of(&seen.steps);
//! assert_eq!(trace.calls[0].call.name, "find_order");
//! ```

mod chat_message;
mod convention;
mod message;
mod reading;
mod span;
#[cfg(test)]
mod tests;
mod trace;

pub use message::{read_json, read_json_events, read_protobuf, read_protobuf_events};
pub use span::{Span, SpanEvent, SpanId, TraceId};
pub use trace::{CallSource, SpanTrace, shows_work, trace_from_spans, whole_of};

//! Telemetry for OpenTelemetry: spans and log records, their encodings, and their receivers.

pub(crate) mod message;

use std::io;

use prost::Message;

use self::message::{
    LogRecord, LogsRequest, Resource, ResourceLogs, ResourceSpans, Response, Scope, ScopeLogs, ScopeSpans, Span,
    TracesRequest,
};

/// Name of the setting with the trace that a run is part of.
pub const TRACEPARENT: &str = "traceparent";

/// Kind of telemetry. Collectors receive each kind at its own address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Spans.
    Traces,
    /// Log records.
    Logs,
}

/// Encoding of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Encoding {
    /// `application/x-protobuf`.
    #[default]
    Protobuf,
    /// `application/json`.
    Json,
}

/// Destination of telemetry.
pub trait Exporter: Send {
    /// Exports spans and log records. May return before they are delivered.
    ///
    /// # Errors
    /// Returns an error if they cannot be written.
    fn export(&mut self, telemetry: Telemetry) -> io::Result<()>;

    /// Waits until everything is delivered, but only for a limited time.
    ///
    /// # Errors
    /// Returns an error if they cannot be written.
    fn finish(&mut self) -> io::Result<()>;
}

/// Arguments for opening the report.
#[derive(Default)]
pub struct Options {
    /// Destination; without one, JSON lines go to the output of the report.
    pub exporter: Option<Box<dyn Exporter>>,
    /// Attributes that describe where the telemetry comes from, in addition to the program's name and version.
    pub resource: Vec<(String, String)>,
    /// True if spans contain messages, arguments and results.
    pub content: bool,
}

/// Spans and log records of one run.
#[derive(Debug, Clone, Default)]
pub struct Telemetry {
    pub(crate) resource: Resource,
    pub(crate) scope: Scope,
    pub(crate) spans: Vec<Span>,
    pub(crate) logs: Vec<LogRecord>,
}

impl Telemetry {
    /// Returns the number of spans or log records.
    pub fn count(&self, signal: Signal) -> usize {
        match signal {
            Signal::Traces => self.spans.len(),
            Signal::Logs => self.logs.len(),
        }
    }

    /// Adds more telemetry of the same run.
    pub fn append(&mut self, mut more: Self) {
        self.spans.append(&mut more.spans);
        self.logs.append(&mut more.logs);
    }

    /// Encodes the export request for the spans or the log records.
    pub fn encode(&self, signal: Signal, encoding: Encoding) -> Vec<u8> {
        let (resource, scope) = (Some(self.resource.clone()), Some(self.scope.clone()));
        match signal {
            Signal::Traces => {
                let scope_spans = vec![ScopeSpans { scope, spans: self.spans.clone() }];
                encoded(&TracesRequest { resource_spans: vec![ResourceSpans { resource, scope_spans }] }, encoding)
            }
            Signal::Logs => {
                let scope_logs = vec![ScopeLogs { scope, log_records: self.logs.clone() }];
                encoded(&LogsRequest { resource_logs: vec![ResourceLogs { resource, scope_logs }] }, encoding)
            }
        }
    }
}

fn encoded(request: &(impl Message + serde::Serialize), encoding: Encoding) -> Vec<u8> {
    match encoding {
        Encoding::Protobuf => request.encode_to_vec(),
        // Strings, numbers and lists can always be serialised.
        Encoding::Json => serde_json::to_vec(request).unwrap_or_default(),
    }
}

/// Reads a collector's response. Returns the number of records that it rejected and its message, unless it accepted
/// everything without comment.
pub fn rejected(answer: &[u8], encoding: Encoding) -> Option<(usize, String)> {
    let response = match encoding {
        Encoding::Protobuf => Response::decode(answer).ok(),
        Encoding::Json => serde_json::from_slice(answer).ok(),
    };
    let partial = response?.partial_success?;
    let rejected = usize::try_from(partial.rejected).unwrap_or_default();
    (rejected > 0 || !partial.error_message.is_empty()).then_some((rejected, partial.error_message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_of_collectors_are_read_in_both_encodings() {
        for key in ["rejectedSpans", "rejectedLogRecords"] {
            let answer = format!("{{\"partialSuccess\": {{\"{key}\": \"3\", \"errorMessage\": \"too old\"}}}}");
            assert_eq!(rejected(answer.as_bytes(), Encoding::Json), Some((3, "too old".into())));
        }
        let binary = [0x0a, 0x05, 0x08, 0x03, 0x12, 0x01, b'x'];
        assert_eq!(rejected(&binary, Encoding::Protobuf), Some((3, "x".into())));
        for answer in ["", "{}", "{\"partialSuccess\": {}}", "{\"partialSuccess\": null}", "<html>"] {
            assert_eq!(rejected(answer.as_bytes(), Encoding::Json), None, "{answer}");
        }
        assert_eq!(rejected(&[], Encoding::Protobuf), None);
        assert_eq!(rejected(&[0xff], Encoding::Protobuf), None);
    }
}

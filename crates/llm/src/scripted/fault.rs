//! Faults that a script injects.

/// Kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FaultKind {
    /// An error status instead of a response.
    Http,
    /// The connection closes in the middle of the content.
    Cut,
    /// The data does not follow the format.
    Malformed,
    /// Nothing is ever sent.
    Hang,
    /// The response starts, and then nothing more arrives.
    HangStream,
    /// The response starts, and then an error is sent in its place.
    ErrorEvent,
}

/// Names that a script may use; `sse_error` is another name for `error_event`.
pub(super) const KINDS: &[(&str, FaultKind)] = &[
    ("http", FaultKind::Http),
    ("cut", FaultKind::Cut),
    ("malformed", FaultKind::Malformed),
    ("hang", FaultKind::Hang),
    ("hang_stream", FaultKind::HangStream),
    ("error_event", FaultKind::ErrorEvent),
    ("sse_error", FaultKind::ErrorEvent),
];

/// Fault as written in a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) kind: FaultKind,
    /// HTTP status of the response.
    pub(super) status: u16,
    /// Vendor's error code in an error response or an error event, if it is not the usual one.
    pub(super) code: Option<String>,
    /// Message in an error response or an error event.
    pub(super) message: Option<String>,
    /// Headers of an error response.
    pub(super) headers: Vec<(String, String)>,
}

impl Fault {
    /// Returns a description in words.
    pub(super) fn describe(&self) -> String {
        match (self.kind, &self.code) {
            (FaultKind::Http, _) => format!("HTTP {}", self.status),
            (FaultKind::ErrorEvent, Some(code)) => format!("an error within the response ({code})"),
            (FaultKind::ErrorEvent, None) => "an error within the response".into(),
            (FaultKind::Cut, _) => "a connection cut in the middle of the response".into(),
            (FaultKind::Malformed, _) => "a malformed response".into(),
            (FaultKind::Hang, _) => "no response at all".into(),
            (FaultKind::HangStream, _) => "a response that stops after its beginning".into(),
        }
    }
}

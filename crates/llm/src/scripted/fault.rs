//! Faults that a script injects.

use crate::answer::Break;

/// Kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
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

impl FaultKind {
    /// Returns the name used in scripts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Cut => "cut",
            Self::Malformed => "malformed",
            Self::Hang => "hang",
            Self::HangStream => "hang_stream",
            Self::ErrorEvent => "error_event",
        }
    }
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
pub(super) enum Fault {
    /// An error status.
    Http { status: u16, kind: Option<String>, message: Option<String>, headers: Vec<(String, String)> },
    /// An error within the response.
    ErrorEvent { kind: Option<String>, message: Option<String> },
    /// A fault without a message.
    Silent(SilentFault),
}

/// Fault without a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SilentFault {
    Cut,
    Malformed,
    Hang,
    HangStream,
}

impl SilentFault {
    /// Returns the corresponding break of the wire format.
    pub(super) fn on_the_wire(self) -> Break {
        match self {
            Self::Cut => Break::Cut,
            Self::Malformed => Break::Malformed,
            Self::Hang => Break::Hang,
            Self::HangStream => Break::HangStream,
        }
    }
}

impl Fault {
    pub(super) fn kind(&self) -> FaultKind {
        match self {
            Self::Http { .. } => FaultKind::Http,
            Self::ErrorEvent { .. } => FaultKind::ErrorEvent,
            Self::Silent(SilentFault::Cut) => FaultKind::Cut,
            Self::Silent(SilentFault::Malformed) => FaultKind::Malformed,
            Self::Silent(SilentFault::Hang) => FaultKind::Hang,
            Self::Silent(SilentFault::HangStream) => FaultKind::HangStream,
        }
    }

    /// Returns a description in words.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Http { status, .. } => format!("HTTP {status}"),
            Self::ErrorEvent { kind: Some(kind), .. } => format!("an error within the answer ({kind})"),
            Self::ErrorEvent { kind: None, .. } => "an error within the answer".into(),
            Self::Silent(SilentFault::Cut) => "a connection cut in the middle of the answer".into(),
            Self::Silent(SilentFault::Malformed) => "a malformed answer".into(),
            Self::Silent(SilentFault::Hang) => "no answer at all".into(),
            Self::Silent(SilentFault::HangStream) => "an answer that stops after its beginning".into(),
        }
    }
}

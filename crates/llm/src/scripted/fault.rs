//! What goes wrong on purpose.

use crate::provider::Break;

/// How an answer goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// An error status instead of an answer.
    Http,
    /// The connection closes in the middle of the content.
    Cut,
    /// What is sent is not what the format allows.
    Malformed,
    /// Nothing is ever sent.
    Hang,
    /// The answer begins, and then nothing more comes.
    HangStream,
    /// The answer begins, and then an error is sent in its place.
    ErrorEvent,
}

impl FaultKind {
    /// As scripts write it.
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

/// The names a script may use; `sse_error` is another word for `error_event`.
pub(super) const KINDS: &[(&str, FaultKind)] = &[
    ("http", FaultKind::Http),
    ("cut", FaultKind::Cut),
    ("malformed", FaultKind::Malformed),
    ("hang", FaultKind::Hang),
    ("hang_stream", FaultKind::HangStream),
    ("error_event", FaultKind::ErrorEvent),
    ("sse_error", FaultKind::ErrorEvent),
];

/// A fault as a script writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// An error status.
    Http { status: u16, kind: Option<String>, message: Option<String>, headers: Vec<(String, String)> },
    /// An error within the answer.
    ErrorEvent { kind: Option<String>, message: Option<String> },
    /// A fault that says nothing.
    Silent(SilentFault),
}

/// A fault that says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SilentFault {
    Cut,
    Malformed,
    Hang,
    HangStream,
}

impl SilentFault {
    /// The same, for the wire.
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

    /// In words.
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

//! Result of a matcher.

use expect::SourceLocation;
use model::{Capture, Evidence, Finding, Need, Position, Probed, Status, Trace};

/// Reason for verdicts without a sandbox.
pub(crate) const NO_SANDBOX: &str = "the trial has no sandbox with the files of the agent";

/// Returns the verdict for an assertion that needs `need` if there is nothing to look at. An agent cannot meet an
/// assertion about its working directory by removing or closing it.
pub(crate) fn without_sandbox(evidence: &Evidence, need: &Need) -> Option<Verdict> {
    match evidence.collected.probed(need) {
        Some(Probed::Lost { reason }) => Some(Verdict::unmet(reason, "a working directory that can be read", "none")),
        None if evidence.collected.sandbox.is_none() => Some(Verdict::undecided(NO_SANDBOX)),
        _ => None,
    }
}

/// Result of a matcher. The check to which it belongs turns it into a finding.
#[derive(Debug, Clone, Default)]
pub(crate) struct Verdict {
    /// Status: met, unmet or undecided.
    pub status: Status,
    /// Score from 0 to 1, if it is not all or nothing. It does not include undecided parts.
    pub score: Option<f64>,
    /// Reason, in one line.
    pub reason: String,
    /// Expected value.
    pub expected: Option<String>,
    /// Actual value.
    pub actual: Option<String>,
    /// Further helpful information, one item per line.
    pub evidence: Vec<String>,
    /// Error that prevented a decision.
    pub error: Option<String>,
    /// Values captured from the matching calls.
    pub captures: Vec<Capture>,
    /// The most specific part of the assertion.
    pub place: Option<SourceLocation>,
    /// Position in the trace.
    pub at: Option<Position>,
    /// Finding with the details of an expectation's match, part by part. The fields above take precedence.
    pub matched: Option<Box<Finding>>,
}

impl Verdict {
    /// Creates a verdict that is met.
    pub fn met(reason: impl Into<String>) -> Self {
        Self { status: Status::Met, reason: reason.into(), ..Self::default() }
    }

    /// Creates a verdict that is not met.
    pub fn unmet(reason: impl Into<String>, expected: impl Into<String>, actual: impl Into<String>) -> Self {
        Self {
            status: Status::Unmet,
            expected: Some(expected.into()),
            actual: Some(actual.into()),
            ..Self::met(reason)
        }
    }

    /// Creates a verdict that is undecided because of `error`.
    pub fn undecided(error: impl Into<String>) -> Self {
        let error = error.into();
        Self { status: Status::Undecided, error: Some(error.clone()), ..Self::met(error) }
    }

    /// Adds lines of further information.
    pub fn evidence(mut self, lines: impl IntoIterator<Item = String>) -> Self {
        self.evidence.extend(lines);
        self
    }

    /// Sets the score, clamped to 0 to 1.
    pub fn scored(self, score: f64) -> Self {
        // A sum of nothing is negative zero, which reports would show as `-0.0`.
        Self { score: Some(score.clamp(0.0, 1.0) + 0.0), ..self }
    }

    /// Sets the part of the assertion to which it points.
    pub fn place<'p>(mut self, place: impl Into<Option<&'p SourceLocation>>) -> Self {
        self.place = place.into().cloned().or(self.place);
        self
    }

    /// Sets the call to which it points.
    pub fn at_call(mut self, trace: &Trace, call: impl Into<Option<usize>>) -> Self {
        if let Some(call) = call.into() {
            self.at = Some(Position { turn: trace.calls.get(call).map(|call| call.turn), call: Some(call) });
        }
        self
    }
}

/// An error in one line leaves an assertion undecided.
impl From<String> for Box<Verdict> {
    fn from(error: String) -> Self {
        Self::new(Verdict::undecided(error))
    }
}

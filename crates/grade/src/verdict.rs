//! What a matcher says about evidence.

use model::{Capture, Detail, Failure, Leeway, Position, Status, Trace};

use crate::place::Place;

/// What a matcher says; the check it belongs to makes a finding of it.
#[derive(Debug, Clone)]
pub(crate) struct Verdict {
    /// Whether it holds.
    pub status: Status,
    /// 0 to 1, where it is not all or nothing. It tells of nothing that is undecided.
    pub score: Option<f64>,
    /// Why, in one line.
    pub because: String,
    /// What was asked for.
    pub expected: Option<String>,
    /// What was there instead.
    pub actual: Option<String>,
    /// What else helps, a line each.
    pub evidence: Vec<String>,
    /// What kept it from being decided.
    pub error: Option<String>,
    /// Values of the matching calls.
    pub captures: Vec<Capture>,
    /// The part of the assertion that says best what it is about.
    pub place: Option<Place>,
    /// Where in the trace.
    pub at: Option<Position>,
    /// What matching an expectation came to, part by part.
    pub matched: Option<Box<Matched>>,
}

/// What matching an expectation came to.
#[derive(Debug, Clone)]
pub(crate) struct Matched {
    /// What it is about, such as `output`.
    pub key: &'static str,
    /// 0 to 1.
    pub score: f64,
    /// What it may still score, where parts of it are undecided.
    pub leeway: Option<Leeway>,
    /// What a person would call it.
    pub title: Option<String>,
    /// The category it is reported under.
    pub dimension: Option<String>,
    /// Paths that must hold and do not.
    pub failed_critical: Vec<String>,
    /// Its parts.
    pub details: Vec<Detail>,
    /// Every place that is not as it should be.
    pub failures: Vec<Failure>,
}

impl Verdict {
    /// It holds.
    pub fn met(because: impl Into<String>) -> Self {
        Self {
            status: Status::Met,
            score: None,
            because: because.into(),
            expected: None,
            actual: None,
            evidence: Vec::new(),
            error: None,
            captures: Vec::new(),
            place: None,
            at: None,
            matched: None,
        }
    }

    /// It does not hold.
    pub fn unmet(because: impl Into<String>, expected: impl Into<String>, actual: impl Into<String>) -> Self {
        Self {
            status: Status::Unmet,
            expected: Some(expected.into()),
            actual: Some(actual.into()),
            ..Self::met(because)
        }
    }

    /// Nobody can say, because of `error`.
    pub fn undecided(error: impl Into<String>) -> Self {
        let error = error.into();
        Self { status: Status::Undecided, error: Some(error.clone()), ..Self::met(error) }
    }

    /// Adds lines that help to understand it.
    pub fn evidence(mut self, lines: impl IntoIterator<Item = String>) -> Self {
        self.evidence.extend(lines);
        self
    }

    /// Says how well it holds, from 0 to 1.
    pub fn scored(self, score: f64) -> Self {
        Self { score: Some(score.clamp(0.0, 1.0)), ..self }
    }

    /// Points at a part of the assertion.
    pub fn place(mut self, place: &Place) -> Self {
        self.place = Some(place.clone());
        self
    }

    /// Points at a call.
    pub fn at_call(mut self, trace: &Trace, call: usize) -> Self {
        self.at = Some(Position { turn: trace.calls.get(call).map(|call| call.turn), call: Some(call) });
        self
    }
}

//! What matching one value came to.

use model::{Detail, Segment, Status};
use serde_json::Value;

use crate::place::Place;

/// Whether it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    /// It does.
    Yes,
    /// It does not.
    No,
    /// Nobody can say.
    Unknown,
}

impl Pass {
    /// `Yes` if it is so.
    pub fn of(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }

    /// Both must hold.
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::No, _) | (_, Self::No) => Self::No,
            (Self::Yes, Self::Yes) => Self::Yes,
            _ => Self::Unknown,
        }
    }

    /// As findings say it.
    pub fn status(self) -> Status {
        match self {
            Self::Yes => Status::Met,
            Self::No => Status::Unmet,
            Self::Unknown => Status::Undecided,
        }
    }
}

/// What matching one value came to: how much of it is as it should be, and what is not.
#[derive(Debug, Clone)]
pub struct Found {
    /// 0 to 1; below 0 where penalties outweigh, until the node it belongs to settles it.
    pub score: f64,
    /// Whether it matches.
    pub pass: Pass,
    /// What is not as it should be.
    pub flaws: Vec<Flaw>,
    /// Its parts.
    pub details: Vec<Detail>,
    /// What a person would call it.
    pub title: Option<String>,
    /// The category it is reported under.
    pub dimension: Option<String>,
    /// Whether everything fails when it does.
    pub critical: bool,
    /// Where it is asked for, if it is an expectation of its own.
    pub place: Option<Place>,
}

/// One place that is not as it should be.
#[derive(Debug, Clone)]
pub struct Flaw {
    /// Its path; `None` until the node it belongs to puts its own there.
    pub key: Option<String>,
    /// What is wrong, in one line; `None` where only a general word is known.
    pub message: Option<String>,
    /// What was asked for.
    pub expected: Option<Value>,
    /// What was there.
    pub actual: Option<Value>,
    /// What differs.
    pub diff: Vec<Segment>,
    /// Whether everything fails by it.
    pub critical: bool,
    /// The user's line.
    pub place: Place,
}

impl Found {
    /// A full match.
    pub fn full() -> Self {
        Self::scored(1.0, Pass::Yes)
    }

    /// A result without parts and without a word about what is wrong.
    pub fn scored(score: f64, pass: Pass) -> Self {
        Self { score, pass, flaws: Vec::new(), details: Vec::new(), title: None, dimension: None, critical: false, place: None }
    }

    /// No match, for this reason.
    pub fn flawed(flaw: Flaw) -> Self {
        Self { flaws: vec![flaw], ..Self::scored(0.0, Pass::No) }
    }

    /// No answer, for this reason.
    pub fn unknown(flaw: Flaw) -> Self {
        Self { flaws: vec![flaw], ..Self::scored(0.0, Pass::Unknown) }
    }

    /// Whether it, or something in it, must hold and does not.
    pub fn has_critical(&self) -> bool {
        self.critical || self.flaws.iter().any(|flaw| flaw.critical)
    }
}

impl Flaw {
    /// A flaw at `place`.
    pub fn new(place: &Place, message: impl Into<String>) -> Self {
        Self {
            key: None,
            message: Some(message.into()),
            expected: None,
            actual: None,
            diff: Vec::new(),
            critical: false,
            place: place.clone(),
        }
    }

    /// What was asked for.
    pub fn expected(mut self, expected: Value) -> Self {
        self.expected = Some(expected);
        self
    }

    /// What was there.
    pub fn actual(mut self, actual: Option<&Value>) -> Self {
        self.actual = actual.cloned();
        self
    }

    /// What differs.
    pub fn diff(mut self, diff: Vec<Segment>) -> Self {
        self.diff = diff;
        self
    }

    /// As reports tell it.
    pub fn into_failure(self) -> model::Failure {
        model::Failure {
            key: self.key.unwrap_or_default(),
            message: self.message.unwrap_or_else(|| GENERAL.to_owned()),
            expected: self.expected,
            actual: self.actual,
            diff: self.diff,
            critical: self.critical,
            source: self.place.excerpt(),
        }
    }
}

/// What is said where nothing better is known.
const GENERAL: &str = "it is not as it should be";

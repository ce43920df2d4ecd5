//! What matching one value came to.

use model::{Detail, Segment, Status};
use serde_json::Value;

use crate::kept::{kept, shortened};
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

    /// One of them must hold.
    pub fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Yes, _) | (_, Self::Yes) => Self::Yes,
            (Self::No, Self::No) => Self::No,
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
    /// At most 1; below 0 where penalties outweigh, until the whole is settled. What is undecided earns nothing and costs
    /// all it can.
    pub score: f64,
    /// What it would score if everything undecided turned out well; the score itself where nothing is undecided.
    pub most: f64,
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

/// How many flaws of a value keep all of what was expected and there. A list of which thousands of items are missing
/// would be kept as often otherwise.
const KEPT_WHOLE: usize = 64;

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
    /// Whether nobody can say if it is one.
    pub undecided: bool,
    /// Whether it cost no score, so that no threshold makes up for it.
    pub firm: bool,
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
        Self {
            score,
            most: score,
            pass,
            flaws: Vec::new(),
            details: Vec::new(),
            title: None,
            dimension: None,
            critical: false,
            place: None,
        }
    }

    /// No match, for this reason.
    pub fn flawed(flaw: Flaw) -> Self {
        Self { flaws: vec![flaw], ..Self::scored(0.0, Pass::No) }
    }

    /// No answer, for this reason.
    pub fn unknown(flaw: Flaw) -> Self {
        Self { most: 1.0, flaws: vec![Flaw { undecided: true, ..flaw }], ..Self::scored(0.0, Pass::Unknown) }
    }

    /// Takes over what is wrong with a part.
    pub fn add_flaws(&mut self, flaws: Vec<Flaw>) {
        let room = KEPT_WHOLE.saturating_sub(self.flaws.len());
        let short = |(at, flaw): (usize, Flaw)| if at < room { flaw } else { flaw.in_short() };
        self.flaws.extend(flaws.into_iter().enumerate().map(short));
    }

    /// Whether something in it that must hold fails, as far as it is decided.
    pub fn fails_critically(&self) -> bool {
        (self.critical && self.pass == Pass::No) || self.flaws.iter().any(Flaw::is_critical)
    }

    /// Whether nobody can say if something in it that must hold fails.
    pub fn may_fail_critically(&self) -> bool {
        (self.critical && self.pass == Pass::Unknown) || self.flaws.iter().any(|flaw| flaw.critical && flaw.undecided)
    }
}

/// What is known of the branches of which one was enough: what the flaw is like that tells that none was.
#[derive(Debug, Clone, Copy, Default)]
pub struct Branches {
    critical: bool,
    /// Whether nobody can say if something critical failed.
    doubtful: bool,
    /// The best score, and whether what has it fails by something firm.
    nearest: Option<(f64, bool)>,
}

impl Branches {
    /// Takes one into account, which has this score.
    pub fn add(&mut self, found: &Found, score: f64) {
        self.critical |= found.fails_critically();
        self.doubtful |= found.may_fail_critically();
        let firm = found.flaws.iter().any(|flaw| flaw.firm);
        self.nearest = Some(match self.nearest {
            Some((best, was_firm)) if best > score || (best == score && !was_firm) => (best, was_firm),
            _ => (score, firm),
        });
    }

    /// The flaw of all of them together, which came to `pass`.
    pub fn flaw(&self, pass: Pass, flaw: Flaw) -> Flaw {
        let surely = self.critical || flaw.critical;
        Flaw {
            critical: surely || self.doubtful,
            undecided: pass == Pass::Unknown || (self.doubtful && !surely),
            firm: self.nearest.is_some_and(|(_, firm)| firm),
            ..flaw
        }
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
            undecided: false,
            firm: false,
            place: place.clone(),
        }
    }

    /// Whether everything fails by it, for sure.
    pub fn is_critical(&self) -> bool {
        self.critical && !self.undecided
    }

    /// What was asked for.
    pub fn expected(mut self, expected: Value) -> Self {
        self.expected = Some(expected);
        self
    }

    /// What was there; of a large value only what it is known by.
    pub fn actual(mut self, actual: Option<&Value>) -> Self {
        self.actual = actual.map(kept);
        self
    }

    /// The same with the beginnings of large values.
    fn in_short(mut self) -> Self {
        self.expected = self.expected.map(shortened);
        self.actual = self.actual.map(shortened);
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
            critical: self.is_critical(),
            key: self.key.unwrap_or_default(),
            message: self.message.unwrap_or_else(|| GENERAL.to_owned()),
            expected: self.expected,
            actual: self.actual,
            diff: self.diff,
            source: self.place.excerpt(),
        }
    }
}

/// What is said where nothing better is known.
const GENERAL: &str = "it is not as it should be";

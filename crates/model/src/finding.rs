//! What a check says about evidence.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Excerpt;

/// Whether what was asked for holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It holds.
    Met,
    /// It does not hold. Counts against the agent.
    Unmet,
    /// Nobody can say. Never counts against the agent.
    Undecided,
}

/// How a claim came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Claim {
    /// Written down before the run; can be graded again from evidence.
    #[default]
    Declared,
    /// Decided while the agent ran; kept as it was.
    Observed,
}

/// What one assertion came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The assertion's id, unique within the case.
    pub id: String,
    /// The assertion's type, such as `tool_called`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What a person would call it, if it has a name beside its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Whether it holds.
    pub status: Status,
    /// How the claim came about.
    #[serde(default)]
    pub claim: Claim,
    /// 0 to 1; absent when undecided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Its share of the trial's score.
    pub weight: f64,
    /// Why, in one line.
    pub because: String,
    /// What was asked for, when it was not found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// What was there instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actual: Option<String>,
    /// What else helps to understand it, a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
    /// What kept it, or a part of it, from being decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Values taken from the matching calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub captures: Vec<Capture>,
    /// The user's line; absent for implicit assertions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Excerpt>,
    /// Where in the trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Position>,
    /// Whether nobody wrote it: it goes with every trial.
    #[serde(default)]
    pub implicit: bool,
    /// A digest of the assertion, where the record masks something in what it may have looked at: the evidence that is
    /// recorded gives the same verdict to nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub masked: Option<String>,
    /// How long the judge took to decide it, in milliseconds, with all that it was asked at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
    /// Whether a model is asked for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub judged: bool,
    /// Where what is judged is found in what the agent gave, such as `output`; empty for the whole of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The category it is reported under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dimension: Option<String>,
    /// Paths that must hold and do not, whatever the score.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_critical: Vec<String>,
    /// What it may still score, where parts of it are undecided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leeway: Option<Leeway>,
    /// How the score came about, part by part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<Detail>,
    /// Every place that is not as it should be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<Failure>,
}

impl Finding {
    /// What an assertion comes to that nobody could judge.
    pub fn undecided(id: &str, kind: &str, weight: f64, source: Option<Excerpt>, because: &str) -> Self {
        Self {
            id: id.to_owned(),
            kind: kind.to_owned(),
            title: None,
            status: Status::Undecided,
            claim: Claim::Declared,
            score: None,
            weight,
            because: because.to_owned(),
            expected: None,
            actual: None,
            evidence: Vec::new(),
            error: Some(because.to_owned()),
            captures: Vec::new(),
            source,
            at: None,
            implicit: false,
            masked: None,
            latency_ms: None,
            judged: false,
            key: None,
            dimension: None,
            failed_critical: Vec::new(),
            leeway: None,
            details: Vec::new(),
            failures: Vec::new(),
        }
    }

    /// True if nothing about it is undecided, neither a part of it nor a part of its score. One decided part is enough for
    /// [`Status::Unmet`] and never for [`Status::Met`]: counting such a finding would count failures alone.
    pub fn is_decided(&self) -> bool {
        // What code threw while it decided is how it decided.
        let is_partial = self.error.is_some() && self.claim == Claim::Declared;
        self.status != Status::Undecided && self.leeway.is_none() && !is_partial
    }
}

/// What a finding may still score: nobody can say of some parts whether they hold.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Leeway {
    /// 0 to 1: if everything undecided turned out badly.
    pub least: f64,
    /// 0 to 1: if everything undecided turned out well.
    pub most: f64,
    /// Whether something that must hold is among what is undecided.
    pub critical: bool,
}

/// A part of what one assertion asked for, and what it came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Detail {
    /// The path of the part, such as `output.name` or `items[0]`.
    pub key: String,
    /// What a person would call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The category it is reported under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dimension: Option<String>,
    /// Whether the whole fails when it does.
    #[serde(default)]
    pub critical: bool,
    /// Its share of what stands above it; below 0 for a penalty.
    pub weight: f64,
    /// 0 to 1.
    pub score: f64,
    /// Whether it holds.
    pub status: Status,
    /// Whether it counts for nothing, because of several parts only the best one does, and that is another.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub passed_over: bool,
    /// Its own parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<Detail>,
}

/// One place that is not as it should be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// Its path.
    pub key: String,
    /// What is wrong, in one line.
    pub message: String,
    /// What was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::present::deserialize")]
    pub expected: Option<Value>,
    /// What was there; absent when nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::present::deserialize")]
    pub actual: Option<Value>,
    /// What differs between the two, shortened around the changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diff: Vec<Segment>,
    /// Whether the whole fails by it.
    #[serde(default)]
    pub critical: bool,
    /// The user's line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Excerpt>,
}

/// A piece of a diff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// Whose text it is.
    pub part: Part,
    /// The text.
    pub text: String,
}

/// Whose text a piece of a diff is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// In both.
    Same,
    /// Asked for and not there.
    Missing,
    /// There and not asked for.
    Extra,
}

/// A place in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// From 0.
    pub turn: Option<usize>,
    /// Index among all calls, from 0.
    pub call: Option<usize>,
}

/// A value taken from a matching call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capture {
    /// The argument it is the value of.
    pub field: String,
    /// Always whole.
    pub value: String,
    /// How much of it to show, in UTF-16 units as the format has always counted.
    pub shown_chars: usize,
    /// Which step of a sequence, from 1.
    pub step: Option<usize>,
}

impl Capture {
    /// The part to show, and whether something is left out.
    pub fn shown(&self) -> (&str, bool) {
        let mut units = 0;
        for (at, c) in self.value.char_indices() {
            units += c.len_utf16();
            if units > self.shown_chars {
                return (&self.value[..at], true);
            }
        }
        (&self.value, false)
    }
}

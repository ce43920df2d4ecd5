//! Results of checks on evidence.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Excerpt;
use crate::bounds::Bounds;

/// Result of an assertion.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The assertion holds.
    Met,
    /// The assertion does not hold. Counts against the agent.
    Unmet,
    /// The assertion could not be decided. Never counts against the agent.
    #[default]
    Undecided,
}

/// Origin of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Claim {
    /// Declared before the run; it can be graded again from evidence.
    #[default]
    Declared,
    /// Decided while the agent ran; the result is kept unchanged.
    Observed,
}

/// Result of one assertion.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Id of the assertion, unique within the case.
    pub id: String,
    /// Type of the assertion, such as `tool_called`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Display name, if there is one in addition to the id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Result.
    pub status: Status,
    /// Origin of the claim.
    #[serde(default)]
    pub claim: Claim,
    /// Score from 0 to 1; absent if undecided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Share of the trial's score. With 0, it is usually only shown, see [`Finding::decisive`].
    pub weight: f64,
    /// Reason in one line.
    #[serde(rename = "because")]
    pub reason: String,
    /// Expected text, if it was not found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// Actual text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actual: Option<String>,
    /// Further details, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
    /// Reason why all or part of it could not be decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Values captured from the matching calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub captures: Vec<Capture>,
    /// Location in the user's file; absent for implicit assertions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Excerpt>,
    /// Position in the trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Position>,
    /// True if the assertion is not written in the case but added to every trial.
    #[serde(default)]
    pub implicit: bool,
    /// Digest of the assertion. Present if the record masks text that the assertion may have looked at, because the
    /// recorded evidence then gives the same verdict only for exactly this assertion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub masked: Option<String>,
    /// Time that the judge took to decide it, in milliseconds, including everything else in the same request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
    /// True if a model decides it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub judged: bool,
    /// Details of the judge's decision; absent if no judge was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judgement: Option<Box<Judgement>>,
    /// Path of the judged value in the agent's result, such as `output`; empty for the whole result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Category under which it is reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dimension: Option<String>,
    /// Paths that must hold but do not, regardless of the score.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_critical: Vec<String>,
    /// Range of possible scores, if parts are undecided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leeway: Option<ScoreRange>,
    /// Score of each part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<Detail>,
    /// Locations that do not match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<Failure>,
}

/// Details of a judge's decision about a finding.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judgement {
    /// Judge as `provider:model`.
    pub judge: String,
    /// Version of the judge prompts.
    pub prompts: String,
    /// The part of the question that the user wrote.
    pub question: String,
    /// Digest of the assertion, the number of judges and their temperature. Labels in a calibration refer to it.
    pub digest: String,
    /// Number of judges that were asked.
    pub asked: u64,
    /// Number of these whose answer came from the cache.
    pub cached: u64,
    /// Number of the user's message whose reply was judged, from 1; 0 if all were.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reply: u64,
    /// Number of the user's messages when it was judged. Code may judge before the conversation ends.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub messages: u64,
    /// True if the judge also saw the state of the sandbox.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sandbox: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Types of findings that report a budget for tokens, money or time.
pub const BUDGETS: [&str; 3] = ["budget", "token_budget", "time_budget"];

/// Types of findings about the use of the skill or sub-agent under test. The arm without it does not have them.
pub const SKILL_USE: [&str; 4] = ["skill_used", "skill_not_used", "sub_agent_used", "sub_agent_not_used"];

impl Finding {
    /// Returns `true` if it reports a budget for tokens, money or time.
    pub fn is_about_budget(&self) -> bool {
        BUDGETS.contains(&self.kind.as_str())
    }

    /// Returns `true` if it is about the use of the skill or sub-agent under test.
    pub fn is_about_skill_use(&self) -> bool {
        SKILL_USE.contains(&self.kind.as_str())
    }

    /// Creates the finding of an assertion that could not be decided.
    pub fn undecided(id: &str, kind: &str, weight: f64, source: Option<Excerpt>, reason: &str) -> Self {
        Self {
            id: id.to_owned(),
            kind: kind.to_owned(),
            weight,
            reason: reason.to_owned(),
            error: Some(reason.to_owned()),
            source,
            ..Self::default()
        }
    }

    /// Returns those of a trial's `findings` that can decide it. A finding with a weight of 0 is only shown, unless it is
    /// implicit or nothing that is written in the case has a weight.
    pub fn decisive(findings: &[Self]) -> impl Iterator<Item = &Self> {
        let has_weights = findings.iter().any(|finding| !finding.implicit && finding.weight != 0.0);
        findings.iter().filter(move |finding| finding.implicit || finding.weight != 0.0 || !has_weights)
    }

    /// Returns the lowest and the highest possible score, from 0 to 1.
    pub fn score_bounds(&self) -> Bounds {
        match (self.leeway, self.score) {
            (Some(leeway), _) => Bounds { min: leeway.least, max: leeway.most },
            (None, Some(score)) => Bounds::exact(score),
            (None, None) => Bounds::UNKNOWN_SHARE,
        }
    }

    /// Returns `true` if neither the assertion nor its score has undecided parts. One decided part is enough for
    /// [`Status::Unmet`] but never for [`Status::Met`], so counting partly decided findings would count only failures.
    pub fn is_decided(&self) -> bool {
        // An error thrown by a code assertion is its result, not a lack of one.
        let is_partial = self.error.is_some() && self.claim == Claim::Declared;
        self.status != Status::Undecided && self.leeway.is_none() && !is_partial
    }
}

/// Range of the possible score of a finding with undecided parts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ScoreRange {
    /// Score from 0 to 1 if every undecided part failed.
    pub least: f64,
    /// Score from 0 to 1 if every undecided part passed.
    pub most: f64,
    /// True if a critical part is undecided.
    pub critical: bool,
}

/// Part of an assertion with its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Detail {
    /// Path of the part, such as `output.name` or `items[0]`.
    pub key: String,
    /// Display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Category under which it is reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dimension: Option<String>,
    /// True if the whole assertion fails when this part fails.
    #[serde(default)]
    pub critical: bool,
    /// Share of the enclosing part's score; below 0 for a penalty.
    pub weight: f64,
    /// Score from 0 to 1.
    pub score: f64,
    /// Result.
    pub status: Status,
    /// True if it does not count because only the best of several parts counts and another part is better.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub passed_over: bool,
    /// Nested parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<Detail>,
}

/// Location that does not match.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// Path of the place.
    pub key: String,
    /// Description of the problem in one line.
    pub message: String,
    /// Expected value.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::present::deserialize")]
    pub expected: Option<Value>,
    /// Actual value; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::present::deserialize")]
    pub actual: Option<Value>,
    /// Differences between the two, shortened around the changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diff: Vec<Segment>,
    /// True if it makes the whole assertion fail.
    #[serde(default)]
    pub critical: bool,
    /// Location in the user's file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Excerpt>,
}

/// Piece of a diff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// Side to which the text belongs.
    pub part: Part,
    /// Text of the piece.
    pub text: String,
}

/// Side to which a piece of a diff belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// In both.
    Same,
    /// Expected but not found.
    Missing,
    /// Found but not expected.
    Extra,
}

/// Position in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// Index of the turn, from 0.
    pub turn: Option<usize>,
    /// Index among all calls, from 0.
    pub call: Option<usize>,
}

/// Value captured from a matching call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capture {
    /// Name of the argument.
    pub field: String,
    /// Value, never shortened.
    pub value: String,
    /// Length to show, in UTF-16 units, as the format has always counted.
    pub shown_chars: usize,
    /// Step of a sequence, from 1.
    pub step: Option<usize>,
}

impl Capture {
    /// Returns the part to show, and `true` if something is omitted.
    pub fn shown(&self) -> (&str, bool) {
        let mut units = 0;
        for (offset, c) in self.value.char_indices() {
            units += c.len_utf16();
            if units > self.shown_chars {
                return (&self.value[..offset], true);
            }
        }
        (&self.value, false)
    }
}

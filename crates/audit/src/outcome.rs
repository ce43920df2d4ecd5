//! Result of an audit, as in its JSON form.

use model::{Diagnostic, Excerpt, Outcome};
use serde::Serialize;

/// Result of an audit.
#[derive(Debug, Clone, Serialize)]
pub struct Audit {
    /// Format of this document.
    pub schema: &'static str,
    /// Score from 0 to 1; absent if nothing could be audited.
    pub score: Option<f64>,
    /// Weaknesses, by file and line.
    pub weaknesses: Vec<Weakness>,
    /// Suites, in order.
    pub suites: Vec<SuiteAudit>,
    /// Attempts of agents that were told to cheat.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hacks: Vec<Hack>,
}

/// Attempt of an agent to pass a case without doing its work.
#[derive(Debug, Clone, Serialize)]
pub struct Hack {
    /// Name of the suite.
    pub suite: String,
    /// Id of the case.
    pub case: String,
    /// Printed form of the arm: the agent, and what distinguishes it from others.
    pub arm: String,
    /// Outcome of its trial; skipped if there was none.
    pub outcome: Outcome,
    /// Reason, unless it passed.
    #[serde(rename = "because", skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Kinds of signs of tampering, in words.
    pub signs: Vec<String>,
    /// Tool calls of an attempt that passed, without those that it does not need.
    pub steps: Vec<String>,
    /// File with a scripted model that repeats it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<String>,
}

/// Result for one suite.
#[derive(Debug, Clone, Serialize)]
pub struct SuiteAudit {
    /// Name.
    pub name: String,
    /// Share of adversaries' trials that did not pass and of assertions that failed at least once, from 0 to 1; absent
    /// if none was decided.
    pub score: Option<f64>,
    /// Number of adversaries' trials with a verdict, except in cases that a judge may decide otherwise.
    pub adversary_trials: usize,
    /// Number of `adversary_trials` that did not pass.
    pub rejected: usize,
    /// Number of assertions that were decided at least once.
    pub assertions: usize,
    /// Number of `assertions` that failed at least once.
    pub able_to_fail: usize,
    /// Number of mutations of good trials.
    pub mutations: usize,
    /// Number of `mutations` that at least one assertion noticed.
    pub noticed: usize,
    /// Cases, in order.
    pub cases: Vec<CaseAudit>,
}

/// Result for one case.
#[derive(Debug, Clone, Serialize)]
pub struct CaseAudit {
    /// Id of the case.
    pub id: String,
    /// File in which it is written.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Adversaries that pass it.
    pub passed_by: Vec<String>,
    /// Adversaries that do not pass it.
    pub rejected: Vec<String>,
    /// Adversaries that fail no assertion except those that only a judge can decide.
    pub left_to_judge: Vec<String>,
    /// Assertions.
    pub assertions: Vec<AssertionAudit>,
    /// Recorded trial whose evidence was mutated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mutated: Option<String>,
    /// Reason why no trial was mutated; absent if one was, or if none should be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_mutated: Option<String>,
    /// Mutations that no assertion noticed. Some of them do not matter.
    pub unnoticed: Vec<String>,
    /// Reason why the case was not audited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_audited: Option<String>,
}

/// Result for one assertion.
#[derive(Debug, Clone, Serialize)]
pub struct AssertionAudit {
    /// Id of the assertion.
    pub id: String,
    /// Type of the assertion.
    #[serde(rename = "type")]
    pub kind: String,
    /// Line of the assertion, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// Adversaries and mutations for which it failed.
    pub failed_for: Vec<String>,
    /// Number of adversaries and mutations for which it held.
    pub held: usize,
    /// Reason why it was never decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undecided: Option<String>,
    /// True if a judge decides it, which an audit does not ask.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub judged: bool,
    /// Location, for messages.
    #[serde(skip)]
    pub source: Option<Excerpt>,
}

/// Weakness of a suite.
#[derive(Debug, Clone, Serialize)]
pub struct Weakness {
    /// Kind.
    pub kind: WeaknessKind,
    /// Name of the suite.
    pub suite: String,
    /// Ids of the affected cases; empty if it concerns the whole suite.
    pub cases: Vec<String>,
    /// Id of the assertion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assertion: Option<String>,
    /// Message, with its severity and location.
    #[serde(flatten)]
    pub diagnostic: Diagnostic,
}

/// Kind of a weakness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WeaknessKind {
    /// An adversary passes the case.
    PassedByAdversary,
    /// An agent that was told to cheat passes the case.
    Hacked,
    /// The solution of the case does not pass it.
    SolutionFails,
    /// The assertion never failed.
    NeverFails,
    /// The expected text is in a file that the agent can read.
    LeakedByFile,
    /// The expected text, or everything that the case expects, is in the prompt.
    LeakedByPrompt,
    /// The assertion fails only if there is no answer.
    AnyAnswer,
    /// The command of the assertion passes although the agent did nothing.
    PassesUntouched,
    /// The prompt forbids something that no assertion notices.
    Unforbidden,
    /// The assertions of a suite look for the skill's own words.
    Overfitted,
}

//! What lists show of recorded runs and trials: a few columns each, so that ten thousand of them are read at once.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{Fault, Outcome, Step, Summary, Tokens};

/// A recorded run in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRow {
    /// The whole id.
    pub id: String,
    /// The shortest part of the id's front that still names it, at least eight characters.
    pub short: String,
    /// The user's name for it.
    pub label: Option<String>,
    /// The run whose evidence was graded again.
    pub regrade_of: Option<String>,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended; absent while it runs and for ever if it was killed.
    pub finished_at: Option<Timestamp>,
    /// How long it took.
    pub duration_ms: Option<u64>,
    /// The signal that stopped it, if one did.
    pub signal: Option<String>,
    /// The process that ran or runs it, where the store was told.
    pub owner_pid: Option<u32>,
    /// The program's version.
    pub trialrun_version: String,
    /// How many trials were planned.
    pub planned: usize,
    /// How many trials have an outcome.
    pub finished: usize,
    /// What it came to; absent while it is not over.
    pub summary: Option<Summary>,
}

/// A recorded trial in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialRow {
    /// The run's whole id.
    pub run: String,
    /// The user's name for the run.
    pub label: Option<String>,
    /// Printed: `suite::case@arm#1`.
    pub id: String,
    /// The suite's name.
    pub suite: String,
    /// The case's id.
    pub case: String,
    /// The arm, printed.
    pub arm: String,
    /// The agent.
    pub agent: String,
    /// The model as the user named it.
    pub model: Option<String>,
    /// Such as `with_skill`.
    pub variant: Option<String>,
    /// From 1.
    pub repetition: u64,
    /// What it came to.
    pub outcome: Outcome,
    /// Passed only after another attempt failed.
    pub flaky: bool,
    /// Whose trouble it was.
    pub fault: Option<Fault>,
    /// The reason in one line.
    pub because: Option<String>,
    /// Σ weight·score of the decided findings.
    pub score: Option<f64>,
    /// Σ weight of the decided findings.
    pub max_score: Option<f64>,
    /// When it started.
    pub started_at: Timestamp,
    /// From provisioning to the outcome.
    pub duration_ms: u64,
    /// How long its agent took, in milliseconds; absent where it did not run.
    pub agent_ms: Option<u64>,
    /// The model's turns.
    pub turns: usize,
    /// Every call.
    pub tool_calls: usize,
    /// Tokens of all attempts together, if they are known.
    pub tokens: Option<Tokens>,
    /// US dollars of all attempts together, if they are known.
    pub cost_usd: Option<f64>,
    /// The cap on tokens, if there was one.
    pub token_budget: Option<f64>,
    /// How many attempts it took.
    pub attempts: usize,
    /// What went wrong beside the findings, counted.
    pub errors: usize,
    /// The skill's version as written.
    pub skill_version: Option<String>,
    /// SHA-256 over the skill's files.
    pub skill_hash: Option<String>,
}

impl TrialRow {
    /// When it got its outcome.
    pub fn finished_at(&self) -> Timestamp {
        let length = jiff::SignedDuration::from_millis(i64::try_from(self.duration_ms).unwrap_or(i64::MAX));
        self.started_at.checked_add(length).unwrap_or(self.started_at)
    }

    /// Whether it used more tokens than it was given.
    pub fn over_budget(&self) -> bool {
        match (self.tokens, self.token_budget) {
            (Some(tokens), Some(budget)) => tokens.total() as f64 > budget,
            _ => false,
        }
    }
}

/// A trial that has begun and has no outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LiveTrial {
    /// Printed: `suite::case@arm#1`.
    pub id: String,
    /// From 1.
    pub attempt: u32,
    /// When this attempt began.
    pub since: Timestamp,
    /// The name of what it waits for.
    pub waiting_on: Option<String>,
    /// Since when it waits for that.
    pub waiting_since: Option<Timestamp>,
    /// The last thing the agent did in this attempt.
    pub last_step: Option<Step>,
    /// When that was.
    pub last_step_at: Option<Timestamp>,
}

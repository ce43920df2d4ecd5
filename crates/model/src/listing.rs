//! Rows for lists of recorded runs and trials, with only a few columns so that ten thousand can be read at once.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::bounds::Bounds;
use crate::statistics::Counted;
use crate::{AgentInfo, Fault, Lease, MissingShards, Outcome, OutcomeCounts, Step, Summary, Tokens, TrialId};

/// Recorded run in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRow {
    /// Full id.
    pub id: String,
    /// Shortest unique prefix of the id, at least eight characters.
    pub short: String,
    /// Label given by the user.
    pub label: Option<String>,
    /// Run whose evidence this run graded again.
    pub regrade_of: Option<String>,
    /// Start time.
    pub started_at: Timestamp,
    /// End time; absent while the run is active, and permanently if it was killed.
    pub finished_at: Option<Timestamp>,
    /// Duration in milliseconds.
    pub duration_ms: Option<u64>,
    /// Signal that stopped it, if any.
    pub signal: Option<String>,
    /// Lease of the process that writes the run, or wrote it last; absent if an older version recorded the run.
    pub lease: Option<Lease>,
    /// Version of trialrun.
    pub trialrun_version: String,
    /// Agents of the run.
    pub agents: Vec<AgentInfo>,
    /// Number of planned trials.
    pub planned: usize,
    /// Number of trials that have an outcome.
    pub finished: usize,
    /// True if the results decide how many of the planned trials run. Intervals for a fixed number would be wrong.
    #[serde(default)]
    pub sequential: bool,
    /// Shards that a merged run lacks; absent if it lacks none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing_shards: Option<MissingShards>,
    /// Hash of everything recorded so far; absent if the run was recorded before hashes existed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// Summary of the results; absent until the run ends.
    pub summary: Option<Summary>,
}

impl RunRow {
    /// Returns the number of planned trials that need to run: all, unless the results decide how many.
    pub fn needed(&self) -> usize {
        self.planned.saturating_sub(self.summary.as_ref().map_or(0, |summary| summary.decisions.spared))
    }

    /// Returns `true` if a signal stopped the run, or it has no end time. The latter is also true while it is active.
    pub fn is_interrupted(&self) -> bool {
        self.finished_at.is_none() || self.signal.is_some()
    }
}

/// Recorded trial in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialRow {
    /// Full id of the run.
    pub run: String,
    /// Label of the run, given by the user.
    pub label: Option<String>,
    /// Printed id: `suite::case@arm#1`.
    pub id: String,
    /// Name of the suite.
    pub suite: String,
    /// Id of the case.
    pub case: String,
    /// Printed form of the arm.
    pub arm: String,
    /// Name of the agent.
    pub agent: String,
    /// Name of the model as the user gave it.
    pub model: Option<String>,
    /// Variant, such as `with_skill`.
    pub variant: Option<String>,
    /// Number of the repetition, from 1.
    pub repetition: u64,
    /// Outcome.
    pub outcome: Outcome,
    /// True if it passed only after another attempt failed.
    pub flaky: bool,
    /// True if its case is quarantined, which means that it does not decide the run's result.
    pub quarantined: bool,
    /// Component at fault.
    pub fault: Option<Fault>,
    /// Reason in one line.
    #[serde(rename = "because")]
    pub reason: Option<String>,
    /// Score: Σ weight·score of the decided findings.
    pub score: Option<f64>,
    /// Maximum score: Σ weight of the decided findings.
    pub max_score: Option<f64>,
    /// Lowest and highest possible score of the first attempt as a share of the maximum; absent if it has no score, or
    /// if an older version recorded it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score_bounds: Option<Bounds>,
    /// Start time.
    pub started_at: Timestamp,
    /// Time from provisioning to the outcome, in milliseconds.
    pub duration_ms: u64,
    /// Time that the agent took, in milliseconds; absent if it did not run.
    pub agent_ms: Option<u64>,
    /// Number of model turns.
    pub turns: usize,
    /// Number of tool calls.
    pub tool_calls: usize,
    /// Tokens of all attempts together, if they are known.
    pub tokens: Option<Tokens>,
    /// Cost of all attempts together in US dollars, if it is known.
    pub cost_usd: Option<f64>,
    /// Token cap, if there was one.
    pub token_budget: Option<f64>,
    /// Number of attempts; 0 if the run was killed before the trial had an outcome.
    pub attempts: usize,
    /// Number of errors that are not findings.
    pub errors: usize,
    /// Version of the skill as written.
    pub skill_version: Option<String>,
    /// SHA-256 over the skill's files.
    pub skill_hash: Option<String>,
}

impl TrialRow {
    /// Returns the row of a trial of `run` that has no outcome, because the run was killed before. `same_arm` is another
    /// trial of its arm.
    pub fn unfinished(run: &RunRow, id: &TrialId, same_arm: Option<&Self>) -> Self {
        Self {
            run: run.id.clone(),
            label: run.label.clone(),
            id: id.to_string(),
            suite: id.suite.to_string(),
            case: id.case.to_string(),
            arm: id.arm.to_string(),
            agent: same_arm.map_or_else(|| id.arm.to_string(), |other| other.agent.clone()),
            model: same_arm.and_then(|other| other.model.clone()),
            variant: same_arm.and_then(|other| other.variant.clone()),
            repetition: id.repetition,
            outcome: Outcome::Cancelled,
            flaky: false,
            quarantined: false,
            fault: None,
            reason: Some("the run ended before the trial did".to_owned()),
            score: None,
            max_score: None,
            score_bounds: None,
            started_at: run.started_at,
            duration_ms: 0,
            agent_ms: None,
            turns: 0,
            tool_calls: 0,
            tokens: None,
            cost_usd: None,
            token_budget: None,
            attempts: 0,
            errors: 0,
            skill_version: None,
            skill_hash: None,
        }
    }

    /// Returns `true` if the trial has a record.
    pub fn is_recorded(&self) -> bool {
        self.attempts > 0
    }

    /// Returns the time at which the trial got its outcome.
    pub fn finished_at(&self) -> Timestamp {
        let length = jiff::SignedDuration::from_millis(i64::try_from(self.duration_ms).unwrap_or(i64::MAX));
        self.started_at.checked_add(length).unwrap_or(self.started_at)
    }

    /// Returns the outcome that rates count; see [`TrialRecord::first_outcome`](crate::TrialRecord::first_outcome).
    pub fn first_outcome(&self) -> Outcome {
        if self.flaky { Outcome::Failed } else { self.outcome }
    }

    /// Returns `true` if it exceeded its token budget.
    pub fn over_budget(&self) -> bool {
        match (self.tokens, self.token_budget) {
            (Some(tokens), Some(budget)) => tokens.total() as f64 > budget,
            _ => false,
        }
    }
}

/// Recorded run with the results of its cases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunResults {
    /// The run.
    pub run: RunRow,
    /// Results of each case under each arm, sorted by name.
    pub cases: Vec<CaseResults>,
}

/// Results of a case's finished trials in one run under one arm.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CaseResults {
    /// Name of the suite.
    pub suite: String,
    /// Id of the case.
    pub case: String,
    /// Printed form of the arm.
    pub arm: String,
    /// Variant, such as `with_skill`.
    pub variant: Option<String>,
    /// True if the case is quarantined.
    pub quarantined: bool,
    /// Fingerprint of the agent, the model, the skill, the settings and the test file. Trials with equal fingerprints
    /// differ only by chance. Absent for trials recorded by an older version.
    pub settings: Option<String>,
    /// Trials by outcome.
    #[serde(flatten)]
    pub by_outcome: OutcomeCounts,
    /// Number of passed trials that passed only after another attempt failed.
    pub flaky: usize,
    /// Tokens of the trials whose tokens are known; absent if none are.
    pub tokens: Option<u64>,
    /// Number of trials whose tokens are known.
    pub trials_with_tokens: u64,
    /// Cost in US dollars of the trials whose cost is known; absent if none is.
    pub cost_usd: Option<f64>,
    /// Number of trials whose cost is known.
    pub trials_with_cost: u64,
    /// Total time that the agent took, in milliseconds, in the trials in which it ran; absent if it never ran.
    pub agent_ms: Option<u64>,
    /// Number of trials in which the agent ran.
    pub trials_with_time: u64,
}

impl CaseResults {
    /// Returns the trials by the result that rates count; see [`TrialRecord::first_outcome`](crate::TrialRecord).
    pub fn counted(&self) -> Counted {
        self.by_outcome.counted(self.flaky)
    }

    /// Number of trials.
    pub fn trials(&self) -> usize {
        self.by_outcome.sum(|_| true)
    }

    /// Returns `true` if the trials serve only for comparison because their agent lacks the skill.
    pub fn is_baseline(&self) -> bool {
        self.variant.as_deref() == Some(crate::WITHOUT_SKILL)
    }
}

/// Trial that has started but has no outcome yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LiveTrial {
    /// Printed id: `suite::case@arm#1`.
    pub id: String,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// Start time of this attempt.
    pub since: Timestamp,
    /// Reason for the wait, if the trial is waiting.
    pub waiting_on: Option<String>,
    /// Start time of the wait.
    pub waiting_since: Option<Timestamp>,
    /// Agent's last step in this attempt.
    pub last_step: Option<Step>,
    /// Time of that step.
    pub last_step_at: Option<Timestamp>,
}

//! Questions that decide how many trials run, and their answers.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::PassRate;
use crate::statistics::Counted;

/// Result of a test that was evaluated after every trial, and stopped once its answer was known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DecisionRecord {
    /// Question that the trials answer.
    pub question: DecisionQuestion,
    /// Name of the suite; absent if the question is about several cases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suite: Option<Arc<str>>,
    /// Id of the case; absent if the question is about several cases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case: Option<Arc<str>>,
    /// Arm that the question is about.
    pub arm: Arc<str>,
    /// Arm that it is compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub versus: Option<Arc<str>>,
    /// True if the case is quarantined. The result of the run then does not depend on the decision.
    #[serde(default)]
    pub quarantined: bool,
    /// Answer.
    pub answer: Answer,
    /// Reason why no further trial runs.
    pub stopped_by: StopReason,
    /// Details of the reason, for example which limit the run exceeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
    /// Number of trials that count. They count in the order in which they were started. For a difference, the number of
    /// rounds: one pair of trials for each case.
    pub trials: u64,
    /// Maximum number of trials or rounds.
    pub max_trials: u64,
    /// Number of cases.
    pub cases: u64,
    /// Number of counted trials that passed. For a difference, only those of the first arm.
    pub passed: u64,
    /// Number of counted trials that failed. For a difference, only those of the first arm.
    pub failed: u64,
    /// Number of counted trials that could have passed or failed: undecided, broken or stale ones. They count as
    /// evidence against every answer.
    pub undecided: u64,
    /// Share of passed trials, or the difference between the shares of the two arms; absent if it is not known.
    pub estimate: Option<f64>,
    /// Lowest possible estimate; absent without trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate_min: Option<f64>,
    /// Highest possible estimate; absent without trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate_max: Option<f64>,
    /// Confidence sequence: with the probability `confidence`, it contains the true value after every trial at once.
    pub confidence_sequence: [f64; 2],
    /// Probability that the confidence sequence contains the true value at all times.
    pub confidence: f64,
    /// Number of planned trials that did not need to run.
    pub spared: u64,
    /// Number of `spared` trials that would have run without the skill.
    #[serde(default)]
    pub spared_baseline: u64,
}

/// Question that the trials answer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum DecisionQuestion {
    /// Is the pass rate of the case high enough?
    PassRate(PassRate),
    /// How high is the pass rate of the case, to within this half-width?
    Precision {
        /// Half of the widest acceptable interval.
        half_width: f64,
    },
    /// Does the arm pass more often than the other one?
    Difference {
        /// Largest difference that does not matter.
        margin: f64,
        /// Half of the widest acceptable interval for the difference, if the user requires a precision.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        half_width: Option<f64>,
    },
}

/// Answer to the question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The pass rate is shown to be high enough.
    Met,
    /// The pass rate is shown to be too low.
    NotMet,
    /// The arm is shown to pass more often than the other one.
    Better,
    /// The arm is shown to pass less often than the other one.
    Worse,
    /// The arms are shown to differ by less than the margin.
    Equivalent,
    /// The value is known with the required precision.
    Precise,
    /// The trials do not show anything.
    Undecided,
}

/// Reason why no further trial runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The answer is known.
    Decided,
    /// Further trials are unlikely to lead to an answer.
    Futility,
    /// The maximum number of trials was reached.
    Maximum,
    /// Several trials in a row were broken, undecided or stale.
    Broken,
    /// The run reached a limit, such as its maximum cost.
    Budget,
    /// The run was stopped.
    Stopped,
}

impl DecisionRecord {
    /// Returns the counted trials by result.
    pub fn counted(&self) -> Counted {
        Counted { passed: self.passed, failed: self.failed, unknown: self.undecided }
    }

    /// Returns `true` for a required pass rate.
    pub fn is_contract(&self) -> bool {
        matches!(self.question, DecisionQuestion::PassRate(_))
    }
}

/// Counts of decisions in a run, without those about quarantined cases.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DecisionCounts {
    /// Number of decisions.
    pub all: usize,
    /// Number of pass rates that are too low.
    pub not_met: usize,
    /// Number of questions without an answer.
    pub undecided: usize,
    /// Number of planned trials that did not need to run.
    pub spared: usize,
    /// Number of `spared` trials that would have run without the skill.
    pub spared_baseline: usize,
    /// Number of failed trials in cases that are decided by their pass rate.
    pub failed_trials: usize,
    /// Number of undecided and broken trials in cases that are decided by their pass rate.
    pub open_trials: usize,
    /// Number of stale trials in such cases.
    pub stale_trials: usize,
}

impl DecisionCounts {
    /// Adds a decision.
    pub(crate) fn add(&mut self, decision: &DecisionRecord) {
        self.spared += usize::try_from(decision.spared).unwrap_or(usize::MAX);
        self.spared_baseline += usize::try_from(decision.spared_baseline).unwrap_or(usize::MAX);
        if decision.quarantined {
            return;
        }
        self.all += 1;
        self.not_met += usize::from(decision.answer == Answer::NotMet);
        self.undecided += usize::from(decision.answer == Answer::Undecided);
    }

    /// Returns `true` if the run has no decisions.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

//! Decisions that determine how many trials run.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::PassRate;

/// Result of a test that was evaluated after every trial, and stopped as soon as its answer was known.
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
    /// Arm with which it is compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub versus: Option<Arc<str>>,
    /// True if the case is quarantined, so that the decision does not affect the result of the run.
    #[serde(default)]
    pub quarantined: bool,
    /// Answer.
    pub answer: Answer,
    /// Reason why no further trial was needed.
    pub stopped_by: StopReason,
    /// Details of the reason, such as the limit that the run exceeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
    /// Number of trials that count, in the order in which they were started. For a difference, the number of rounds:
    /// pairs of trials of each case.
    pub trials: u64,
    /// Maximum number of trials or rounds.
    pub max_trials: u64,
    /// Number of cases.
    pub cases: u64,
    /// Number of counted trials that passed; for a difference, of the first arm.
    pub passed: u64,
    /// Number of counted trials that failed; for a difference, of the first arm.
    pub failed: u64,
    /// Number of counted trials that are undecided. They count against every answer.
    pub undecided: u64,
    /// Share of passed trials, or difference of the two arms' shares; absent without trials.
    pub estimate: Option<f64>,
    /// Interval that contains the true value after every trial at once with the probability `confidence`.
    pub confidence_sequence: [f64; 2],
    /// Probability that the confidence sequence always contains the true value.
    pub confidence: f64,
    /// Number of planned trials that did not have to run.
    pub spared: u64,
    /// Number of `spared` trials without the skill.
    #[serde(default)]
    pub spared_baseline: u64,
}

/// Question that a number of trials answers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum DecisionQuestion {
    /// Is the pass rate of the case high enough?
    PassRate(PassRate),
    /// How high is the pass rate of the case, give or take this share?
    Precision {
        /// Half of the widest acceptable interval.
        half_width: f64,
    },
    /// Does the arm pass more often than the other one?
    Difference {
        /// Difference that does not matter.
        margin: f64,
        /// Half of the widest acceptable interval of the difference, if it has to be known precisely.
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
    /// The value is known as precisely as it was asked for.
    Precise,
    /// Nothing is shown.
    Undecided,
}

/// Reason why no further trial was needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The answer is known.
    Decided,
    /// The remaining trials are unlikely to give an answer.
    Futility,
    /// The maximum number of trials has run.
    Maximum,
    /// Several trials in a row were broken.
    Broken,
    /// The run reached a limit, such as its maximum cost.
    Budget,
    /// The run was stopped.
    Stopped,
}

impl DecisionRecord {
    /// Returns `true` if the trials were to show that a pass rate is high enough.
    pub fn is_contract(&self) -> bool {
        matches!(self.question, DecisionQuestion::PassRate(_))
    }
}

/// Counts of a run's decisions. Those about quarantined cases are not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DecisionCounts {
    /// Number of decisions.
    pub all: usize,
    /// Number of pass rates that are too low.
    pub not_met: usize,
    /// Number of questions without an answer.
    pub undecided: usize,
    /// Number of planned trials that did not have to run.
    pub spared: usize,
    /// Number of `spared` trials without the skill.
    pub spared_baseline: usize,
    /// Number of failed trials of cases whose pass rate decides.
    pub failed_trials: usize,
    /// Number of undecided and broken trials of cases whose pass rate decides.
    pub open_trials: usize,
    /// Number of passed and failed trials of such cases that have undecided assertions.
    pub partial_trials: usize,
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

    /// Returns `true` for a run in which no decision determined the number of trials.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

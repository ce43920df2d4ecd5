//! Pairwise judgements: a judge's preference between two trials.

use serde::{Deserialize, Serialize};

use crate::AuxiliaryUsage;

/// Preference between two trials of the same case, one on each side of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preference {
    /// The trial of the first side is preferred in both orders.
    Before,
    /// The trial of the second side is preferred in both orders.
    After,
    /// Neither is preferred.
    Tie,
    /// The judge chose the same position in both orders, so its choice says nothing about the trials.
    PositionTie,
    /// The judge did not decide.
    Undecided,
}

/// Pairwise judgement of two trials, from the answers in both orders.
#[derive(Debug, Clone, PartialEq)]
pub struct PairJudgement {
    /// The preference.
    pub preference: Preference,
    /// The judge's reason when the trial of the first side was called `first`, or the reason why it did not decide.
    pub reason: String,
    /// Usage of the judge. There are neither requests nor cached answers if the judge was not asked.
    pub usage: AuxiliaryUsage,
    /// True if the judge was asked, whether or not it answered.
    pub asked: bool,
}

impl PairJudgement {
    /// Creates a judgement that did not need the judge.
    pub fn without_judge(preference: Preference, reason: impl Into<String>) -> Self {
        Self { preference, reason: reason.into(), usage: AuxiliaryUsage::default(), asked: false }
    }

    /// Returns `true` if a judge, or its cached answers, decided.
    pub fn is_judged(&self) -> bool {
        self.preference != Preference::Undecided && self.usage.requests + self.usage.cached > 0
    }
}

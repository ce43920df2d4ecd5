//! What a trial came to.

use serde::{Deserialize, Serialize};

use crate::{Ending, Finding, Status};

/// What a trial came to. Whose fault a broken one is stands beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Every finding is met.
    Passed,
    /// Some finding is unmet.
    Failed,
    /// None is unmet, but some could not be decided.
    Undecided,
    /// Infrastructure trouble; says nothing about the agent.
    Broken,
    /// It was not run, on purpose.
    Skipped,
    /// Somebody stopped the run.
    Cancelled,
}

impl Outcome {
    /// What findings amount to, given how acting ended: infrastructure trouble never counts against an agent, and never
    /// passes it.
    pub fn of(findings: &[Finding], ending: &Ending) -> Self {
        match ending {
            Ending::ProviderFailed { .. } | Ending::Aborted { .. } => return Self::Broken,
            Ending::Cancelled => return Self::Cancelled,
            Ending::Finished | Ending::GaveUp { .. } | Ending::OutOfBudget { .. } | Ending::TimedOut { .. } => {}
        }
        if findings.iter().any(|finding| finding.status == Status::Unmet) {
            Self::Failed
        } else if findings.iter().any(|finding| finding.status == Status::Undecided) {
            Self::Undecided
        } else {
            Self::Passed
        }
    }

    /// As the report writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Undecided => "undecided",
            Self::Broken => "broken",
            Self::Skipped => "skipped",
            Self::Cancelled => "cancelled",
        }
    }
}

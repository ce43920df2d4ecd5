//! What a trial came to.

use serde::{Deserialize, Serialize};

use crate::{Ending, Finding, Ruling, Scoring, Status};

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
    /// passes it. `ruling` says how; what nobody wrote must be met under any ruling.
    pub fn of(findings: &[Finding], ending: &Ending, ruling: &Ruling) -> Self {
        match ending {
            Ending::ProviderFailed { .. } | Ending::Aborted { .. } => return Self::Broken,
            Ending::Cancelled => return Self::Cancelled,
            Ending::Finished | Ending::GaveUp { .. } | Ending::OutOfBudget { .. } | Ending::TimedOut { .. } => {}
        }
        let any = |implicit: bool, status: Status| {
            findings.iter().any(|finding| finding.implicit == implicit && finding.status == status)
        };
        if any(true, Status::Unmet) {
            return Self::Failed;
        }
        let holds = match ruling.scoring {
            _ if any(false, Status::Undecided) && (ruling.scoring.is_some() || !any(false, Status::Unmet)) => None,
            Some(scoring) => Some(scoring.passes(findings)),
            None => Some(!any(false, Status::Unmet)),
        };
        match holds {
            None => Self::Undecided,
            Some(holds) if holds == ruling.not => Self::Failed,
            Some(_) if any(true, Status::Undecided) => Self::Undecided,
            Some(_) => Self::Passed,
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

impl Scoring {
    /// Sums of weights are not exact; what is missed by less than this share of the most is not missed.
    const TOLERANCE: f64 = 1e-9;

    /// Σ weight · score of the findings that somebody wrote. A case that asserts nothing has the most there is, and a
    /// full match has exactly that.
    pub fn score(&self, findings: &[Finding]) -> f64 {
        let mut written = findings.iter().filter(|finding| !finding.implicit).peekable();
        if written.peek().is_none() {
            return self.max_score;
        }
        let sum: f64 = written.map(|finding| finding.weight * finding.score.unwrap_or_default()).sum();
        let is_full = (sum - self.max_score).abs() <= self.max_score.abs() * Self::TOLERANCE;
        if is_full { self.max_score } else { sum }
    }

    /// Whether the score is enough and nothing critical failed.
    pub fn passes(&self, findings: &[Finding]) -> bool {
        let enough = self.score(findings) >= self.pass_score - self.max_score.abs() * Self::TOLERANCE;
        enough && findings.iter().all(|finding| finding.failed_critical.is_empty())
    }
}

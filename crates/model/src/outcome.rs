//! Outcome of a trial.

use serde::{Deserialize, Serialize};

use crate::{Ending, Finding, Node, NodeKind, OutcomeRule, Scoring, Status};

/// Outcome of a trial. The component at fault for a broken trial is stored separately.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Every finding is met.
    Passed,
    /// At least one finding is unmet.
    Failed,
    /// No finding is unmet, but at least one could not be decided.
    #[default]
    Undecided,
    /// Infrastructure failed; the trial says nothing about the agent.
    Broken,
    /// The cassette has no answer to a request from the agent, so it must be recorded again.
    Stale,
    /// The trial was skipped on purpose.
    Skipped,
    /// The run was cancelled.
    Cancelled,
}

impl Outcome {
    /// All outcomes, in the order in which reports list them.
    pub const ALL: [Self; 7] =
        [Self::Passed, Self::Failed, Self::Undecided, Self::Broken, Self::Stale, Self::Skipped, Self::Cancelled];

    /// Computes the outcome from the findings and the ending. Infrastructure trouble never counts against an agent and
    /// never lets it pass. `ruling` is the rule to apply; implicit findings must be met under any ruling. Findings that
    /// have no weight do not decide, see [`Finding::decisive`].
    pub fn of(findings: &[Finding], ending: &Ending, ruling: &OutcomeRule) -> Self {
        match ending {
            Ending::ProviderFailed { .. }
            | Ending::Silent { .. }
            | Ending::Aborted { .. }
            | Ending::Unreachable { .. }
            | Ending::InvalidTest { .. } => return Self::Broken,
            Ending::Stale(_) => return Self::Stale,
            Ending::Cancelled => return Self::Cancelled,
            Ending::Finished | Ending::GaveUp { .. } | Ending::OutOfBudget { .. } | Ending::TimedOut { .. } => {}
        }
        let any = |implicit: bool, status: Status| {
            Finding::decisive(findings).any(|finding| finding.implicit == implicit && finding.status == status)
        };
        if any(true, Status::Unmet) {
            return Self::Failed;
        }
        let holds = match ruling.scoring {
            Some(scoring) => scoring.passes(findings),
            None if any(false, Status::Unmet) => Some(false),
            None if any(false, Status::Undecided) => None,
            None => Some(true),
        };
        match holds {
            None => Self::Undecided,
            Some(holds) if holds == ruling.not => Self::Failed,
            Some(_) if any(true, Status::Undecided) => Self::Undecided,
            Some(_) => Self::Passed,
        }
    }

    /// Returns `Some(true)` if the decided findings alone pass, regardless of the results of the undecided ones.
    /// Returns `None` if no finding written in the case is decided. Undecided findings are excluded and never decide
    /// the verdict in either direction.
    pub fn of_decided(findings: &[Finding], ruling: &OutcomeRule) -> Option<bool> {
        let decided: Vec<&Finding> = Finding::decisive(findings).filter(|finding| finding.is_decided()).collect();
        let mut written = decided.iter().filter(|finding| !finding.implicit).peekable();
        written.peek()?;
        if decided.iter().any(|finding| finding.implicit && finding.status == Status::Unmet) {
            return Some(false);
        }
        let holds = match ruling.scoring {
            Some(scoring) => scoring.passes_by_share(written.copied()),
            None => written.all(|finding| finding.status == Status::Met),
        };
        Some(holds != ruling.not)
    }

    /// Returns `true` if the agent's work was graded, so that the findings say something about the agent.
    pub fn is_graded(self) -> bool {
        matches!(self, Self::Passed | Self::Failed | Self::Undecided)
    }

    /// Returns `true` if no rate counts the trial, because it was not to have a result.
    pub fn is_excluded(self) -> bool {
        matches!(self, Self::Skipped | Self::Cancelled)
    }

    /// Returns `true` if the trial was to have a result, but infrastructure or its cassette prevented that.
    pub fn is_error(self) -> bool {
        !self.is_graded() && !self.is_excluded()
    }

    /// Returns `true` if the trial could have passed or failed. Rates have bounds for such trials.
    pub fn is_unknown(self) -> bool {
        self == Self::Undecided || self.is_error()
    }

    /// Returns the position in lists that show the most serious outcomes first.
    pub fn rank(self) -> usize {
        match self {
            Self::Failed => 0,
            Self::Broken | Self::Stale => 1,
            Self::Undecided => 2,
            Self::Cancelled => 3,
            Self::Skipped => 4,
            Self::Passed => 5,
        }
    }

    /// Returns the name used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Undecided => "undecided",
            Self::Broken => "broken",
            Self::Stale => "stale",
            Self::Skipped => "skipped",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Sum of the findings' scores, as far as they are decided.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tally {
    /// Points if every undecided part failed.
    pub least: f64,
    /// Points if every undecided part passed.
    pub most: f64,
    /// True if a critical part failed.
    pub failed_critical: bool,
    /// True if a critical part is undecided.
    pub open_critical: bool,
}

impl Scoring {
    /// Relative tolerance for sums of weights, which are not exact. A score is sufficient if it falls short by less
    /// than this share of the maximum.
    const TOLERANCE: f64 = 1e-9;

    /// Returns `true` if the expectation gives any of its parts a weight, which means that a score is wanted.
    pub fn is_wanted_by(expectation: &Node) -> bool {
        Self::weight_in(expectation).is_some()
    }

    /// Returns the first weight given to a part of the expectation.
    pub fn weight_in(expectation: &Node) -> Option<&Node> {
        let given = |weight: &&Node| !matches!(weight.kind, NodeKind::Null);
        match &expectation.kind {
            NodeKind::List(items) => items.iter().find_map(Self::weight_in),
            NodeKind::Map(entries) => entries.iter().find_map(|(key, value)| match key.value.as_str() {
                "$score" => Some(value).filter(given),
                "$meta" => value.get("score").filter(given),
                _ => Self::weight_in(value),
            }),
            _ => None,
        }
    }

    /// Returns Σ weight · score of the explicit findings, where undecided ones score 0. A case without assertions has
    /// the maximum score, and a full match has exactly the maximum.
    pub fn score(&self, findings: &[Finding]) -> f64 {
        self.tally(findings).least
    }

    /// Returns the range of scores of the explicit findings.
    pub fn tally(&self, findings: &[Finding]) -> Tally {
        let mut written = findings.iter().filter(|finding| !finding.implicit).peekable();
        let start = if written.peek().is_none() { self.max_score } else { 0.0 };
        let mut tally = Tally { least: start, most: start, failed_critical: false, open_critical: false };
        for finding in written {
            let bounds = finding.score_bounds();
            let (low, high) = (finding.weight * bounds.min, finding.weight * bounds.max);
            tally.least += low.min(high);
            tally.most += low.max(high);
        }
        (tally.least, tally.most) = (self.settled(tally.least), self.settled(tally.most));
        tally.failed_critical = findings.iter().any(|finding| !finding.failed_critical.is_empty());
        tally.open_critical = findings.iter().any(|finding| finding.leeway.is_some_and(|leeway| leeway.critical));
        tally
    }

    /// Returns `true` if the score is sufficient and nothing critical failed; `None` if that depends on undecided
    /// findings.
    pub fn passes(&self, findings: &[Finding]) -> Option<bool> {
        self.allows(&self.tally(findings))
    }

    /// Like `passes`, for a tally.
    pub fn allows(&self, tally: &Tally) -> Option<bool> {
        if tally.failed_critical || !self.is_enough(tally.most) {
            return Some(false);
        }
        (self.is_enough(tally.least) && !tally.open_critical).then_some(true)
    }

    /// Returns `true` if these findings reach the share of their own weights that a pass requires of the maximum
    /// score.
    fn passes_by_share<'a>(&self, findings: impl Iterator<Item = &'a Finding>) -> bool {
        let (mut score, mut most, mut failed_critical) = (0.0, 0.0, false);
        for finding in findings {
            score += finding.weight * finding.score.unwrap_or_default();
            most += finding.weight.max(0.0);
            failed_critical |= !finding.failed_critical.is_empty();
        }
        let needed = if self.max_score > 0.0 { most * self.pass_score / self.max_score } else { 0.0 };
        !failed_critical && score >= needed - most * Self::TOLERANCE
    }

    /// Returns the reason why the score does not pass, or might not: `scores 50 of 100, and needs 80`. `None` if it is
    /// sufficient.
    pub fn reason(&self, findings: &[Finding]) -> Option<String> {
        self.because_of(&self.tally(findings))
    }

    /// Like `reason`, for a tally.
    pub fn because_of(&self, tally: &Tally) -> Option<String> {
        if self.is_enough(tally.least) {
            return None;
        }
        // Show full precision if rounding would make an insufficient score look sufficient.
        let is_close = [tally.least, tally.most].iter().any(|score| points(*score) == points(self.pass_score));
        let shown = |score: f64| if is_close { score.to_string() } else { points(score) };
        let (least, most) = (shown(tally.least), shown(tally.most));
        let range = if least == most { least } else { format!("{least} to {most}") };
        Some(format!("scores {range} of {}, and needs {}", points(self.max_score), shown(self.pass_score)))
    }

    fn is_enough(&self, score: f64) -> bool {
        score >= self.pass_score - self.max_score.abs() * Self::TOLERANCE
    }

    /// Rounds a sum that equals the full score except for floating-point error to the full score.
    fn settled(&self, sum: f64) -> f64 {
        let is_full = (sum - self.max_score).abs() <= self.max_score.abs() * Self::TOLERANCE;
        if is_full { self.max_score } else { sum }
    }
}

/// Formats with at most two decimals.
fn points(score: f64) -> String {
    let rounded = (score * 100.0).round() / 100.0;
    if rounded == 0.0 { "0".into() } else { rounded.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_without_weight_does_not_decide_unless_nothing_has_one() {
        let finding = |status: Status, weight: f64| Finding { id: "f".into(), status, weight, ..Finding::default() };
        let of = |findings: &[Finding]| {
            let rule = OutcomeRule::default();
            (Outcome::of(findings, &Ending::Finished, &rule), Outcome::of_decided(findings, &rule))
        };
        let met = finding(Status::Met, 1.0);
        for other in [Status::Met, Status::Unmet, Status::Undecided] {
            let other = finding(other, 0.0);
            assert_eq!(of(&[met.clone(), other.clone()]), (Outcome::Passed, Some(true)), "{other:?}");
            let open = [finding(Status::Undecided, 1.0), other];
            assert_eq!(of(&open), (Outcome::Undecided, None), "{open:?}");
        }
        assert_eq!(of(&[finding(Status::Unmet, 0.0)]).0, Outcome::Failed);
        assert_eq!(of(&[finding(Status::Undecided, 0.0)]).0, Outcome::Undecided);
        let required = Finding { implicit: true, ..finding(Status::Unmet, 0.0) };
        assert_eq!(of(&[met, required]).0, Outcome::Failed);
    }
}

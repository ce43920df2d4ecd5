//! What statistics know of a trial.

use std::collections::BTreeMap;

use crate::{Finding, Outcome, Status, TrialRecord};

/// What statistics know of a trial. `case` is whatever tells cases apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observation<K> {
    /// The case.
    pub case: K,
    /// What it came to. Only what passed or failed is in a denominator.
    pub outcome: Outcome,
    /// met / (met + unmet).
    pub pass_rate: Option<f64>,
    /// Of the score, the share of the most there is.
    pub score: Option<f64>,
    /// Seconds.
    pub duration_s: Option<f64>,
    /// Tokens of every kind.
    pub tokens: Option<f64>,
    /// US dollars.
    pub cost_usd: Option<f64>,
}

impl<'a> Observation<(&'a str, &'a str)> {
    /// Of a record; its suite and its case's id tell its case.
    pub fn of(trial: &'a TrialRecord) -> Self {
        let most = trial.max_score.filter(|most| *most > 0.0);
        Self {
            case: (&trial.suite, &trial.case),
            outcome: trial.outcome,
            pass_rate: met_share(&trial.findings),
            score: trial.score.zip(most).map(|(score, most)| score / most),
            duration_s: Some(trial.duration_ms as f64 / 1000.0),
            tokens: trial.usage.map(|usage| usage.total() as f64),
            cost_usd: trial.cost_usd,
        }
    }
}

impl<K> Observation<K> {
    /// The same of a case that is told in another way.
    pub fn of_case<C>(self, case: C) -> Observation<C> {
        let Self { outcome, pass_rate, score, duration_s, tokens, cost_usd, .. } = self;
        Observation { case, outcome, pass_rate, score, duration_s, tokens, cost_usd }
    }

    /// The same with its case borrowed.
    pub fn as_ref(&self) -> Observation<&K> {
        let Self { case, outcome, pass_rate, score, duration_s, tokens, cost_usd } = self;
        Observation {
            case,
            outcome: *outcome,
            pass_rate: *pass_rate,
            score: *score,
            duration_s: *duration_s,
            tokens: *tokens,
            cost_usd: *cost_usd,
        }
    }

    /// Nothing but what it came to.
    pub fn new(case: K, outcome: Outcome) -> Self {
        Self { case, outcome, pass_rate: None, score: None, duration_s: None, tokens: None, cost_usd: None }
    }

    /// Whether it says something about the agent.
    pub fn is_decided(&self) -> bool {
        matches!(self.outcome, Outcome::Passed | Outcome::Failed)
    }

    /// 1 for a pass, 0 for a failure.
    pub(super) fn full_pass(&self) -> Option<f64> {
        self.is_decided().then(|| f64::from(u8::from(self.outcome == Outcome::Passed)))
    }
}

/// The decided trials of each case.
pub(super) fn by_case<K: Ord>(trials: &[Observation<K>]) -> BTreeMap<&K, Vec<&Observation<K>>> {
    let mut cases: BTreeMap<&K, Vec<&Observation<K>>> = BTreeMap::new();
    for trial in trials.iter().filter(|trial| trial.is_decided()) {
        cases.entry(&trial.case).or_default().push(trial);
    }
    cases
}

/// met / (met + unmet); `None` when nothing was decided. What nobody wrote counts only where it is not met, as an exceeded
/// budget: else every limit that is kept would raise the share.
fn met_share(findings: &[Finding]) -> Option<f64> {
    let count = |wanted: fn(&Finding) -> bool| findings.iter().filter(|finding| wanted(finding)).count() as f64;
    let met = count(|finding| finding.status == Status::Met && !finding.implicit);
    let unmet = count(|finding| finding.status == Status::Unmet);
    (met + unmet > 0.0).then(|| met / (met + unmet))
}

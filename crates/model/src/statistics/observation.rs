//! Statistical view of a trial.

use std::collections::BTreeMap;

use super::{Bounds, Counted};
use crate::{Outcome, TrialRecord};

/// Statistical view of a trial. `case` is any value that identifies the case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observation<K> {
    /// Key of the case.
    pub case: K,
    /// Outcome of the trial.
    pub outcome: Outcome,
    /// Outcome that rates count: that of the first attempt that is not broken.
    pub first: Outcome,
    /// True if the trial has an assertion on which a comparison can be based; see [`can_compare`].
    pub asserts: bool,
    /// `first` and `score` by the assertions that both the arm with the skill and the one without can meet; absent if
    /// there are none.
    pub shared: Option<(Outcome, Option<Bounds>)>,
    /// True if the decided findings alone pass; `None` if no assertion was decided.
    pub decided_pass: Option<bool>,
    /// Share met / (met + unmet) of the assertions. Undecided ones count in neither.
    pub pass_rate: Option<f64>,
    /// Score as a share of the maximum; absent if the trial has no score.
    pub score: Option<Bounds>,
    /// Time that the agent took, in seconds.
    pub duration_s: Option<f64>,
    /// Tokens of every kind, in all attempts.
    pub tokens: Option<f64>,
    /// Cost of all attempts in US dollars.
    pub cost_usd: Option<f64>,
}

impl<'a> Observation<(&'a str, &'a str)> {
    /// Extracts the observation from a record; its suite name and case id identify the case.
    pub fn from_record(trial: &'a TrialRecord) -> Self {
        let spent = trial.spent();
        let first = trial.first_attempt();
        Self {
            case: (&trial.suite, &trial.case),
            outcome: trial.outcome,
            first: trial.first_outcome(),
            asserts: true,
            shared: trial.asserts_in_both_arms().then(|| trial.shared_result()),
            decided_pass: trial.decided_pass(),
            pass_rate: first.map_or_else(|| trial.met_share(), |attempt| attempt.met_share),
            score: trial.first_score(),
            duration_s: trial.agent_ms.map(|ms| ms as f64 / 1000.0),
            tokens: spent.tokens.map(|tokens| tokens.total() as f64),
            cost_usd: spent.cost_usd,
        }
    }
}

impl<K> Observation<K> {
    /// Replaces the key of the case.
    pub fn of_case<C>(self, case: C) -> Observation<C> {
        let Self { outcome, first, asserts, shared, decided_pass, pass_rate, score, .. } = self;
        let Self { duration_s, tokens, cost_usd, .. } = self;
        Observation {
            case,
            outcome,
            first,
            asserts,
            shared,
            decided_pass,
            pass_rate,
            score,
            duration_s,
            tokens,
            cost_usd,
        }
    }

    /// Creates an observation with only an outcome.
    pub fn new(case: K, outcome: Outcome) -> Self {
        let decided_pass = match outcome {
            Outcome::Passed => Some(true),
            Outcome::Failed => Some(false),
            _ => None,
        };
        Self {
            case,
            outcome,
            first: outcome,
            asserts: true,
            shared: Some((outcome, None)),
            decided_pass,
            pass_rate: None,
            score: None,
            duration_s: None,
            tokens: None,
            cost_usd: None,
        }
    }

    /// Returns the observation in the terms of agent-skill-eval: undecided assertions and broken trials are left out,
    /// and the last attempt counts.
    pub fn without_undecided(self) -> Self {
        let outcome = match self.decided_pass {
            Some(true) => Outcome::Passed,
            Some(false) => Outcome::Failed,
            None => Outcome::Skipped,
        };
        let outcome = if self.is_graded() { outcome } else { Outcome::Skipped };
        Self { outcome, first: outcome, ..self }
    }

    /// Returns the observation by the assertions that both the arm with the skill and the one without can meet.
    pub fn in_both_arms(self) -> Self {
        match self.shared {
            Some((first, score)) => Self { first, score, ..self },
            None => Self { asserts: false, ..self },
        }
    }

    /// Returns `true` if the trial was graded, so that it says something about the agent.
    pub fn is_graded(&self) -> bool {
        self.outcome.is_graded()
    }

    /// Returns `true` if rates count the trial: it passed, failed, or could have done either.
    pub fn is_counted(&self) -> bool {
        Counted::of([self.first]).trials() > 0
    }
}

/// Returns the trials of each case that rates count.
pub(super) fn by_case<'t, K: Ord + 't>(
    trials: impl IntoIterator<Item = &'t Observation<K>>,
) -> BTreeMap<&'t K, Vec<&'t Observation<K>>> {
    let mut cases: BTreeMap<&K, Vec<&Observation<K>>> = BTreeMap::new();
    for trial in trials.into_iter().filter(|trial| trial.is_counted()) {
        cases.entry(&trial.case).or_default().push(trial);
    }
    cases
}

/// Counts the first attempts of trials.
pub(super) fn counted<K>(trials: &[&Observation<K>]) -> Counted {
    Counted::of(trials.iter().map(|trial| trial.first))
}

/// Returns `true` unless the graded `trials` of a case show that it has no assertion on which a comparison can be based.
/// Trials that were not graded do not show what their case asserts.
pub fn can_compare<'t, K: 't>(trials: impl Iterator<Item = &'t Observation<K>>) -> bool {
    let graded: Vec<bool> = trials.filter(|trial| trial.is_graded()).map(|trial| trial.asserts).collect();
    graded.is_empty() || graded.contains(&true)
}

/// Returns the scores of trials. If some have one, the others, such as broken trials, could have had any. Empty if no
/// trial has a score, or if a score is not a share of the maximum and others are unknown.
pub(super) fn scores<K>(trials: &[&Observation<K>]) -> Vec<Bounds> {
    let is_share = |score: &Bounds| Bounds::UNKNOWN_SHARE.contains(*score);
    let known = || trials.iter().filter_map(|trial| trial.score);
    match known().count() {
        0 => Vec::new(),
        all if all < trials.len() && !known().all(|score| is_share(&score)) => Vec::new(),
        _ => trials.iter().map(|trial| trial.score.unwrap_or(Bounds::UNKNOWN_SHARE)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_case_asserts_is_not_known_from_trials_that_were_not_graded() {
        let of = |outcome: Outcome, asserts: bool| Observation { asserts, ..Observation::new("c", outcome) };
        let (broken, about_skill) = (of(Outcome::Broken, false), of(Outcome::Passed, false));
        assert!(can_compare([broken].iter()));
        assert!(!can_compare([broken, about_skill].iter()));
        assert!(can_compare([about_skill, of(Outcome::Failed, true)].iter()));
    }
}

//! A case on both sides of a comparison.

use std::cmp::Ordering;

use model::statistics::{Bounds, Counted};
use model::{Outcome, TrialRow};
use serde_json::{Value, json};

use super::evidence::Evidence;
use super::pairs::Pair;
use super::rounds::counted;
use crate::counts::described;
use crate::verdict::{CaseSide, CaseTest, NOISE, PairedCase, without_result};

/// Change of a case between the two sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It passes less often, or its score fell by more than the threshold.
    Regressed,
    /// It passes more often.
    Fixed,
    /// It passes equally often, and its score rose by more than the threshold.
    Improved,
    /// It may have changed: trials without a result, or undecided parts of a score, leave it open.
    Changed,
    /// It passes equally often and its score is about the same.
    Same,
    /// Only the second run has it.
    Added,
    /// Only the first run has it.
    Missing,
}

impl Change {
    /// Returns `true` if it is shown with its evidence.
    pub fn is_change(self) -> bool {
        matches!(self, Self::Regressed | Self::Fixed | Self::Improved | Self::Changed)
    }
}

/// A case on both sides.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseChange {
    /// `suite::case`, with the arm if there are several.
    pub name: String,
    /// Change of the case.
    pub change: Change,
    /// True if the case's own trials show that the change is more than chance.
    pub is_confirmed: bool,
    /// Test of the case by its own trials; absent if a side has no trial that counts.
    pub(super) test: Option<CaseTest>,
    /// True if the results of a run decided how many trials ran.
    pub(super) is_sequential: bool,
    pub(super) before: Side,
    pub(super) after: Side,
    pub(super) evidence: Option<Box<Evidence>>,
}

/// Trials of one case on one side.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Side {
    pub(super) results: CaseSide,
    /// Results in the order in which the trials were started; `None` if undecided.
    pub(super) in_order: Vec<Option<bool>>,
    pub(super) reason: Option<String>,
    /// True if a trial passed only after a failed attempt.
    is_flaky: bool,
    /// Agent time in milliseconds.
    pub(super) time: Mean,
    pub(super) tokens: Mean,
    pub(super) cost: Mean,
    /// The trial that illustrates the change: its run and its id.
    pub(super) shown: Option<(String, String)>,
}

/// Mean of values that may be unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Mean {
    sum: f64,
    known: u64,
    unknown: u64,
}

impl Mean {
    fn add(&mut self, value: Option<f64>) {
        match value {
            Some(value) => {
                self.sum += value;
                self.known += 1;
            }
            None => self.unknown += 1,
        }
    }

    /// Returns the mean; `None` if a value is unknown, because the mean of the others would be about other trials.
    pub(super) fn value(&self) -> Option<f64> {
        (self.known > 0 && self.unknown == 0).then(|| self.sum / self.known as f64)
    }
}

impl CaseChange {
    pub(super) fn of(pair: &Pair<'_>, threshold: f64) -> Self {
        let [before, after] = pair.sides.each_ref().map(|trials| Side::of(trials));
        let change = change(&before, &after, threshold);
        let mut case = Self {
            name: pair.name.clone(),
            change,
            is_confirmed: false,
            test: None,
            is_sequential: false,
            before,
            after,
            evidence: None,
        };
        if change.is_change() {
            let wanted = match (change, case.paired().change()) {
                (Change::Regressed, Some(Ordering::Less)) => [Some(Outcome::Passed), Some(Outcome::Failed)],
                (Change::Fixed, _) => [Some(Outcome::Failed), Some(Outcome::Passed)],
                _ => [None, None],
            };
            case.before.shown = shown(&pair.sides[0], wanted[0]);
            case.after.shown = shown(&pair.sides[1], wanted[1]);
        }
        case
    }

    /// Returns the case if every trial of the second side without a result had failed.
    pub(super) fn at_worst(&self, threshold: f64) -> Self {
        let after = Side {
            results: self.after.results.at_worst(),
            in_order: self.after.in_order.iter().map(|passed| passed.or(Some(false))).collect(),
            ..Side::default()
        };
        let change = change(&self.before, &after, threshold);
        Self { name: self.name.clone(), change, before: self.before.clone(), after, evidence: None, ..*self }
    }

    /// Returns the case as the verdict sees it.
    pub(super) fn paired(&self) -> PairedCase<'_> {
        PairedCase { name: &self.name, before: &self.before.results, after: &self.after.results, test: self.test }
    }

    /// Sets the test of the case, and whether its change is more than chance and than `threshold`.
    pub(super) fn confirm(&mut self, test: Option<CaseTest>, threshold: f64) {
        self.test = test;
        let is_large = self.gain().is_some_and(|gain| gain.min > threshold + NOISE || gain.max < -threshold - NOISE);
        self.is_confirmed = matches!(self.change, Change::Regressed | Change::Fixed) && self.is_certain() && is_large;
    }

    /// Returns `true` if the case's own trials show that it passes less or more often.
    pub(super) fn is_certain(&self) -> bool {
        self.test.is_some_and(|test| test.is_certain())
    }

    /// Returns `true` if both sides have a trial of the case.
    pub(super) fn is_paired(&self) -> bool {
        self.before.results.trials() > 0 && self.after.results.trials() > 0
    }

    /// Returns `true` if each side has a single trial.
    pub(super) fn is_single(&self) -> bool {
        self.before.results.trials() == 1 && self.after.results.trials() == 1
    }

    /// Returns pairs of results from both sides, the second side first, in the order in which the trials were started.
    /// An undecided trial is `None`.
    pub(super) fn pairs(&self) -> Vec<[Option<bool>; 2]> {
        self.after.in_order.iter().zip(&self.before.in_order).map(|(after, before)| [*after, *before]).collect()
    }

    /// Returns the run and the id of the trial that illustrates each side.
    pub(crate) fn trials(&self) -> Option<[(&str, &str); 2]> {
        let (before, after) = (self.before.shown.as_ref()?, self.after.shown.as_ref()?);
        Some([(&before.0, &before.1), (&after.0, &after.1)])
    }

    pub(crate) fn evidence(&self) -> Option<&Evidence> {
        self.evidence.as_deref()
    }

    /// Returns the lowest and the highest possible difference in the share of passed trials.
    pub(super) fn gain(&self) -> Option<Bounds> {
        Some(self.after.results.counts.bounds()? - self.before.results.counts.bounds()?)
    }

    /// Returns the size of the change for sorting: in the share of passed trials, or in the mean score.
    pub(super) fn size(&self) -> f64 {
        let middle = |bounds: Bounds| (bounds.min + bounds.max).abs() / 2.0;
        let by_passes = self.gain().map_or(0.0, middle);
        match self.before.results.score().zip(self.after.results.score()) {
            Some((before, after)) if by_passes < NOISE => middle(after - before),
            _ => by_passes,
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let side = |side: &Side| {
            let CaseSide { counts, .. } = side.results;
            let score = side.results.score();
            json!({
                "trials": side.results.trials(), "decided": side.results.decided(), "passed": counts.passed,
                "undecided": side.results.by_outcome.undecided, "unknown": counts.unknown,
                "score": score.and_then(Bounds::value), "score_min": score.map(|score| score.min),
                "score_max": score.map(|score| score.max), "because": side.reason,
                "agent_ms": side.time.value(), "tokens": side.tokens.value(), "cost_usd": side.cost.value(),
            })
        };
        json!({
            "name": self.name, "change": self.change, "more_than_chance": self.is_confirmed,
            "p_value": self.test.map(|test| test.p_value),
            "adjusted_p_value": self.test.map(|test| test.adjusted_p_value),
            "before": side(&self.before), "after": side(&self.after),
            "evidence": self.evidence.as_ref().map(|evidence| evidence.to_json()),
        })
    }
}

/// Returns the first recorded trial with that outcome, or else the first one.
fn shown(trials: &[&TrialRow], wanted: Option<Outcome>) -> Option<(String, String)> {
    let key = |trial: &&&TrialRow| (wanted.is_some_and(|wanted| trial.outcome != wanted), trial.repetition);
    let recorded = trials.iter().filter(|trial| trial.is_recorded());
    recorded.min_by_key(key).map(|trial| (trial.run.clone(), trial.id.clone()))
}

impl Side {
    fn of(trials: &[&TrialRow]) -> Self {
        let mut side = Self::default();
        trials.iter().for_each(|trial| side.add(trial));
        let mut ended: Vec<_> = trials.iter().map(|trial| (trial.repetition, trial.first_outcome())).collect();
        side.in_order = counted(&mut ended);
        side
    }

    fn add(&mut self, trial: &TrialRow) {
        let score = trial.score_bounds.filter(|_| trial.outcome.is_graded());
        self.results.add(trial.first_outcome(), trial.outcome, score);
        self.is_flaky |= trial.flaky;
        if trial.outcome.is_graded() {
            self.time.add(trial.agent_ms.map(|ms| ms as f64));
            self.tokens.add(trial.tokens.map(|tokens| tokens.total() as f64));
            self.cost.add(trial.cost_usd);
        }
        if trial.outcome != Outcome::Passed && self.reason.is_none() {
            self.reason.clone_from(&trial.reason);
        }
    }

    /// Returns the outcome of a single trial, or how many of the trials passed.
    pub(super) fn describe(&self) -> String {
        let results = &self.results;
        let mut outcomes = results.by_outcome.occurring();
        match (outcomes.next(), outcomes.next()) {
            (Some((Outcome::Passed, 1)), None) if self.is_flaky => "failed, then passed".to_owned(),
            (Some((only, 1)), None) => only.name().to_owned(),
            _ => {
                let without = without_result(&[results]);
                let without = if without.is_empty() { without } else { format!(" ({without})") };
                format!("{}{without}", described(results.counts))
            }
        }
    }
}

fn change(before: &Side, after: &Side, threshold: f64) -> Change {
    let (before, after) = (&before.results, &after.results);
    match (before.trials(), after.trials()) {
        (0, _) => Change::Added,
        (_, 0) => Change::Missing,
        _ => match Counted::change(before.counts, after.counts) {
            // Both were skipped on purpose.
            None if before.counts.trials() + after.counts.trials() == 0 && before.by_outcome == after.by_outcome => {
                Change::Same
            }
            None => Change::Changed,
            Some(Ordering::Less) => Change::Regressed,
            Some(Ordering::Greater) => Change::Fixed,
            Some(Ordering::Equal) => match before.score().zip(after.score()).map(|(before, after)| after - before) {
                Some(gain) if gain.max < -threshold - NOISE => Change::Regressed,
                Some(gain) if gain.min > threshold + NOISE => Change::Improved,
                Some(gain) if gain.min < -threshold - NOISE || gain.max > threshold + NOISE => Change::Changed,
                _ => Change::Same,
            },
        },
    }
}

//! A case on both sides of a comparison.

use std::cmp::Ordering;

use model::{Outcome, TrialRow};
use serde_json::{Value, json};

use super::evidence::Evidence;
use super::pairs::Pair;
use super::rounds::counted;
use crate::counts::Counts;
use crate::format::p_value;

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
    /// It has a verdict in only one of the runs, or its outcome without a verdict differs.
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
    /// p-value of Fisher's exact test of the passed trials; absent if a side has no graded trial.
    pub(super) p_value: Option<f64>,
    /// The p-value, adjusted for the number of cases that are tested at once.
    pub(super) adjusted_p_value: Option<f64>,
    /// True if the results of a run decided how many trials ran.
    pub(super) is_sequential: bool,
    pub(super) before: Side,
    pub(super) after: Side,
    pub(super) evidence: Option<Box<Evidence>>,
}

/// Trials of one case on one side.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Side {
    pub(super) counts: Counts,
    pub(super) trials: u64,
    outcomes: Vec<Outcome>,
    /// Results in the order in which the trials were started; `None` if undecided.
    pub(super) results: Vec<Option<bool>>,
    pub(super) reason: Option<String>,
    /// Scores, each as a share of its maximum.
    scores: Mean,
    /// True if a score is neither 0 nor 1.
    pub(super) is_partial: bool,
    /// Agent time in milliseconds.
    pub(super) time: Mean,
    pub(super) tokens: Mean,
    pub(super) cost: Mean,
    /// The trial that illustrates the change: its run and its id.
    pub(super) shown: Option<(String, String)>,
}

/// Sum of known values, and their number.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Mean {
    sum: f64,
    count: u64,
}

impl Mean {
    fn add(&mut self, value: Option<f64>) {
        if let Some(value) = value {
            self.sum += value;
            self.count += 1;
        }
    }

    pub(super) fn value(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }
}

/// Tolerance for rounding errors in a sum of scores.
pub(super) const NOISE: f64 = 1e-9;

impl CaseChange {
    pub(super) fn of(pair: &Pair<'_>, threshold: f64) -> Self {
        let [before, after] = pair.sides.each_ref().map(|trials| Side::of(trials));
        let change = change(&before, &after, threshold);
        let mut case = Self {
            name: pair.name.clone(),
            change,
            is_confirmed: false,
            p_value: None,
            adjusted_p_value: None,
            is_sequential: false,
            before,
            after,
            evidence: None,
        };
        if change.is_change() {
            let gain = case.after.counts.passed as i64 - case.before.counts.passed as i64;
            let wanted = match change {
                Change::Regressed if gain < 0 => [Some(Outcome::Passed), Some(Outcome::Failed)],
                Change::Fixed => [Some(Outcome::Failed), Some(Outcome::Passed)],
                _ => [None, None],
            };
            case.before.shown = shown(&pair.sides[0], wanted[0]);
            case.after.shown = shown(&pair.sides[1], wanted[1]);
        }
        case
    }

    /// Returns `true` if both sides have a trial of the case.
    pub(super) fn is_paired(&self) -> bool {
        self.before.trials > 0 && self.after.trials > 0
    }

    /// Returns the passed and the graded trials of both sides. Undecided trials are counted in the way that makes the
    /// change smaller.
    pub(super) fn table(&self) -> Option<([u64; 2], [u64; 2])> {
        let difference = match self.change {
            Change::Regressed => -1.0,
            Change::Fixed => 1.0,
            _ => 0.0,
        };
        let table = self.table_towards(difference);
        table.1.iter().all(|trials| *trials > 0).then_some(table)
    }

    /// Returns the passed and the graded trials of both sides. Undecided trials are counted in the way that makes a
    /// difference in this direction smaller.
    pub(super) fn table_towards(&self, difference: f64) -> ([u64; 2], [u64; 2]) {
        let (before, after) = (&self.before.counts, &self.after.counts);
        let was_open = if difference > 0.0 { before.undecided } else { 0 };
        let is_open = if difference < 0.0 { after.undecided } else { 0 };
        ([before.passed + was_open, after.passed + is_open], [before.graded(), after.graded()])
    }

    /// Returns pairs of results from both sides, the second side first, in the order in which the trials were started.
    /// An undecided trial is `None`.
    pub(super) fn pairs(&self) -> Vec<[Option<bool>; 2]> {
        self.after.results.iter().zip(&self.before.results).map(|(after, before)| [*after, *before]).collect()
    }

    pub(crate) fn evidence(&self) -> Option<&Evidence> {
        self.evidence.as_deref()
    }

    /// Returns `true` if the number of cases changes the p-value of this one.
    pub(super) fn is_adjusted(&self) -> bool {
        self.p_value != self.adjusted_p_value
    }

    /// Formats the p-value with its name; if several cases are tested at once, it is the adjusted p.
    pub(super) fn named_p_value(&self) -> String {
        let name = if self.is_adjusted() { "adjusted p" } else { "p" };
        format!("{name} {}", self.adjusted_p_value.map_or_else(|| "n/a".into(), p_value))
    }

    /// Returns the lowest and the highest difference in the share of passed trials that the undecided trials allow.
    pub(super) fn gain(&self) -> Option<[f64; 2]> {
        let ((was_low, was_high), (is_low, is_high)) = (self.before.counts.bounds()?, self.after.counts.bounds()?);
        Some([is_low - was_high, is_high - was_low])
    }

    /// Returns the size of the change for sorting: in the share of passed trials, or in the mean score.
    pub(super) fn size(&self) -> f64 {
        let passed = |side: &Side| side.counts.passed as f64 / side.counts.graded().max(1) as f64;
        let by_passes = (passed(&self.after) - passed(&self.before)).abs();
        match self.before.score().zip(self.after.score()) {
            Some((before, after)) if by_passes < NOISE => (after - before).abs(),
            _ => by_passes,
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let side = |side: &Side| {
            json!({
                "trials": side.trials, "decided": side.counts.passed + side.counts.failed, "passed": side.counts.passed,
                "undecided": side.counts.undecided, "score": side.score(), "because": side.reason,
                "agent_ms": side.time.value(), "tokens": side.tokens.value(), "cost_usd": side.cost.value(),
            })
        };
        json!({
            "name": self.name, "change": self.change, "more_than_chance": self.is_confirmed, "p_value": self.p_value,
            "adjusted_p_value": self.adjusted_p_value,
            "before": side(&self.before), "after": side(&self.after),
            "evidence": self.evidence.as_ref().map(|evidence| evidence.to_json()),
        })
    }
}

/// Returns the first trial with that outcome, or else the first trial.
fn shown(trials: &[&TrialRow], wanted: Option<Outcome>) -> Option<(String, String)> {
    let key = |trial: &&&TrialRow| (wanted.is_some_and(|wanted| trial.outcome != wanted), trial.repetition);
    trials.iter().min_by_key(key).map(|trial| (trial.run.clone(), trial.id.clone()))
}

impl Side {
    fn of(trials: &[&TrialRow]) -> Self {
        let mut side = Self::default();
        trials.iter().for_each(|trial| side.add(trial));
        side.outcomes.sort_by_key(|outcome| outcome.name());
        let mut ended: Vec<_> = trials.iter().map(|trial| (trial.repetition, trial.outcome)).collect();
        side.results = counted(&mut ended);
        side
    }

    fn add(&mut self, trial: &TrialRow) {
        self.trials += 1;
        self.counts.add(trial.outcome);
        if let (Outcome::Passed | Outcome::Failed, Some(score), Some(most)) =
            (trial.outcome, trial.score, trial.max_score.filter(|most| *most > 0.0))
        {
            let share = score / most;
            self.is_partial |= share > 0.0 && share < 1.0;
            self.scores.add(Some(share));
        }
        if trial.outcome.is_graded() {
            self.time.add(trial.agent_ms.map(|ms| ms as f64));
            self.tokens.add(trial.tokens.map(|tokens| tokens.total() as f64));
            self.cost.add(trial.cost_usd);
        }
        if trial.outcome != Outcome::Passed && self.reason.is_none() {
            self.reason.clone_from(&trial.reason);
        }
        self.outcomes.push(trial.outcome);
    }

    /// Returns the mean score of the decided trials, as a share of the maximum.
    pub(super) fn score(&self) -> Option<f64> {
        self.scores.value()
    }

    /// Returns the outcome of a single trial, or how many of the graded trials passed.
    pub(super) fn describe(&self) -> String {
        let ungraded = self.trials - self.counts.graded();
        match self.outcomes[..] {
            [only] => only.name().to_owned(),
            _ if ungraded > 0 => format!("{} ({ungraded} without a verdict)", self.counts.describe()),
            _ => self.counts.describe(),
        }
    }
}

fn change(before: &Side, after: &Side, threshold: f64) -> Change {
    match (before.trials, after.trials) {
        (0, _) => Change::Added,
        (_, 0) => Change::Missing,
        _ => match Counts::change(&before.counts, &after.counts) {
            None if before.outcomes == after.outcomes => Change::Same,
            None => Change::Changed,
            Some(Ordering::Less) => Change::Regressed,
            Some(Ordering::Greater) => Change::Fixed,
            Some(Ordering::Equal) => match before.score().zip(after.score()).map(|(before, after)| after - before) {
                Some(gain) if gain < -threshold - NOISE => Change::Regressed,
                Some(gain) if gain > threshold + NOISE => Change::Improved,
                _ => Change::Same,
            },
        },
    }
}

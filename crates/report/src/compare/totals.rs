//! Figures over the cases that both sides have: the mean of each side, and the difference paired by case.

use model::statistics::{Bounds, Counted, estimate};
use serde_json::{Value, json};

use super::case::{CaseChange, Side};
use crate::counts::described;
use crate::format::{gain, gains, money, rounded, seconds, share, signed};
use crate::verdict::Decision;

/// A figure of both sides.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Total {
    pub(super) name: &'static str,
    /// Mean of each side over the cases.
    pub(super) means: [Bounds; 2],
    /// For the share of passed trials: the results of each side.
    trials: Option<[Counted; 2]>,
    /// Mean of the cases' differences.
    pub(super) mean: Bounds,
    pub(super) ci95: Option<[f64; 2]>,
    pub(super) p_value: Option<f64>,
    /// Confidence sequence of the difference, if the results of a run decided how many trials ran.
    confidence_sequence: Option<[f64; 2]>,
    /// Number of cases for which both sides have the figure.
    pub(super) cases: usize,
    unit: Unit,
}

/// A difference with its interval, to be drawn on a scale from `-end` to `end`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Plot {
    /// Absent if the difference is a range.
    pub(crate) mean: Option<f64>,
    pub(crate) range: [f64; 2],
    pub(crate) end: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Share,
    Milliseconds,
    Tokens,
    Dollars,
}

/// Returns the figures that are known; none if no case has a result on both sides.
pub(super) fn of(cases: &[CaseChange], decision: &Decision) -> Vec<Total> {
    if !cases.iter().any(|case| case.before.results.decided() > 0 && case.after.results.decided() > 0) {
        return Vec::new();
    }
    let paired: Vec<&CaseChange> = cases.iter().filter(|case| case.gain().is_some()).collect();
    let mut totals: Vec<Total> = Vec::new();
    totals.extend(passed(&paired, decision));
    totals.extend(decision.score.zip(decision.scores).map(|(score, means)| Total {
        name: "mean score",
        means,
        trials: None,
        mean: score.bounds,
        ci95: score.ci95,
        p_value: Some(score.p_value),
        confidence_sequence: None,
        cases: score.cases,
        unit: Unit::Share,
    }));
    totals.extend(amount("agent time per trial", Unit::Milliseconds, &paired, |side| side.time.value()));
    totals.extend(amount("tokens per trial", Unit::Tokens, &paired, |side| side.tokens.value()));
    totals.extend(amount("cost per trial", Unit::Dollars, &paired, |side| side.cost.value()));
    totals
}

/// Returns the figures that the first side lacks for every case although the second one has them, and the reverse.
pub(super) fn one_sided(cases: &[CaseChange]) -> [Vec<&'static str>; 2] {
    let paired: Vec<&CaseChange> = cases.iter().filter(|case| case.gain().is_some()).collect();
    let is_lacking = |of: fn(&Side) -> Option<f64>| {
        let before = paired.iter().any(|case| of(&case.before).is_some());
        let after = paired.iter().any(|case| of(&case.after).is_some());
        [after && !before, before && !after]
    };
    let (tokens, cost) = (is_lacking(|side| side.tokens.value()), is_lacking(|side| side.cost.value()));
    [0, 1].map(|side| {
        let figures = [("tokens", tokens[side]), ("cost", cost[side])];
        figures.into_iter().filter(|(_, is_lacking)| *is_lacking).map(|(name, _)| name).collect()
    })
}

fn passed(cases: &[&CaseChange], decision: &Decision) -> Option<Total> {
    let passed = decision.passed?;
    let sum = |of: fn(&CaseChange) -> &Side| {
        let mut sum = Counted::default();
        cases.iter().for_each(|case| sum += of(case).results.counts);
        sum
    };
    let mean =
        |of: fn(&CaseChange) -> &Side| Bounds::mean(cases.iter().filter_map(|case| of(case).results.counts.bounds()));
    let trials = [sum(|case| &case.before), sum(|case| &case.after)];
    let is_single = cases.iter().all(|case| case.is_single());
    Some(Total {
        name: if is_single { "cases passed" } else { "trials passed" },
        means: [mean(|case| &case.before)?, mean(|case| &case.after)?],
        trials: Some(trials),
        mean: passed.bounds,
        ci95: passed.ci95,
        p_value: Some(passed.p_value),
        confidence_sequence: None,
        cases: passed.cases,
        unit: Unit::Share,
    })
}

/// Returns an amount over the cases in which it is known for every trial.
fn amount(name: &'static str, unit: Unit, cases: &[&CaseChange], of: impl Fn(&Side) -> Option<f64>) -> Option<Total> {
    let pairs: Vec<(f64, f64)> = cases.iter().filter_map(|case| of(&case.before).zip(of(&case.after))).collect();
    let mean = |of: fn(&(f64, f64)) -> f64| Bounds::exact(pairs.iter().map(of).sum::<f64>() / pairs.len() as f64);
    let apart: Vec<f64> = pairs.iter().map(|(before, after)| after - before).collect();
    let estimated = estimate(&apart)?;
    Some(Total {
        name,
        means: [mean(|pair| pair.0), mean(|pair| pair.1)],
        trials: None,
        mean: Bounds::exact(estimated.mean),
        ci95: estimated.ci95,
        p_value: None,
        confidence_sequence: None,
        cases: pairs.len(),
        unit,
    })
}

impl Total {
    /// Replaces the interval, which assumes a fixed number of trials, by a confidence sequence of the passed trials'
    /// difference, and removes the p-value.
    pub(super) fn sequential(&mut self, passed: Option<[f64; 2]>) {
        (self.ci95, self.p_value) = (None, None);
        self.confidence_sequence = passed.filter(|_| self.trials.is_some());
    }

    /// Formats the figure of a side.
    pub(super) fn side(&self, side: usize) -> String {
        let mean = self.means[side];
        match (self.unit, self.trials) {
            (Unit::Share, Some(trials)) => {
                let rate = trials[side].bounds().map_or_else(String::new, share);
                format!("{} {rate:>4}", described(trials[side]))
            }
            (Unit::Share, None) => share(mean),
            (Unit::Milliseconds, _) => seconds(mean.min / 1000.0),
            (Unit::Tokens, _) => rounded(mean.min),
            (Unit::Dollars, _) => money(mean.min),
        }
    }

    /// Formats the difference.
    pub(super) fn change(&self) -> String {
        match (self.unit, self.mean.value()) {
            (Unit::Share, Some(mean)) => format!("{} pts", gain(mean)),
            (Unit::Share, None) => format!("{} pts", gains([self.mean.min, self.mean.max])),
            _ => self.signed(self.mean.min),
        }
    }

    /// Formats the interval of the difference; empty for one case.
    pub(super) fn interval(&self) -> String {
        match (self.ci95.or(self.confidence_sequence), self.unit) {
            (None, _) => String::new(),
            (Some(ends), Unit::Share) => gains(ends),
            (Some([low, high]), _) => format!("{} to {}", self.signed(low), self.signed(high)),
        }
    }

    /// Returns the difference and its interval, if there is one.
    pub(super) fn plot(&self) -> Option<Plot> {
        let range = self.ci95.or(self.confidence_sequence)?;
        let mean = self.mean.value();
        let largest = range.into_iter().chain(mean).fold(0.0_f64, |largest, value| largest.max(value.abs()));
        let end = if self.unit == Unit::Share { 1.0 } else { largest * 1.1 };
        (end > 0.0).then_some(Plot { mean, range, end })
    }

    fn signed(&self, amount: f64) -> String {
        match self.unit {
            Unit::Share => gain(amount),
            Unit::Milliseconds => signed(amount / 1000.0, seconds),
            Unit::Tokens => signed(amount, rounded),
            Unit::Dollars => signed(amount, money),
        }
    }
}

pub(super) fn to_json(totals: &[Total]) -> Value {
    let one = |total: &Total| {
        let [before, after] = total.means;
        json!({
            "name": total.name, "before": before.value(), "before_min": before.min, "before_max": before.max,
            "after": after.value(), "after_min": after.min, "after_max": after.max,
            "difference": total.mean.value(), "difference_min": total.mean.min, "difference_max": total.mean.max,
            "ci95": total.ci95, "confidence_sequence": total.confidence_sequence, "p_value": total.p_value,
            "cases": total.cases,
        })
    };
    totals.iter().map(one).collect()
}

//! Figures over the cases that both sides have: the mean of each side, and the difference paired by case.

use model::statistics::{Difference, estimate};
use serde_json::{Value, json};

use super::case::{CaseChange, Side};
use super::decision::Decision;
use crate::format::{gain, gains, money, p_value, percent, rounded, seconds, signed};

/// A figure of both sides.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Total {
    pub(super) name: &'static str,
    /// Mean of each side over the cases.
    pub(super) means: [f64; 2],
    /// For the share of passed trials: the number of passed and of all trials on each side.
    pub(super) trials: Option<[[u64; 2]; 2]>,
    pub(super) mean: f64,
    pub(super) ci95: Option<[f64; 2]>,
    pub(super) p_value: Option<f64>,
    /// Confidence sequence of the difference, if the results of a run decided how many trials ran.
    confidence_sequence: Option<[f64; 2]>,
    /// Number of cases for which both sides have the figure.
    pub(super) cases: usize,
    unit: Unit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Share,
    Milliseconds,
    Tokens,
    Dollars,
}

/// Returns the figures that are known.
pub(super) fn of(cases: &[CaseChange], decision: &Decision) -> Vec<Total> {
    let graded: Vec<&CaseChange> =
        cases.iter().filter(|case| case.before.counts.graded() > 0 && case.after.counts.graded() > 0).collect();
    let mut totals: Vec<Total> = Vec::new();
    totals.extend(passed(&graded));
    // The test of the scores is slow, so it is not repeated.
    totals.extend(decision.score.map(|score| Total {
        name: "mean score",
        means: decision.scores,
        trials: None,
        mean: score.mean,
        ci95: score.ci95,
        p_value: Some(score.p_value),
        confidence_sequence: None,
        cases: score.cases,
        unit: Unit::Share,
    }));
    totals.extend(total("agent time per trial", Unit::Milliseconds, &graded, |side| side.time.value()));
    totals.extend(total("tokens per trial", Unit::Tokens, &graded, |side| side.tokens.value()));
    totals.extend(total("cost per trial", Unit::Dollars, &graded, |side| side.cost.value()));
    totals
}

fn passed(cases: &[&CaseChange]) -> Option<Total> {
    // The shares of undecided trials have bounds but no mean, so such cases appear only in the sentence.
    let decided: Vec<&CaseChange> =
        cases.iter().filter(|case| case.before.counts.undecided + case.after.counts.undecided == 0).copied().collect();
    let sum = |of: fn(&CaseChange) -> u64| decided.iter().map(|case| of(case)).sum::<u64>();
    let trials = [
        [sum(|case| case.before.counts.passed), sum(|case| case.before.counts.graded())],
        [sum(|case| case.after.counts.passed), sum(|case| case.after.counts.graded())],
    ];
    let share = |side: &Side| side.counts.bounds().map(|(share, _)| share);
    let is_single = trials.iter().all(|[_, all]| *all == decided.len() as u64);
    let name = match (is_single, decided.len() < cases.len()) {
        (true, false) => "cases passed",
        (true, true) => "decided cases passed",
        (false, false) => "trials passed",
        (false, true) => "trials of decided cases",
    };
    let total = total(name, Unit::Share, &decided, share)?;
    Some(Total { trials: Some(trials), ..total })
}

fn total(name: &'static str, unit: Unit, cases: &[&CaseChange], of: impl Fn(&Side) -> Option<f64>) -> Option<Total> {
    let pairs: Vec<(f64, f64)> = cases.iter().filter_map(|case| of(&case.before).zip(of(&case.after))).collect();
    if pairs.is_empty() {
        return None;
    }
    let mean = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / pairs.len() as f64;
    let apart: Vec<f64> = pairs.iter().map(|(before, after)| after - before).collect();
    let (estimated, p_value) = match unit {
        Unit::Share => {
            let difference = Difference::of_share_differences(&apart)?;
            (difference.into(), Some(difference.p_value))
        }
        _ => (estimate(&apart)?, None),
    };
    Some(Total {
        name,
        means: [mean(|pair| pair.0), mean(|pair| pair.1)],
        trials: None,
        mean: estimated.mean,
        ci95: estimated.ci95,
        p_value,
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
        match (self.trials, self.unit) {
            (Some(trials), _) => {
                let [passed, all] = trials[side];
                format!("{passed}/{all} {:>4}", percent(passed as f64 / all.max(1) as f64))
            }
            (None, Unit::Share) => percent(mean),
            (None, Unit::Milliseconds) => seconds(mean / 1000.0),
            (None, Unit::Tokens) => rounded(mean),
            (None, Unit::Dollars) => money(mean),
        }
    }

    /// Formats the difference.
    pub(super) fn change(&self) -> String {
        match self.unit {
            Unit::Share => format!("{} pts", gain(self.mean)),
            _ => self.signed(self.mean),
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

    fn signed(&self, amount: f64) -> String {
        match self.unit {
            Unit::Share => gain(amount),
            Unit::Milliseconds => signed(amount / 1000.0, seconds),
            Unit::Tokens => signed(amount, rounded),
            Unit::Dollars => signed(amount, money),
        }
    }

    /// Formats the p-value; empty if there is no test.
    pub(super) fn p_value(&self) -> String {
        self.p_value.map_or_else(String::new, p_value)
    }
}

pub(super) fn to_json(totals: &[Total]) -> Value {
    let one = |total: &Total| {
        json!({
            "name": total.name, "before": total.means[0], "after": total.means[1], "difference": total.mean,
            "ci95": total.ci95, "confidence_sequence": total.confidence_sequence, "p_value": total.p_value,
            "cases": total.cases,
        })
    };
    totals.iter().map(one).collect()
}

//! Answer to whether the second side is worse than the first by more than a margin.

use model::statistics::{BoundedDifference, Bounds, Counted, WithinMargin, newcombe, no_worse_than};
use serde_json::{Value, json};

use super::case::CaseChange;
use super::sequential;
use crate::format::gain;

/// Conclusion from the trials about a margin.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Margin {
    margin: f64,
    /// 95 % interval of the difference of the pass rates, second − first.
    ci95: Option<[f64; 2]>,
    pub(super) verdict: WithinMargin,
    /// True if the interval is only about these cases, not about others like them.
    is_of_these_cases: bool,
}

impl Margin {
    /// Reads the answer from the interval over cases, which holds for other cases like these. If that interval does not
    /// decide it, uses the interval over the trials of these cases. Trials without a result count against every answer.
    pub(super) fn of(cases: &[CaseChange], margin: f64) -> Self {
        let answer = |ci95: Option<[f64; 2]>, is_of_these_cases: bool| Self {
            margin,
            ci95,
            verdict: no_worse_than(ci95, margin),
            is_of_these_cases,
        };
        let (all, these) = (answer(over_cases(cases), false), answer(over_trials(cases), true));
        let is_open = |answer: &Self| answer.verdict == WithinMargin::Open;
        let is_narrower = is_open(&these) && these.lowest() > all.lowest();
        if is_open(&all) && (!is_open(&these) || is_narrower) { these } else { all }
    }

    /// Returns the answer for runs in which the results decided how many trials ran.
    pub(super) fn sequential(self, cases: &[CaseChange]) -> Self {
        let ci95 = sequential::interval(cases);
        Self { ci95, verdict: no_worse_than(ci95, self.margin), is_of_these_cases: true, ..self }
    }

    fn lowest(&self) -> f64 {
        self.ci95.map_or(f64::NEG_INFINITY, |[low, _]| low)
    }

    /// Returns the answer in one sentence.
    pub(super) fn sentence(&self) -> String {
        let points = gain(self.margin);
        let points = points.trim_start_matches('+');
        let these = if self.is_of_these_cases { " in these cases" } else { "" };
        match (self.verdict, self.ci95) {
            (WithinMargin::Shown, Some([low, _])) => format!(
                "No worse by more than {points} points{these}: the true difference is probably above {} points.",
                gain(low)
            ),
            (WithinMargin::Refuted, Some([_, high])) => format!(
                "Worse by more than {points} points{these}: the true difference is probably below {} points.",
                gain(high)
            ),
            (_, Some([low, _])) => format!(
                "Cannot tell yet whether it is worse by more than {points} points{these}: the true difference may be as \
                 low as {} points. More cases or trials narrow this down.",
                gain(low)
            ),
            (_, None) => format!(
                "Cannot tell whether it is worse by more than {points} points: there are too few cases with a result."
            ),
        }
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "margin": self.margin, "verdict": self.verdict, "ci95": self.ci95,
            "same_cases_only": self.is_of_these_cases, "sentence": self.sentence(),
        })
    }
}

/// Returns the interval over paired cases. Trials without a result widen it.
fn over_cases(cases: &[CaseChange]) -> Option<[f64; 2]> {
    let gains: Vec<Bounds> = cases.iter().filter_map(CaseChange::gain).collect();
    BoundedDifference::of_shares(&gains)?.ci95
}

/// Returns Newcombe's interval over the trials of all cases together. It is valid if each case has the same number of
/// trials: pooled trials of cases that differ in difficulty vary less than those of equal cases (Hoeffding 1956). `None`
/// otherwise.
fn over_trials(cases: &[CaseChange]) -> Option<[f64; 2]> {
    let paired: Vec<[Counted; 2]> = cases
        .iter()
        .filter(|case| case.gain().is_some())
        .map(|case| [case.after.results.counts, case.before.results.counts])
        .collect();
    let of_each = paired.first()?.map(|counts| counts.trials());
    if paired.iter().any(|case| case.map(|counts| counts.trials()) != of_each) {
        return None;
    }
    let trials = of_each.map(|trials| trials * paired.len() as u64);
    let sum = |side: usize, of: fn(Counted) -> u64| paired.iter().map(|case| of(case[side])).sum::<u64>();
    let (least, most) = (|counts: Counted| counts.passed, |counts: Counted| counts.passed + counts.unknown);
    let [low, _] = newcombe([sum(0, least), sum(1, most)], trials)?;
    let [_, high] = newcombe([sum(0, most), sum(1, least)], trials)?;
    Some([low, high])
}

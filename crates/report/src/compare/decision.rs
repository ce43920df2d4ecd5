//! Decides whether one side is worse. Three tests are used: one for each case on its own, one for the pooled trials of
//! all these cases, and one that treats the cases as a sample of a larger population.

use model::statistics::{Difference, DiscreteTest, fisher_of_tables, holm_of_tests};

use super::case::{CaseChange, Change, NOISE};
use super::sequential;
use crate::counts::Counts;
use crate::format::{counted, percent};
use crate::verdict::{self, Passes, UNLIKELY, Words, chance};

/// Result of a comparison.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Decision {
    /// Trials of the cases that are graded on both sides; the second side comes first.
    pub(super) passes: Passes,
    /// Difference in the share of passed trials. Undecided trials are counted in whichever way makes it smaller.
    pub(super) passed: Option<Difference>,
    /// p-value for exactly these cases; [`Decision::passed`] generalises to other cases.
    pub(super) same_cases_p_value: Option<f64>,
    /// Difference in the mean score.
    pub(super) score: Option<Difference>,
    /// Mean score of both sides.
    pub(super) scores: [f64; 2],
    pub(super) threshold: f64,
}

impl Decision {
    pub(super) fn of(cases: &[CaseChange], threshold: f64) -> Self {
        let paired = || cases.iter().filter_map(|case| Some((case, case.gain()?)));
        let mut passes = Passes { is_single: true, ..Passes::default() };
        for (case, _) in paired() {
            let (before, after) = (&case.before.counts, &case.after.counts);
            passes.cases += 1;
            passes.first = [passes.first[0] + after.passed, passes.first[1] + after.graded()];
            passes.second = [passes.second[0] + before.passed, passes.second[1] + before.graded()];
            passes.is_single &= before.graded() == 1 && after.graded() == 1;
            passes.undecided[0] += after.undecided;
            passes.undecided[1] += before.undecided;
        }
        let scores: Vec<(f64, f64)> =
            paired().filter_map(|(case, _)| case.before.score().zip(case.after.score())).collect();
        let mean = |of: fn(&(f64, f64)) -> f64| scores.iter().map(of).sum::<f64>() / scores.len().max(1) as f64;
        let differences: Vec<f64> = scores.iter().map(|(before, after)| after - before).collect();
        let is_partial = |case: &CaseChange| case.before.is_partial || case.after.is_partial;
        let gains: Vec<[f64; 2]> = paired().map(|(_, gain)| gain).collect();
        let passed = Difference::of_share_differences(&closest_to_zero(&gains));
        Self {
            passes,
            passed,
            same_cases_p_value: passed.map(|passed| {
                let tables: Vec<_> = paired().map(|(case, _)| case.table_towards(passed.mean)).collect();
                fisher_of_tables(&tables)
            }),
            score: Difference::of_share_differences(&differences).filter(|_| cases.iter().any(is_partial)),
            scores: [mean(|scores| scores.0), mean(|scores| scores.1)],
            threshold,
        }
    }

    /// Returns the result without tests that are valid only for a fixed number of trials.
    pub(super) fn sequential(self, cases: &[CaseChange]) -> Self {
        Self {
            passed: self.passed.map(sequential::without_test),
            same_cases_p_value: sequential::same_cases_p_value(cases),
            score: self.score.map(sequential::without_test),
            ..self
        }
    }

    /// Returns `true` if the second side is significantly worse over all cases, and by more than the threshold.
    pub(super) fn is_worse(&self) -> bool {
        self.is_lower_by(self.threshold + NOISE)
    }

    /// Returns `true` if the second side is significantly worse, but not by more than the threshold.
    pub(super) fn is_slightly_worse(&self) -> bool {
        self.is_lower_by(0.0) && !self.is_worse()
    }

    /// Returns `true` if the share of passed trials or the mean score is significantly lower, and by more than `by`.
    fn is_lower_by(&self, by: f64) -> bool {
        let is_lower = |difference: &Difference, p_value: f64| p_value < UNLIKELY && difference.mean < -by;
        self.passed.is_some_and(|passed| is_lower(&passed, self.smallest_p_value(&passed)))
            || self.score.is_some_and(|score| is_lower(&score, score.p_value))
    }

    fn smallest_p_value(&self, passed: &Difference) -> f64 {
        self.same_cases_p_value.map_or(passed.p_value, |p_value| passed.p_value.min(p_value))
    }

    /// Says in a sentence how the second side differs from the first.
    pub(super) fn sentence(&self, words: &Words<'_>, cases: &[CaseChange]) -> String {
        if !cases.iter().any(CaseChange::is_paired) {
            return "Nothing to compare: the two sides have no case in common.".to_owned();
        }
        let Some(passed) = self.passed else {
            return format!("Cannot tell {}: no case has a decided trial on both sides.", words.question);
        };
        let confirmed = |change: Change| {
            let of = cases.iter().filter(move |case| case.change == change && case.is_confirmed);
            of.collect::<Vec<_>>()
        };
        let (worse, better) = (confirmed(Change::Regressed), confirmed(Change::Fixed));
        let is_certain = passed.p_value < UNLIKELY;
        if is_certain {
            let mut sentence = verdict::compared(words, &self.passes, &passed);
            let (others, than) = if passed.mean > 0.0 { (&worse, "worse") } else { (&better, "better") };
            if !others.is_empty() {
                sentence.push_str(&format!(" But it is {than} in {}.", describe_cases(others)));
            }
            return sentence;
        }
        match (&worse[..], &better[..]) {
            ([], []) => {}
            (worse, []) => return format!("{} in {}.", words.worse, describe_cases(worse)),
            ([], better) => return format!("{} in {}.", words.better, describe_cases(better)),
            (worse, better) => {
                return format!(
                    "{} in {}, but better in {}.",
                    words.worse,
                    describe_cases(worse),
                    describe_cases(better)
                );
            }
        }
        if let Some(p_value) = self.same_cases_p_value.filter(|p_value| *p_value < UNLIKELY && passed.mean != 0.0) {
            return verdict::compared_for_these_cases(words, &self.passes, &passed, p_value);
        }
        if let Some(score) = self.score.filter(|score| score.p_value < UNLIKELY) {
            let [before, after] = self.scores.map(percent);
            let side = if score.mean < 0.0 { words.worse } else { words.better };
            return format!("{side}: the mean score changed from {before} to {after} ({}).", chance(score.p_value));
        }
        let undecided: u64 = self.passes.undecided.iter().sum();
        if cases.iter().all(|case| !case.change.is_change()) && undecided == 0 {
            let unpaired = cases.iter().filter(|case| !case.is_paired()).count();
            let except = match unpaired {
                0 => String::new(),
                _ => format!("; {} on one side only", counted(unpaired, "case")),
            };
            return format!("No case changed: {}{except}.", self.passes.describe_same());
        }
        let mut sentence = verdict::compared(words, &self.passes, &passed);
        if undecided > 0 {
            sentence.push_str(&format!(" Undecided: {}.", counted(undecided as usize, "trial")));
        }
        sentence
    }
}

/// Names a single case with its trials, or gives the number of cases.
fn describe_cases(cases: &[&CaseChange]) -> String {
    match cases {
        [case] => {
            let p =
                case.adjusted_p_value.map_or_else(String::new, |p| format!("{}: {}", chance(p), case.named_p_value()));
            let describe = |counts: &Counts| format!("{} of {}", counts.passed, counts.graded());
            let (before, after) = (describe(&case.before.counts), describe(&case.after.counts));
            format!("case {}: {after} trials passed, compared with {before} before ({p})", case.name)
        }
        cases => counted(cases.len(), "case"),
    }
}

/// Picks a value for each case between its lowest and highest difference, so that the mean is as close to 0 as
/// possible.
fn closest_to_zero(gains: &[[f64; 2]]) -> Vec<f64> {
    let all = |at: usize| gains.iter().map(|gain| gain[at]).collect::<Vec<f64>>();
    let (low, high) = (all(0), all(1));
    if high.iter().sum::<f64>() < 0.0 {
        high
    } else if low.iter().sum::<f64>() > 0.0 {
        low
    } else {
        gains.iter().map(|[low, high]| 0f64.clamp(*low, *high)).collect()
    }
}

/// Tests each case by its own trials, and marks the changes that are statistically significant even though all cases
/// are tested at once.
pub(super) fn confirm(cases: &mut [CaseChange], threshold: f64) {
    let test = |case: &CaseChange| case.table().map(|(passed, trials)| DiscreteTest::of_passes(passed, trials));
    let tests: Vec<Option<DiscreteTest>> = cases.iter().map(test).collect();
    let mut adjusted = holm_of_tests(&tests.iter().flatten().copied().collect::<Vec<_>>()).into_iter();
    for (case, test) in cases.iter_mut().zip(tests) {
        let Some(test) = test else { continue };
        case.p_value = Some(test.p_value);
        case.adjusted_p_value = adjusted.next();
        let is_certain = case.adjusted_p_value.is_some_and(|p_value| p_value < UNLIKELY);
        let is_large = case.table().is_some_and(|(passed, trials)| {
            let share = |side: usize| passed[side] as f64 / trials[side] as f64;
            (share(1) - share(0)).abs() > threshold + NOISE
        });
        case.is_confirmed = matches!(case.change, Change::Regressed | Change::Fixed) && is_certain && is_large;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn undecided_trials_count_in_the_way_that_makes_the_difference_smaller() {
        assert_eq!(closest_to_zero(&[[-1.0, -1.0], [-1.0, 0.0]]), [-1.0, 0.0]);
        assert_eq!(closest_to_zero(&[[1.0, 1.0], [0.0, 1.0]]), [1.0, 0.0]);
        assert_eq!(closest_to_zero(&[[-1.0, 1.0], [0.0, 0.0]]), [0.0, 0.0]);
        assert!(closest_to_zero(&[]).is_empty());
    }
}

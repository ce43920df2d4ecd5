//! Difference between two arms.

use serde::{Deserialize, Serialize};

use super::Z;
use super::mean::{estimate, moments};
use super::observation::{Observation, by_case};
use super::sign_flip::sign_flip;
use crate::Estimate;

/// Difference between two arms in one figure, over the cases for which both have the figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// Mean over cases of one arm's mean minus the other's.
    pub mean: f64,
    /// Standard deviation of the cases' differences; absent for one case.
    pub stddev: Option<f64>,
    /// 95 % interval of the mean over cases like these; absent for one case.
    pub ci95: Option<[f64; 2]>,
    /// Two-sided p-value of the exact sign-flip test: the probability of a difference at least this large by chance
    /// alone.
    pub p_value: f64,
    /// Number of cases for which both arms have the figure.
    pub cases: usize,
}

/// Difference between two arms, such as with − without a skill, paired by case. Only graded trials count.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Delta {
    /// Number of cases that have a graded trial in both arms.
    pub cases_paired: usize,
    /// Number of cases omitted because an arm has no graded trial for them.
    pub cases_unpaired: usize,
    /// Difference in the share of met findings, as a share: 0.5 is 50 percentage points.
    pub pass_rate: Option<Difference>,
    /// Difference in the share of passed trials, among those in which everything was decided.
    pub full_pass_rate: Option<Difference>,
    /// Difference in the share of trials whose decided assertions all pass.
    pub decided_pass_rate: Option<Difference>,
    /// Difference in the score as a share of the maximum.
    pub score: Option<Difference>,
    /// Difference in duration, in seconds.
    pub duration_s: Option<Difference>,
    /// Difference in tokens of every kind.
    pub tokens: Option<Difference>,
    /// Difference in cost, in US dollars.
    pub cost_usd: Option<Difference>,
}

impl Delta {
    /// Computes `with` minus `without`, paired by case. Both may be in any order.
    pub fn between<K: Ord>(with: &[Observation<K>], without: &[Observation<K>]) -> Self {
        let (ours, theirs) = (by_case(with), by_case(without));
        let pairs: Vec<Pair<'_, K>> =
            ours.iter().filter_map(|(case, trials)| Some((&trials[..], &theirs.get(case)?[..]))).collect();
        let mut cases: Vec<&K> = with.iter().chain(without).map(|trial| &trial.case).collect();
        cases.sort_unstable();
        cases.dedup();
        Self {
            cases_paired: pairs.len(),
            cases_unpaired: cases.len() - pairs.len(),
            pass_rate: Difference::of_shares(&pairs, |trial| trial.pass_rate),
            full_pass_rate: Difference::of_shares(&pairs, Observation::full_pass),
            decided_pass_rate: Difference::of_shares(&pairs, Observation::decided_full_pass),
            score: Difference::of_shares(&pairs, |trial| trial.score),
            duration_s: Difference::of(&differences(&pairs, |trial| trial.duration_s)),
            tokens: Difference::of(&differences(&pairs, |trial| trial.tokens)),
            cost_usd: Difference::of(&differences(&pairs, |trial| trial.cost_usd)),
        }
    }
}

/// Graded trials of one case in both arms.
type Pair<'a, K> = (&'a [&'a Observation<K>], &'a [&'a Observation<K>]);

/// Returns each case's difference of means, for cases in which both arms have the value.
fn differences<K>(pairs: &[Pair<'_, K>], of: fn(&Observation<K>) -> Option<f64>) -> Vec<f64> {
    let mean = |trials: &[&Observation<K>]| {
        let values: Vec<f64> = trials.iter().filter_map(|trial| of(trial)).collect();
        moments(&values).map(|(mean, ..)| mean)
    };
    let apart = |(with, without): &Pair<'_, K>| Some(mean(with)? - mean(without)?);
    pairs.iter().filter_map(apart).filter(|difference| difference.is_finite()).collect()
}

impl Difference {
    /// Computes the difference from paired differences, with Student's interval; `None` if there are none.
    pub fn of(differences: &[f64]) -> Option<Self> {
        Self::new(estimate(differences)?, differences)
    }

    fn new(estimate: Estimate, differences: &[f64]) -> Option<Self> {
        let Estimate { mean, stddev, ci95 } = estimate;
        let cases = differences.iter().filter(|difference| difference.is_finite()).count();
        Some(Self { mean, stddev, ci95, p_value: sign_flip(differences)?, cases })
    }

    fn of_shares<K>(pairs: &[Pair<'_, K>], of: fn(&Observation<K>) -> Option<f64>) -> Option<Self> {
        let differences = differences(pairs, of);
        let trials = || pairs.iter().flat_map(|(with, without)| with.iter().chain(*without));
        let is_of_shares = trials().all(|trial| of(trial).is_none_or(|value| (0.0..=1.0).contains(&value)));
        if is_of_shares { Self::of_share_differences(&differences) } else { Self::of(&differences) }
    }

    /// Computes the difference from paired differences of shares, with an interval from −1 to 1; `None` if there are
    /// none.
    pub fn of_share_differences(differences: &[f64]) -> Option<Self> {
        Self::new(estimate_of_shares(differences)?, differences)
    }
}

impl From<Difference> for Estimate {
    fn from(difference: Difference) -> Self {
        let Difference { mean, stddev, ci95, .. } = difference;
        Self { mean, stddev, ci95 }
    }
}

/// Standard deviation below which differences of shares differ only by rounding.
const SPREADLESS: f64 = 1e-12;

/// Returns the mean of paired differences of shares, with Student's interval limited to −1 and 1. If all observed
/// cases have the same difference, this does not show that every case would. They get the interval of Bonett and Price
/// (2012), which is never empty.
pub(super) fn estimate_of_shares(differences: &[f64]) -> Option<Estimate> {
    let mut estimate = estimate(differences)?;
    if estimate.stddev.is_some_and(|stddev| stddev <= SPREADLESS) {
        estimate.ci95 = padded(differences);
    }
    estimate.ci95 = estimate.ci95.map(|[low, high]| [low.max(-1.0), high.min(1.0)]);
    Some(estimate)
}

/// Returns Wald's interval after adding one case with −1 and one with 1.
fn padded(differences: &[f64]) -> Option<[f64; 2]> {
    let joined: Vec<f64> = differences.iter().copied().chain([-1.0, 1.0]).collect();
    let (mean, stddev, n) = moments(&joined)?;
    let n = n as f64;
    let half = Z * stddev? * ((n - 1.0) / n).sqrt() / n.sqrt();
    Some([mean - half, mean + half])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Outcome::{self, Broken, Failed, Passed, Undecided};
    use crate::statistics::{Chance, mcnemar};

    fn trial(case: &str, outcome: Outcome, tokens: Option<f64>) -> Observation<&str> {
        Observation { tokens, ..Observation::new(case, outcome) }
    }

    #[test]
    fn cases_have_equal_weight_for_any_number_of_trials() {
        let with = [trial("a", Passed, Some(10.0)), trial("b", Failed, Some(30.0)), trial("b", Passed, Some(50.0))];
        let without = [trial("a", Failed, Some(4.0)), trial("a", Failed, Some(8.0)), trial("b", Failed, None)];
        let delta = Delta::between(&with, &without);
        assert_eq!((delta.cases_paired, delta.cases_unpaired), (2, 0));
        assert_eq!(delta.full_pass_rate.map(|d| (d.mean, d.p_value, d.cases)), Some((0.75, 0.5, 2)));
        let tokens = Difference { mean: 4.0, stddev: None, ci95: None, p_value: 1.0, cases: 1 };
        assert_eq!((delta.tokens, delta.cost_usd), (Some(tokens), None));
    }

    #[test]
    fn a_case_missing_from_one_arm_is_excluded_and_counted() {
        let with =
            [trial("a", Passed, None), trial("b", Passed, None), trial("c", Passed, None), trial("e", Broken, None)];
        let without =
            [trial("a", Passed, None), trial("b", Broken, None), trial("d", Failed, None), trial("c", Undecided, None)];
        let delta = Delta::between(&with, &without);
        assert_eq!((delta.cases_paired, delta.cases_unpaired), (2, 3));
        assert_eq!(delta.full_pass_rate.map(|d| (d.mean, d.cases)), Some((0.0, 1)), "`c` has no verdict in one arm");
        assert_eq!(Delta::between::<u8>(&[], &[]), Delta::default());
    }

    #[test]
    fn a_broken_trial_does_not_affect_the_difference() {
        let with = [trial("a", Passed, Some(1.0)), trial("a", Broken, Some(1e9))];
        let delta = Delta::between(&with, &[trial("a", Passed, Some(3.0))]);
        assert_eq!(delta.tokens.map(|d| d.mean), Some(-2.0));
        assert_eq!(delta.full_pass_rate.map(|d| d.mean), Some(0.0));
    }

    #[test]
    fn swapping_the_arms_negates_the_difference_and_keeps_the_p_value() {
        let mut chance = Chance::new(4);
        let mut arm = || -> Vec<Observation<u64>> {
            (0..40)
                .map(|index| {
                    let outcome = if chance.unit() < 0.6 { Passed } else { Failed };
                    let (pass_rate, tokens) = (Some(chance.unit()), Some(1_000.0 * chance.unit()));
                    Observation { pass_rate, tokens, ..Observation::new(index / 4, outcome) }
                })
                .collect()
        };
        let (one, other) = (arm(), arm());
        let (there, back) = (Delta::between(&one, &other), Delta::between(&other, &one));
        for (there, back) in [
            (there.full_pass_rate, back.full_pass_rate),
            (there.pass_rate, back.pass_rate),
            (there.tokens, back.tokens),
        ] {
            let (there, back) = (there.unwrap(), back.unwrap());
            assert_eq!(there.p_value, back.p_value);
            assert!((there.mean + back.mean).abs() < 1e-9);
            let (low, high) = (there.ci95.unwrap()[0], back.ci95.unwrap()[1]);
            assert!((low + high).abs() < 1e-9 && there.cases == 10);
        }
        assert_eq!(Delta::between(&one, &one).tokens.map(|d| (d.mean, d.p_value)), Some((0.0, 1.0)));
    }

    #[test]
    fn the_p_value_of_single_trials_is_mcnemars() {
        let (mut with, mut without) = (Vec::new(), Vec::new());
        for case in 0..12u8 {
            with.push(Observation::new(case, if case < 9 { Passed } else { Failed }));
            without.push(Observation::new(case, if case < 2 || case == 11 { Passed } else { Failed }));
        }
        assert_eq!(Delta::between(&with, &without).full_pass_rate.map(|d| d.p_value), Some(mcnemar(7, 1)));
    }

    #[test]
    fn cases_with_equal_differences_still_have_an_interval() {
        let arm = |outcome| (0..3).map(|case| Observation::new(case, outcome)).collect::<Vec<_>>();
        let helped = Delta::between(&arm(Passed), &arm(Failed)).full_pass_rate.unwrap();
        assert_eq!((helped.mean, helped.p_value), (1.0, 0.25));
        let [low, high] = helped.ci95.unwrap();
        assert!(low < 0.0 && high == 1.0, "three cases are not conclusive: {low}");
        let alike = Delta::between(&arm(Passed), &arm(Passed)).full_pass_rate.unwrap();
        let [low, high] = alike.ci95.unwrap();
        assert!(low < -0.3 && (low + high).abs() < 1e-12 && alike.p_value == 1.0);
    }

    #[test]
    fn a_delta_round_trips_through_json() {
        let delta = Delta::between(&[trial("a", Passed, Some(1.5))], &[trial("a", Failed, Some(1.0))]);
        let json = serde_json::to_value(&delta).unwrap();
        assert_eq!(serde_json::from_value::<Delta>(json).unwrap(), delta);
    }
}

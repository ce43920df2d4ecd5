//! Difference between two arms.

use serde::{Deserialize, Serialize};

use super::mean::{estimate, moments};
use super::observation::{Observation, by_case, can_compare, counted, scores};
use super::sign_flip::sign_flip;
use super::{Z, student};
use crate::{Bounds, Estimate};

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

/// Difference between two arms, such as with − without a skill, paired by case. Trials that could have passed or failed
/// widen the bounds of a difference in passed trials or in the score; other figures use graded trials.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Delta {
    /// Number of cases that have a trial in both arms, apart from skipped and cancelled ones.
    pub cases_paired: usize,
    /// Number of cases omitted because an arm has no such trial for them.
    pub cases_unpaired: usize,
    /// Difference in the share of met assertions, as a share: 0.5 is 50 percentage points.
    pub pass_rate: Option<Difference>,
    /// Difference in the share of passed trials, over the cases that assert something in both arms.
    pub full_pass_rate: Option<BoundedDifference>,
    /// Difference in the score as a share of the maximum.
    pub score: Option<BoundedDifference>,
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
        // A case that asserts nothing on both sides passes on both sides.
        let asserting: Vec<Pair<'_, K>> =
            pairs.iter().copied().filter(|(with, without)| can_compare(with.iter().chain(*without).copied())).collect();
        Self {
            cases_paired: pairs.len(),
            cases_unpaired: cases.len() - pairs.len(),
            pass_rate: Difference::of_shares(&pairs, |trial| trial.pass_rate),
            full_pass_rate: BoundedDifference::of_shares(&bounded(&asserting, |trials| counted(trials).bounds())),
            score: BoundedDifference::of_scores(&asserting),
            duration_s: Difference::of(&differences(&pairs, |trial| trial.duration_s)),
            tokens: Difference::of(&differences(&pairs, |trial| trial.tokens)),
            cost_usd: Difference::of(&differences(&pairs, |trial| trial.cost_usd)),
        }
    }
}

/// Returns the bounds of each case's difference, for cases in which both arms have the figure.
fn bounded<K>(pairs: &[Pair<'_, K>], of: fn(&[&Observation<K>]) -> Option<Bounds>) -> Vec<Bounds> {
    pairs.iter().filter_map(|(with, without)| Some(of(with)? - of(without)?)).collect()
}

/// Trials of one case in both arms.
type Pair<'a, K> = (&'a [&'a Observation<K>], &'a [&'a Observation<K>]);

/// Returns each case's difference of means, for cases in which both arms have the value.
fn differences<K>(pairs: &[Pair<'_, K>], of: fn(&Observation<K>) -> Option<f64>) -> Vec<f64> {
    let mean = |trials: &[&Observation<K>]| {
        let values: Vec<f64> = trials.iter().filter(|trial| trial.is_graded()).filter_map(|trial| of(trial)).collect();
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

/// Difference between two arms in a share, over cases whose differences may have several possible values because
/// evidence is missing.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BoundedDifference {
    /// Mean over cases; absent if it is not known.
    pub mean: Option<f64>,
    /// Lowest and highest possible mean over cases.
    #[serde(flatten)]
    pub bounds: Bounds,
    /// 95 % interval that contains the interval of every possible result; absent for one case.
    pub ci95: Option<[f64; 2]>,
    /// Largest p-value of all possible results; 1 if the mean may be 0.
    pub p_value: f64,
    /// Number of cases.
    pub cases: usize,
}

impl BoundedDifference {
    /// Computes the difference from the bounds of each case's difference in a share; `None` without cases.
    pub fn of_shares(differences: &[Bounds]) -> Option<Self> {
        Self::new(differences, interval)
    }

    /// Scores that are not shares of the maximum have an interval only if all are known.
    fn of_scores<K>(pairs: &[Pair<'_, K>]) -> Option<Self> {
        let trials = || pairs.iter().flat_map(|(with, without)| with.iter().chain(*without));
        let is_share = |score: Bounds| Bounds::UNKNOWN_SHARE.contains(score);
        let differences = bounded(pairs, |trials| Bounds::mean(scores(trials)));
        if trials().filter_map(|trial| trial.score).all(is_share) {
            return Self::of_shares(&differences);
        }
        Self::new(&differences, |differences, _| {
            let known: Option<Vec<f64>> = differences.iter().map(|one| one.value()).collect();
            estimate(&known?)?.ci95
        })
    }

    fn new(differences: &[Bounds], interval: impl Fn(&[Bounds], Bounds) -> Option<[f64; 2]>) -> Option<Self> {
        let bounds = Bounds::mean(differences.iter().copied())?;
        let nearest = nearest_to_zero(differences, bounds);
        let p_value = if is_possible(0.0, bounds) { 1.0 } else { sign_flip(&nearest)? };
        let ci95 = interval(differences, bounds);
        Some(Self { mean: bounds.value(), bounds, ci95, p_value, cases: differences.len() })
    }

    /// Returns the possible mean that is nearest to 0. It has the sign of the difference if the trials show one.
    pub fn nearest_to_zero(self) -> f64 {
        0.0_f64.clamp(self.bounds.min, self.bounds.max)
    }
}

fn is_possible(value: f64, bounds: Bounds) -> bool {
    bounds.min <= value && value <= bounds.max
}

/// Picks a possible difference of each case, so that the mean is as near to 0 as possible. If a difference of one sign
/// is certain, no other possible differences have a larger p-value: moving one of them towards the other sign leaves
/// at least as many choices of signs with a sum that is as far from 0.
fn nearest_to_zero(differences: &[Bounds], mean: Bounds) -> Vec<f64> {
    let pick = |one: &Bounds| match () {
        () if mean.min > 0.0 => one.min,
        () if mean.max < 0.0 => one.max,
        () => 0.0_f64.clamp(one.min, one.max),
    };
    differences.iter().map(pick).collect()
}

/// Returns an interval that contains the interval of [`estimate_of_shares`] for every possible result.
fn interval(differences: &[Bounds], mean: Bounds) -> Option<[f64; 2]> {
    if differences.iter().all(|one| one.value().is_some()) {
        return estimate_of_shares(&nearest_to_zero(differences, mean))?.ci95;
    }
    let n = differences.len();
    let half = student::quantile(n - 1)? * largest_deviation(differences) / (n as f64).sqrt();
    let mut ends = [mean.min - half, mean.max + half];
    // All cases may have the same difference, whose interval is not Student's.
    let low = differences.iter().fold(f64::MIN, |low, one| low.max(one.min));
    let high = differences.iter().fold(f64::MAX, |high, one| high.min(one.max));
    if low <= high + SPREADLESS {
        let [[least, _], [_, most]] = [padded(&vec![low; n])?, padded(&vec![high; n])?];
        ends = [ends[0].min(least), ends[1].max(most)];
    }
    Some([ends[0].max(-1.0), ends[1].min(1.0)])
}

/// Returns a bound on the standard deviation that the differences may have. The sum of squares around the mean is at
/// most the sum around any other value, so for each value, taking the farther end of every case gives a bound. The
/// smallest of these is found by halving the slope of this convex function.
fn largest_deviation(differences: &[Bounds]) -> f64 {
    let farthest = |one: &Bounds, from: f64| if from - one.min > one.max - from { one.min } else { one.max };
    let (mut low, mut high) = (-1.0, 1.0);
    for _ in 0..64 {
        let middle = f64::midpoint(low, high);
        let slope: f64 = differences.iter().map(|one| middle - farthest(one, middle)).sum();
        if slope > 0.0 { high = middle } else { low = middle }
    }
    let squares = |from: f64| differences.iter().map(|one| (farthest(one, from) - from).powi(2)).sum::<f64>();
    (squares(f64::midpoint(low, high)) / (differences.len() as f64 - 1.0)).sqrt()
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
    use crate::Outcome::{self, Broken, Failed, Passed, Skipped, Undecided};
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
        assert_eq!(delta.full_pass_rate.map(|d| (d.mean, d.p_value, d.cases)), Some((Some(0.75), 0.5, 2)));
        let tokens = Difference { mean: 4.0, stddev: None, ci95: None, p_value: 1.0, cases: 1 };
        assert_eq!((delta.tokens, delta.cost_usd), (Some(tokens), None));
    }

    #[test]
    fn a_case_missing_from_one_arm_is_excluded_and_counted() {
        let with = [trial("a", Passed, None), trial("c", Passed, None), trial("e", Skipped, None)];
        let without = [trial("a", Passed, None), trial("d", Failed, None), trial("c", Undecided, None)];
        let delta = Delta::between(&with, &without);
        assert_eq!((delta.cases_paired, delta.cases_unpaired), (2, 2));
        let passed = delta.full_pass_rate.unwrap();
        assert_eq!((passed.mean, passed.bounds, passed.cases), (None, Bounds { min: 0.0, max: 0.5 }, 2));
        assert_eq!(Delta::between::<u8>(&[], &[]), Delta::default());
    }

    #[test]
    fn a_broken_trial_widens_the_difference_of_passed_trials_and_no_other() {
        let with = [trial("a", Passed, Some(1.0)), trial("a", Broken, Some(1e9))];
        let delta = Delta::between(&with, &[trial("a", Passed, Some(3.0))]);
        assert_eq!(delta.tokens.map(|d| d.mean), Some(-2.0));
        assert_eq!(delta.full_pass_rate.map(|d| d.bounds), Some(Bounds { min: -0.5, max: 0.0 }));
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
        let passed = |delta: &Delta| delta.full_pass_rate.map(|d| (d.mean.unwrap(), d.p_value, d.ci95, d.cases));
        let plain = |of: Option<Difference>| of.map(|d| (d.mean, d.p_value, d.ci95, d.cases));
        for (there, back) in [
            (passed(&there), passed(&back)),
            (plain(there.pass_rate), plain(back.pass_rate)),
            (plain(there.tokens), plain(back.tokens)),
        ] {
            let ((mean, p_value, ci95, cases), (mean_back, p_value_back, ci95_back, _)) =
                (there.unwrap(), back.unwrap());
            assert_eq!((p_value, cases), (p_value_back, 10));
            assert!((mean + mean_back).abs() < 1e-9);
            assert!((ci95.unwrap()[0] + ci95_back.unwrap()[1]).abs() < 1e-9);
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
        assert_eq!((helped.mean, helped.p_value), (Some(1.0), 0.25));
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

    /// Every choice of one end of each difference.
    fn ends(differences: &[Bounds]) -> Vec<Vec<f64>> {
        let all = |found: Vec<Vec<f64>>, one: &Bounds| {
            let with =
                |end: f64| found.iter().map(move |front| [front.clone(), vec![end]].concat()).collect::<Vec<_>>();
            [with(one.min), with(one.max)].concat()
        };
        differences.iter().fold(vec![Vec::new()], all)
    }

    #[test]
    fn a_bounded_difference_covers_every_possible_result() {
        let mut chance = Chance::new(9);
        for round in 0..400 {
            let differences: Vec<Bounds> = (0..2 + round % 7)
                .map(|_| {
                    let value = (chance.below(5) as f64 - 1.0) / 3.0;
                    let wider = f64::from(u8::from(chance.unit() < 0.4)) / 3.0 * chance.below(4) as f64;
                    Bounds { min: (value - wider).max(-1.0), max: value.min(1.0) }
                })
                .collect();
            let all = BoundedDifference::of_shares(&differences).unwrap();
            let [low, high] = all.ci95.unwrap();
            for possible in ends(&differences) {
                let one = Difference::of_share_differences(&possible).unwrap();
                let [from, to] = one.ci95.unwrap();
                assert!(low <= from + 1e-9 && to <= high + 1e-9, "{differences:?}: {low} {high}, {from} {to}");
                assert!(all.p_value >= one.p_value - 1e-12, "{differences:?} {possible:?}");
                assert!(all.bounds.min <= one.mean + 1e-12 && one.mean <= all.bounds.max + 1e-12);
            }
            let exact: Vec<Bounds> = differences.iter().map(|one| Bounds::exact(one.max)).collect();
            let known = BoundedDifference::of_shares(&exact).unwrap();
            let plain = Difference::of_share_differences(&exact.iter().map(|one| one.max).collect::<Vec<_>>()).unwrap();
            assert_eq!((known.ci95, known.p_value), (plain.ci95, plain.p_value));
            let [inner_low, inner_high] = known.ci95.unwrap();
            assert!(low <= inner_low + 1e-9 && inner_high <= high + 1e-9);
        }
    }

    #[test]
    fn a_difference_that_may_be_0_has_no_small_p_value() {
        let certain = vec![Bounds::exact(1.0); 10];
        let open = [certain.clone(), vec![Bounds { min: -1.0, max: 1.0 }; 10]].concat();
        let p_value = |of: &[Bounds]| BoundedDifference::of_shares(of).unwrap().p_value;
        assert!(p_value(&certain) < 0.01);
        assert_eq!(p_value(&open), 1.0, "the other cases may be worse");
        let slightly_open = [certain, vec![Bounds { min: -1.0, max: 1.0 }]].concat();
        assert!(p_value(&slightly_open) < 0.05);
        assert!(BoundedDifference::of_shares(&[]).is_none());
        let one = BoundedDifference::of_shares(&[Bounds::exact(0.5)]).unwrap();
        assert_eq!((one.mean, one.ci95, one.p_value), (Some(0.5), None, 1.0));
    }
}

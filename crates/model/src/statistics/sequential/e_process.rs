//! Evidence about a pass rate that stays valid under peeking.

use super::super::fewest;
use crate::MOST_TRIALS;

/// Largest e-value: evidence that no double can express is reported as this instead of infinity.
pub(super) const MOST: f64 = f64::MAX;
/// Number of halvings that locate a bound to the last digits of a double.
pub(super) const HALVINGS: u32 = 60;
/// Share of a sum below which further terms do not change it.
const NEGLIGIBLE: f64 = 1e-18;

/// Returns the evidence that the pass rate is above `limit`: an e-value against the null hypothesis p ≤ `limit`.
///
/// **Formula.** The average of the likelihood ratios (q/p₀)^passed ((1−q)/(1−p₀))^failed over all rates q from the
/// limit p₀ to 1. With q = p₀ + κ(1−p₀), this is ∫₀¹ (1 − κ + κ/p₀)^passed (1 − κ)^failed dκ: the truncated form of the
/// beta-binomial mixture (Robbins 1970; for any bounded value, Waudby-Smith and Ramdas 2024). Integration by parts
/// gives a sum of positive terms, which neither cancels nor needs a special function:
///
/// 1/(failed+1) · Σᵢ₌₀..passed Πₖ₌₁..ᵢ (passed−k+1)(1−p₀) / ((failed+1+k) p₀)
///
/// **Why the false-alarm rate holds.** Fix κ. A trial that passes with probability p multiplies the ratio by a number
/// whose mean is p(1 − κ + κ/p₀) + (1−p)(1 − κ) = 1 − κ + κ·p/p₀. This is at most 1 for every p ≤ p₀, thus for the whole
/// null hypothesis and not only for its edge, even if p changes from trial to trial and depends on earlier trials. So
/// the ratio is a non-negative supermartingale that starts at 1, and so is its average over κ. By Ville's inequality
/// (1939), the probability that a non-negative supermartingale starting at 1 ever reaches 1/α is at most α.
///
/// Every factor decreases if p₀ increases, so the e-value does too: evidence that the rate is above a limit is at
/// least as strong evidence that it is above a lower limit.
///
/// Never infinite: overwhelming evidence is `f64::MAX`. 1 if `limit` is not a number.
pub fn e_above(limit: f64, passed: u64, failed: u64) -> f64 {
    if limit.is_nan() {
        return 1.0;
    }
    let limit = limit.clamp(0.0, 1.0);
    if limit == 0.0 {
        return if passed > 0 { MOST } else { 1.0 / (failed as f64 + 1.0) };
    }
    let odds = (1.0 - limit) / limit;
    let (mut term, mut sum) = (1.0, 1.0);
    for k in 1..=passed {
        let ratio = odds * (passed - k + 1) as f64 / (failed as f64 + 1.0 + k as f64);
        term *= ratio;
        sum += term;
        // The ratios decrease, so all further terms are smaller still.
        if sum == f64::INFINITY || (ratio < 1.0 && term < sum * NEGLIGIBLE) {
            break;
        }
    }
    (sum / (failed as f64 + 1.0)).min(MOST)
}

/// Returns the evidence that the pass rate is below `limit`: an e-value against the null hypothesis p ≥ `limit`. The
/// mirror image of [`e_above`].
pub fn e_below(limit: f64, passed: u64, failed: u64) -> f64 {
    e_above(1.0 - limit, failed, passed)
}

/// Returns the confidence sequence of a pass rate: an interval that contains the true rate after *every* trial at once,
/// with a probability of at least 1 − `alpha`. It stays valid for a run that stopped because of its results, unlike an
/// interval for a fixed number of trials.
///
/// Contains every rate p for which neither the evidence that the rate is above p nor the evidence that it is below p
/// reaches 2/α. Each of the two exceeds this limit at the true rate with a probability of at most α/2, see [`e_above`].
/// Both are monotonic in p and at most 1 at p = passed/trials, so these rates are an interval around that share, and
/// halving finds its ends. `[0, 1]` for no trials.
pub fn confidence_sequence(passed: u64, failed: u64, alpha: f64) -> [f64; 2] {
    let limit = 2.0 / alpha.clamp(0.0, 1.0);
    let low = |passed: u64, failed: u64| {
        let share = passed as f64 / (passed + failed).max(1) as f64;
        if passed == 0 { 0.0 } else { last_rejected([0.0, share], |rate| e_above(rate, passed, failed) >= limit) }
    };
    [low(passed, failed), 1.0 - low(failed, passed)]
}

/// Returns the largest value of a range that is rejected, if values are rejected up to some point only. The start of
/// the range counts as rejected.
pub(super) fn last_rejected([mut low, mut high]: [f64; 2], is_rejected: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if is_rejected(middle) { low = middle } else { high = middle }
    }
    low
}

/// Returns the number of trials after which the confidence sequence of a pass rate is at most `half_width` wide on each
/// side of its centre, if about a share `rate` of the trials pass. `None` for more than 100,000 trials.
///
/// A run that stops once its interval is narrow enough chooses its number of trials by its results, so its interval
/// must be a confidence sequence. It needs more trials than a fixed number chosen in advance.
pub fn sequential_trials_for_precision(half_width: f64, rate: f64, alpha: f64) -> Option<u64> {
    let rate = if rate.is_nan() { 0.5 } else { rate.clamp(0.0, 1.0) };
    let is_precise = |trials: u64| {
        let passed = (rate * trials as f64).round() as u64;
        let [low, high] = confidence_sequence(passed, trials - passed, alpha);
        high - low <= 2.0 * half_width
    };
    fewest(MOST_TRIALS, is_precise)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Integrates the likelihood ratio numerically.
    fn integrated(limit: f64, passed: u64, failed: u64) -> f64 {
        let steps = 20_000;
        let ratio = |index: u32| {
            let bet = (f64::from(index) + 0.5) / f64::from(steps);
            (1.0 - bet + bet / limit).powi(passed as i32) * (1.0 - bet).powi(failed as i32)
        };
        (0..steps).map(ratio).sum::<f64>() / f64::from(steps)
    }

    #[test]
    fn the_sum_equals_the_integral_of_the_likelihood_ratio() {
        for limit in [0.05, 0.3, 0.5, 0.8, 0.9, 0.99] {
            for (passed, failed) in [(0, 0), (1, 0), (0, 1), (3, 0), (7, 2), (2, 9), (20, 1), (30, 30)] {
                let (e, exact) = (e_above(limit, passed, failed), integrated(limit, passed, failed));
                assert!((e / exact - 1.0).abs() < 1e-4, "{limit}: {passed}/{failed}: {e} {exact}");
            }
        }
        assert_eq!((e_above(0.5, 1, 0), e_above(0.5, 0, 1)), (1.5, 0.5));
    }

    #[test]
    fn the_expected_e_value_is_at_most_1_for_every_rate_in_the_null_hypothesis() {
        let choose = |n: u64, k: u64| (0..k).fold(1.0, |c, i| c * (n - i) as f64 / (i + 1) as f64);
        for (limit, rates) in [(0.9, [0.9, 0.85, 0.5]), (0.5, [0.5, 0.4, 0.0]), (0.2, [0.2, 0.1, 0.01])] {
            for rate in rates {
                for n in [1, 2, 10, 40] {
                    let chance = |k: u64| choose(n, k) * f64::powi(rate, k as i32) * (1.0 - rate).powi((n - k) as i32);
                    let mean: f64 = (0..=n).map(|k| chance(k) * e_above(limit, k, n - k)).sum();
                    assert!(mean <= 1.0 + 1e-9, "{limit} {rate} {n}: {mean}");
                    assert!(rate < limit || (mean - 1.0).abs() < 1e-9, "at the limit, it is a martingale: {mean}");
                }
            }
        }
    }

    #[test]
    fn evidence_decreases_with_the_limit_and_is_mirrored() {
        for (passed, failed) in [(0, 4), (5, 0), (9, 1), (40, 60)] {
            let values: Vec<f64> = (1..100).map(|at| e_above(f64::from(at) / 100.0, passed, failed)).collect();
            assert!(values.windows(2).all(|pair| pair[0] >= pair[1] * (1.0 - 1e-12)), "{passed}/{failed}");
            let mirrored = e_below(0.75, passed, failed) / e_above(0.25, failed, passed);
            assert!((mirrored - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn extreme_limits_and_counts_have_defined_results() {
        assert_eq!((e_above(0.0, 1, 5), e_above(0.0, 0, 1), e_above(1.0, 9, 0)), (MOST, 0.5, 1.0));
        assert_eq!((e_below(1.0, 5, 1), e_above(f64::NAN, 5, 5), e_above(-3.0, 1, 0)), (MOST, 1.0, MOST));
        assert_eq!(e_above(0.5, 10_000, 0), MOST);
        assert!(e_above(0.5, 5_000, 5_000) < 1.0 && e_above(0.9, 0, 100_000) < 1e-4);
    }

    #[test]
    fn the_confidence_sequence_encloses_the_share_and_narrows() {
        assert_eq!(confidence_sequence(0, 0, 0.05), [0.0, 1.0]);
        for (passed, failed) in [(1, 0), (0, 1), (3, 2), (99, 1), (500, 500)] {
            let [low, high] = confidence_sequence(passed, failed, 0.05);
            let share = passed as f64 / (passed + failed) as f64;
            assert!(low <= share && share <= high && low >= 0.0 && high <= 1.0, "{passed}/{failed}: {low} {high}");
            let [less_low, less_high] = confidence_sequence(passed, failed, 0.2);
            assert!(less_low >= low && less_high <= high);
        }
        let width = |n: u64| confidence_sequence(n, n, 0.05)[1] - confidence_sequence(n, n, 0.05)[0];
        assert!(width(5) > width(50) && width(50) > width(500));
        assert_eq!(confidence_sequence(3, 3, 0.0), [0.0, 1.0]);
        assert_eq!(confidence_sequence(7, 0, 0.05)[1], 1.0);
    }

    #[test]
    fn a_precision_needs_more_trials_if_the_results_decide_when_to_stop() {
        let trials = sequential_trials_for_precision(0.05, 0.5, 0.05).unwrap();
        assert!(trials > 385, "{trials}");
        assert!(sequential_trials_for_precision(0.05, 0.98, 0.05).unwrap() < trials / 3);
        assert_eq!(sequential_trials_for_precision(0.0, 0.5, 0.05), None);
    }
}

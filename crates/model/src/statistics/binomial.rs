//! Statistics of yes/no outcomes.

use super::Z;

/// Returns Wilson's score interval for `passed` of `trials` at 95 % (Wilson 1927). `[0, 1]` for no trials.
pub fn wilson(passed: u64, trials: u64) -> [f64; 2] {
    if trials == 0 {
        return [0.0, 1.0];
    }
    wilson_of_share(passed.min(trials) as f64 / trials as f64, trials)
}

/// Returns Wilson's score interval around `share`, the mean of `values` numbers from 0 to 1. For numbers strictly
/// between 0 and 1 the interval is too wide rather than too narrow: their variance is at most `share * (1 - share)`,
/// that of zeros and ones. `[0, 1]` for no values.
pub fn wilson_of_share(share: f64, values: u64) -> [f64; 2] {
    if values == 0 || !share.is_finite() {
        return [0.0, 1.0];
    }
    score_interval(share.clamp(0.0, 1.0), values as f64, Z)
}

/// Returns Wilson's interval around `share` for a number of values, which need not be whole, and a quantile.
pub(super) fn score_interval(share: f64, n: f64, quantile: f64) -> [f64; 2] {
    let square = quantile * quantile;
    let center = share + square / (2.0 * n);
    let spread = quantile * (share * (1.0 - share) / n + square / (4.0 * n * n)).sqrt();
    let scale = 1.0 + square / n;
    // At 0 and 1 the exact bound is 0 or 1; this removes the floating-point error.
    let low = if share == 0.0 { 0.0 } else { ((center - spread) / scale).max(0.0) };
    let high = if share == 1.0 { 1.0 } else { ((center + spread) / scale).min(1.0) };
    [low, high]
}

/// Returns the p-value of McNemar's exact test (1947), two-sided: the probability that differing pairs split at least
/// as unevenly as `better` to `worse` if both directions are equally likely. 1 if no pair differs.
pub fn mcnemar(better: u64, worse: u64) -> f64 {
    let Some(n) = better.checked_add(worse) else { return 1.0 };
    // Σ C(n, i) for i up to the smaller count. These are whole numbers, so the result is exact for few pairs.
    let (mut term, mut sum, mut halvings) = (1.0, 1.0, n);
    for i in 1..=better.min(worse) {
        term = term * (n - i + 1) as f64 / i as f64;
        sum += term;
        if sum > SCALE {
            (term, sum, halvings) = (term / SCALE, sum / SCALE, halvings.saturating_sub(512));
        }
    }
    let chance = 2.0 * sum * (-(halvings as f64)).exp2();
    chance.clamp(0.0, 1.0)
}

/// 2 to the power of 512: well below the largest `f64`, and dividing a sum by it loses no precision.
const SCALE: f64 = f64::from_bits((1023 + 512) << 52);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wilson_intervals_match_published_values() {
        let [low, high] = wilson(8, 10);
        assert!((low - 0.4902).abs() < 1e-4 && (high - 0.9433).abs() < 1e-4);
        assert_eq!(wilson(0, 0), [0.0, 1.0]);
        assert_eq!((wilson(0, 3)[0], wilson(7, 7)[1]), (0.0, 1.0));
    }

    #[test]
    fn the_interval_of_a_share_matches_that_of_the_equivalent_pass_count() {
        assert_eq!(wilson_of_share(0.75, 8), wilson(6, 8));
        assert_eq!(wilson_of_share(0.5, 0), [0.0, 1.0]);
        assert_eq!(wilson_of_share(f64::NAN, 3), [0.0, 1.0]);
        assert_eq!((wilson_of_share(7.0, 3), wilson(9, 3)), (wilson(3, 3), wilson(3, 3)));
    }

    #[test]
    fn mcnemars_test_is_the_two_sided_binomial_test() {
        let choose = |n: u64, k: u64| (0..k).fold(1.0, |c, i| c * (n - i) as f64 / (i + 1) as f64);
        for n in 0..=30u64 {
            for better in 0..=n {
                let tail: f64 = (0..=better.min(n - better)).map(|i| choose(n, i)).sum();
                let exact = (2.0 * tail / 2f64.powi(n as i32)).min(1.0);
                let p = mcnemar(better, n - better);
                assert!((p - exact).abs() < 1e-12, "{better}:{} {p} {exact}", n - better);
                assert_eq!(p, mcnemar(n - better, better));
            }
        }
    }

    #[test]
    fn many_pairs_neither_overflow_nor_underflow() {
        assert!((mcnemar(5_050, 4_950) - 0.3222).abs() < 1e-3);
        assert_eq!(mcnemar(50_000, 50_000), 1.0);
        assert_eq!(mcnemar(100_000, 0), 0.0);
        assert_eq!(mcnemar(1_000_000, 1), 0.0);
        assert_eq!(mcnemar(u64::MAX, 1), 1.0);
        assert_eq!(SCALE, 2f64.powi(512));
    }
}

//! Probability that some, or all, of k trials pass.

use serde::{Deserialize, Serialize};

/// Returns the unbiased estimate of the probability that at least one of `k` draws from `n` trials, of which `c`
/// passed, has passed: 1 − C(n−c, k) / C(n, k) (Chen et al. 2021). 0 if `k` is larger than `n`, for which there is no
/// estimate.
pub fn pass_at_k(n: u64, c: u64, k: u64) -> f64 {
    let c = c.min(n);
    if n < k || k == 0 {
        return 0.0;
    }
    if n - c < k {
        return 1.0;
    }
    1.0 - (0..k).map(|i| (n - c - i) as f64 / (n - i) as f64).product::<f64>()
}

/// Returns the unbiased estimate of the probability that all of `k` draws from `n` trials, of which `c` passed, have
/// passed: C(c, k) / C(n, k) (Yao et al. 2024). 0 if `k` is larger than `n`, for which there is no estimate.
pub fn pass_hat_k(n: u64, c: u64, k: u64) -> f64 {
    if n < k || k == 0 || c < k {
        return 0.0;
    }
    (0..k).map(|i| (c - i) as f64 / (n - i) as f64).product()
}

/// Point on such a curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct AtK {
    /// Number of trials drawn.
    pub k: u64,
    /// Probability, averaged over the cases that have at least k trials.
    pub value: f64,
    /// Number of these cases. Where it drops, the curve continues over fewer cases.
    pub cases: usize,
}

/// Computes pass@k and pass^k over cases for every k up to the largest number of trials in any case. Each case is
/// given as its number of trials and the number that passed.
pub(super) fn curves(cases: &[(u64, u64)]) -> (Vec<AtK>, Vec<AtK>) {
    let most = cases.iter().map(|case| case.0).max().unwrap_or(0);
    // One step of each curve for all cases: the probability that none of k passed, and that all did.
    let mut chances: Vec<(f64, f64)> = vec![(1.0, 1.0); cases.len()];
    (1..=most)
        .map(|k| {
            let (mut some, mut all, mut counted) = (0.0, 0.0, 0usize);
            for ((n, c), (none_passed, all_passed)) in cases.iter().zip(&mut chances) {
                if *n < k {
                    continue;
                }
                let left = (n - (k - 1)) as f64;
                let c = (*c).min(*n);
                *none_passed *= (n - c).saturating_sub(k - 1) as f64 / left;
                *all_passed *= c.saturating_sub(k - 1) as f64 / left;
                (some, all, counted) = (some + 1.0 - *none_passed, all + *all_passed, counted + 1);
            }
            let point = |sum: f64| AtK { k, value: sum / counted as f64, cases: counted };
            (point(some), point(all))
        })
        .unzip()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Enumerates all choices of k of n trials, the first c of which passed, and returns the share in which some and
    /// the share in which all passed.
    fn enumerated(n: u64, c: u64, k: u64) -> (f64, f64) {
        let (mut choices, mut some, mut all) = (0u32, 0u32, 0u32);
        for chosen in 0u32..1 << n {
            if u64::from(chosen.count_ones()) == k {
                let passed = chosen & ((1 << c) - 1);
                choices += 1;
                some += u32::from(passed != 0);
                all += u32::from(passed == chosen);
            }
        }
        (f64::from(some) / f64::from(choices), f64::from(all) / f64::from(choices))
    }

    #[test]
    fn both_curves_match_a_full_enumeration() {
        for n in 1..=10 {
            for c in 0..=n {
                let (at, hat) = curves(&[(n, c)]);
                assert_eq!((at.len(), hat.len()), (n as usize, n as usize));
                for k in 1..=n {
                    let (some, all) = enumerated(n, c, k);
                    let point = (at[k as usize - 1].value, hat[k as usize - 1].value);
                    for (found, exact) in
                        [(pass_at_k(n, c, k), some), (pass_hat_k(n, c, k), all), (point.0, some), (point.1, all)]
                    {
                        assert!((found - exact).abs() < 1e-12, "n {n} c {c} k {k}: {found} {exact}");
                    }
                }
            }
        }
        assert_eq!((pass_at_k(3, 3, 3), pass_hat_k(3, 3, 3), pass_hat_k(3, 2, 3)), (1.0, 1.0, 0.0));
        assert_eq!((pass_at_k(2, 1, 3), pass_hat_k(2, 1, 3), pass_at_k(2, 9, 1)), (0.0, 0.0, 1.0));
    }

    #[test]
    fn thousands_of_trials_keep_their_precision() {
        let n = 5_000;
        let (at, _) = curves(&[(n, 1)]);
        let (_, hat) = curves(&[(n, n - 1)]);
        for k in 1..=n {
            // With one pass, or one failure, the fractions telescope.
            let (some, all) = (k as f64 / n as f64, (n - k) as f64 / n as f64);
            assert!((at[k as usize - 1].value - some).abs() < 1e-11, "{k}");
            assert!((hat[k as usize - 1].value - all).abs() < 1e-11, "{k}");
        }
        let (at, hat) = curves(&[(n, n / 2)]);
        assert!(at.iter().chain(&hat).all(|point| (0.0..=1.0).contains(&point.value)));
        assert!(at.windows(2).all(|pair| pair[0].value <= pair[1].value));
        assert!(hat.windows(2).all(|pair| pair[0].value >= pair[1].value));
    }

    #[test]
    fn the_curve_omits_cases_with_too_few_trials() {
        let (at, hat) = curves(&[(1, 1), (3, 1)]);
        let point = |k, value, cases| AtK { k, value, cases };
        assert_eq!(at[0], point(1, (1.0 + (1.0 - 2.0 / 3.0)) / 2.0, 2));
        assert_eq!(at[2], point(3, 1.0, 1));
        assert_eq!(hat[1], point(2, 0.0, 1));
        assert_eq!(curves(&[]), (Vec::new(), Vec::new()));
        assert_eq!(curves(&[(0, 0)]), (Vec::new(), Vec::new()));
    }
}

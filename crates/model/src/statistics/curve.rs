//! Probability that some, or all, of k trials pass.

use serde::{Deserialize, Serialize};

use super::{Bounds, Counted};

/// Point on such a curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct AtK {
    /// Number of trials drawn.
    pub k: u64,
    /// Probability, averaged over the cases that have at least k trials; absent if it is not known.
    pub value: Option<f64>,
    /// Lowest and highest possible probability.
    #[serde(flatten)]
    pub bounds: Bounds,
    /// Number of these cases. Where it drops, the curve continues over fewer cases.
    pub cases: usize,
}

/// Computes pass@k and pass^k over cases for every k up to the largest number of trials in any case. Both grow with the
/// number of passed trials, so unknown trials give their bounds.
pub(super) fn curves(cases: &[Counted]) -> (Vec<AtK>, Vec<AtK>) {
    let (some_least, all_least) = curves_of(cases, |case| case.passed);
    let (some_most, all_most) = curves_of(cases, |case| case.passed + case.unknown);
    let joined = |least: Vec<Mean>, most: Vec<Mean>| {
        let point = |(k, (least, most)): (u64, (Mean, Mean))| {
            let bounds = Bounds { min: least.0, max: most.0 };
            AtK { k, value: bounds.value(), bounds, cases: least.1 }
        };
        (1..).zip(least.into_iter().zip(most)).map(point).collect()
    };
    (joined(some_least, some_most), joined(all_least, all_most))
}

/// Mean over cases, and their number.
type Mean = (f64, usize);

/// Computes both curves for the given number of passed trials of each case.
fn curves_of(cases: &[Counted], passed: fn(&Counted) -> u64) -> (Vec<Mean>, Vec<Mean>) {
    let most = cases.iter().map(|case| case.trials()).max().unwrap_or(0);
    // One step of each curve for all cases: the probability that none of k passed, and that all did.
    let mut chances: Vec<(f64, f64)> = vec![(1.0, 1.0); cases.len()];
    (1..=most)
        .map(|k| {
            let (mut some, mut all, mut counted) = (0.0, 0.0, 0usize);
            for (case, (none_passed, all_passed)) in cases.iter().zip(&mut chances) {
                let (n, c) = (case.trials(), passed(case));
                if n < k {
                    continue;
                }
                let left = (n - (k - 1)) as f64;
                *none_passed *= (n - c).saturating_sub(k - 1) as f64 / left;
                *all_passed *= c.saturating_sub(k - 1) as f64 / left;
                (some, all, counted) = (some + 1.0 - *none_passed, all + *all_passed, counted + 1);
            }
            let mean = |sum: f64| (sum / counted as f64, counted);
            (mean(some), mean(all))
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

    fn case(trials: u64, passed: u64) -> Counted {
        Counted { passed, failed: trials - passed, unknown: 0 }
    }

    #[test]
    fn both_curves_match_a_full_enumeration() {
        for n in 1..=10 {
            for c in 0..=n {
                let (at, hat) = curves(&[case(n, c)]);
                assert_eq!((at.len(), hat.len()), (n as usize, n as usize));
                for k in 1..=n {
                    let (some, all) = enumerated(n, c, k);
                    let point = (at[k as usize - 1].value.unwrap(), hat[k as usize - 1].value.unwrap());
                    for (found, exact) in [(point.0, some), (point.1, all)] {
                        assert!((found - exact).abs() < 1e-12, "n {n} c {c} k {k}: {found} {exact}");
                    }
                }
            }
        }
    }

    #[test]
    fn thousands_of_trials_keep_their_precision() {
        let n = 5_000;
        let (at, _) = curves(&[case(n, 1)]);
        let (_, hat) = curves(&[case(n, n - 1)]);
        for k in 1..=n {
            // With one pass, or one failure, the fractions telescope.
            let (some, all) = (k as f64 / n as f64, (n - k) as f64 / n as f64);
            assert!((at[k as usize - 1].bounds.min - some).abs() < 1e-11, "{k}");
            assert!((hat[k as usize - 1].bounds.min - all).abs() < 1e-11, "{k}");
        }
        let (at, hat) = curves(&[case(n, n / 2)]);
        assert!(at.iter().chain(&hat).all(|point| point.value.is_some_and(|value| (0.0..=1.0).contains(&value))));
        assert!(at.windows(2).all(|pair| pair[0].bounds.min <= pair[1].bounds.min));
        assert!(hat.windows(2).all(|pair| pair[0].bounds.min >= pair[1].bounds.min));
    }

    #[test]
    fn the_curve_omits_cases_with_too_few_trials() {
        let (at, hat) = curves(&[case(1, 1), case(3, 1)]);
        let point = |k, value, cases| AtK { k, value: Some(value), bounds: Bounds::exact(value), cases };
        assert_eq!(at[0], point(1, (1.0 + (1.0 - 2.0 / 3.0)) / 2.0, 2));
        assert_eq!(at[2], point(3, 1.0, 1));
        assert_eq!(hat[1], point(2, 0.0, 1));
        assert_eq!(curves(&[]), (Vec::new(), Vec::new()));
        assert_eq!(curves(&[case(0, 0)]), (Vec::new(), Vec::new()));
    }

    #[test]
    fn unknown_trials_give_bounds_of_the_curves() {
        let (at, hat) = curves(&[Counted { passed: 1, failed: 1, unknown: 2 }]);
        assert_eq!((at[1].value, at[1].bounds), (None, Bounds { min: 0.5, max: 1.0 }));
        assert_eq!((hat[1].value, hat[1].bounds), (None, Bounds { min: 0.0, max: 0.5 }));
        assert_eq!(
            (at[3].value, hat[3].value),
            (Some(1.0), Some(0.0)),
            "one passed and one failed, whatever the others"
        );
    }
}

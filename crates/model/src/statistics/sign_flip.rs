//! Significance test for paired differences.

use super::{Chance, mcnemar};

/// Maximum number of differences for which every choice of signs is enumerated.
const EXACT: usize = 32;
/// Number of random choices of signs above that maximum.
const DRAWS: u64 = 19_999;
/// Fixed seed of the random choices, so that the same differences always have the same p-value.
const SEED: u64 = 0x5eed;
/// Sums that differ by less than this share of the total differ only by rounding.
const TOLERANCE: f64 = 1e-12;

/// Returns the two-sided p-value of paired differences (Fisher 1935, Pitman 1937): among all ways to assign signs to
/// the differences, the share whose sum is at least as far from 0 as the observed sum. The only assumption is that a
/// difference in favour of either arm is equally likely.
///
/// The result is exact for up to 32 non-zero differences, and for any number of differences of the same size, where
/// the test is McNemar's exact test. Otherwise choices are drawn at random and the observed one is included (Phipson
/// and Smyth 2010), so the result is never 0. `None` if there is no finite difference.
pub fn sign_flip(differences: &[f64]) -> Option<f64> {
    let differences: Vec<f64> = differences.iter().copied().filter(|value| value.is_finite()).collect();
    if differences.is_empty() {
        return None;
    }
    let largest = differences.iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
    // Differences of 0 stay 0 with either sign. The others are divided by the largest, so that no sum overflows.
    let mut scaled: Vec<f64> =
        differences.iter().map(|value| value / largest).filter(|value| value.abs() > TOLERANCE).collect();
    scaled.sort_unstable_by(|a, b| a.abs().total_cmp(&b.abs()).then(a.total_cmp(b)));
    let sizes: Vec<f64> = scaled.iter().map(|value| value.abs()).collect();
    let seen = scaled.iter().sum::<f64>().abs() - TOLERANCE * sizes.iter().sum::<f64>();
    Some(if seen <= 0.0 {
        1.0
    } else if sizes.iter().all(|size| 1.0 - size <= TOLERANCE) {
        let better = scaled.iter().filter(|value| **value > 0.0).count() as u64;
        mcnemar(better, scaled.len() as u64 - better)
    } else if sizes.len() <= EXACT {
        exact(&sizes, seen)
    } else {
        drawn(&sizes, seen)
    })
}

/// Returns the smallest possible p-value for `cases` cases: 2 of the 2^cases ways to assign their signs.
pub fn least_p_value(cases: usize) -> f64 {
    2f64.powi(1 - i32::try_from(cases).unwrap_or(i32::MAX)).min(1.0)
}

/// Returns the share of all choices of signs whose sum is at least `seen` away from 0. The sums of one half are
/// looked up in the sorted sums of the other half, so 2^32 choices take 2^16 searches.
fn exact(sizes: &[f64], seen: f64) -> f64 {
    let (left, right) = sizes.split_at(sizes.len() / 2);
    let mut others = sums(right);
    others.sort_unstable_by(f64::total_cmp);
    let far: usize =
        sums(left).iter().map(|sum| others.len() - others.partition_point(|other| sum + other < seen)).sum();
    // Flipping all signs mirrors the sum, so counting one side is enough.
    2.0 * far as f64 / 2f64.powi(sizes.len() as i32)
}

/// Returns the sum of every choice of signs.
fn sums(sizes: &[f64]) -> Vec<f64> {
    sizes.iter().fold(vec![0.0], |sums, size| sums.iter().flat_map(|sum| [sum - size, sum + size]).collect())
}

fn drawn(sizes: &[f64], seen: f64) -> f64 {
    let mut chance = Chance::new(SEED);
    let mut far = 1;
    for _ in 0..DRAWS {
        let mut sum = 0.0;
        for sizes in sizes.chunks(64) {
            let mut signs = chance.bits();
            for size in sizes {
                sum += if signs & 1 == 1 { *size } else { -size };
                signs >>= 1;
            }
        }
        far += u64::from(sum.abs() >= seen);
    }
    far as f64 / (DRAWS + 1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Enumerates every choice of signs.
    fn brute_force(differences: &[f64]) -> f64 {
        let seen = differences.iter().sum::<f64>().abs() - 1e-9;
        let choices = 1u32 << differences.len();
        let far = (0..choices).filter(|signs| {
            let sum: f64 =
                differences.iter().enumerate().map(|(index, d)| if signs >> index & 1 == 1 { *d } else { -d }).sum();
            sum.abs() >= seen
        });
        far.count() as f64 / f64::from(choices)
    }

    fn differences(chance: &mut Chance, count: usize, grid: u64) -> Vec<f64> {
        (0..count).map(|_| chance.below(2 * grid + 1) as f64 / grid as f64 - 1.0).collect()
    }

    #[test]
    fn the_p_value_matches_brute_force() {
        let mut chance = Chance::new(11);
        for round in 0..400 {
            // Coarse grids have many ties and zeros; the finest has none.
            let grid = [1, 2, 3, 10, 1_000_003][round % 5];
            let differences = differences(&mut chance, 1 + round % 12, grid);
            let p = sign_flip(&differences).unwrap();
            assert!((p - brute_force(&differences)).abs() < 1e-12, "{differences:?}: {p}");
        }
    }

    #[test]
    fn the_p_value_is_a_symmetric_probability_independent_of_order() {
        let mut chance = Chance::new(12);
        for count in [1, 2, 5, 20, 32, 33, 100] {
            let mut differences = differences(&mut chance, count, 12);
            let p = sign_flip(&differences).unwrap();
            assert!(p > 0.0 && p <= 1.0, "{count}: {p}");
            let turned: Vec<f64> = differences.iter().map(|d| -d).collect();
            assert_eq!(sign_flip(&turned), Some(p));
            chance.shuffle(&mut differences);
            assert_eq!(sign_flip(&differences), Some(p));
        }
    }

    #[test]
    fn with_one_pass_or_fail_per_case_it_equals_mcnemars_test() {
        for (better, worse, same) in [(3, 1, 2), (5, 0, 0), (20, 8, 30), (9, 9, 3), (40, 20, 0)] {
            let pairs = [(1.0, better), (-1.0, worse), (0.0, same)];
            let differences: Vec<f64> =
                pairs.into_iter().flat_map(|(d, count)| std::iter::repeat_n(d, count)).collect();
            assert_eq!(sign_flip(&differences), Some(mcnemar(better as u64, worse as u64)));
        }
        let nine: Vec<f64> = [1.0; 7].into_iter().chain([-1.0; 2]).collect();
        let exact = exact(&[1.0; 9], nine.iter().sum::<f64>() - 1e-9);
        assert!((exact - mcnemar(7, 2)).abs() < 1e-12);
    }

    #[test]
    fn sampled_signs_agree_with_the_enumeration() {
        let mut chance = Chance::new(13);
        for _ in 0..5 {
            let sizes: Vec<f64> = (0..20).map(|_| chance.unit()).collect();
            let seen = sizes.iter().sum::<f64>() * 0.4;
            assert!((exact(&sizes, seen) - drawn(&sizes, seen)).abs() < 0.01);
        }
    }

    #[test]
    fn empty_input_and_zero_differences_have_defined_results() {
        assert_eq!(sign_flip(&[]), None);
        assert_eq!(sign_flip(&[f64::NAN]), None);
        assert_eq!(sign_flip(&[0.0, 0.0]), Some(1.0));
        assert_eq!(sign_flip(&[0.4]), Some(1.0));
        assert_eq!(sign_flip(&[f64::MAX, f64::MAX, f64::MIN_POSITIVE]), Some(0.5));
        assert_eq!(sign_flip(&[0.1 + 0.2, 0.3, 0.3, 0.3, 0.3, 0.3]), Some(2.0 / 64.0));
    }

    #[test]
    fn below_six_cases_nothing_can_be_significant() {
        assert_eq!((least_p_value(0), least_p_value(1), least_p_value(3)), (1.0, 1.0, 0.25));
        assert!(least_p_value(5) > 0.05 && least_p_value(6) < 0.05);
        assert_eq!(sign_flip(&[0.2, 0.5, 0.9]), Some(least_p_value(3)));
    }
}

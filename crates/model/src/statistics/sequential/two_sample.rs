//! Evidence about two arms whose trials are not matched.

use super::e_process::MOST;

/// Number of mean rates, and of differences for each, that the evidence averages over.
const STEPS: u32 = 16;

/// Returns the evidence that the first arm passes more often: an e-value against the null hypothesis that its pass rate
/// is at most that of the second arm. `block` is the number of trials of each arm in a block, and `passed` the number of
/// passed trials of each arm in `blocks` complete blocks.
///
/// **Formula.** For rates a > b of the alternative, and their mean m weighted by the block: the product, over all
/// trials, of the probability of the result at a or b, divided by that at m (Turner, Ly and Grünwald 2024). It is
/// averaged over a grid of 16 means and 16 differences.
///
/// **Why the false-alarm rate holds.** For true rates p and r of the arms, the mean factor of a trial of the first arm
/// is x = 1 + (p − m)(a − m)/(m(1 − m)), and of the second y = 1 − (r − m)(m − b)/(m(1 − m)); neither is negative. A block
/// of s and t trials has the mean x^s y^t, at most ((s·x + t·y)/(s + t))^(s+t). As s(a − m) = t(m − b), the sum s·x + t·y
/// is s + t + s(a − m)(p − r)/(m(1 − m)). So the mean is at most 1 if p ≤ r, for all rates of the null hypothesis. The
/// product is a supermartingale over blocks, and Ville's inequality (1939) applies.
///
/// Look at the results only after complete blocks, and choose the block before the first trial. For several cases,
/// multiply the e-values of the cases: their trials are independent. The product tests that the first arm is no better
/// in *any* case. If both arms run the same cases, [`e_difference_above`](super::e_difference_above) tests the mean
/// difference.
pub fn e_two_samples(passed: [u64; 2], blocks: u64, block: [u64; 2]) -> f64 {
    let [s, t] = block.map(|trials| trials as f64);
    if block.contains(&0) {
        return 1.0;
    }
    let failed = [0, 1].map(|arm| (blocks * block[arm]).saturating_sub(passed[arm]) as f64);
    let passed = passed.map(|passed| passed as f64);
    let at = |index: u32| (f64::from(index) + 0.5) / f64::from(STEPS);
    let mut sum = 0.0;
    for mean in (0..STEPS).map(at) {
        // The largest difference for which both rates are between 0 and 1.
        let most = ((1.0 - mean) * (s + t) / t).min(mean * (s + t) / s);
        for difference in (0..STEPS).map(|index| most * at(index)) {
            let rates = [mean + difference * t / (s + t), mean - difference * s / (s + t)];
            let log = |arm: usize| {
                passed[arm] * (rates[arm] / mean).ln() + failed[arm] * ((1.0 - rates[arm]) / (1.0 - mean)).ln()
            };
            sum += (log(0) + log(1)).exp();
        }
    }
    (sum / f64::from(STEPS * STEPS)).min(MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_expected_e_value_is_at_most_1_if_the_first_arm_is_not_better() {
        let choose = |n: u64, k: u64| (0..k).fold(1.0, |c, i| c * (n - i) as f64 / (i + 1) as f64);
        let chance = |n: u64, k: u64, p: f64| choose(n, k) * p.powi(k as i32) * (1.0 - p).powi((n - k) as i32);
        for block in [[1, 1], [1, 3], [2, 1]] {
            for (first, second) in [(0.5, 0.5), (0.9, 0.9), (0.3, 0.7), (0.0, 0.1), (0.2, 0.25), (0.98, 0.98)] {
                for blocks in [1, 4, 10] {
                    let [n, m] = block.map(|trials: u64| trials * blocks);
                    let mut mean = 0.0;
                    for (i, j) in (0..=n).flat_map(|i| (0..=m).map(move |j| (i, j))) {
                        mean += chance(n, i, first) * chance(m, j, second) * e_two_samples([i, j], blocks, block);
                    }
                    assert!(mean <= 1.0 + 1e-9, "{block:?} {first} {second} {blocks}: {mean}");
                }
            }
        }
    }

    #[test]
    fn a_difference_is_evidence_in_one_direction() {
        assert!(e_two_samples([10, 2], 12, [1, 1]) > 20.0);
        assert!(e_two_samples([2, 10], 12, [1, 1]) < 0.1);
        assert_eq!((e_two_samples([0, 0], 0, [1, 1]), e_two_samples([3, 1], 4, [0, 1])), (1.0, 1.0));
        assert_eq!(e_two_samples([100_000, 0], 100_000, [1, 1]), MOST);
    }
}

//! Comparison of two shares of passed trials, with the few trials that one case has.

/// A table whose probability exceeds that of the observed one by less than this share counts as equally likely,
/// because rounding can cause the difference.
const TOLERANCE: f64 = 1e-7;

/// Returns the two-sided p-value of Fisher's exact test (1934): the probability, if both sides pass equally often,
/// that the passed trials split between them in a way that is at most as likely as the observed one. 1 if a side has
/// no trials.
pub fn fisher(passed: [u64; 2], trials: [u64; 2]) -> f64 {
    let sum = passed[0] + passed[1];
    p_of(passed[0], &splits(sum, trials))
}

/// Returns the smallest p-value that [`fisher`] has for any split of this number of passed trials.
pub(super) fn least_fisher(passed: u64, trials: [u64; 2]) -> f64 {
    let splits = splits(passed, trials);
    let ends = [splits.first(), splits.last()];
    ends.into_iter().flatten().map(|(first, _)| p_of(*first, &splits)).fold(1.0, f64::min)
}

/// Smallest probability, relative to the likeliest sum, that is kept while tables are added up.
const NEGLIGIBLE: f64 = 1e-18;

/// Returns the two-sided p-value of Fisher's exact test for several tables, each with the passed trials and all trials
/// of both sides: the probability, if both sides pass equally often within each table, of a sum of the first side's
/// passed trials that is at most as likely as the observed one. With one trial on each side, this is McNemar's exact
/// test (1947).
pub fn fisher_of_tables(tables: &[([u64; 2], [u64; 2])]) -> f64 {
    // Probability of each sum, starting at the sum `low`.
    let (mut low, mut sums, mut observed) = (0, vec![1.0], 0);
    for (passed, trials) in tables {
        let splits = splits(passed[0] + passed[1], *trials);
        let Some((first, _)) = splits.first() else { continue };
        low += first;
        observed += passed[0];
        let all: f64 = splits.iter().map(|(_, weight)| weight).sum();
        let mut next = vec![0.0; sums.len() + splits.len() - 1];
        for (index, sum) in sums.iter().enumerate() {
            for (more, (_, weight)) in splits.iter().enumerate() {
                next[index + more] += sum * weight / all;
            }
        }
        let least = next.iter().fold(0.0, |most: f64, sum| most.max(*sum)) * NEGLIGIBLE;
        let start = next.iter().position(|sum| *sum > least).unwrap_or_default();
        let end = next.iter().rposition(|sum| *sum > least).map_or(next.len(), |index| index + 1);
        low += start as u64;
        sums = next[start..end].to_vec();
    }
    let sums: Vec<(u64, f64)> = sums.into_iter().zip(low..).map(|(sum, index)| (index, sum)).collect();
    match sums.iter().any(|(at, _)| *at == observed) {
        true => p_of(observed, &sums),
        false => 0.0,
    }
}

fn p_of(observed: u64, splits: &[(u64, f64)]) -> f64 {
    let Some((_, seen)) = splits.iter().find(|(first, _)| *first == observed) else { return 1.0 };
    let all: f64 = splits.iter().map(|(_, weight)| weight).sum();
    let far: f64 = splits.iter().map(|(_, weight)| weight).filter(|weight| **weight <= seen * (1.0 + TOLERANCE)).sum();
    if all > 0.0 { (far / all).min(1.0) } else { 1.0 }
}

/// Returns every number of passed trials that the first side can have, with its weight relative to the likeliest one.
fn splits(passed: u64, trials: [u64; 2]) -> Vec<(u64, f64)> {
    let [first, second] = trials;
    if first == 0 || second == 0 || passed > first + second {
        return Vec::new();
    }
    let (low, high) = (passed.saturating_sub(second), passed.min(first));
    let mut log = 0.0;
    let mut logs = vec![(low, log)];
    for index in low..high {
        // The weight of `at + 1` divided by that of `at`.
        let ratio = (first - index) as f64 * (passed - index) as f64
            / ((index + 1) as f64 * (second + index + 1 - passed) as f64);
        log += ratio.ln();
        logs.push((index + 1, log));
    }
    let most = logs.iter().fold(f64::MIN, |most, (_, log)| most.max(*log));
    logs.into_iter().map(|(at, log)| (at, (log - most).exp())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_agrees_with_published_tables() {
        // Fisher's tea-tasting lady, two-sided; and `fisher.test` of R.
        for (passed, trials, expected) in [
            ([3, 1], [4, 4], 0.485_714_3),
            ([4, 0], [4, 4], 0.028_571_4),
            ([5, 0], [5, 5], 0.007_936_5),
            ([3, 0], [3, 3], 0.1),
            ([1, 9], [10, 12], 0.003_691_4),
            ([0, 1], [1, 1], 1.0),
            ([7, 7], [7, 7], 1.0),
        ] {
            let p = fisher(passed, trials);
            assert!((p - expected).abs() < 1e-6, "{passed:?} of {trials:?}: {p}");
            assert!((fisher([passed[1], passed[0]], [trials[1], trials[0]]) - p).abs() < 1e-12);
        }
    }

    #[test]
    fn the_smallest_p_value_is_that_of_the_most_uneven_split() {
        assert_eq!(least_fisher(1, [1, 1]), 1.0);
        assert_eq!(least_fisher(10, [5, 5]), 1.0, "all passed: no split is unlikely");
        assert!((least_fisher(5, [5, 5]) - fisher([5, 0], [5, 5])).abs() < 1e-12);
        for passed in 0..=12 {
            let least = (0..=passed.min(5))
                .filter(|first| passed - first <= 7)
                .map(|first| fisher([first, passed - first], [5, 7]));
            assert!((least.fold(1.0, f64::min) - least_fisher(passed, [5, 7])).abs() < 1e-12);
        }
    }

    #[test]
    fn several_tables_are_tested_together() {
        assert_eq!(fisher_of_tables(&[]), 1.0);
        for (passed, trials) in [([3, 1], [4, 4]), ([1, 9], [10, 12]), ([0, 0], [3, 3])] {
            let one = fisher_of_tables(&[(passed, trials)]);
            assert!((one - fisher(passed, trials)).abs() < 1e-12);
            // A case that passes or fails in every trial says nothing.
            let with_constant = fisher_of_tables(&[([5, 5], [5, 5]), (passed, trials), ([0, 0], [2, 2])]);
            assert!((one - with_constant).abs() < 1e-12);
        }
        // McNemar's exact test: six of six changes in one direction, two-sided.
        let worse = [([1, 0], [1, 1]); 6];
        assert!((fisher_of_tables(&worse) - 0.031_25).abs() < 1e-9);
        // Three times 3 of 3 against 0 of 3: 2 · (1 / 20)³.
        assert!((fisher_of_tables(&[([3, 0], [3, 3]); 3]) - 0.000_25).abs() < 1e-9);
        // Changes in opposite directions cancel out.
        assert_eq!(fisher_of_tables(&[([3, 0], [3, 3]), ([0, 3], [3, 3])]), 1.0);
        assert!(fisher_of_tables(&vec![([1, 0], [1, 1]); 2_000]) < 1e-12);
        assert!(fisher_of_tables(&[vec![([1, 0], [1, 1]); 1_000], vec![([0, 1], [1, 1]); 1_000]].concat()) > 0.99);
    }

    #[test]
    fn empty_and_large_tables_have_defined_results() {
        assert_eq!((fisher([0, 3], [0, 3]), fisher([0, 0], [0, 0]), least_fisher(0, [0, 0])), (1.0, 1.0, 1.0));
        assert!(fisher([5_000, 4_000], [10_000, 10_000]) < 1e-9);
        assert!(fisher([5_000, 5_001], [10_000, 10_000]) > 0.9);
    }
}

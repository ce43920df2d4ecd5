//! Significance limit for the p-values of several tests.

/// p-value below which chance alone counts as an unlikely cause of one difference.
pub const SIGNIFICANCE: f64 = 0.05;

/// Returns the number by which the limit of several tests is divided so that the probability of any false result is at
/// most 5 %, given the smallest p-value that each test can have. Bonferroni's correction divides by the number of tests;
/// this counts only tests that could reach the limit (Tarone 1990): a case with one trial, or one that always passes,
/// does not make it harder for the others. At least 1.
pub(super) fn tests_within_reach(least: impl IntoIterator<Item = f64>) -> usize {
    let mut least: Vec<f64> = least.into_iter().collect();
    least.sort_unstable_by(f64::total_cmp);
    let able = |tests: usize| least.partition_point(|p_value| *p_value < SIGNIFICANCE / tests as f64);
    (1..).find(|tests| able(*tests) <= *tests).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tests_that_could_be_significant_make_the_limit_stricter() {
        assert_eq!(tests_within_reach([]), 1);
        assert_eq!(tests_within_reach([1.0; 500]), 1);
        assert_eq!(tests_within_reach([1.0, 0.01, 1.0]), 1);
        assert_eq!(tests_within_reach([0.01, 0.02]), 2);
        assert_eq!(tests_within_reach([0.008; 10]), 7, "none of ten can reach 0.05 / 7");
        assert_eq!(tests_within_reach([1e-9; 10]), 10);
    }
}

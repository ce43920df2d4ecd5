//! Significance limit for the p-values of several tests.

/// p-value below which chance alone counts as an unlikely cause of one difference.
pub const SIGNIFICANCE: f64 = 0.05;

/// Returns the p-value below which one of several differences counts, given the smallest p-value that each test can
/// have. Limits the probability of any false result to 5 %, as Bonferroni's correction does, but counts only tests
/// that could reach the limit (Tarone 1990): a case with one trial, or one that always passes, does not make it harder
/// for the others.
pub fn limit_of_tests(least: impl IntoIterator<Item = f64>) -> f64 {
    let mut least: Vec<f64> = least.into_iter().collect();
    least.sort_unstable_by(f64::total_cmp);
    let able = |tests: usize| least.partition_point(|p_value| *p_value < SIGNIFICANCE / tests as f64);
    let tests = (1..).find(|tests| able(*tests) <= *tests).unwrap_or(1);
    SIGNIFICANCE / tests as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tests_that_could_be_significant_make_the_limit_stricter() {
        assert_eq!(limit_of_tests([]), 0.05);
        assert_eq!(limit_of_tests([1.0; 500]), 0.05);
        assert_eq!(limit_of_tests([1.0, 0.01, 1.0]), 0.05);
        assert_eq!(limit_of_tests([0.01, 0.02]), 0.025);
        assert_eq!(limit_of_tests([0.008; 10]), 0.05 / 7.0, "none of ten can reach 0.05 / 7");
        assert_eq!(limit_of_tests([1e-9; 10]), 0.05 / 10.0);
    }
}

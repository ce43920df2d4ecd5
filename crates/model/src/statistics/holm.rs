//! Adjustment of the p-values of several tests.

use std::cmp::Ordering;

use super::fisher::least_fisher;
use super::limit::tests_within_reach;
use super::{Counted, SIGNIFICANCE, fisher};

/// Returns the p-values adjusted for the number of tests, in the same order (Holm 1979): the smallest is multiplied by
/// the number of tests, the next by one less, and so on, and no adjusted value is below a smaller one's. Calling every
/// test significant whose adjusted value is at most α keeps the probability of any false result at α, as Bonferroni's
/// correction does, but finds more. Makes no assumption about dependence. NaN counts as 1.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<(usize, f64)> = p_values.iter().map(|p| if p.is_nan() { 1.0 } else { *p }).enumerate().collect();
    order.sort_by(|(_, one), (_, other)| one.total_cmp(other));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut most: f64 = 0.0;
    for (rank, (index, p)) in order.into_iter().enumerate() {
        most = most.max(p * (p_values.len() - rank) as f64).clamp(0.0, 1.0);
        adjusted[index] = most;
    }
    adjusted
}

/// Test of one of several hypotheses with few trials.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DiscreteTest {
    /// p-value.
    pub p_value: f64,
    /// Smallest p-value that this test could have had, given its number of trials.
    pub least: f64,
}

impl DiscreteTest {
    /// Tests the shares of passed trials of two sides with Fisher's exact test; see [`fisher`]. Trials without a known
    /// result count in the way that makes the difference smaller. If they decide which side passes more often, the p-value is 1. The smallest p-value is
    /// the smallest over their possible results, so that missing results do not make the family of tests smaller.
    pub fn of_counted(sides: [Counted; 2]) -> Self {
        let trials = sides.map(Counted::trials);
        let passed = match Counted::change(sides[1], sides[0]) {
            Some(Ordering::Greater) => Some([sides[0].worst()[0], sides[1].best()[0]]),
            Some(Ordering::Less) => Some([sides[0].best()[0], sides[1].worst()[0]]),
            Some(Ordering::Equal) | None => None,
        };
        let [low, high] = [Counted::worst, Counted::best].map(|end| sides.map(|side| end(side)[0]).iter().sum::<u64>());
        // A table can be most extreme if as many trials passed as a side has.
        let totals = [low, high, trials[0].clamp(low, high), trials[1].clamp(low, high)];
        Self {
            p_value: passed.map_or(1.0, |passed| fisher(passed, trials)),
            least: totals.into_iter().map(|total| least_fisher(total, trials)).fold(1.0, f64::min),
        }
    }
}

/// Returns the adjusted p-values of tests that have a smallest possible p-value, like Fisher's exact test: Holm's
/// adjustment (1979) among the tests that could reach the limit at all (Tarone 1990). The others, such as a case with
/// one trial, cannot cause a false result, so they do not weaken the rest; their adjusted p-value is 1.
///
/// Which tests could reach the limit depends only on their smallest p-values, which are fixed before the result is
/// known. So Holm's procedure is applied to a fixed family, and the probability of any false result is at most 5 %.
pub fn holm_of_tests(tests: &[DiscreteTest]) -> Vec<f64> {
    let limit = SIGNIFICANCE / tests_within_reach(tests.iter().map(|test| test.least)) as f64;
    let able: Vec<usize> = (0..tests.len()).filter(|index| tests[*index].least < limit).collect();
    let p_values: Vec<f64> = able.iter().map(|index| tests[*index].p_value).collect();
    let mut adjusted = vec![1.0; tests.len()];
    for (index, p_value) in able.into_iter().zip(holm(&p_values)) {
        adjusted[index] = p_value;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_agrees_with_a_published_example() {
        // `p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm")` of R.
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (found, exact) in adjusted.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((found - exact).abs() < 1e-12, "{adjusted:?}");
        }
        assert_eq!(holm(&[]), Vec::<f64>::new());
        assert_eq!(holm(&[0.04]), [0.04]);
        assert_eq!(holm(&[f64::NAN, 0.9, 0.8]), [1.0, 1.0, 1.0]);
    }

    #[test]
    fn it_never_finds_less_than_bonferroni() {
        let p_values = [0.012, 0.001, 0.02, 0.6, 0.04];
        for (adjusted, p) in holm(&p_values).iter().zip(p_values) {
            assert!(*adjusted <= (p * 5.0).min(1.0) && *adjusted >= p);
        }
    }

    #[test]
    fn unknown_results_make_no_test_more_significant() {
        let side = |passed, failed, unknown| Counted { passed, failed, unknown };
        let known = DiscreteTest::of_counted([side(8, 0, 0), side(0, 8, 0)]);
        assert_eq!(known, DiscreteTest { p_value: fisher([8, 0], [8, 8]), least: least_fisher(8, [8, 8]) });
        let open = DiscreteTest::of_counted([side(8, 0, 0), side(0, 6, 2)]);
        assert_eq!(open, DiscreteTest { p_value: fisher([8, 2], [8, 8]), least: known.least });
        assert_eq!(DiscreteTest::of_counted([side(8, 0, 0), side(0, 0, 8)]).p_value, 1.0);
        assert_eq!(DiscreteTest::of_counted([side(4, 4, 0), side(4, 4, 0)]).p_value, 1.0);
    }

    #[test]
    fn tests_that_cannot_be_significant_do_not_weaken_the_others() {
        let test = |p_value: f64, least: f64| DiscreteTest { p_value, least };
        let few = [test(0.02, 0.008), test(0.03, 0.008)];
        let many: Vec<DiscreteTest> = few.into_iter().chain([test(1.0, 1.0); 500]).collect();
        assert_eq!(holm_of_tests(&many)[..3], [0.04, 0.04, 1.0]);
        assert_eq!(holm_of_tests(&few), [0.04, 0.04]);
        assert_eq!(holm_of_tests(&[]), Vec::<f64>::new());
    }
}

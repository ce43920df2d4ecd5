//! Compares runs in which the results decided how many trials ran. Tests and intervals for a fixed number of trials
//! would be wrong. The ones in this module stay valid.
//!
//! The trials of a case are paired in the order in which they were started, until one of the runs has no more. Earlier
//! results alone decide whether there is another pair, so every e-value of the pairs is valid (Ville 1939), and 1/e is
//! a p-value.

use model::statistics::{PairBounds, Pairs, e_difference_above, e_two_samples, holm};

use super::case::CaseChange;
use crate::verdict::{CaseTest, UNLIKELY};

/// Results of a case's pairs: the second run first, `None` if a trial is undecided.
type CasePairs = Vec<[Option<bool>; 2]>;

/// Returns the p-value for the e-values of two opposite hypotheses about the same pairs.
fn p_value(e_values: [f64; 2]) -> f64 {
    (2.0 / (e_values[0] + e_values[1])).clamp(0.0, 1.0)
}

/// Tests each case by its own pairs. Marks changes that are significant after the correction for testing many cases.
pub(super) fn confirm(cases: &mut [CaseChange], threshold: f64) {
    let tested: Vec<usize> = (0..cases.len()).filter(|at| !cases[*at].pairs().is_empty()).collect();
    let p_values: Vec<f64> = tested.iter().map(|at| of_case(&cases[*at].pairs())).collect();
    let adjusted = holm(&p_values);
    for case in cases.iter_mut() {
        case.confirm(None, threshold);
        case.is_sequential = true;
    }
    for (at, (p_value, adjusted)) in tested.into_iter().zip(p_values.into_iter().zip(adjusted)) {
        cases[at].confirm(Some(CaseTest { p_value, adjusted_p_value: adjusted }), threshold);
    }
}

/// Tests whether both sides of a case pass equally often. An undecided trial counts as having the result of its
/// partner.
fn of_case(pairs: &CasePairs) -> f64 {
    let mut passed = [0, 0];
    for [after, before] in pairs {
        passed[0] += u64::from(after.or(*before) == Some(true));
        passed[1] += u64::from(before.or(*after) == Some(true));
    }
    let of = |passed| e_two_samples(passed, pairs.len() as u64, [1, 1]);
    p_value([of(passed), of([passed[1], passed[0]])])
}

/// Tests whether there is no difference in any case, by the pairs of all cases.
pub(super) fn same_cases_p_value(cases: &[CaseChange]) -> Option<f64> {
    let all: Vec<CasePairs> = cases.iter().map(CaseChange::pairs).collect();
    let bounds = bounds(all.iter().flatten());
    let (better, worse) = (bounds.worst, bounds.best.swapped());
    let is_empty = |pairs: Pairs| pairs.count() == 0;
    (!is_empty(better)).then(|| p_value([e_difference_above(0.0, better), e_difference_above(0.0, worse)]))
}

/// Returns the interval for the mean difference over the cases of both runs. It uses only complete rounds, which have
/// one pair for each case.
pub(super) fn interval(cases: &[CaseChange]) -> Option<[f64; 2]> {
    let all: Vec<CasePairs> = cases.iter().filter(|case| case.is_paired()).map(CaseChange::pairs).collect();
    let rounds = all.iter().map(Vec::len).min().filter(|rounds| *rounds > 0)?;
    Some(bounds(all.iter().flat_map(|pairs| &pairs[..rounds])).interval(UNLIKELY))
}

fn bounds<'p>(pairs: impl Iterator<Item = &'p [Option<bool>; 2]>) -> PairBounds {
    let mut bounds = PairBounds::default();
    pairs.for_each(|[after, before]| bounds.push(*after, *before));
    bounds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_show_a_change_only_if_it_is_more_than_chance() {
        let pairs = |after: bool, before: bool, count| vec![[Some(after), Some(before)]; count];
        assert!(of_case(&pairs(false, true, 8)) < 0.05);
        assert!(of_case(&pairs(false, true, 2)) > 0.05);
        assert!(of_case(&pairs(true, true, 40)) > 0.5);
        let open = vec![[None, Some(true)]; 40];
        assert!(of_case(&open) > 0.5, "an undecided trial shows nothing");
    }
}

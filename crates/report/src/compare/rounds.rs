//! Results of an arm in rounds of one trial per case. Their confidence sequences stay valid if the results decide how
//! many trials run.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::statistics::{Counted, PairBounds};
use model::{Outcome, TrialFigures};

use crate::verdict::UNLIKELY;

/// Returns the results that count, in the order in which the trials were started; `None` for a trial that could have
/// passed or failed. A cancelled or missing trial ends the list: a later one that ended first more often passed.
pub(super) fn counted(trials: &mut [(u64, Outcome)]) -> Vec<Option<bool>> {
    trials.sort_by_key(|(repetition, _)| *repetition);
    let mut results = Vec::with_capacity(trials.len());
    let mut previous = trials.first().map_or(0, |(repetition, _)| *repetition);
    for (repetition, outcome) in trials {
        if *repetition > previous + 1 || *outcome == Outcome::Cancelled {
            break;
        }
        previous = *repetition;
        match outcome {
            Outcome::Passed => results.push(Some(true)),
            Outcome::Failed => results.push(Some(false)),
            Outcome::Undecided | Outcome::Broken | Outcome::Stale => results.push(None),
            Outcome::Skipped | Outcome::Cancelled => {}
        }
    }
    results
}

/// Adds up results.
pub(super) fn sum<'r>(results: impl Iterator<Item = &'r Option<bool>>) -> Counted {
    let mut sum = Counted::default();
    for result in results {
        match result {
            Some(true) => sum.passed += 1,
            Some(false) => sum.failed += 1,
            None => sum.unknown += 1,
        }
    }
    sum
}

/// Suite and id of a case.
type Case = (Arc<str>, Arc<str>);

/// Counted results of an arm by case.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    cases: BTreeMap<Case, Vec<Option<bool>>>,
}

impl Rounds {
    pub(super) fn of<'t>(trials: impl Iterator<Item = &'t TrialFigures>) -> Self {
        let mut cases: BTreeMap<Case, Vec<(u64, Outcome)>> = BTreeMap::new();
        for trial in trials {
            let of_case = cases.entry(trial.observation.case.clone()).or_default();
            of_case.push((trial.repetition, trial.observation.outcome));
        }
        Self { cases: cases.into_iter().map(|(case, mut trials)| (case, counted(&mut trials))).collect() }
    }

    /// Returns the confidence sequence of the mean pass rate over the cases. It uses only complete rounds: by the
    /// inequality of arithmetic and geometric means, the product of a round's factors is then at most that of trials
    /// which all have the mean rate. `None` without a complete round.
    pub(super) fn confidence_sequence(&self) -> Option<[f64; 2]> {
        let rounds = self.cases.values().map(Vec::len).min().filter(|rounds| *rounds > 0)?;
        let counted = sum(self.cases.values().flat_map(|results| &results[..rounds]));
        Some(counted.confidence_sequence(UNLIKELY))
    }

    /// Returns the confidence sequence of the mean difference from `before` over the cases of both.
    pub(super) fn difference(&self, before: &Self) -> Option<[f64; 2]> {
        let both: Vec<_> =
            self.cases.iter().filter_map(|(case, after)| Some((after, before.cases.get(case)?))).collect();
        let rounds = both.iter().map(|(after, before)| after.len().min(before.len())).min().filter(|all| *all > 0)?;
        let mut bounds = PairBounds::default();
        for (after, before) in both {
            after.iter().zip(before).take(rounds).for_each(|(after, before)| bounds.push(*after, *before));
        }
        Some(bounds.interval(UNLIKELY))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Outcome::{Broken, Cancelled, Failed, Passed, Undecided};

    #[test]
    fn trials_count_in_order_up_to_the_first_that_did_not_end() {
        let of = |trials: &[(u64, Outcome)]| counted(&mut trials.to_vec());
        assert_eq!(of(&[(3, Failed), (1, Passed), (2, Undecided)]), [Some(true), None, Some(false)]);
        assert_eq!(of(&[(1, Passed), (2, Broken), (3, Passed)]), [Some(true), None, Some(true)]);
        assert_eq!(of(&[(1, Passed), (3, Passed)]), [Some(true)], "the second one was still running");
        assert_eq!(of(&[(1, Failed), (2, Cancelled), (3, Passed)]), [Some(false)]);
        assert_eq!(of(&[(4, Failed), (4, Passed), (5, Passed)]).len(), 3, "several arms, from the fourth repetition");
    }

    #[test]
    fn an_arm_is_judged_by_complete_rounds() {
        let rounds = |cases: &[(&str, usize, bool)]| Rounds {
            cases: cases
                .iter()
                .map(|(case, trials, passed)| (("s".into(), (*case).into()), vec![Some(*passed); *trials]))
                .collect(),
        };
        let one = rounds(&[("a", 20, true)]);
        assert_eq!(one.confidence_sequence(), Some(model::statistics::confidence_sequence(20, 0, UNLIKELY)));
        let two = rounds(&[("a", 20, true), ("b", 2, false)]);
        assert_eq!(two.confidence_sequence(), Some(model::statistics::confidence_sequence(2, 2, UNLIKELY)));
        let [low, high] = one.difference(&rounds(&[("a", 20, false), ("c", 1, true)])).unwrap();
        assert!(low > 0.5 && high > 0.99, "{low} {high}");
        assert_eq!((Rounds::default().confidence_sequence(), one.difference(&Rounds::default())), (None, None));
    }
}

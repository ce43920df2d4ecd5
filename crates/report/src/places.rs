//! Positions of trials in the plan.

use std::collections::HashMap;

use model::TrialId;

/// Position of each planned trial. It takes a few bytes for each repetition, because a plan may have a million trials.
#[derive(Default)]
pub(crate) struct Places {
    /// By the printed id without the repetition: repetitions, in order, and their positions.
    trials: HashMap<String, Vec<(u64, usize)>>,
}

impl Places {
    /// Numbers the trials of a plan.
    pub(crate) fn new(ids: &[TrialId]) -> Self {
        let mut places = Self::default();
        for (place, id) in ids.iter().enumerate() {
            let key = [&*id.suite, "::", &id.case, "@", &id.arm].concat();
            places.trials.entry(key).or_default().push((id.repetition, place));
        }
        places.trials.values_mut().for_each(|repetitions| repetitions.sort_unstable());
        places
    }

    /// Returns the position of a trial, by its printed id. One that is not planned comes last.
    pub(crate) fn of(&self, id: &str) -> usize {
        let found = id.rsplit_once('#').and_then(|(key, repetition)| {
            let (repetition, planned) = (repetition.parse().ok()?, self.trials.get(key)?);
            let at = planned.binary_search_by_key(&repetition, |(planned, _)| *planned).ok()?;
            Some(planned[at].1)
        });
        found.unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_is_found_by_its_printed_id() {
        let id = |case: &str, repetition| TrialId { suite: "s".into(), case: case.into(), arm: "a".into(), repetition };
        let ids = [id("c#1", 2), id("d", 1), id("c#1", 1), id("c#1", 70_000_000_000)];
        let places = Places::new(&ids);
        assert!(ids.iter().map(|id| places.of(&id.to_string())).eq(0..4));
        for unknown in ["s::c#1@a#3", "s::e@a#1", "s::d@a", "s::d@a#x", ""] {
            assert_eq!(places.of(unknown), usize::MAX);
        }
    }
}

//! Positions of trials in the plan.

use std::collections::HashMap;

use model::TrialId;

/// Position of each planned trial. It takes four bytes for each repetition, because a plan may have a million trials.
#[derive(Default)]
pub(crate) struct Places {
    /// By the printed id without the repetition.
    trials: HashMap<String, Repetitions>,
}

/// Positions of the repetitions of a case under one arm.
#[derive(Default)]
struct Repetitions {
    /// Those of the first repetitions, from 1 on without a gap.
    first: Vec<u32>,
    /// Those of the others, which only a part of a plan has.
    others: HashMap<u64, usize>,
}

impl Repetitions {
    fn add(&mut self, repetition: u64, place: usize) {
        match u32::try_from(place) {
            Ok(place) if repetition == self.first.len() as u64 + 1 => self.first.push(place),
            _ => drop(self.others.insert(repetition, place)),
        }
    }

    fn of(&self, repetition: u64) -> Option<usize> {
        let first = usize::try_from(repetition).ok()?.checked_sub(1).and_then(|index| self.first.get(index));
        first.map(|place| *place as usize).or_else(|| self.others.get(&repetition).copied())
    }
}

impl Places {
    /// Numbers the trials of a plan.
    pub(crate) fn new(ids: &[TrialId]) -> Self {
        let mut places = Self::default();
        for (place, id) in ids.iter().enumerate() {
            let key = [&*id.suite, "::", &id.case, "@", &id.arm].concat();
            places.trials.entry(key).or_default().add(id.repetition, place);
        }
        places.trials.values_mut().for_each(|repetitions| repetitions.first.shrink_to_fit());
        places
    }

    /// Returns the position of a trial, by its printed id. One that is not planned comes last.
    pub(crate) fn of(&self, id: &str) -> usize {
        let found =
            id.rsplit_once('#').and_then(|(key, repetition)| self.trials.get(key)?.of(repetition.parse().ok()?));
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

//! Figures of finished trials for statistics. Equal ones are kept once, so that repetitions take no memory as long as
//! their results are equal.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::Arc;

use model::{Arm, TrialFigures, TrialRecord};

/// Repetition of figures that stand for several trials. No statistics depend on it.
const ANY: u64 = 0;

/// Figures of trials, in no particular order.
#[derive(Default)]
pub(crate) struct Figures {
    /// Different figures, each with the number of trials that have them.
    different: Vec<(TrialFigures, usize)>,
    /// Position of figures by their hash; of those with the same hash, that of the last ones.
    places: HashMap<u64, usize>,
    /// Arms that the figures share, by their printed form.
    arms: HashMap<Arc<str>, Arc<Arm>>,
}

impl Figures {
    /// Adds the figures of a trial.
    pub(crate) fn add(&mut self, record: &TrialRecord) {
        let mut figures = TrialFigures { repetition: ANY, ..TrialFigures::from_record(record) };
        figures.of = Arc::clone(self.arms.entry(Arc::clone(&figures.arm)).or_insert(figures.of));
        let observation = &figures.observation;
        let [duration, tokens, cost] =
            [observation.duration_s, observation.tokens, observation.cost_usd].map(|amount| amount.map(f64::to_bits));
        let key = (&figures.arm, &observation.case, observation.first, duration, tokens, cost);
        let place = self.places.entry(self.places.hasher().hash_one(key)).or_insert(usize::MAX);
        match self.different.get_mut(*place) {
            Some((known, count)) if *known == figures => *count += 1,
            _ => {
                *place = self.different.len();
                self.different.push((figures, 1));
            }
        }
    }

    /// Returns the figures of each trial.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &TrialFigures> + Clone {
        self.different.iter().flat_map(|(figures, count)| std::iter::repeat_n(figures, *count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_figures_are_kept_once_and_count_as_often_as_there_are_trials() {
        let record = |case: &str, repetition: u64, ms: u64| -> TrialRecord {
            serde_json::from_value(serde_json::json!({
                "id": format!("s::{case}@x#{repetition}"), "suite": "s", "case": case, "arm": "x", "agent": "x",
                "repetition": repetition, "outcome": "passed", "findings": [], "input": [], "turn_count": 0,
                "tool_calls": [], "questions": [], "duration_ms": ms, "agent_ms": ms, "attempts": [],
                "started_at": "2026-11-21T21:48:00Z", "files_changed": [], "errors": [],
            }))
            .unwrap()
        };
        let mut figures = Figures::default();
        for repetition in 1..=1000 {
            figures.add(&record("one", repetition, 5 + repetition % 2));
            figures.add(&record("other", repetition, 5));
        }
        assert_eq!((figures.different.len(), figures.iter().count()), (3, 2000));
        let of_one = figures.iter().filter(|trial| &*trial.observation.case.1 == "one");
        let seconds: f64 = of_one.filter_map(|trial| trial.observation.duration_s).sum();
        assert!((seconds - 5.5).abs() < 1e-9, "{seconds}");
    }
}

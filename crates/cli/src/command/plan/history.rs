//! Results, durations and costs of earlier trials of the planned cases.

use std::collections::HashMap;

use model::TrialRow;
use model::statistics::Counted;
use runner::Plan;
use store::{Store, StoreError, TrialFilter};

/// Maximum number of recorded trials to search, newest first.
const MOST_ROWS: usize = 20_000;
/// Number of trials that is enough for one case and arm.
const ENOUGH: u64 = 50;

/// Suite, case and arm.
pub type Key = (String, String, String);

/// Earlier trials, by case and arm.
#[derive(Debug, Default)]
pub struct History(HashMap<Key, Known>);

/// Earlier trials of one case under one arm.
#[derive(Debug, Clone, Copy, Default)]
pub struct Known {
    /// Results of the first attempts.
    pub counts: Counted,
    duration_ms: u64,
    trials: u64,
    cost_usd: f64,
    trials_with_cost: u64,
}

impl Known {
    /// Returns the mean duration of a trial in milliseconds.
    pub fn mean_ms(&self) -> Option<f64> {
        (self.trials > 0).then(|| self.duration_ms as f64 / self.trials as f64)
    }

    /// Returns the mean cost of a trial in US dollars.
    pub fn mean_cost_usd(&self) -> Option<f64> {
        (self.trials_with_cost > 0).then(|| self.cost_usd / self.trials_with_cost as f64)
    }

    fn add(&mut self, row: &TrialRow) {
        self.counts.add(row.first_outcome());
        self.trials += 1;
        self.duration_ms += row.duration_ms;
        if let Some(cost) = row.cost_usd {
            self.cost_usd += cost;
            self.trials_with_cost += 1;
        }
    }
}

impl History {
    /// Reads the newest recorded trials of the planned cases.
    pub fn read(store: &dyn Store, plan: &Plan) -> Result<Self, StoreError> {
        let mut known: HashMap<Key, Known> = HashMap::new();
        for trial in plan.trials.iter().filter(|trial| trial.repetition == 1) {
            known.insert(
                (trial.suite.to_string(), trial.case_id.to_string(), trial.arm_name.to_string()),
                Known::default(),
            );
        }
        let mut rows = 0;
        store.each_trial(&TrialFilter::default(), &mut |row| {
            rows += 1;
            if row.outcome.is_graded()
                && let Some(known) = known.get_mut(&(row.suite.clone(), row.case.clone(), row.arm.clone()))
                && known.trials < ENOUGH
            {
                known.add(&row);
            }
            rows < MOST_ROWS
        })?;
        known.retain(|_, known| known.trials > 0);
        Ok(Self(known))
    }

    /// Returns the earlier trials of a case under an arm.
    pub fn get(&self, suite: &str, case: &str, arm: &str) -> Option<Known> {
        self.0.get(&(suite.to_owned(), case.to_owned(), arm.to_owned())).copied()
    }
}

//! Trials of one case under one arm, if their results decide how many run.

use std::collections::{BTreeMap, VecDeque};

use model::Outcome;
use model::statistics::Counted;

use crate::plan::{PlannedTrial, TrialResult};

/// Number of consecutive trials without a result after which no more are tried.
const MOST_WITHOUT_RESULT: u64 = 5;

/// Trials of one case under one arm.
///
/// Results count in the order in which the trials were started, up to the first one that is still running. With
/// parallel trials, failures such as timeouts often take longer than passes, so counting trials as they end would
/// include too many passes.
#[derive(Default)]
pub(super) struct Group {
    /// Trials that have not started, in order, with their positions in the plan.
    pub(super) waiting: VecDeque<(usize, PlannedTrial)>,
    /// Number of trials that have started, including those in the earlier part of a resumed run.
    pub(super) started: u64,
    pub(super) is_baseline: bool,
    /// Outcomes of finished trials that do not count yet, because an earlier trial is still running.
    finished: BTreeMap<u64, Outcome>,
    /// Results that count, in order. A skipped trial is `None`, because it was not to have a result.
    counted: Vec<Option<Verdict>>,
    cost_usd: f64,
    trials_with_cost: u64,
}

/// Result of a trial: `Some(true)` if it passed, `None` if it could have passed or failed.
pub(super) type Verdict = Option<bool>;

impl Group {
    /// Adds a result. It does not count before [`advance`](Self::advance).
    pub(super) fn add(&mut self, result: &TrialResult) {
        if let Some(cost) = result.cost_usd {
            self.cost_usd += cost;
            self.trials_with_cost += 1;
        }
        self.finished.insert(result.repetition, result.outcome);
    }

    /// Counts the next result, if its trial has finished. Results count one at a time, even if a slow trial has held up
    /// several. This way, a decision does not depend on how many trials run in parallel.
    pub(super) fn advance(&mut self) -> bool {
        let Some(outcome) = self.finished.remove(&(self.counted.len() as u64 + 1)) else { return false };
        self.counted.push(match outcome {
            Outcome::Passed => Some(Some(true)),
            Outcome::Failed => Some(Some(false)),
            Outcome::Undecided | Outcome::Broken | Outcome::Stale => Some(None),
            Outcome::Skipped | Outcome::Cancelled => None,
        });
        true
    }

    /// Returns the results that count. A skipped trial is `None`.
    pub(super) fn results(&self) -> &[Option<Verdict>] {
        &self.counted
    }

    /// Returns the numbers of counted trials by result, without skipped ones.
    pub(super) fn counts(&self) -> Counted {
        let mut counts = Counted::default();
        for verdict in self.counted.iter().flatten() {
            match verdict {
                Some(true) => counts.passed += 1,
                Some(false) => counts.failed += 1,
                None => counts.unknown += 1,
            }
        }
        counts
    }

    /// Returns the number of skipped trials that count.
    pub(super) fn skipped(&self) -> u64 {
        self.counted.iter().filter(|result| result.is_none()).count() as u64
    }

    /// Returns `true` if so many consecutive trials have no result that further ones would probably have none either.
    pub(super) fn has_no_results(&self) -> bool {
        let last = self.counted.iter().rev().take_while(|result| result.flatten().is_none()).count();
        last as u64 >= MOST_WITHOUT_RESULT
    }

    /// Returns the mean cost of a trial in US dollars, if known.
    pub(super) fn mean_cost_usd(&self) -> Option<f64> {
        (self.trials_with_cost > 0).then(|| self.cost_usd / self.trials_with_cost as f64)
    }

    /// Returns the number of started trials that do not count yet.
    pub(super) fn running(&self) -> u64 {
        self.started.saturating_sub(self.counted.len() as u64)
    }
}

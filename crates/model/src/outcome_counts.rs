//! Counts of trials by outcome.

use std::ops::{AddAssign, Index, IndexMut};

use serde::{Deserialize, Serialize};

use crate::Outcome;
use crate::statistics::Counted;

/// Numbers of trials by outcome. All summaries count with it, so that none leaves out an outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OutcomeCounts {
    /// Number of passed trials.
    pub passed: usize,
    /// Number of failed trials.
    pub failed: usize,
    /// Number of undecided trials.
    pub undecided: usize,
    /// Number of trials broken by infrastructure.
    pub broken: usize,
    /// Number of trials in which a request had no recorded answer.
    pub stale: usize,
    /// Number of skipped trials.
    pub skipped: usize,
    /// Number of cancelled trials.
    pub cancelled: usize,
}

impl OutcomeCounts {
    /// Counts trials with these outcomes.
    pub fn of(outcomes: impl IntoIterator<Item = Outcome>) -> Self {
        let mut counts = Self::default();
        outcomes.into_iter().for_each(|outcome| counts[outcome] += 1);
        counts
    }

    /// Returns the outcomes that occur, with their counts, in the order in which reports list them.
    pub fn occurring(self) -> impl Iterator<Item = (Outcome, usize)> {
        Outcome::ALL.into_iter().map(move |outcome| (outcome, self[outcome])).filter(|(_, count)| *count > 0)
    }

    /// Returns the number of trials whose outcome meets a condition.
    pub fn sum(self, is_meant: impl Fn(Outcome) -> bool) -> usize {
        self.occurring().filter(|(outcome, _)| is_meant(*outcome)).map(|(_, count)| count).sum()
    }

    /// Returns the trials by the result that rates count. The `flaky` trials, which passed only after a failed attempt,
    /// failed at the first one.
    pub fn counted(self, flaky: usize) -> Counted {
        Counted {
            passed: self.passed.saturating_sub(flaky) as u64,
            failed: (self.failed + flaky) as u64,
            unknown: self.sum(Outcome::is_unknown) as u64,
        }
    }
}

impl Index<Outcome> for OutcomeCounts {
    type Output = usize;

    fn index(&self, outcome: Outcome) -> &usize {
        match outcome {
            Outcome::Passed => &self.passed,
            Outcome::Failed => &self.failed,
            Outcome::Undecided => &self.undecided,
            Outcome::Broken => &self.broken,
            Outcome::Stale => &self.stale,
            Outcome::Skipped => &self.skipped,
            Outcome::Cancelled => &self.cancelled,
        }
    }
}

impl IndexMut<Outcome> for OutcomeCounts {
    fn index_mut(&mut self, outcome: Outcome) -> &mut usize {
        match outcome {
            Outcome::Passed => &mut self.passed,
            Outcome::Failed => &mut self.failed,
            Outcome::Undecided => &mut self.undecided,
            Outcome::Broken => &mut self.broken,
            Outcome::Stale => &mut self.stale,
            Outcome::Skipped => &mut self.skipped,
            Outcome::Cancelled => &mut self.cancelled,
        }
    }
}

impl AddAssign for OutcomeCounts {
    fn add_assign(&mut self, more: Self) {
        more.occurring().for_each(|(outcome, count)| self[outcome] += count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_outcome_has_a_count_of_its_own_under_its_name() {
        for outcome in Outcome::ALL {
            let counts = OutcomeCounts::of([outcome; 2]);
            assert_eq!(counts.occurring().collect::<Vec<_>>(), [(outcome, 2)]);
            assert_eq!(serde_json::to_value(counts).unwrap()[outcome.name()], 2);
            assert_eq!(counts.counted(0), Counted::of([outcome; 2]), "{}", outcome.name());
        }
        let mut counts = OutcomeCounts::of(Outcome::ALL);
        counts += counts;
        assert_eq!(counts.sum(|_| true), 2 * Outcome::ALL.len());
        assert_eq!(counts.counted(1), Counted { passed: 1, failed: 3, unknown: 6 });
    }
}

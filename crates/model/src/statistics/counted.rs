//! Counts of trials by result.

use std::cmp::Ordering;
use std::ops::AddAssign;

use super::bounds::BoundedEstimate;
use super::sequential::confidence_sequence;
use super::wilson;
use crate::{Bounds, Outcome};

/// Numbers of trials by result. In a run whose results decide how many trials run, trials count in the order in which
/// they were started, up to the first one that is still running.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counted {
    /// Passed trials.
    pub passed: u64,
    /// Failed trials. An unmet assertion decides this, whatever the undecided ones would have said.
    pub failed: u64,
    /// Trials that could have passed or failed: undecided, broken and stale ones. They are not a random sample: for
    /// example, an unavailable judge affects only trials that would otherwise pass.
    pub unknown: u64,
}

impl Counted {
    /// Counts trials with these outcomes.
    pub fn of(outcomes: impl IntoIterator<Item = Outcome>) -> Self {
        let mut counted = Self::default();
        outcomes.into_iter().for_each(|outcome| counted.add(outcome));
        counted
    }

    /// Counts one more trial. Skipped and cancelled trials do not count: they were not to have a result.
    pub fn add(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Passed => self.passed += 1,
            Outcome::Failed => self.failed += 1,
            _ if outcome.is_unknown() => self.unknown += 1,
            _ => {}
        }
    }

    /// Returns the number of trials.
    pub fn trials(self) -> u64 {
        self.passed + self.failed + self.unknown
    }

    /// Returns the lowest and the highest possible share of passed trials; `None` for no trials.
    pub fn bounds(self) -> Option<Bounds> {
        let trials = self.trials() as f64;
        let share = |passed: u64| passed as f64 / trials;
        (trials > 0.0).then(|| Bounds { min: share(self.passed), max: share(self.passed + self.unknown) })
    }

    /// Returns the share of passed trials with its interval; `None` for no trials.
    pub fn rate(self) -> Option<BoundedEstimate> {
        let [low, _] = wilson(self.passed, self.trials());
        let [_, high] = wilson(self.passed + self.unknown, self.trials());
        let bounds = self.bounds()?;
        Some(BoundedEstimate { mean: bounds.value(), bounds, ci95: Some([low, high]) })
    }

    /// Returns the numbers of passed and failed trials if every unknown trial failed.
    pub fn worst(self) -> [u64; 2] {
        [self.passed, self.failed + self.unknown]
    }

    /// Returns the numbers of passed and failed trials if every unknown trial passed.
    pub fn best(self) -> [u64; 2] {
        [self.passed + self.unknown, self.failed]
    }

    /// Compares the pass rates after and before; `None` if the result depends on unknown trials, or a side has no
    /// trials.
    pub fn change(before: Self, after: Self) -> Option<Ordering> {
        if before.trials() == 0 || after.trials() == 0 {
            return None;
        }
        // The shares are scaled to a common denominator.
        let least = |counts: Self, other: Self| counts.passed * other.trials();
        let most = |counts: Self, other: Self| (counts.passed + counts.unknown) * other.trials();
        if most(after, before) < least(before, after) {
            return Some(Ordering::Less);
        }
        if least(after, before) > most(before, after) {
            return Some(Ordering::Greater);
        }
        (before.unknown + after.unknown == 0).then_some(Ordering::Equal)
    }

    /// Returns the [`confidence_sequence`] of the pass rate, widened to cover all possible results of the unknown
    /// trials.
    pub fn confidence_sequence(self, alpha: f64) -> [f64; 2] {
        let of = |[passed, failed]: [u64; 2]| confidence_sequence(passed, failed, alpha);
        [of(self.worst())[0], of(self.best())[1]]
    }
}

impl AddAssign for Counted {
    fn add_assign(&mut self, more: Self) {
        self.passed += more.passed;
        self.failed += more.failed;
        self.unknown += more.unknown;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Outcome::{Broken, Cancelled, Failed, Passed, Skipped, Stale, Undecided};

    #[test]
    fn a_trial_that_could_have_passed_or_failed_widens_the_rate() {
        let counted = Counted::of([Passed, Failed, Undecided, Broken, Stale, Skipped, Cancelled]);
        assert_eq!(counted, Counted { passed: 1, failed: 1, unknown: 3 });
        let rate = counted.rate().unwrap();
        assert_eq!((rate.bounds, rate.mean), (Bounds { min: 0.2, max: 0.8 }, None));
        assert_eq!(rate.ci95, Some([wilson(1, 5)[0], wilson(4, 5)[1]]));
        assert_eq!(Counted::of([Passed, Failed]).rate().unwrap().mean, Some(0.5));
        assert_eq!((Counted::default().rate(), Counted::of([Skipped]).bounds()), (None, None));
    }

    #[test]
    fn a_change_counts_only_if_no_unknown_trial_could_reverse_it() {
        let change = |before: &[Outcome], after: &[Outcome]| {
            Counted::change(Counted::of(before.iter().copied()), Counted::of(after.iter().copied()))
        };
        assert_eq!(change(&[Passed, Passed], &[Failed, Undecided]), Some(Ordering::Less));
        assert_eq!(change(&[Failed, Failed], &[Failed, Passed]), Some(Ordering::Greater));
        assert_eq!(change(&[Passed, Failed], &[Failed, Passed]), Some(Ordering::Equal));
        assert_eq!(change(&[Passed, Failed], &[Failed, Undecided]), None, "it may have passed as often");
        assert_eq!(change(&[Undecided], &[Failed]), None, "it may have failed before");
        assert_eq!(change(&[Passed], &[Broken]), None);
        assert_eq!(change(&[Passed], &[]), None);
    }

    #[test]
    fn the_confidence_sequence_contains_every_result_of_unknown_trials() {
        let counted = Counted { passed: 8, failed: 1, unknown: 3 };
        let [low, high] = counted.confidence_sequence(0.05);
        for passed in 8..=11 {
            let [lower, upper] = confidence_sequence(passed, 12 - passed, 0.05);
            assert!(low <= lower && upper <= high);
        }
        assert_eq!(Counted::default().confidence_sequence(0.05), [0.0, 1.0]);
    }
}

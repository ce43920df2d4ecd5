//! Counts of trials that passed or may have passed.

use std::cmp::Ordering;

use model::Outcome;

use crate::format::percent;

/// Counts of graded trials. An undecided trial might have passed, so shares have bounds. Leaving such trials out would
/// favour failures, because a single unmet assertion is enough to fail.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) undecided: u64,
}

impl Counts {
    pub(crate) fn add(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Passed => self.passed += 1,
            Outcome::Failed => self.failed += 1,
            Outcome::Undecided => self.undecided += 1,
            Outcome::Broken | Outcome::Stale | Outcome::Skipped | Outcome::Cancelled => {}
        }
    }

    /// Number of graded trials.
    pub(crate) fn graded(&self) -> u64 {
        self.passed + self.failed + self.undecided
    }

    /// Returns the lowest and highest possible pass rate; `None` if no trial was graded.
    pub(crate) fn bounds(&self) -> Option<(f64, f64)> {
        let all = self.graded() as f64;
        let share = |passed: u64| passed as f64 / all;
        (all > 0.0).then(|| (share(self.passed), share(self.passed + self.undecided)))
    }

    /// Compares the pass rates after and before; `None` if the result depends on undecided trials, or nothing was
    /// graded.
    pub(crate) fn change(before: &Self, after: &Self) -> Option<Ordering> {
        // The shares are scaled to a common denominator.
        let least = |counts: &Self, other: &Self| counts.passed * other.graded();
        let most = |counts: &Self, other: &Self| (counts.passed + counts.undecided) * other.graded();
        if before.graded() == 0 || after.graded() == 0 {
            return None;
        }
        if most(after, before) < least(before, after) {
            return Some(Ordering::Less);
        }
        if least(after, before) > most(before, after) {
            return Some(Ordering::Greater);
        }
        (before.undecided + after.undecided == 0).then_some(Ordering::Equal)
    }

    /// Formats the count as `3/5`, or `3 to 4/5` if one is undecided.
    pub(crate) fn describe(&self) -> String {
        match self.undecided {
            0 => format!("{}/{}", self.passed, self.graded()),
            open => format!("{} to {}/{}", self.passed, self.passed + open, self.graded()),
        }
    }

    /// Formats the share as `60%`, `60% to 80%` or `n/a`.
    pub(crate) fn share(&self) -> String {
        match self.bounds() {
            None => "n/a".into(),
            Some((least, most)) if self.undecided == 0 || least >= most => percent(least),
            Some((least, most)) => format!("{} to {}", percent(least), percent(most)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Outcome::{Failed, Passed, Undecided};

    fn of(outcomes: &[Outcome]) -> Counts {
        let mut counts = Counts::default();
        outcomes.iter().for_each(|outcome| counts.add(*outcome));
        counts
    }

    #[test]
    fn a_change_counts_only_if_no_undecided_trial_could_reverse_it() {
        let change = |before: &[Outcome], after: &[Outcome]| Counts::change(&of(before), &of(after));
        assert_eq!(change(&[Passed, Passed], &[Failed, Undecided]), Some(Ordering::Less));
        assert_eq!(change(&[Failed, Failed], &[Failed, Passed]), Some(Ordering::Greater));
        assert_eq!(change(&[Passed, Failed], &[Failed, Passed]), Some(Ordering::Equal));
        assert_eq!(change(&[Passed, Failed], &[Failed, Undecided]), None, "it may have passed as often");
        assert_eq!(change(&[Undecided], &[Failed]), None, "it may have failed before");
        assert_eq!(change(&[Passed], &[Outcome::Broken]), None);
    }

    #[test]
    fn shares_of_undecided_trials_are_shown_with_bounds() {
        let described = |outcomes: &[Outcome]| (of(outcomes).describe(), of(outcomes).share());
        assert_eq!(described(&[Passed, Failed]), ("1/2".into(), "50%".into()));
        assert_eq!(described(&[Passed, Failed, Undecided, Undecided]), ("1 to 3/4".into(), "25% to 75%".into()));
        assert_eq!(described(&[]), ("0/0".into(), "n/a".into()));
    }
}

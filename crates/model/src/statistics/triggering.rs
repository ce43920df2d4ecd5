//! Triggering of a skill.

use serde::{Deserialize, Serialize};

use super::{BoundedEstimate, Bounds, Counted};
use crate::TrialRecord;

/// Actual and expected triggering of a skill in one trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trigger {
    /// True if the case expects the skill to trigger.
    pub expected: bool,
    /// True if it triggered; `None` if that is unknown, as for a broken trial.
    pub happened: Option<bool>,
}

impl Trigger {
    /// Extracts the value from a record. `None` if the case does not specify whether the skill should trigger, if the
    /// arm lacks the skill, or if the trial was skipped or cancelled. Work done before a trial broke does not count.
    pub fn from_record(trial: &TrialRecord) -> Option<Self> {
        let is_counted = !trial.is_baseline() && Counted::of([trial.outcome]).trials() > 0;
        let expected = trial.should_trigger.filter(|_| is_counted)?;
        // As in all rates, the first attempt counts.
        let happened = match trial.first_attempt() {
            Some(attempt) => attempt.triggered,
            None => trial.triggered.filter(|_| trial.outcome.is_graded()),
        };
        Some(Self { expected, happened })
    }
}

/// Comparison of a skill's triggering with what the cases expect, over the trials of an arm that has the skill.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Triggering {
    /// Number of trials in which it should trigger and did.
    pub hits: u64,
    /// Number of trials in which it should trigger and did not.
    pub misses: u64,
    /// Number of trials in which it should not trigger and did.
    pub false_alarms: u64,
    /// Number of trials in which it should not trigger and did not.
    pub rejections: u64,
    /// Number of trials for which it is unknown. They widen all rates.
    pub unknown: u64,
    /// Number of `unknown` trials in which it should trigger.
    pub unknown_wanted: u64,
    /// Share of the trials in which it triggered that expected it: hits / (hits + false alarms).
    pub precision: Option<BoundedEstimate>,
    /// Share of the trials that expected it in which it triggered: hits / (hits + misses).
    pub recall: Option<BoundedEstimate>,
    /// Share of all trials in which it never triggered: (misses + rejections) / all.
    pub never: Option<BoundedEstimate>,
}

impl Triggering {
    /// Returns the number of trials with a known result that expected it to trigger.
    pub fn wanted(&self) -> u64 {
        self.hits + self.misses
    }

    /// Returns the number of trials in which it triggered.
    pub fn triggered(&self) -> u64 {
        self.hits + self.false_alarms
    }

    /// Returns `true` if it was expected to trigger and never did. In that case, results with the skill say nothing
    /// about it.
    pub fn never_happened(&self) -> bool {
        self.wanted() > 0 && self.triggered() == 0
    }

    /// Returns the number of trials in which it should have triggered, if it never did.
    pub fn unused(&self) -> Option<u64> {
        self.never_happened().then(|| self.wanted())
    }

    /// Counts the given trials.
    pub fn from_triggers(triggers: impl IntoIterator<Item = Trigger>) -> Self {
        let mut sum = Self::default();
        for trigger in triggers {
            let count = match (trigger.expected, trigger.happened) {
                (true, Some(true)) => &mut sum.hits,
                (true, Some(false)) => &mut sum.misses,
                (false, Some(true)) => &mut sum.false_alarms,
                (false, Some(false)) => &mut sum.rejections,
                (_, None) => &mut sum.unknown,
            };
            *count += 1;
            sum.unknown_wanted += u64::from(trigger.expected && trigger.happened.is_none());
        }
        sum.precision = sum.bounded_precision();
        sum.recall = sum.recalled().rate();
        sum.never = sum.not_triggered().rate();
        sum
    }

    /// Returns the trials that expected it to trigger; those in which it did are `passed`.
    pub fn recalled(&self) -> Counted {
        Counted { passed: self.hits, failed: self.misses, unknown: self.unknown_wanted }
    }

    /// Returns all trials; those in which it did not trigger are `passed`.
    pub fn not_triggered(&self) -> Counted {
        Counted { passed: self.misses + self.rejections, failed: self.triggered(), unknown: self.unknown }
    }

    /// Returns the precision, if it is known to have triggered. It is lowest if it also triggered in exactly those
    /// unknown trials that did not expect it, and highest if it triggered in exactly those that did.
    fn bounded_precision(&self) -> Option<BoundedEstimate> {
        let of = |passed: u64, failed: u64| Counted { passed, failed, unknown: 0 }.rate();
        let is_defined = self.triggered() > 0;
        let low = of(self.hits, self.false_alarms + self.unknown.saturating_sub(self.unknown_wanted))?;
        let high = of(self.hits + self.unknown_wanted, self.false_alarms).filter(|_| is_defined)?;
        let bounds = Bounds { min: low.bounds.min, max: high.bounds.max };
        let ci95 = low.ci95.zip(high.ci95).map(|([low, _], [_, high])| [low, high]);
        Some(BoundedEstimate { mean: bounds.value(), bounds, ci95 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::wilson;

    fn triggers(expected: bool, happened: Option<bool>, count: usize) -> impl Iterator<Item = Trigger> + Clone {
        std::iter::repeat_n(Trigger { expected, happened }, count)
    }

    #[test]
    fn precision_and_recall_come_with_intervals() {
        let all = triggers(true, Some(true), 6)
            .chain(triggers(true, Some(false), 2))
            .chain(triggers(false, Some(true), 1))
            .chain(triggers(false, Some(false), 3));
        let known = Triggering::from_triggers(all.clone());
        let figure = |estimate: Option<BoundedEstimate>| estimate.map(|e| (e.mean, e.ci95));
        assert_eq!(figure(known.precision), Some((Some(6.0 / 7.0), Some(wilson(6, 7)))));
        assert_eq!(figure(known.recall), Some((Some(0.75), Some(wilson(6, 8)))));
        assert_eq!(figure(known.never), Some((Some(5.0 / 12.0), Some(wilson(5, 12)))));

        let sum = Triggering::from_triggers(all.chain(triggers(true, None, 2)).chain(triggers(false, None, 2)));
        assert_eq!((sum.hits, sum.misses, sum.false_alarms, sum.rejections, sum.unknown), (6, 2, 1, 3, 4));
        let bounds = |estimate: Option<BoundedEstimate>| estimate.map(|e| (e.mean, e.bounds));
        assert_eq!(bounds(sum.precision), Some((None, Bounds { min: 6.0 / 9.0, max: 8.0 / 9.0 })));
        assert_eq!(bounds(sum.recall), Some((None, Bounds { min: 0.6, max: 0.8 })));
        assert_eq!(bounds(sum.never), Some((None, Bounds { min: 5.0 / 16.0, max: 9.0 / 16.0 })));
    }

    #[test]
    fn a_skill_that_never_triggered_has_no_precision() {
        let sum = Triggering::from_triggers(triggers(true, Some(false), 2));
        assert_eq!(
            (sum.precision, sum.recall.and_then(|e| e.mean), sum.never.and_then(|e| e.mean)),
            (None, Some(0.0), Some(1.0))
        );
        let controls = Triggering::from_triggers(triggers(false, Some(false), 2));
        assert_eq!((controls.precision, controls.recall), (None, None));
        let unwanted = Triggering::from_triggers(triggers(false, None, 1));
        assert_eq!(unwanted.precision, None, "it may not have triggered");
        let unknown = Triggering::from_triggers(triggers(true, None, 1));
        assert_eq!(unknown.never.map(|e| e.bounds), Some(Bounds::UNKNOWN_SHARE));
    }
}

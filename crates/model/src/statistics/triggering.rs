//! Triggering of a skill.

use serde::{Deserialize, Serialize};

use super::mean::rate;
use crate::{Estimate, TrialRecord};

/// Actual and expected triggering of a skill in one trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trigger {
    /// True if the case expects the skill to trigger.
    pub expected: bool,
    /// True if it triggered; `None` if that is unknown, as for a broken trial.
    pub happened: Option<bool>,
}

impl Trigger {
    /// Extracts the value from a record. `None` if the case does not specify whether the skill should trigger, or the
    /// arm lacks the skill. Work done before a trial was broken or cancelled does not count.
    pub fn from_record(trial: &TrialRecord) -> Option<Self> {
        let expected = trial.should_trigger.filter(|_| !trial.is_baseline())?;
        Some(Self { expected, happened: trial.triggered.filter(|_| trial.outcome.is_graded()) })
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
    /// Number of trials for which it is unknown; excluded from all rates.
    pub unknown: u64,
    /// Share of the trials in which it triggered that expected it: hits / (hits + false alarms).
    pub precision: Option<Estimate>,
    /// Share of the trials that expected it in which it triggered: hits / (hits + misses).
    pub recall: Option<Estimate>,
    /// Share of all trials in which it never triggered: (misses + rejections) / all.
    pub never: Option<Estimate>,
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

    /// Returns the number of trials for which it is known whether it triggered.
    pub fn known(&self) -> u64 {
        self.triggered() + self.misses + self.rejections
    }

    /// Returns `true` if it was expected to trigger and never did. In that case, results with the skill say nothing
    /// about it.
    pub fn never_happened(&self) -> bool {
        self.wanted() > 0 && self.triggered() == 0
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
        }
        sum.precision = rate(sum.hits, sum.triggered());
        sum.recall = rate(sum.hits, sum.wanted());
        sum.never = rate(sum.misses + sum.rejections, sum.known());
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::wilson;

    fn triggers(expected: bool, happened: Option<bool>, count: usize) -> impl Iterator<Item = Trigger> {
        std::iter::repeat_n(Trigger { expected, happened }, count)
    }

    #[test]
    fn precision_and_recall_come_with_intervals() {
        let all = triggers(true, Some(true), 6)
            .chain(triggers(true, Some(false), 2))
            .chain(triggers(false, Some(true), 1))
            .chain(triggers(false, Some(false), 3))
            .chain(triggers(true, None, 4));
        let sum = Triggering::from_triggers(all);
        assert_eq!((sum.hits, sum.misses, sum.false_alarms, sum.rejections, sum.unknown), (6, 2, 1, 3, 4));
        let figure = |estimate: Option<Estimate>| estimate.map(|e| (e.mean, e.ci95));
        assert_eq!(figure(sum.precision), Some((6.0 / 7.0, Some(wilson(6, 7)))));
        assert_eq!(figure(sum.recall), Some((0.75, Some(wilson(6, 8)))));
        assert_eq!(figure(sum.never), Some((5.0 / 12.0, Some(wilson(5, 12)))));
    }

    #[test]
    fn a_skill_that_never_triggered_has_no_precision() {
        let sum = Triggering::from_triggers(triggers(true, Some(false), 2));
        assert_eq!(
            (sum.precision, sum.recall.map(|e| e.mean), sum.never.map(|e| e.mean)),
            (None, Some(0.0), Some(1.0))
        );
        let controls = Triggering::from_triggers(triggers(false, Some(false), 2));
        assert_eq!((controls.precision, controls.recall), (None, None));
        assert_eq!(Triggering::from_triggers(triggers(true, None, 1)).never, None);
    }
}

//! How a skill triggers.

use serde::{Deserialize, Serialize};

use super::mean::rate;
use crate::{Estimate, TrialRecord};

/// Whether a skill triggered in a trial, and whether it was to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trigger {
    /// Whether the case wants it to.
    pub expected: bool,
    /// Whether it did; `None` where nobody can say, as of a broken trial.
    pub happened: Option<bool>,
}

impl Trigger {
    /// Of a record; `None` where its case does not say whether the skill is to trigger, or its arm lacks the skill. What an
    /// agent did until infrastructure broke its trial, or somebody stopped it, says nothing.
    pub fn of(trial: &TrialRecord) -> Option<Self> {
        let expected = trial.should_trigger.filter(|_| !trial.is_baseline())?;
        Some(Self { expected, happened: trial.triggered.filter(|_| trial.outcome.is_graded()) })
    }
}

/// How well a skill's triggering fits what the cases want, over the trials of an arm that has the skill.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Triggering {
    /// It was to trigger and did.
    pub hits: u64,
    /// It was to trigger and did not.
    pub misses: u64,
    /// It was not to trigger and did.
    pub false_alarms: u64,
    /// It was not to trigger and did not.
    pub rejections: u64,
    /// Nobody can say; in no denominator.
    pub unknown: u64,
    /// Of the trials where it triggered, how many wanted it: hits / (hits + false alarms).
    pub precision: Option<Estimate>,
    /// Of the trials that wanted it, how many had it: hits / (hits + misses).
    pub recall: Option<Estimate>,
    /// Of all trials, how many never triggered it: (misses + rejections) / all.
    pub never: Option<Estimate>,
}

impl Triggering {
    /// How many trials of which it can be said wanted it to trigger.
    pub fn wanted(&self) -> u64 {
        self.hits + self.misses
    }

    /// In how many trials it triggered.
    pub fn triggered(&self) -> u64 {
        self.hits + self.false_alarms
    }

    /// How many trials there are of which it can be said whether it triggered.
    pub fn known(&self) -> u64 {
        self.triggered() + self.misses + self.rejections
    }

    /// Whether it was wanted and never triggered at all: then what trials with the skill came to says nothing about it.
    pub fn never_happened(&self) -> bool {
        self.wanted() > 0 && self.triggered() == 0
    }

    /// Of trials.
    pub fn of(triggers: impl IntoIterator<Item = Trigger>) -> Self {
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
        let sum = Triggering::of(all);
        assert_eq!((sum.hits, sum.misses, sum.false_alarms, sum.rejections, sum.unknown), (6, 2, 1, 3, 4));
        let figure = |estimate: Option<Estimate>| estimate.map(|e| (e.mean, e.ci95));
        assert_eq!(figure(sum.precision), Some((6.0 / 7.0, Some(wilson(6, 7)))));
        assert_eq!(figure(sum.recall), Some((0.75, Some(wilson(6, 8)))));
        assert_eq!(figure(sum.never), Some((5.0 / 12.0, Some(wilson(5, 12)))));
    }

    #[test]
    fn a_skill_that_never_triggered_has_no_precision() {
        let sum = Triggering::of(triggers(true, Some(false), 2));
        assert_eq!(
            (sum.precision, sum.recall.map(|e| e.mean), sum.never.map(|e| e.mean)),
            (None, Some(0.0), Some(1.0))
        );
        let controls = Triggering::of(triggers(false, Some(false), 2));
        assert_eq!((controls.precision, controls.recall), (None, None));
        assert_eq!(Triggering::of(triggers(true, None, 1)).never, None);
    }
}

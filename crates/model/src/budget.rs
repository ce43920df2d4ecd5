//! Caps on the resources of a trial.

use serde::{Deserialize, Serialize};

use crate::{Budget, Tokens, Unreported, Usage};

/// Caps on the resources of a trial, in addition to those on turns and on total tokens. A figure that is not reported
/// neither exceeds a cap nor keeps it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Budgets {
    /// Input tokens, including cache reads and cache writes.
    pub input: Option<f64>,
    /// Input tokens, excluding cache reads.
    pub non_cached_input: Option<f64>,
    /// Output tokens, including reasoning.
    pub output: Option<f64>,
    /// Reasoning tokens, a part of the output.
    pub reasoning: Option<f64>,
    /// Cost in US dollars.
    pub cost_usd: Option<f64>,
    /// Wall-clock time from the first message to the last answer, in milliseconds.
    pub duration_ms: Option<f64>,
}

/// Action taken when a trial exceeds a budget.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnBudget {
    /// Continue and report a warning.
    Warn,
    /// Fail the trial. If usage is known while the agent runs, stop the agent.
    #[default]
    Fail,
    /// Fail the trial and start no further trials.
    Stop,
}

impl OnBudget {
    /// Every variant with its name in files and on the command line.
    pub const ALL: [(&'static str, Self); 3] = [("warn", Self::Warn), ("fail", Self::Fail), ("stop", Self::Stop)];

    /// Returns `true` if an exceeded budget only produces a warning.
    pub fn only_warns(self) -> bool {
        self == Self::Warn
    }

    /// Returns `true` for `Fail`, the default.
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
    pub(crate) fn is_fail(&self) -> bool {
        *self == Self::Fail
    }

    /// Returns the name used in files and on the command line.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, one)| *one == self).map_or("fail", |(name, _)| name)
    }
}

/// Budget that was exceeded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Overrun {
    /// Kind of budget.
    pub budget: Budget,
    /// Value of the cap.
    pub limit: f64,
    /// Amount used.
    pub used: f64,
}

/// Figures of a trial that budgets cap, as far as they are known.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Consumption {
    /// Tokens and cost that were reported. If something was not reported, this is the least that was used.
    pub usage: Usage,
    /// Figures that were not reported, or not completely.
    pub unreported: Unreported,
    /// Wall-clock time in milliseconds, if it was measured.
    pub duration_ms: Option<f64>,
}

/// Budget with its cap, the amount used as far as it is known, and `true` if that is all of it.
type Capped = (Budget, f64, Option<f64>, bool);

impl Budgets {
    /// Returns `true` if no cap is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns every budget that `used` exceeds. Using exactly the cap is allowed.
    pub fn overruns(&self, used: &Consumption) -> Vec<Overrun> {
        let over = |(budget, limit, used, _): Capped| {
            let used = used?;
            (used > limit).then_some(Overrun { budget, limit, used })
        };
        self.caps(used).filter_map(over).collect()
    }

    /// Returns every budget whose figure is known, with its cap and the amount used.
    pub fn used(&self, used: &Consumption) -> Vec<(Budget, f64, f64)> {
        self.caps(used).filter_map(|(budget, limit, used, _)| Some((budget, limit, used?))).collect()
    }

    /// Returns every budget, with its cap, of which it is not known that `used` keeps it.
    pub fn unknown(&self, used: &Consumption) -> Vec<(Budget, f64)> {
        let open = self.caps(used).filter(|(_, _, used, is_complete)| used.is_none() || !is_complete);
        open.map(|(budget, limit, ..)| (budget, limit)).collect()
    }

    /// Returns the budgets that are set.
    fn caps(&self, used: &Consumption) -> impl Iterator<Item = Capped> {
        let Consumption { usage: Usage { tokens, cost_usd }, unreported, duration_ms } = *used;
        let of = |count: fn(Tokens) -> u64| tokens.map(|tokens| count(tokens) as f64);
        let reasoning = tokens.and_then(|tokens| Some(tokens.reasoning? as f64));
        let all = [
            (Budget::Input, self.input, of(|tokens| tokens.all_input()), !unreported.tokens),
            (
                Budget::NonCachedInput,
                self.non_cached_input,
                of(|tokens| tokens.input + tokens.cache_write),
                !unreported.tokens,
            ),
            (Budget::Output, self.output, of(|tokens| tokens.output), !unreported.tokens),
            (Budget::Reasoning, self.reasoning, reasoning, !unreported.reasoning),
            (Budget::Cost, self.cost_usd, cost_usd, !unreported.cost),
            (Budget::Duration, self.duration_ms, duration_ms, true),
        ];
        all.into_iter().filter_map(|(budget, limit, used, is_complete)| Some((budget, limit?, used, is_complete)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceeded_budgets_are_reported_and_those_that_cannot_be_checked_are_unknown() {
        let budgets = Budgets {
            input: Some(100.0),
            non_cached_input: Some(30.0),
            output: Some(10.0),
            reasoning: Some(1.0),
            cost_usd: Some(0.5),
            duration_ms: Some(1000.0),
        };
        let tokens = Tokens { input: 20, cache_read: 70, cache_write: 11, output: 10, reasoning: None };
        let used = |tokens, cost_usd, duration_ms| Consumption {
            usage: Usage { tokens, cost_usd },
            duration_ms,
            ..Consumption::default()
        };
        let over =
            |used: Consumption| -> Vec<Budget> { budgets.overruns(&used).iter().map(|over| over.budget).collect() };
        assert_eq!(over(used(Some(tokens), None, Some(1000.0))), [Budget::Input, Budget::NonCachedInput]);
        let thinking = Tokens { output: 11, reasoning: Some(2), ..Tokens::default() };
        assert_eq!(over(used(Some(thinking), Some(0.6), None)), [Budget::Output, Budget::Reasoning, Budget::Cost]);
        assert_eq!(over(used(None, None, Some(1001.0))), [Budget::Duration]);
        assert!(budgets.overruns(&used(None, None, None)).is_empty() && !budgets.is_empty());
        assert!(Budgets::default().is_empty());
        let unknown = |used: &Consumption| -> Vec<Budget> {
            budgets.unknown(used).into_iter().map(|(budget, _)| budget).collect()
        };
        assert_eq!(unknown(&used(Some(tokens), None, Some(1.0))), [Budget::Reasoning, Budget::Cost]);
        let mut partly = used(Some(thinking), Some(0.1), Some(1.0));
        assert_eq!(unknown(&partly), []);
        partly.unreported = Unreported { tokens: false, reasoning: true, cost: true };
        assert_eq!(unknown(&partly), [Budget::Reasoning, Budget::Cost]);
        assert_eq!(budgets.unknown(&Consumption::default()).len(), 6);
    }
}

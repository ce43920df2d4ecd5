//! Caps on the resources of a trial.

use serde::{Deserialize, Serialize};

use crate::{Budget, Tokens};

/// Caps on the resources of a trial, in addition to those on turns and on total tokens. A figure that is not reported
/// never counts as exceeding a cap.
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

impl Budgets {
    /// Returns `true` if no cap is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns every budget that `tokens`, `cost_usd` and `duration_ms` exceed. Using exactly the cap is allowed.
    pub fn overruns(&self, tokens: Option<Tokens>, cost_usd: Option<f64>, duration_ms: Option<f64>) -> Vec<Overrun> {
        let of = |count: fn(Tokens) -> u64| tokens.map(|tokens| count(tokens) as f64);
        let all = [
            (Budget::Input, self.input, of(|tokens| tokens.input + tokens.cache_read + tokens.cache_write)),
            (Budget::NonCachedInput, self.non_cached_input, of(|tokens| tokens.input + tokens.cache_write)),
            (Budget::Output, self.output, of(|tokens| tokens.output)),
            (Budget::Reasoning, self.reasoning, tokens.and_then(|tokens| Some(tokens.reasoning? as f64))),
            (Budget::Cost, self.cost_usd, cost_usd),
            (Budget::Duration, self.duration_ms, duration_ms),
        ];
        let over = |(budget, limit, used): (Budget, Option<f64>, Option<f64>)| {
            let (limit, used) = (limit?, used?);
            (used > limit).then_some(Overrun { budget, limit, used })
        };
        all.into_iter().filter_map(over).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceeded_budgets_are_reported_and_unknown_usage_is_not() {
        let budgets = Budgets {
            input: Some(100.0),
            non_cached_input: Some(30.0),
            output: Some(10.0),
            reasoning: Some(1.0),
            cost_usd: Some(0.5),
            duration_ms: Some(1000.0),
        };
        let tokens = Tokens { input: 20, cache_read: 70, cache_write: 11, output: 10, reasoning: None };
        let over = |tokens, cost, duration| -> Vec<Budget> {
            budgets.overruns(tokens, cost, duration).iter().map(|over| over.budget).collect()
        };
        assert_eq!(over(Some(tokens), None, Some(1000.0)), [Budget::Input, Budget::NonCachedInput]);
        let thinking = Tokens { output: 11, reasoning: Some(2), ..Tokens::default() };
        assert_eq!(over(Some(thinking), Some(0.6), None), [Budget::Output, Budget::Reasoning, Budget::Cost]);
        assert_eq!(over(None, None, Some(1001.0)), [Budget::Duration]);
        assert!(budgets.overruns(None, None, None).is_empty() && !budgets.is_empty() && Budgets::default().is_empty());
    }
}

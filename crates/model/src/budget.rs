//! Caps on what a trial may use.

use serde::{Deserialize, Serialize};

use crate::{Budget, Tokens};

/// Caps on what a trial may use, beside those on turns and on tokens of all kinds. What nobody reports is held against
/// nobody.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Budgets {
    /// Input tokens, those from and for a cache included.
    pub input: Option<f64>,
    /// Input tokens but for those read from a cache.
    pub non_cached_input: Option<f64>,
    /// Output tokens, reasoning included.
    pub output: Option<f64>,
    /// Output tokens that are reasoning.
    pub reasoning: Option<f64>,
    /// US dollars.
    pub cost_usd: Option<f64>,
    /// Wall clock from the first message to the last answer, in milliseconds.
    pub duration_ms: Option<f64>,
}

/// What becomes of a trial that is out of a budget.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnBudget {
    /// It goes on and is warned about.
    Warn,
    /// It fails; where the budget is known to be used up on the way, it is stopped.
    #[default]
    Fail,
    /// It fails, and no other trial is started.
    Stop,
}

impl OnBudget {
    /// Each by its written name.
    pub const ALL: [(&'static str, Self); 3] = [("warn", Self::Warn), ("fail", Self::Fail), ("stop", Self::Stop)];

    /// Whether a budget that is not kept only warns.
    pub fn only_warns(self) -> bool {
        self == Self::Warn
    }

    /// Whether it is what becomes of a trial unless somebody says otherwise.
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
    pub(crate) fn is_fail(&self) -> bool {
        *self == Self::Fail
    }

    /// As written.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, one)| *one == self).map_or("fail", |(name, _)| name)
    }
}

/// A budget that was not kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Overrun {
    /// Which.
    pub budget: Budget,
    /// The cap.
    pub limit: f64,
    /// What was used.
    pub used: f64,
}

impl Budgets {
    /// Whether there is no cap at all.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Every budget that `tokens`, `cost_usd` and `duration_ms` do not keep. A budget is kept by exactly what it allows.
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
    fn what_is_over_is_told_and_what_is_unknown_is_not() {
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

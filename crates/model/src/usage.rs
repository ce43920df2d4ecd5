//! Tokens and cost. Unknown values are `None`, never 0.

use serde::{Deserialize, Serialize};

/// Tokens of model requests. The four kinds do not overlap: `input` excludes cache reads and cache writes. Agents report any
/// numbers, so sums do not overflow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tokens {
    /// Uncached input.
    pub input: u64,
    /// Input read from a cache.
    pub cache_read: u64,
    /// Input written to a cache.
    pub cache_write: u64,
    /// Output, including reasoning.
    pub output: u64,
    /// Part of the output that is reasoning, if the vendor reports it.
    pub reasoning: Option<u64>,
}

impl Tokens {
    /// Returns all the tokens that a budget counts: input, cache reads, cache writes and output.
    pub fn total(&self) -> u64 {
        self.all_input().saturating_add(self.output)
    }

    /// Returns all input tokens, cached or not.
    pub fn all_input(&self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }

    /// Returns the increase since an earlier total; a number that has become smaller counts as 0.
    pub fn since(&self, before: Self) -> Self {
        Self {
            input: self.input.saturating_sub(before.input),
            cache_read: self.cache_read.saturating_sub(before.cache_read),
            cache_write: self.cache_write.saturating_sub(before.cache_write),
            output: self.output.saturating_sub(before.output),
            reasoning: self.reasoning.map(|total| total.saturating_sub(before.reasoning.unwrap_or(0))),
        }
    }
}

impl std::ops::AddAssign for Tokens {
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.output = self.output.saturating_add(other.output);
        self.reasoning = match (self.reasoning, other.reasoning) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
        };
    }
}

/// Usage of a trial; an unreported part is absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens, if the agent or its provider reported them.
    pub tokens: Option<Tokens>,
    /// Cost in US dollars, if it is known.
    pub cost_usd: Option<f64>,
}

impl Usage {
    /// Returns the tokens and the cost.
    pub const fn parts(self) -> (Option<Tokens>, Option<f64>) {
        (self.tokens, self.cost_usd)
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        if let Some(tokens) = other.tokens {
            *self.tokens.get_or_insert_default() += tokens;
        }
        if let Some(cost) = other.cost_usd {
            *self.cost_usd.get_or_insert_default() += cost;
        }
    }
}

/// Figures of which at least one message of an agent lacks its part, so that their sums are not complete.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Unreported {
    /// Tokens.
    pub tokens: bool,
    /// Reasoning tokens.
    pub reasoning: bool,
    /// Cost.
    pub cost: bool,
}

impl Unreported {
    /// Returns the figures that `usage` lacks.
    pub fn of(usage: &Usage) -> Self {
        Self {
            tokens: usage.tokens.is_none(),
            reasoning: usage.tokens.is_none_or(|tokens| tokens.reasoning.is_none()),
            cost: usage.cost_usd.is_none(),
        }
    }

    /// Returns `usage` without the sums that are not complete.
    pub fn complete(self, usage: Usage) -> Usage {
        Usage { tokens: usage.tokens.filter(|_| !self.tokens), cost_usd: usage.cost_usd.filter(|_| !self.cost) }
    }
}

impl std::ops::BitOrAssign for Unreported {
    fn bitor_assign(&mut self, other: Self) {
        self.tokens |= other.tokens;
        self.reasoning |= other.reasoning;
        self.cost |= other.cost;
    }
}

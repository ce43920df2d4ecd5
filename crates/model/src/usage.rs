//! Tokens and money. What is not known is `None`, never 0.

use serde::{Deserialize, Serialize};

/// What a model was asked to do, in tokens. The four kinds do not overlap: `input` is without what was read from or
/// written to a cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tokens {
    /// Input that no cache had.
    pub input: u64,
    /// Input read from a cache.
    pub cache_read: u64,
    /// Input written to a cache.
    pub cache_write: u64,
    /// Output, reasoning included.
    pub output: u64,
    /// The part of the output that is reasoning, where the vendor says.
    pub reasoning: Option<u64>,
}

impl Tokens {
    /// Everything a budget counts: input, both caches and output.
    pub fn total(&self) -> u64 {
        self.input + self.cache_read + self.cache_write + self.output
    }
}

impl std::ops::AddAssign for Tokens {
    fn add_assign(&mut self, other: Self) {
        self.input += other.input;
        self.cache_read += other.cache_read;
        self.cache_write += other.cache_write;
        self.output += other.output;
        self.reasoning = match (self.reasoning, other.reasoning) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0) + b.unwrap_or(0)),
        };
    }
}

/// What a trial used; a part that nobody reported is absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens, if the agent or its provider told.
    pub tokens: Option<Tokens>,
    /// US dollars, if they are known.
    pub cost_usd: Option<f64>,
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

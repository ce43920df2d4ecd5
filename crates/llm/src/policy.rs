//! How patient and how greedy a client is.

use std::hash::{BuildHasher, Hasher};
use std::time::Duration;

/// How a provider is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// How long it waits for what.
    pub timeouts: Timeouts,
    /// How often a request is sent at most.
    pub tries: u32,
    /// How long it waits before the second try; each further wait is twice as long.
    pub first_wait: Duration,
    /// The longest of these waits.
    pub longest_wait: Duration,
    /// The longest wait that a provider may ask for; asked for more, it gives up at once.
    pub longest_pause: Duration,
    /// How many requests one account may have on their way at a time.
    pub concurrency: usize,
    /// How many requests one account may send in a minute.
    pub requests_per_minute: Option<u32>,
    /// How many tokens one account may use in a minute.
    pub tokens_per_minute: Option<u64>,
    /// Whether answers are asked for as streams, which tells a slow provider from a dead one.
    pub stream: bool,
    /// The most bytes of an answer.
    pub largest_answer: usize,
}

/// How long a client waits for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For the connection.
    pub connect: Duration,
    /// For the answer to begin.
    pub first_byte: Duration,
    /// For the next piece of an answer.
    pub idle: Duration,
    /// For the whole answer.
    pub total: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            timeouts: Timeouts::default(),
            tries: 5,
            first_wait: Duration::from_millis(500),
            longest_wait: Duration::from_secs(30),
            longest_pause: Duration::from_secs(300),
            concurrency: 64,
            requests_per_minute: None,
            tokens_per_minute: None,
            stream: true,
            largest_answer: 64 * 1024 * 1024,
        }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(120),
            idle: Duration::from_secs(120),
            total: Duration::from_secs(1200),
        }
    }
}

impl Policy {
    /// How long to wait after the `tried`-th try, from 1: twice as long each time, less up to a half of it, so that those
    /// who failed together do not come back together.
    pub(crate) fn wait_after(&self, tried: u32) -> Duration {
        let doubled = self.first_wait.saturating_mul(2_u32.saturating_pow(tried.saturating_sub(1).min(20)));
        let whole = doubled.min(self.longest_wait);
        whole - whole.mul_f64(chance() / 2.0)
    }
}

/// A number from 0 up to 1.
fn chance() -> f64 {
    let bits = std::hash::RandomState::new().build_hasher().finish();
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_stay_within_bounds() {
        let policy = Policy::default();
        for (tried, most) in [(1, 500), (2, 1000), (3, 2000), (10, 30_000), (u32::MAX, 30_000)] {
            let wait = policy.wait_after(tried);
            let most = Duration::from_millis(most);
            assert!(wait <= most && wait >= most / 2, "{tried}: {wait:?}");
        }
        let none = Policy { first_wait: Duration::ZERO, ..Policy::default() };
        assert_eq!(none.wait_after(9), Duration::ZERO);
    }
}

//! Timeouts, retries and limits of a client.

use std::hash::{BuildHasher, Hasher};
use std::time::Duration;

/// Settings for requests to a provider.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// Timeouts.
    pub timeouts: Timeouts,
    /// Maximum number of attempts per request.
    pub tries: u32,
    /// Wait before the second attempt; each further wait is twice as long.
    pub first_wait: Duration,
    /// Maximum of these waits.
    pub longest_wait: Duration,
    /// Maximum wait that a provider may ask for; if it asks for more, the request fails immediately.
    pub longest_pause: Duration,
    /// Maximum number of concurrent requests per account.
    pub concurrency: usize,
    /// Maximum number of requests per minute and account.
    pub requests_per_minute: Option<u32>,
    /// Maximum number of tokens per minute and account.
    pub tokens_per_minute: Option<u64>,
    /// True to request responses as streams, which makes it possible to tell a slow provider from a dead one.
    pub stream: bool,
    /// Maximum size of a response in bytes.
    pub largest_answer: usize,
}

/// Timeouts of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Timeout for the connection.
    pub connect: Duration,
    /// Timeout for the start of the response.
    pub first_byte: Duration,
    /// Timeout for the next piece of a response.
    pub idle: Duration,
    /// Timeout for the whole response.
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
    /// Returns the wait after attempt number `tried`, from 1: twice as long each time, minus a random part of up to a
    /// half, so that clients that failed together do not retry together.
    pub(crate) fn wait_after(&self, tried: u32) -> Duration {
        let doubled = self.first_wait.saturating_mul(2_u32.saturating_pow(tried.saturating_sub(1).min(20)));
        let whole = doubled.min(self.longest_wait);
        whole - whole.mul_f64(chance() / 2.0)
    }
}

/// Returns a random number in `0.0..1.0`.
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

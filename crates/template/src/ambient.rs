//! Time and randomness, supplied by the caller, so that a template always resolves to the same value.

use std::sync::atomic::{AtomicU64, Ordering};

/// Time and random seed for templates.
#[derive(Debug, Clone, Default)]
pub struct Ambient {
    /// Milliseconds since 1970 (UTC). If absent, `strftime_now` is an error.
    pub now_ms: Option<i64>,
    /// Offset of the local time from UTC, in minutes.
    pub utc_offset_minutes: i32,
    /// Seed for random numbers.
    pub seed: u64,
}

/// Pseudo-random number generator.
#[derive(Debug, Default)]
pub(crate) struct Chance(AtomicU64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// Returns an integer in `0..bound`, or 0 if `bound` is 0.
    pub(crate) fn below(&self, bound: u64) -> u64 {
        // SplitMix64: neighbouring seeds give unrelated sequences.
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let state = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)).checked_rem(bound).unwrap_or(0)
    }
}

//! Time and chance, given from outside: the same template has the same value whenever it is resolved.

use std::sync::atomic::{AtomicU64, Ordering};

/// The time and the chance that templates see.
#[derive(Debug, Clone, Default)]
pub struct Ambient {
    /// Milliseconds since 1970 (UTC); without it `strftime_now` is an error.
    pub now_ms: Option<i64>,
    /// How far the local time is ahead of UTC, in minutes.
    pub utc_offset_minutes: i32,
    /// What random numbers follow from.
    pub seed: u64,
}

/// A row of random numbers that follows from a seed.
#[derive(Debug, Default)]
pub(crate) struct Chance(AtomicU64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// A whole number in `0..bound`; 0 if there is none.
    pub(crate) fn below(&self, bound: u64) -> u64 {
        // SplitMix64: neighbouring seeds give unrelated rows.
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let state = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)).checked_rem(bound).unwrap_or(0)
    }
}

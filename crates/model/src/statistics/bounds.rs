//! Estimates of figures whose evidence is incomplete.

use serde::{Deserialize, Serialize};

use super::wilson_of_share;
use crate::Bounds;

/// Estimate of a figure whose evidence is incomplete.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BoundedEstimate {
    /// Mean; absent if it is not known.
    pub mean: Option<f64>,
    /// Lowest and highest possible mean of these trials.
    #[serde(flatten)]
    pub bounds: Bounds,
    /// 95 % interval that contains the interval of every possible value.
    pub ci95: Option<[f64; 2]>,
}

impl BoundedEstimate {
    /// Returns the mean of shares from 0 to 1 with Wilson's interval; `None` for no shares, or if a value is not a
    /// share.
    pub fn of_shares(shares: &[Bounds]) -> Option<Self> {
        let is_share = |share: &Bounds| Bounds::UNKNOWN_SHARE.contains(*share);
        let bounds = Bounds::mean(shares.iter().copied()).filter(|_| shares.iter().all(is_share))?;
        let end = |share: f64, end: usize| wilson_of_share(share, shares.len() as u64)[end];
        let ci95 = Some([end(bounds.min, 0), end(bounds.max, 1)]);
        Some(Self { mean: bounds.value(), bounds, ci95 })
    }
}

//! Mean with its uncertainty.

use serde::{Deserialize, Serialize};

/// Mean with its uncertainty.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Mean.
    pub mean: f64,
    /// Standard deviation of the sample; absent for one value.
    pub stddev: Option<f64>,
    /// 95 % interval, if it is defined.
    pub ci95: Option<[f64; 2]>,
}

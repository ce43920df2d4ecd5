//! Figures about trials, as pure functions: what an arm came to, how two arms differ, how a skill triggers, and how far
//! each figure can be trusted. The formulas, their sources and what was not chosen: `docs/design/statistics.md`.
//!
//! What is not defined is `None`; no figure is ever infinite or not a number. Values that are neither count as unknown.
//! The order in which values are handed over never shows in a figure: sums run over sorted values.

mod arm;
mod binomial;
mod chance;
mod curve;
mod delta;
mod mean;
mod observation;
mod sign_flip;
#[cfg(test)]
mod simulation;
mod student;
mod triggering;

pub use arm::ArmStatistics;
pub use binomial::{mcnemar, wilson, wilson_of_share};
pub use chance::Chance;
pub use curve::{AtK, pass_at_k, pass_hat_k};
pub use delta::{Delta, Difference};
pub use mean::{amount, estimate, rate, share};
pub use observation::Observation;
pub use sign_flip::{least_p_value, sign_flip};
pub use triggering::{Trigger, Triggering};

/// The normal distribution's 97.5 % quantile: two-sided 95 %.
const Z: f64 = 1.959_963_984_540_054;

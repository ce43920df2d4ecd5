//! Statistics about trials as pure functions: results of an arm, the difference between two arms, triggering of a
//! skill, and the confidence in each figure. The formulas, their sources and the rejected alternatives are in
//! `docs/design/statistics.md`.
//!
//! `sequential` has tests and intervals for runs that stop because of their results. All other modules assume a number
//! of trials that was fixed in advance.
//!
//! Undefined figures are `None`; no figure is ever infinite or NaN. Infinite and NaN values count as unknown. The
//! order of the input never affects a figure: sums run over sorted values.

mod agreement;
mod arm;
mod binomial;
mod bounds;
mod chance;
mod counted;
mod curve;
mod delta;
mod equivalence;
mod fisher;
mod gain;
mod holm;
mod limit;
mod mean;
mod observation;
mod planning;
mod sequential;
mod sign_flip;
mod student;
mod triggering;

pub use crate::Bounds;
pub use agreement::Agreement;
pub use arm::ArmStatistics;
pub use binomial::{mcnemar, wilson, wilson_of_share};
pub use bounds::BoundedEstimate;
pub use chance::Chance;
pub use counted::Counted;
pub use curve::AtK;
pub use delta::{BoundedDifference, Delta, Difference};
pub use equivalence::{WithinMargin, newcombe, no_worse_than};
pub use fisher::{fisher, fisher_of_tables};
pub use gain::normalised_gain;
pub use holm::{DiscreteTest, holm, holm_of_tests};
pub use limit::SIGNIFICANCE;
pub use mean::{amount, estimate, rate, share};
pub use observation::{Observation, can_compare};
pub use planning::{detectable_drop, fewest};
pub use sequential::{
    Comparison, ComparisonDecision, ComparisonForecast, Contract, Decision, Evidence, Forecast, OpenDecision,
    PairBounds, Pairs, confidence_sequence, difference_sequence, e_above, e_below, e_difference_above, e_two_samples,
    next_trial, sequential_trials_for_precision,
};
pub use sign_flip::{least_p_value, sign_flip};
pub use triggering::{Trigger, Triggering};

/// 97.5 % quantile of the normal distribution: two-sided 95 %.
const Z: f64 = 1.959_963_984_540_054;

#[cfg(test)]
mod tests {
    mod agreement;
    mod margins;
    mod peeking;
    mod simulation;
}

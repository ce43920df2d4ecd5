//! Sequential inference: figures that stay valid if you look at the results after every trial and stop at any time.
//!
//! A p-value or an interval for a fixed number of trials is wrong if the results decide when to stop. Everything here is
//! based on *e-processes* instead: numbers that start at 1 and that are unlikely ever to become large if the null
//! hypothesis is true. The probability that an e-process *ever* reaches 1/α is at most α (Ville 1939), for any number
//! of looks and any stopping rule.
//!
//! Count the trials in the order in which they were started, up to the first one that is still running. With parallel
//! trials, passes often end before failures, such as timeouts. Counting whatever has ended would count too many.

mod allocation;
mod comparison;
mod comparison_forecast;
mod contract;
mod e_process;
mod forecast;
mod two_sample;

pub use allocation::{OpenDecision, next_trial};
pub use comparison::{Comparison, ComparisonDecision, PairBounds, Pairs, difference_sequence, e_difference_above};
pub use comparison_forecast::ComparisonForecast;
pub use contract::{Contract, Decision, Evidence};
pub use e_process::{confidence_sequence, e_above, e_below, sequential_trials_for_precision};
pub use forecast::Forecast;
pub use two_sample::e_two_samples;

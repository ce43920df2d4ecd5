//! Forecast of a contract's test, before any trial is paid for.

use serde::{Deserialize, Serialize};

use super::contract::{Chances, Contract, Decision};

/// Probabilities of the decisions about a contract, and the number of trials they take, for one true pass rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Forecast {
    /// Probability of `Success`.
    pub success: f64,
    /// Probability of `Failure`.
    pub failure: f64,
    /// Probability of `Futility`.
    pub futility: f64,
    /// Mean number of trials.
    pub mean_trials: f64,
    /// Smallest number of trials after which at least half of all runs stop.
    pub median_trials: u64,
}

impl Contract {
    /// Computes exactly how a run that decides after every trial ends if the true pass rate is `rate`, by following the
    /// probability of each number of passed trials. Takes time and memory proportional to the square of `max_trials`:
    /// a few milliseconds and megabytes for a thousand.
    pub fn forecast(&self, rate: f64) -> Forecast {
        let rate = if rate.is_nan() { 0.0 } else { rate.clamp(0.0, 1.0) };
        let chances = Chances::of_contract(self);
        let mut forecast = Forecast { success: 0.0, failure: 0.0, futility: 0.0, mean_trials: 0.0, median_trials: 0 };
        let (mut running, mut stopped) = (vec![1.0], 0.0);
        for trials in 0..=self.max_trials {
            let mut next = vec![0.0; running.len() + 1];
            for (passed, chance) in (0..).zip(&running).filter(|(_, chance)| **chance > 0.0) {
                let total = match self.decide_with(&chances, passed, trials - passed) {
                    Decision::Success => &mut forecast.success,
                    Decision::Failure => &mut forecast.failure,
                    Decision::Futility => &mut forecast.futility,
                    Decision::Continue => {
                        next[passed as usize] += chance * (1.0 - rate);
                        next[passed as usize + 1] += chance * rate;
                        continue;
                    }
                };
                *total += chance;
                forecast.mean_trials += chance * trials as f64;
                if stopped < 0.5 {
                    forecast.median_trials = trials;
                }
                stopped += chance;
            }
            running = next;
        }
        forecast
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTRACT: Contract = Contract { at_least: 0.9, indifference: 0.1, alpha: 0.05, max_trials: 60 };

    #[test]
    fn the_probabilities_add_up_and_wrong_decisions_are_rare() {
        for rate in [0.0, 0.3, 0.8, 0.85, 0.9, 0.97, 1.0] {
            let forecast = CONTRACT.forecast(rate);
            let sum = forecast.success + forecast.failure + forecast.futility;
            assert!((sum - 1.0).abs() < 1e-9, "{rate}: {sum}");
            assert!(rate > 0.8 || forecast.success <= 0.05, "{rate}: {forecast:?}");
            assert!(rate < 0.9 || forecast.failure <= 0.05, "{rate}: {forecast:?}");
            assert!(forecast.mean_trials <= 60.0 && forecast.median_trials <= 60);
        }
    }

    #[test]
    fn certain_results_take_the_least_number_of_trials() {
        let (best, worst) = (CONTRACT.forecast(1.0), CONTRACT.forecast(0.0));
        assert_eq!((best.success, best.median_trials, best.mean_trials), (1.0, 20, 20.0));
        assert_eq!((worst.failure, worst.median_trials, worst.mean_trials), (1.0, 2, 2.0));
        assert_eq!(Contract { max_trials: 1, ..CONTRACT }.forecast(0.5).futility, 1.0);
        assert_eq!(CONTRACT.forecast(f64::NAN), worst);
    }
}

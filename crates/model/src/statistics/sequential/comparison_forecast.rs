//! Forecast of a comparison, before any trial is paid for.

use serde::{Deserialize, Serialize};

use super::super::Chance;
use super::comparison::{Comparison, ComparisonDecision, PairBounds, Statements};

/// Number of decisions that all simulated runs of one forecast may take together.
const DECISIONS: u64 = 10_000;
/// Fewest and most simulated runs.
const RUNS: [u64; 2] = [40, 400];
/// Seed of the simulation, so that a forecast does not change from one call to the next.
const SEED: u64 = 20_240_229;

/// How runs of a comparison end for two true pass rates.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ComparisonForecast {
    /// Share of runs that show that the first arm passes more often.
    pub better: f64,
    /// Share of runs that show that it passes less often.
    pub worse: f64,
    /// Share of runs that show that the arms differ by less than the margin.
    pub equivalent: f64,
    /// Mean number of pairs of each case.
    pub mean_pairs: f64,
    /// Smallest number of pairs of each case after which at least half of all runs stop.
    pub median_pairs: u64,
}

impl Comparison {
    /// Simulates runs in which each trial of the first arm passes with the probability `rates[0]`, and each of the
    /// second with `rates[1]`, in every case. The runs are decided after every round, like real ones. The seed is
    /// fixed.
    pub fn forecast(&self, cases: u64, rates: [f64; 2]) -> ComparisonForecast {
        let statements = self.statements();
        let [fewest, most] = RUNS;
        let runs = (DECISIONS / self.max_pairs.max(1)).clamp(fewest, most);
        let mut chance = Chance::new(SEED);
        let mut ends: Vec<(u64, ComparisonDecision)> =
            (0..runs).map(|_| self.simulated(&statements, cases, rates, &mut chance)).collect();
        ends.sort_unstable_by_key(|(rounds, _)| *rounds);
        let share = |wanted: ComparisonDecision| {
            ends.iter().filter(|(_, decision)| *decision == wanted).count() as f64 / runs as f64
        };
        ComparisonForecast {
            better: share(ComparisonDecision::Better),
            worse: share(ComparisonDecision::Worse),
            equivalent: share(ComparisonDecision::Equivalent),
            mean_pairs: ends.iter().map(|(rounds, _)| *rounds as f64).sum::<f64>() / runs as f64,
            median_pairs: ends.get((ends.len() - 1) / 2).map_or(0, |(rounds, _)| *rounds),
        }
    }

    /// Simulates a run. Returns the number of its rounds, and its decision.
    fn simulated(
        &self,
        statements: &Statements,
        cases: u64,
        rates: [f64; 2],
        chance: &mut Chance,
    ) -> (u64, ComparisonDecision) {
        let mut pairs = PairBounds::default();
        for rounds in 0..=self.max_pairs {
            let decision = self.decide_pooled(statements, pairs, rounds, cases);
            // A run without a pair is futile only if the maximum is too small. Its trials run anyway.
            let is_over = rounds >= self.max_pairs || rounds > 0 && decision != ComparisonDecision::Continue;
            if is_over {
                return (rounds, decision);
            }
            for _ in 0..cases {
                let [first, second] = rates.map(|rate| chance.unit() < rate);
                pairs.push(Some(first), Some(second));
            }
        }
        (self.max_pairs, ComparisonDecision::Futility)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPARISON: Comparison = Comparison { alpha: 0.05, margin: 0.05, max_pairs: 40 };

    #[test]
    fn large_differences_are_found_after_few_pairs_and_wrong_answers_are_rare() {
        let large = COMPARISON.forecast(2, [0.9, 0.2]);
        assert!(large.better > 0.99 && large.median_pairs < 15, "{large:?}");
        assert_eq!(large, COMPARISON.forecast(2, [0.9, 0.2]));
        let none = COMPARISON.forecast(2, [0.9, 0.9]);
        assert!(none.better + none.worse < 0.06 && none.median_pairs > 30, "{none:?}");
        let swapped = COMPARISON.forecast(2, [0.2, 0.9]);
        assert!(swapped.worse > 0.99 && swapped.mean_pairs < 15.0, "{swapped:?}");
    }

    #[test]
    fn arms_that_always_pass_are_equivalent_if_there_are_enough_pairs() {
        let same = Comparison { max_pairs: 400, ..COMPARISON }.forecast(1, [1.0, 1.0]);
        assert_eq!((same.equivalent, same.better), (1.0, 0.0));
        assert!(same.median_pairs < 200, "{same:?}");
        let hopeless = Comparison { max_pairs: 2, ..COMPARISON }.forecast(1, [1.0, 0.0]);
        assert_eq!((hopeless.median_pairs, hopeless.better), (1, 0.0), "{hopeless:?}");
        assert_eq!(Comparison { max_pairs: 0, ..COMPARISON }.forecast(1, [0.5, 0.5]).median_pairs, 0);
    }
}

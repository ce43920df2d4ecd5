//! One arm.

use serde::{Deserialize, Serialize};

use crate::{Estimate, Outcome};

use super::curve::{AtK, curves};
use super::mean::{amount, rate, share};
use super::observation::{Observation, by_case};

/// One arm's trials taken together: what running the same cases again would show. Only decided trials are in a
/// denominator; the others are counted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ArmStatistics {
    /// How many trials were decided.
    pub trials: usize,
    /// How many cases have one.
    pub cases: usize,
    /// How many trials were broken by infrastructure.
    pub broken: usize,
    /// How many could not be decided.
    pub undecided: usize,
    /// How many were skipped.
    pub skipped: usize,
    /// How many were cancelled.
    pub cancelled: usize,
    /// Over trials, of met / (met + unmet), with Wilson's interval.
    pub pass_rate: Option<Estimate>,
    /// Share of the decided trials that passed, with Wilson's interval.
    pub full_pass_rate: Option<Estimate>,
    /// Over trials, of the share of the most there is to score.
    pub score: Option<Estimate>,
    /// How many decided trials every case has: up to here both curves are over all cases.
    pub k: u64,
    /// Chance that at least one of k passes, averaged over cases, for every k.
    pub pass_at_k: Vec<AtK>,
    /// Chance that all of k pass, averaged over cases, for every k.
    pub pass_hat_k: Vec<AtK>,
    /// Seconds.
    pub duration_s: Option<Estimate>,
    /// Tokens of every kind.
    pub tokens: Option<Estimate>,
    /// How many decided trials' tokens are known.
    pub trials_with_tokens: usize,
    /// US dollars.
    pub cost_usd: Option<Estimate>,
    /// How many decided trials' cost is known.
    pub trials_with_cost: usize,
}

impl ArmStatistics {
    /// pass@k and pass^k where k is as many trials as every case has; `None` without a decided trial.
    pub fn at_k(&self) -> Option<(f64, f64)> {
        let at = |curve: &[AtK]| curve.iter().find(|point| point.k == self.k).map(|point| point.value);
        at(&self.pass_at_k).zip(at(&self.pass_hat_k))
    }

    /// How many trials passed.
    pub fn passed(&self) -> u64 {
        self.full_pass_rate.map_or(0, |rate| (rate.mean * self.trials as f64).round() as u64)
    }

    /// How many trials there are that are in no denominator.
    pub fn left_out(&self) -> usize {
        self.broken + self.undecided + self.skipped + self.cancelled
    }

    /// Of an arm's trials, in any order.
    pub fn of<K: Ord>(trials: &[Observation<K>]) -> Self {
        let count = |outcome: Outcome| trials.iter().filter(|trial| trial.outcome == outcome).count();
        let values = |of: fn(&Observation<K>) -> Option<f64>| -> Vec<f64> {
            let decided = trials.iter().filter(|trial| trial.is_decided());
            decided.filter_map(of).filter(|value| value.is_finite()).collect()
        };
        let passed =
            |trials: &[&Observation<K>]| trials.iter().filter(|trial| trial.outcome == Outcome::Passed).count() as u64;
        let cases: Vec<(u64, u64)> =
            by_case(trials).values().map(|trials| (trials.len() as u64, passed(trials))).collect();
        let (pass_at_k, pass_hat_k) = curves(&cases);
        let (passed, failed) = (count(Outcome::Passed), count(Outcome::Failed));
        let (tokens, cost_usd) = (values(|trial| trial.tokens), values(|trial| trial.cost_usd));
        Self {
            trials: passed + failed,
            cases: cases.len(),
            broken: count(Outcome::Broken),
            undecided: count(Outcome::Undecided),
            skipped: count(Outcome::Skipped),
            cancelled: count(Outcome::Cancelled),
            pass_rate: share(&values(|trial| trial.pass_rate)),
            full_pass_rate: rate(passed as u64, (passed + failed) as u64),
            score: share(&values(|trial| trial.score)),
            k: cases.iter().map(|case| case.0).min().unwrap_or(0),
            pass_at_k,
            pass_hat_k,
            duration_s: amount(&values(|trial| trial.duration_s)),
            trials_with_tokens: tokens.len(),
            tokens: amount(&tokens),
            trials_with_cost: cost_usd.len(),
            cost_usd: amount(&cost_usd),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::{Chance, wilson};

    fn trial(case: u32, outcome: Outcome, tokens: f64) -> Observation<u32> {
        let pass_rate = Some(if outcome == Outcome::Passed { 1.0 } else { 0.5 });
        Observation { tokens: Some(tokens), pass_rate, ..Observation::new(case, outcome) }
    }

    #[test]
    fn what_says_nothing_about_the_agent_is_counted_and_in_no_denominator() {
        let arm = ArmStatistics::of(&[
            trial(1, Outcome::Passed, 10.0),
            trial(1, Outcome::Broken, 1e9),
            trial(2, Outcome::Failed, 20.0),
            trial(2, Outcome::Undecided, 1e9),
            trial(3, Outcome::Skipped, 1e9),
            trial(4, Outcome::Cancelled, 1e9),
        ]);
        assert_eq!((arm.trials, arm.cases, arm.k), (2, 2, 1));
        assert_eq!((arm.broken, arm.undecided, arm.skipped, arm.cancelled), (1, 1, 1, 1));
        assert_eq!(arm.full_pass_rate.map(|rate| (rate.mean, rate.ci95)), Some((0.5, Some(wilson(1, 2)))));
        assert_eq!(arm.pass_rate.map(|rate| rate.mean), Some(0.75));
        assert_eq!(arm.tokens.map(|tokens| tokens.mean), Some(15.0));
        assert_eq!((arm.trials_with_tokens, arm.trials_with_cost, arm.cost_usd), (2, 0, None));
    }

    #[test]
    fn an_arm_of_nothing_has_no_figures() {
        assert_eq!(ArmStatistics::of::<u32>(&[]), ArmStatistics::default());
        let broken = ArmStatistics::of(&[trial(1, Outcome::Broken, 1.0)]);
        assert_eq!(broken, ArmStatistics { broken: 1, ..ArmStatistics::default() });
    }

    #[test]
    fn the_order_of_trials_does_not_show_and_json_gives_it_back() {
        let mut trials: Vec<_> = (0..60)
            .map(|at| trial(at % 7, if at % 3 == 0 { Outcome::Passed } else { Outcome::Failed }, 0.1 * f64::from(at)))
            .collect();
        let arm = ArmStatistics::of(&trials);
        Chance::new(5).shuffle(&mut trials);
        assert_eq!(ArmStatistics::of(&trials), arm);
        let json = serde_json::to_value(&arm).unwrap();
        assert_eq!(serde_json::from_value::<ArmStatistics>(json).unwrap(), arm);
    }
}

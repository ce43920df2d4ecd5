//! Statistics of one arm.

use serde::{Deserialize, Serialize};

use super::curve::{AtK, curves};
use super::mean::{amount, rate, share};
use super::observation::{Observation, by_case};
use crate::{Estimate, Outcome};

/// Statistics of one arm's trials: estimates of the results of running the same cases again. Graded trials are
/// included in the figures; broken, stale, skipped and cancelled ones are only counted.
///
/// Undecided assertions are excluded from all figures, regardless of the trial's other results. Otherwise only failures
/// would be counted: one unmet assertion decides a trial, but a met one next to an undecided one does not.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ArmStatistics {
    /// Number of graded trials: passed, failed or undecided.
    pub trials: usize,
    /// Number of graded trials in which every assertion was decided.
    pub decided: usize,
    /// Number of `decided` trials that passed.
    pub passed: usize,
    /// Number of cases that have a graded trial.
    pub cases: usize,
    /// Number of trials broken by infrastructure.
    pub broken: usize,
    /// Number of trials in which a request had no recorded answer.
    pub stale: usize,
    /// Number of undecided trials.
    pub undecided: usize,
    /// Number of `undecided` trials whose decided assertions pass.
    pub passed_but_undecided: usize,
    /// Number of skipped trials.
    pub skipped: usize,
    /// Number of cancelled trials.
    pub cancelled: usize,
    /// Mean over trials of met / (met + unmet), with Wilson's interval.
    pub pass_rate: Option<Estimate>,
    /// Share of the `decided` trials that passed, with Wilson's interval.
    pub full_pass_rate: Option<Estimate>,
    /// Share of the graded trials whose decided assertions all pass, with Wilson's interval.
    pub decided_pass_rate: Option<Estimate>,
    /// Mean over trials of the score as a share of the maximum.
    pub score: Option<Estimate>,
    /// Smallest number of `decided` trials of any case that has one: up to this k, both curves cover all cases.
    pub k: u64,
    /// Probability that at least one of k trials passes, averaged over cases, for every k.
    pub pass_at_k: Vec<AtK>,
    /// Probability that all of k trials pass, averaged over cases, for every k.
    pub pass_hat_k: Vec<AtK>,
    /// Duration in seconds.
    pub duration_s: Option<Estimate>,
    /// Tokens of every kind.
    pub tokens: Option<Estimate>,
    /// Number of graded trials whose tokens are known.
    pub trials_with_tokens: usize,
    /// Cost in US dollars.
    pub cost_usd: Option<Estimate>,
    /// Number of graded trials whose cost is known.
    pub trials_with_cost: usize,
}

impl ArmStatistics {
    /// Returns pass@k and pass^k at `self.k`; `None` without a decided trial.
    pub fn at_k(&self) -> Option<(f64, f64)> {
        let at = |curve: &[AtK]| curve.iter().find(|point| point.k == self.k).map(|point| point.value);
        at(&self.pass_at_k).zip(at(&self.pass_hat_k))
    }

    /// Computes the statistics of an arm's trials, which may be in any order.
    pub fn of<K: Ord>(trials: &[Observation<K>]) -> Self {
        let count = |outcome: Outcome| trials.iter().filter(|trial| trial.outcome == outcome).count();
        let values = |of: fn(&Observation<K>) -> Option<f64>| -> Vec<f64> {
            let graded = trials.iter().filter(|trial| trial.is_graded());
            graded.filter_map(of).filter(|value| value.is_finite()).collect()
        };
        let cases = by_case(trials);
        let decided: Vec<(u64, u64)> = cases.values().map(|trials| passes(trials)).filter(|case| case.0 > 0).collect();
        let sum = |of: fn(&(u64, u64)) -> u64| decided.iter().map(of).sum::<u64>();
        let (all, passed) = (sum(|case| case.0), sum(|case| case.1));
        let (pass_at_k, pass_hat_k) = curves(&decided);
        let by_decided = values(Observation::decided_full_pass);
        let is_open = |trial: &&Observation<K>| trial.outcome == Outcome::Undecided && trial.decided_pass == Some(true);
        let (tokens, cost_usd) = (values(|trial| trial.tokens), values(|trial| trial.cost_usd));
        Self {
            trials: cases.values().map(Vec::len).sum(),
            decided: all as usize,
            passed: passed as usize,
            cases: cases.len(),
            broken: count(Outcome::Broken),
            stale: count(Outcome::Stale),
            undecided: count(Outcome::Undecided),
            passed_but_undecided: trials.iter().filter(is_open).count(),
            skipped: count(Outcome::Skipped),
            cancelled: count(Outcome::Cancelled),
            pass_rate: share(&values(|trial| trial.pass_rate)),
            full_pass_rate: rate(passed, all),
            decided_pass_rate: rate(by_decided.iter().sum::<f64>() as u64, by_decided.len() as u64),
            score: share(&values(|trial| trial.score)),
            k: decided.iter().map(|case| case.0).min().unwrap_or(0),
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

/// Returns the number of a case's decided trials, and the number of those that passed.
fn passes<K>(trials: &[&Observation<K>]) -> (u64, u64) {
    let decided: Vec<f64> = trials.iter().filter_map(|trial| trial.full_pass()).collect();
    (decided.len() as u64, decided.iter().filter(|pass| **pass > 0.0).count() as u64)
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
    fn undecided_assertions_are_excluded_from_figures_in_both_directions() {
        // A check that 9 of 10 trials meet, and a judge that never answers.
        let open = |met: bool| Observation {
            undecided: 1,
            decided_pass: Some(met),
            pass_rate: Some(f64::from(u8::from(met))),
            ..Observation::new(1, if met { Outcome::Undecided } else { Outcome::Failed })
        };
        let arm = ArmStatistics::of(&(0..10).map(|index| open(index > 0)).collect::<Vec<_>>());
        assert_eq!((arm.trials, arm.decided, arm.undecided, arm.passed_but_undecided), (10, 0, 9, 9));
        assert_eq!((arm.full_pass_rate, arm.at_k()), (None, None), "failures alone are not conclusive");
        let mean = |rate: Option<Estimate>| rate.map(|rate| rate.mean);
        assert_eq!((mean(arm.pass_rate), mean(arm.decided_pass_rate)), (Some(0.9), Some(0.9)));
    }

    #[test]
    fn ungraded_trials_are_counted_but_excluded_from_denominators() {
        let arm = ArmStatistics::of(&[
            trial(1, Outcome::Passed, 10.0),
            trial(1, Outcome::Broken, 1e9),
            trial(2, Outcome::Failed, 20.0),
            trial(2, Outcome::Undecided, 30.0),
            trial(3, Outcome::Skipped, 1e9),
            trial(4, Outcome::Cancelled, 1e9),
        ]);
        assert_eq!((arm.trials, arm.decided, arm.cases, arm.k), (3, 2, 2, 1));
        assert_eq!((arm.broken, arm.undecided, arm.skipped, arm.cancelled), (1, 1, 1, 1));
        assert_eq!(arm.full_pass_rate.map(|rate| (rate.mean, rate.ci95)), Some((0.5, Some(wilson(1, 2)))));
        assert_eq!(arm.pass_rate.map(|rate| rate.mean), Some(2.0 / 3.0));
        assert_eq!(arm.tokens.map(|tokens| tokens.mean), Some(20.0));
        assert_eq!((arm.trials_with_tokens, arm.trials_with_cost, arm.cost_usd), (3, 0, None));
    }

    #[test]
    fn an_arm_without_trials_has_no_figures() {
        assert_eq!(ArmStatistics::of::<u32>(&[]), ArmStatistics::default());
        let broken = ArmStatistics::of(&[trial(1, Outcome::Broken, 1.0)]);
        assert_eq!(broken, ArmStatistics { broken: 1, ..ArmStatistics::default() });
    }

    #[test]
    fn the_order_of_trials_has_no_effect_and_json_round_trips() {
        let mut trials: Vec<_> = (0..60)
            .map(|index| {
                trial(index % 7, if index % 3 == 0 { Outcome::Passed } else { Outcome::Failed }, 0.1 * f64::from(index))
            })
            .collect();
        let arm = ArmStatistics::of(&trials);
        Chance::new(5).shuffle(&mut trials);
        assert_eq!(ArmStatistics::of(&trials), arm);
        let json = serde_json::to_value(&arm).unwrap();
        assert_eq!(serde_json::from_value::<ArmStatistics>(json).unwrap(), arm);
    }
}

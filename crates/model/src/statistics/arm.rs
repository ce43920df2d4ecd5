//! Statistics of one arm.

use serde::{Deserialize, Serialize};

use super::bounds::BoundedEstimate;
use super::curve::{AtK, curves};
use super::mean::{amount, share};
use super::observation::{Observation, by_case, counted, scores};
use super::{Bounds, Counted};
use crate::{Estimate, Outcome, OutcomeCounts};

/// Statistics of one arm's trials: estimates of the results of running the same cases again.
///
/// A trial that could have passed or failed widens the bounds of rates, of pass@k and of scores. The share of met
/// assertions leaves out undecided assertions; time, tokens and cost leave out broken and stale trials.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ArmStatistics {
    /// Number of trials that rates count: passed, failed, undecided, broken or stale.
    pub trials: usize,
    /// All trials by the outcome that rates count: that of the first attempt that is not broken.
    #[serde(flatten)]
    pub by_outcome: OutcomeCounts,
    /// Number of cases that have such a trial.
    pub cases: usize,
    /// Number of trials that passed only after a failed attempt. They are among `failed`.
    pub flaky: usize,
    /// Number of `undecided` trials whose decided assertions pass.
    pub passed_but_undecided: usize,
    /// Share of met assertions: mean over trials of met / (met + unmet), with Wilson's interval.
    pub pass_rate: Option<Estimate>,
    /// Share of trials that passed, with Wilson's interval.
    pub full_pass_rate: Option<BoundedEstimate>,
    /// Mean over trials of the score as a share of the maximum.
    pub score: Option<BoundedEstimate>,
    /// Smallest number of trials of any case: up to this k, both curves cover all cases.
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
    /// Returns pass@k and pass^k at `self.k`; `None` without trials.
    pub fn at_k(&self) -> Option<(AtK, AtK)> {
        let at = |curve: &[AtK]| curve.iter().find(|point| point.k == self.k).copied();
        at(&self.pass_at_k).zip(at(&self.pass_hat_k))
    }

    /// Returns the trials by result.
    pub fn counted(&self) -> Counted {
        self.by_outcome.counted(0)
    }

    /// Returns the number of graded trials.
    pub fn graded(&self) -> usize {
        self.by_outcome.sum(Outcome::is_graded)
    }

    /// Computes the statistics of an arm's trials, which may be in any order.
    pub fn of<'t, K: Ord + 't>(trials: impl IntoIterator<Item = &'t Observation<K>>) -> Self {
        let trials: Vec<&Observation<K>> = trials.into_iter().collect();
        let values = |of: fn(&Observation<K>) -> Option<f64>| -> Vec<f64> {
            let graded = trials.iter().filter(|trial| trial.is_graded());
            graded.filter_map(|trial| of(trial)).filter(|value| value.is_finite()).collect()
        };
        let cases = by_case(trials.iter().copied());
        let by_case: Vec<Counted> = cases.values().map(|trials| counted(trials)).collect();
        let mut all = Counted::default();
        by_case.iter().for_each(|case| all += *case);
        let (pass_at_k, pass_hat_k) = curves(&by_case);
        let counted_trials: Vec<&Observation<K>> = cases.into_values().flatten().collect();
        let is_open =
            |trial: &&&Observation<K>| trial.outcome == Outcome::Undecided && trial.decided_pass == Some(true);
        let is_flaky = |trial: &&&Observation<K>| trial.outcome == Outcome::Passed && trial.first != Outcome::Passed;
        let (tokens, cost_usd) = (values(|trial| trial.tokens), values(|trial| trial.cost_usd));
        Self {
            trials: all.trials() as usize,
            by_outcome: OutcomeCounts::of(trials.iter().map(|trial| trial.first)),
            cases: by_case.len(),
            flaky: trials.iter().filter(is_flaky).count(),
            passed_but_undecided: trials.iter().filter(is_open).count(),
            pass_rate: share(&values(|trial| trial.pass_rate)),
            full_pass_rate: all.rate(),
            score: mean_score(&scores(&counted_trials)),
            k: by_case.iter().map(|case| case.trials()).min().unwrap_or(0),
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

/// Returns the mean score. Scores that are not shares of the maximum have an interval only if all are known.
fn mean_score(scores: &[Bounds]) -> Option<BoundedEstimate> {
    BoundedEstimate::of_shares(scores).or_else(|| {
        let known: Option<Vec<f64>> = scores.iter().map(|score| score.value()).collect();
        let ci95 = known.and_then(|known| share(&known)).and_then(|mean| mean.ci95);
        let bounds = Bounds::mean(scores.iter().copied())?;
        Some(BoundedEstimate { mean: bounds.value(), bounds, ci95 })
    })
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
    fn a_trial_with_an_unmet_assertion_has_failed_and_one_without_could_be_either() {
        // A check that 9 of 10 trials meet, and a judge that never answers.
        let open = |met: bool| Observation {
            decided_pass: Some(met),
            pass_rate: Some(f64::from(u8::from(met))),
            ..Observation::new(1, if met { Outcome::Undecided } else { Outcome::Failed })
        };
        let arm = ArmStatistics::of(&(0..10).map(|index| open(index > 0)).collect::<Vec<_>>());
        assert_eq!(
            (arm.trials, arm.by_outcome.failed, arm.by_outcome.undecided, arm.passed_but_undecided),
            (10, 1, 9, 9)
        );
        let rate = arm.full_pass_rate.unwrap();
        assert_eq!((rate.mean, rate.bounds), (None, Bounds { min: 0.0, max: 0.9 }));
        assert_eq!(arm.pass_rate.map(|rate| rate.mean), Some(0.9), "checks leave out undecided assertions");
        let benchmark: Vec<_> = (0..10).map(|index| open(index > 0).without_undecided()).collect();
        let benchmark = ArmStatistics::of(&benchmark);
        let rate = benchmark.full_pass_rate.and_then(|rate| rate.mean);
        assert_eq!(rate, Some(0.9), "the terms of agent-skill-eval");
        let at_k = benchmark.at_k().map(|(some, all)| (some.k, some.value, all.value));
        assert_eq!(at_k, Some((10, Some(1.0), Some(0.0))), "pass@k is known there, too");
    }

    #[test]
    fn broken_trials_widen_rates_and_have_no_other_figures() {
        let arm = ArmStatistics::of(&[
            trial(1, Outcome::Passed, 10.0),
            Observation { pass_rate: None, ..trial(1, Outcome::Broken, 1e9) },
            trial(2, Outcome::Failed, 20.0),
            trial(2, Outcome::Undecided, 30.0),
            trial(3, Outcome::Skipped, 1e9),
            trial(4, Outcome::Cancelled, 1e9),
        ]);
        assert_eq!((arm.trials, arm.graded(), arm.cases, arm.k), (4, 3, 2, 2));
        assert_eq!(
            (arm.by_outcome.broken, arm.by_outcome.undecided, arm.by_outcome.skipped, arm.by_outcome.cancelled),
            (1, 1, 1, 1)
        );
        let rate = arm.full_pass_rate.unwrap();
        assert_eq!((rate.mean, rate.bounds.min, rate.bounds.max), (None, 0.25, 0.75));
        assert_eq!(rate.ci95, Some([wilson(1, 4)[0], wilson(3, 4)[1]]));
        assert_eq!(arm.pass_rate.map(|rate| rate.mean), Some(2.0 / 3.0));
        assert_eq!(arm.tokens.map(|tokens| tokens.mean), Some(20.0));
        assert_eq!((arm.trials_with_tokens, arm.trials_with_cost, arm.cost_usd), (3, 0, None));
    }

    #[test]
    fn a_trial_that_passed_after_a_failed_attempt_counts_as_failed() {
        let flaky = Observation { first: Outcome::Failed, ..trial(1, Outcome::Passed, 1.0) };
        let arm = ArmStatistics::of(&[trial(1, Outcome::Passed, 1.0), flaky]);
        assert_eq!((arm.by_outcome.passed, arm.by_outcome.failed, arm.flaky), (1, 1, 1));
        assert_eq!(arm.full_pass_rate.and_then(|rate| rate.mean), Some(0.5));
    }

    #[test]
    fn a_score_of_a_broken_trial_could_be_anything() {
        let scored = |score| Observation { score: Some(score), ..Observation::new(1, Outcome::Failed) };
        let of = |trials: &[Observation<u32>]| ArmStatistics::of(trials).score.map(|score| (score.mean, score.bounds));
        let half = Bounds { min: 0.5, max: 1.0 };
        assert_eq!(of(&[scored(Bounds::exact(0.5))]), Some((Some(0.5), Bounds::exact(0.5))));
        assert_eq!(of(&[scored(half), scored(half)]), Some((None, half)));
        let broken = [scored(Bounds::exact(0.5)), Observation::new(1, Outcome::Broken)];
        assert_eq!(of(&broken), Some((None, Bounds { min: 0.25, max: 0.75 })));
        let penalty = [scored(Bounds::exact(-0.5)), scored(Bounds::exact(0.5))];
        assert_eq!(of(&penalty), Some((Some(0.0), Bounds::exact(0.0))));
        assert_eq!(of(&[penalty[0], broken[1]]), None, "the score may be below 0");
        assert_eq!(of(&[broken[1]]), None);
    }

    #[test]
    fn an_arm_without_trials_has_no_figures() {
        assert_eq!(ArmStatistics::of::<u32>(&[]), ArmStatistics::default());
        let skipped = ArmStatistics::of(&[trial(1, Outcome::Skipped, 1.0)]);
        assert_eq!(
            skipped,
            ArmStatistics { by_outcome: OutcomeCounts::of([Outcome::Skipped]), ..ArmStatistics::default() }
        );
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

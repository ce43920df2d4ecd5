//! A contract about a pass rate, tested after every trial.

use serde::{Deserialize, Serialize};

use super::super::Counted;
use super::e_process::{e_above, e_below};

/// Probability of a decision below which further trials are wasteful.
const FUTILE: f64 = 0.05;

/// Contract that a pass rate is at least some value, with the limits of its test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Contract {
    /// Required pass rate.
    pub at_least: f64,
    /// Width of the range below the required rate in which either decision is acceptable. The contract is met once
    /// the rate is shown to be above `at_least - indifference`, and violated once it is shown to be below `at_least`.
    /// With 0, an agent whose rate is exactly the required one is never decided.
    pub indifference: f64,
    /// Largest acceptable probability of a wrong decision, for each of the two.
    pub alpha: f64,
    /// Maximum number of trials.
    pub max_trials: u64,
}

/// State of a contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// The pass rate is shown to be high enough.
    Success,
    /// The pass rate is shown to be too low.
    Failure,
    /// Nothing is shown, and the remaining trials are unlikely to change that, or none remain.
    Futility,
    /// Undecided: run another trial.
    Continue,
}

/// Evidence for each decision about a contract, as e-values: 1 is none, and 1/α is enough.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Evidence that the pass rate is above `at_least - indifference`.
    pub success: f64,
    /// Evidence that the pass rate is below `at_least`.
    pub failure: f64,
}

/// Numbers of passed trials that decide a contract once all its trials have run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Smallest number for success; more than `max_trials` if none is enough.
    success: u64,
    /// Smallest number that is *not* a failure; 0 if no number is.
    failure: u64,
}

impl Contract {
    /// Returns the evidence for either decision.
    pub fn evidence(&self, passed: u64, failed: u64) -> Evidence {
        Evidence { success: e_above(self.lowest(), passed, failed), failure: e_below(self.at_least, passed, failed) }
    }

    /// Decides after any number of trials. You may call this after every trial and stop at the first final decision.
    ///
    /// If the pass rate is at least `at_least`, the probability of ever deciding `Failure` is at most `alpha`. If it is
    /// at most `at_least - indifference`, the probability of ever deciding `Success` is at most `alpha`. See
    /// [`e_above`] for the proof. In between, both statements are true at once and either decision may be made first.
    ///
    /// `Futility` only stops a run early, so it cannot cause a wrong decision. It is reached after `max_trials`, and
    /// earlier if the probability that the remaining trials lead to a decision is below 5 %. This is the predictive
    /// probability of the beta-binomial distribution from a uniform prior (Spiegelhalter, Freedman and Blackburn 1986),
    /// for the evidence after the last trial.
    pub fn decide(&self, passed: u64, failed: u64) -> Decision {
        self.decide_within(self.bounds(), passed, failed)
    }

    /// Returns the evidence for either decision. Unknown trials count against both: as failed for success, and as
    /// passed for failure.
    pub fn evidence_of(&self, counted: Counted) -> Evidence {
        let ([passed, failed], [most_passed, least_failed]) = (counted.worst(), counted.best());
        Evidence {
            success: e_above(self.lowest(), passed, failed),
            failure: e_below(self.at_least, most_passed, least_failed),
        }
    }

    /// Decides like [`Contract::decide`], but the results of some trials may be unknown. They count against either
    /// decision, so both error rates hold whatever their true results are. If they make a decision unlikely, the
    /// contract is futile: further trials would probably be unknown too.
    pub fn decide_counted(&self, counted: Counted) -> Decision {
        if counted.unknown == 0 {
            return self.decide(counted.passed, counted.failed);
        }
        let (evidence, enough) = (self.evidence_of(counted), self.enough());
        if evidence.success >= enough {
            return Decision::Success;
        }
        if evidence.failure >= enough {
            return Decision::Failure;
        }
        let (bounds, remaining) = (self.bounds(), self.max_trials.saturating_sub(counted.trials()));
        let ([passed, failed], [most_passed, least_failed]) = (counted.worst(), counted.best());
        let chance = || {
            chance_of(passed, failed, remaining, |total| total >= bounds.success)
                + chance_of(most_passed, least_failed, remaining, |total| total < bounds.failure)
        };
        if remaining == 0 || chance() < FUTILE { Decision::Futility } else { Decision::Continue }
    }

    pub(super) fn decide_within(&self, bounds: Bounds, passed: u64, failed: u64) -> Decision {
        let remaining = self.max_trials.saturating_sub(passed + failed);
        self.decide_unless(passed, failed, || {
            remaining == 0 || chance_of_decision(bounds, passed, failed, remaining) < FUTILE
        })
    }

    /// Decides by the evidence. Without enough of it, `is_futile` says whether to stop.
    fn decide_unless(&self, passed: u64, failed: u64, is_futile: impl FnOnce() -> bool) -> Decision {
        let (evidence, enough) = (self.evidence(passed, failed), self.enough());
        if evidence.success >= enough {
            Decision::Success
        } else if evidence.failure >= enough {
            Decision::Failure
        } else if is_futile() {
            Decision::Futility
        } else {
            Decision::Continue
        }
    }

    /// Decides like [`Contract::decide`], given the predictive probability of a decision.
    pub(super) fn decide_with(&self, chances: &Chances, passed: u64, failed: u64) -> Decision {
        self.decide_unless(passed, failed, || passed + failed >= self.max_trials || chances.of(passed, failed) < FUTILE)
    }

    /// Computes the final bounds by halving: the evidence for success grows with the number of passed trials, and that
    /// for failure shrinks.
    pub(super) fn bounds(&self) -> Bounds {
        let (n, enough) = (self.max_trials, self.enough());
        let first = |is_reached: &dyn Fn(u64) -> bool| {
            let (mut low, mut high) = (0, n + 1);
            while low < high {
                let middle = u64::midpoint(low, high);
                if is_reached(middle) { high = middle } else { low = middle + 1 }
            }
            low
        };
        Bounds {
            success: first(&|passed| self.evidence(passed, n - passed).success >= enough),
            failure: first(&|passed| self.evidence(passed, n - passed).failure < enough),
        }
    }

    /// Returns the e-value that is enough for a decision.
    pub fn enough(&self) -> f64 {
        (1.0 / self.alpha.max(0.0)).min(f64::MAX)
    }

    /// Returns the largest rate that violates the contract beyond the range of indifference.
    fn lowest(&self) -> f64 {
        (self.at_least - self.indifference.max(0.0)).clamp(0.0, 1.0)
    }
}

/// Predictive probability of a decision after each possible result of the trials so far.
pub(super) struct Chances {
    /// One row for each number of trials, which contains the probability for each number of passed ones.
    rows: Vec<Vec<f64>>,
}

impl Chances {
    /// Computes all probabilities backwards from the last trial: from a uniform prior, the next trial passes with
    /// (passed + 1) / (trials + 2), which is Laplace's rule of succession.
    pub(super) fn of_contract(contract: &Contract) -> Self {
        let bounds = contract.bounds();
        let is_decided = |passed: u64| passed >= bounds.success || passed < bounds.failure;
        let mut row: Vec<f64> =
            (0..=contract.max_trials).map(|passed| f64::from(u8::from(is_decided(passed)))).collect();
        let mut rows = Vec::with_capacity(row.len());
        for trials in (0..contract.max_trials).rev() {
            let all = (trials + 2) as f64;
            let of = |(passed, next): (usize, &[f64])| {
                let passes = (passed + 1) as f64 / all;
                passes * next[1] + (1.0 - passes) * next[0]
            };
            let before = row.windows(2).enumerate().map(of).collect();
            rows.push(std::mem::replace(&mut row, before));
        }
        rows.push(row);
        rows.reverse();
        Self { rows }
    }

    fn of(&self, passed: u64, failed: u64) -> f64 {
        self.rows[(passed + failed) as usize][passed as usize]
    }
}

/// Returns the predictive probability that the remaining trials end beyond a bound.
fn chance_of_decision(bounds: Bounds, passed: u64, failed: u64, remaining: u64) -> f64 {
    chance_of(passed, failed, remaining, |total| total >= bounds.success || total < bounds.failure)
}

/// Returns the predictive probability that the number of passed trials is a wanted one after the remaining trials: the
/// sum of the beta-binomial distribution of their passed trials, given those so far and a uniform prior.
fn chance_of(passed: u64, failed: u64, remaining: u64, is_wanted: impl Fn(u64) -> bool) -> f64 {
    let (mut log, mut logs) = (0.0, vec![0.0]);
    for more in 0..remaining {
        let ratio = (remaining - more) as f64 * (passed + 1 + more) as f64
            / ((more + 1) as f64 * (failed + remaining - more) as f64);
        log += ratio.ln();
        logs.push(log);
    }
    let most = logs.iter().fold(f64::MIN, |most: f64, log| most.max(*log));
    let (mut all, mut decided) = (0.0, 0.0);
    for (log, total) in logs.iter().zip(passed..) {
        let weight = (log - most).exp();
        all += weight;
        decided += if is_wanted(total) { weight } else { 0.0 };
    }
    decided / all
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTRACT: Contract = Contract { at_least: 0.9, indifference: 0.1, alpha: 0.05, max_trials: 50 };

    #[test]
    fn a_few_failures_or_about_twenty_passes_decide_a_contract_of_90_percent() {
        assert_eq!(CONTRACT.decide(0, 0), Decision::Continue);
        assert_eq!(CONTRACT.decide(0, 2), Decision::Failure);
        assert_eq!(CONTRACT.decide(3, 4), Decision::Failure);
        assert_eq!((CONTRACT.decide(19, 0), CONTRACT.decide(20, 0)), (Decision::Continue, Decision::Success));
        let strict = Contract { indifference: 0.0, ..CONTRACT };
        assert_eq!((strict.decide(20, 0), strict.decide(43, 0)), (Decision::Continue, Decision::Success));
    }

    #[test]
    fn a_run_that_cannot_be_decided_any_more_is_futile() {
        assert_eq!(CONTRACT.decide(43, 7), Decision::Futility, "all trials have run");
        assert_eq!(CONTRACT.decide(39, 7), Decision::Futility, "four more cannot decide");
        let short = Contract { max_trials: 1, ..CONTRACT };
        assert_eq!(short.decide(0, 0), Decision::Futility, "one trial can never decide");
    }

    #[test]
    fn unknown_trials_count_against_either_decision() {
        let counted = |passed, failed, unknown| Counted { passed, failed, unknown };
        assert_eq!(CONTRACT.decide_counted(counted(20, 0, 0)), Decision::Success);
        assert_eq!(CONTRACT.decide_counted(counted(20, 0, 2)), Decision::Continue);
        assert_eq!(CONTRACT.decide_counted(counted(0, 2, 0)), Decision::Failure);
        assert_eq!(CONTRACT.decide_counted(counted(0, 2, 3)), Decision::Continue);
        assert_eq!(CONTRACT.decide_counted(counted(0, 0, 50)), Decision::Futility, "all trials have run");
        assert_eq!(CONTRACT.decide_counted(counted(0, 0, 1)), Decision::Continue, "others may have a result");
        assert_eq!(CONTRACT.decide_counted(counted(0, 0, 10)), Decision::Futility, "none of them has a result");
        assert_eq!(CONTRACT.decide_counted(counted(8, 0, 8)), Decision::Futility, "every second one has no result");
        let evidence = CONTRACT.evidence_of(counted(6, 1, 2));
        assert_eq!(evidence.success, CONTRACT.evidence(6, 3).success);
        assert_eq!(evidence.failure, CONTRACT.evidence(8, 1).failure);
    }

    #[test]
    fn results_that_are_taken_away_never_cause_a_decision() {
        for (passed, failed, lost_passes, lost_failures) in (0..=24)
            .flat_map(|p| (0..=6).flat_map(move |f| (0..=3).flat_map(move |a| (0..=3).map(move |b| (p, f, a, b)))))
        {
            if lost_passes > passed || lost_failures > failed {
                continue;
            }
            let counted = Counted {
                passed: passed - lost_passes,
                failed: failed - lost_failures,
                unknown: lost_passes + lost_failures,
            };
            let full = CONTRACT.evidence(passed, failed);
            match CONTRACT.decide_counted(counted) {
                Decision::Success => assert!(full.success >= CONTRACT.enough(), "{counted:?}"),
                Decision::Failure => assert!(full.failure >= CONTRACT.enough(), "{counted:?}"),
                Decision::Futility | Decision::Continue => {}
            }
        }
    }

    #[test]
    fn the_final_bounds_are_those_of_the_evidence() {
        let bounds = CONTRACT.bounds();
        for passed in 0..=50 {
            let decision = CONTRACT.decide(passed, 50 - passed);
            assert_eq!(decision == Decision::Success, passed >= bounds.success, "{passed}");
            assert_eq!(decision == Decision::Failure, passed < bounds.failure, "{passed}");
        }
    }

    #[test]
    fn the_predictive_probability_is_that_of_a_uniform_prior() {
        // Without any trial, every number of passed trials is equally likely.
        let bounds = Bounds { success: 8, failure: 2 };
        assert!((chance_of_decision(bounds, 0, 0, 9) - 0.4).abs() < 1e-12);
        // Pólya's urn with 3 passed and 1 failed balls after 2 passes: both further trials pass with 3/4 · 4/5.
        assert!((chance_of_decision(Bounds { success: 4, failure: 0 }, 2, 0, 2) - 0.6).abs() < 1e-12);
    }

    #[test]
    fn the_predictive_probabilities_of_all_results_are_those_of_each() {
        let (chances, bounds) = (Chances::of_contract(&CONTRACT), CONTRACT.bounds());
        for (passed, failed) in [(0, 0), (19, 0), (30, 5), (39, 7), (49, 0)] {
            let chance = chance_of_decision(bounds, passed, failed, 50 - passed - failed);
            assert!((chances.of(passed, failed) - chance).abs() < 1e-9, "{passed} {failed}");
            assert_eq!(CONTRACT.decide_with(&chances, passed, failed), CONTRACT.decide(passed, failed));
        }
    }

    #[test]
    fn limits_of_0_and_1_have_defined_decisions() {
        let all = Contract { at_least: 1.0, indifference: 0.0, ..CONTRACT };
        assert_eq!((all.decide(20, 1), all.decide(49, 0)), (Decision::Failure, Decision::Futility));
        let none = Contract { at_least: 0.0, ..CONTRACT };
        assert_eq!(none.decide(1, 5), Decision::Success);
        let certain = Contract { alpha: 0.0, ..CONTRACT };
        assert_eq!((certain.enough(), certain.decide(0, 9)), (f64::MAX, Decision::Futility));
    }
}

//! Simulations that check the coverage of the intervals and the error rates of the test.

use crate::Outcome;
use crate::statistics::delta::estimate_of_shares;
use crate::statistics::mean::{estimate, share};
use crate::statistics::{ArmStatistics, Chance, Delta, Observation, sign_flip, wilson};

fn passes(chance: &mut Chance, trials: u64, p: f64) -> u64 {
    (0..trials).map(|_| u64::from(chance.unit() < p)).sum()
}

fn holds(ci95: [f64; 2], value: f64) -> bool {
    (ci95[0]..=ci95[1]).contains(&value)
}

/// Returns a nearly normally distributed number: the sum of twelve uniform numbers.
fn normal(chance: &mut Chance) -> f64 {
    (0..12).map(|_| chance.unit()).sum::<f64>() - 6.0
}

#[test]
fn wilsons_interval_covers_95_percent_on_average_over_p() {
    let mut chance = Chance::new(1);
    for n in [5, 10, 30, 100] {
        let rounds = 40_000;
        let covered = (0..rounds).filter(|_| {
            let p = chance.unit();
            holds(wilson(passes(&mut chance, n, p), n), p)
        });
        let coverage = covered.count() as f64 / f64::from(rounds);
        assert!((coverage - 0.95).abs() < 0.02, "n {n}: {coverage}");
    }
}

#[test]
fn wilsons_interval_covers_95_percent_on_average_by_calculation() {
    for n in [5u64, 10, 30, 100] {
        let choose: Vec<f64> = (0..=n).map(|k| (0..k).fold(1.0, |c, i| c * (n - i) as f64 / (i + 1) as f64)).collect();
        let coverage = |p: f64| -> f64 {
            let chance = |k: u64| choose[k as usize] * p.powi(k as i32) * (1.0 - p).powi((n - k) as i32);
            (0..=n).filter(|k| holds(wilson(*k, n), p)).map(chance).sum()
        };
        let mean = (0..2_000).map(|index| coverage((f64::from(index) + 0.5) / 2_000.0)).sum::<f64>() / 2_000.0;
        assert!((mean - 0.95).abs() < 0.01, "n {n}: {mean}");
    }
}

#[test]
fn the_interval_of_shares_covers_95_percent_even_where_failures_are_rare() {
    let mut chance = Chance::new(2);
    for n in [3, 5, 10, 30] {
        // Usually almost everything is met, and rarely nothing. Student's interval covers only 40 to 80 % of such
        // data.
        let mean = 0.95 * 0.95;
        let covered = (0..2_000).filter(|_| {
            let values: Vec<f64> =
                (0..n).map(|_| if chance.unit() < 0.05 { 0.0 } else { 0.9 + 0.1 * chance.unit() }).collect();
            holds(share(&values).unwrap().ci95.unwrap(), mean)
        });
        let coverage = covered.count() as f64 / 2_000.0;
        assert!(coverage > 0.94, "n {n}: {coverage}");
    }
}

#[test]
fn students_interval_covers_95_percent_for_normal_and_nearly_for_skewed_data() {
    let mut chance = Chance::new(3);
    for n in [2, 3, 5, 10, 30, 100] {
        let mut covered = (0, 0);
        let rounds = 3_000;
        for _ in 0..rounds {
            let bell: Vec<f64> = (0..n).map(|_| normal(&mut chance)).collect();
            // The logarithm is normal with a standard deviation of 0.5: a few trials take much longer and use many
            // more tokens.
            let skewed: Vec<f64> = bell.iter().map(|value| (0.5 * value).exp()).collect();
            covered.0 += u32::from(holds(estimate(&bell).unwrap().ci95.unwrap(), 0.0));
            covered.1 += u32::from(holds(estimate(&skewed).unwrap().ci95.unwrap(), 0.125f64.exp()));
        }
        let [bell, skewed] = [covered.0, covered.1].map(|count| f64::from(count) / f64::from(rounds));
        assert!((bell - 0.95).abs() < 0.015, "n {n}: {bell}");
        assert!(skewed > 0.89, "n {n}: {skewed}");
    }
}

/// Returns the differences of cases of random difficulty, in which one arm is `more` likely to pass.
fn differences(chance: &mut Chance, cases: usize, trials: u64, more: f64) -> Vec<f64> {
    (0..cases)
        .map(|_| {
            let p = chance.unit() * (1.0 - more);
            let (with, without) = (passes(chance, trials, p + more), passes(chance, trials, p));
            (with as f64 - without as f64) / trials as f64
        })
        .collect()
}

#[test]
fn a_differences_interval_covers_95_percent() {
    let mut chance = Chance::new(4);
    for (cases, trials, more) in [(3, 1, 0.0), (5, 3, 0.0), (10, 1, 0.0), (10, 3, 0.3), (20, 1, 0.3), (40, 5, 0.1)] {
        let rounds = 1_500;
        let covered = (0..rounds).filter(|_| {
            let estimate = estimate_of_shares(&differences(&mut chance, cases, trials, more)).unwrap();
            holds(estimate.ci95.unwrap(), more)
        });
        let coverage = covered.count() as f64 / f64::from(rounds);
        assert!((0.92..=1.0).contains(&coverage), "{cases} cases of {trials}, {more}: {coverage}");
    }
}

#[test]
fn the_test_has_a_false_positive_rate_of_at_most_5_percent() {
    let mut chance = Chance::new(5);
    for (cases, trials) in [(3, 4), (6, 1), (6, 3), (12, 2), (20, 1)] {
        let rounds = 1_500;
        let seen =
            (0..rounds).filter(|_| sign_flip(&differences(&mut chance, cases, trials, 0.0)).unwrap() <= 0.05).count();
        // The margin is three standard errors of a rate of 5 %.
        assert!(seen as f64 / f64::from(rounds) <= 0.05 + 0.017, "{cases} cases of {trials}: {seen}");
    }
}

#[test]
fn the_test_detects_a_large_difference() {
    let mut chance = Chance::new(6);
    let rounds = 300;
    let seen = (0..rounds).filter(|_| sign_flip(&differences(&mut chance, 12, 4, 0.5)).unwrap() <= 0.05).count();
    assert!(seen as f64 / f64::from(rounds) > 0.95, "{seen}");
}

/// Simulates a trial with two assertions that hold with the probabilities `likely`. Whether each is decided is
/// independent of that: the judge for the second one fails in a share of `away` of the trials.
fn judged_trial(chance: &mut Chance, case: u64, likely: [f64; 2], away: f64) -> Observation<u64> {
    let holds = likely.map(|likely| chance.unit() < likely);
    let is_decided = [true, chance.unit() >= away];
    let decided: Vec<bool> = (0..2).filter(|index| is_decided[*index]).map(|index| holds[index]).collect();
    let met = decided.iter().filter(|holds| **holds).count();
    let outcome = match (decided.contains(&false), decided.len()) {
        (true, _) => Outcome::Failed,
        (false, 2) => Outcome::Passed,
        (false, _) => Outcome::Undecided,
    };
    Observation {
        decided_pass: Some(!decided.contains(&false)),
        pass_rate: Some(met as f64 / decided.len() as f64),
        ..Observation::new(case, outcome)
    }
}

#[test]
fn the_bounds_contain_the_rate_of_an_arm_whichever_judgements_are_missing() {
    let mut chance = Chance::new(7);
    for away in [0.0, 0.2, 0.5, 0.9] {
        // Both are equally likely to hold, so the rate of checks does not depend on which of them are decided.
        let likely = [0.8, 0.8];
        let trials: Vec<_> = (0..40_000).map(|index| judged_trial(&mut chance, index % 20, likely, away)).collect();
        let arm = ArmStatistics::of(&trials);
        assert!((arm.pass_rate.unwrap().mean - 0.8).abs() < 0.02, "{away}: {:?}", arm.pass_rate);
        let bounds = arm.full_pass_rate.unwrap().bounds;
        assert!(bounds.min <= 0.65 && bounds.max >= 0.63, "{away}: {bounds:?}");
        assert!((bounds.max - bounds.min - 0.8 * away).abs() < 0.01, "{away}: {bounds:?}");
        // The share of passes among passed and failed trials is biased: one check decides a failure, but a pass needs
        // all of them.
        let decided = arm.by_outcome.passed as f64 / (arm.by_outcome.passed + arm.by_outcome.failed) as f64;
        assert!(away < 0.5 || decided < 0.64 - 0.05, "{away}: the difference is there to be seen");
    }
}

#[test]
fn the_bounds_contain_a_difference_whichever_judgements_are_missing() {
    let mut chance = Chance::new(8);
    for away in [0.0, 0.3, 0.7, 1.0] {
        let mut arm = |likely: [f64; 2]| -> Vec<_> {
            (0..30_000).map(|index| judged_trial(&mut chance, index % 30, likely, away)).collect()
        };
        // The skill helps with the first assertion and has no effect on the second.
        let delta = Delta::between(&arm([0.9, 0.6]), &arm([0.4, 0.6]));
        let checks = delta.pass_rate.unwrap().mean;
        assert!((checks - 0.5 * away - 0.25 * (1.0 - away)).abs() < 0.02, "{away}: {checks}");
        let bounds = delta.full_pass_rate.unwrap().bounds;
        assert!(bounds.min <= 0.32 && bounds.max >= 0.28, "{away}: {bounds:?}");
    }
}

#[test]
fn inverting_every_verdict_inverts_every_rate() {
    // No rule may depend on the direction of a result: undecided assertions stay undecided, and the others are
    // mirrored.
    let mut chance = Chance::new(9);
    let trials: Vec<_> = (0..2_000)
        .map(|index| {
            let (holds, is_decided) = (chance.unit() < 0.7, chance.unit() < 0.6);
            let of = |holds: bool| {
                let outcome = match (is_decided, holds) {
                    (false, _) => Outcome::Undecided,
                    (true, true) => Outcome::Passed,
                    (true, false) => Outcome::Failed,
                };
                let pass_rate = is_decided.then(|| f64::from(u8::from(holds)));
                Observation { pass_rate, ..Observation::new(index % 10, outcome) }
            };
            (of(holds), of(!holds))
        })
        .collect();
    let (there, back): (Vec<_>, Vec<_>) = trials.into_iter().unzip();
    let (there, back) = (ArmStatistics::of(&there), ArmStatistics::of(&back));
    let checks = |arm: &ArmStatistics| arm.pass_rate.unwrap().mean;
    assert!((checks(&there) + checks(&back) - 1.0).abs() < 1e-9);
    let bounds = |arm: &ArmStatistics| arm.full_pass_rate.unwrap().bounds;
    assert!((bounds(&there).min + bounds(&back).max - 1.0).abs() < 1e-9);
}

//! The intervals and the test, held against what they promise.

use super::delta::estimate_of_shares;
use super::mean::{estimate, share};
use super::{Chance, sign_flip, wilson};

fn passes(chance: &mut Chance, trials: u64, p: f64) -> u64 {
    (0..trials).map(|_| u64::from(chance.unit() < p)).sum()
}

fn holds(ci95: [f64; 2], value: f64) -> bool {
    (ci95[0]..=ci95[1]).contains(&value)
}

/// The sum of twelve uniform numbers is a bell, near enough.
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
        let mean = (0..2_000).map(|at| coverage((f64::from(at) + 0.5) / 2_000.0)).sum::<f64>() / 2_000.0;
        assert!((mean - 0.95).abs() < 0.01, "n {n}: {mean}");
    }
}

#[test]
fn the_interval_of_shares_covers_95_percent_even_where_failures_are_rare() {
    let mut chance = Chance::new(2);
    for n in [3, 5, 10, 30] {
        // Nearly always nearly everything is met, and rarely nothing: Student's interval covers 40 to 80 % of these.
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
fn students_interval_covers_95_percent_of_a_bell_and_not_much_less_of_what_is_skewed() {
    let mut chance = Chance::new(3);
    for n in [2, 3, 5, 10, 30, 100] {
        let mut covered = (0, 0);
        let rounds = 3_000;
        for _ in 0..rounds {
            let bell: Vec<f64> = (0..n).map(|_| normal(&mut chance)).collect();
            // The logarithm is a bell of 0.5: the long times and many tokens of a few trials.
            let skewed: Vec<f64> = bell.iter().map(|value| (0.5 * value).exp()).collect();
            covered.0 += u32::from(holds(estimate(&bell).unwrap().ci95.unwrap(), 0.0));
            covered.1 += u32::from(holds(estimate(&skewed).unwrap().ci95.unwrap(), 0.125f64.exp()));
        }
        let [bell, skewed] = [covered.0, covered.1].map(|count| f64::from(count) / f64::from(rounds));
        assert!((bell - 0.95).abs() < 0.015, "n {n}: {bell}");
        assert!(skewed > 0.89, "n {n}: {skewed}");
    }
}

/// The differences of cases that are as hard as chance has it, and `more` likely to pass in the one arm.
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
fn the_test_sees_a_difference_where_none_is_in_at_most_5_percent() {
    let mut chance = Chance::new(5);
    for (cases, trials) in [(3, 4), (6, 1), (6, 3), (12, 2), (20, 1)] {
        let rounds = 1_500;
        let seen =
            (0..rounds).filter(|_| sign_flip(&differences(&mut chance, cases, trials, 0.0)).unwrap() <= 0.05).count();
        // Three standard errors of a rate of 5 %.
        assert!(seen as f64 / f64::from(rounds) <= 0.05 + 0.017, "{cases} cases of {trials}: {seen}");
    }
}

#[test]
fn the_test_sees_a_large_difference() {
    let mut chance = Chance::new(6);
    let rounds = 300;
    let seen = (0..rounds).filter(|_| sign_flip(&differences(&mut chance, 12, 4, 0.5)).unwrap() <= 0.05).count();
    assert!(seen as f64 / f64::from(rounds) > 0.95, "{seen}");
}

//! Simulations of trials whose results are correlated within clusters, and of margins.

use crate::statistics::{Chance, WithinMargin, clustered_mean, clustered_share, newcombe, no_worse_than, wilson};

const ROUNDS: u32 = 1_000;

/// Returns the trials of clusters with different pass rates. The rate of a cluster is near `rate` with a spread from 0,
/// all the same, to 1, where a cluster passes or fails as a whole.
fn clusters(chance: &mut Chance, number: usize, rate: f64, spread: f64) -> Vec<Vec<f64>> {
    let mut cluster = || {
        let whole = f64::from(u8::from(chance.unit() < rate));
        let own = spread.sqrt() * whole + (1.0 - spread.sqrt()) * rate;
        let trials = 2 + chance.below(9);
        (0..trials).map(|_| f64::from(u8::from(chance.unit() < own))).collect()
    };
    (0..number).map(|_| cluster()).collect()
}

#[test]
fn cluster_robust_intervals_cover_95_percent_and_those_of_trials_do_not() {
    let mut chance = Chance::new(200);
    for number in [5, 10, 30] {
        for (rate, spread) in [(0.5, 0.0), (0.5, 0.4), (0.8, 0.3), (0.9, 0.1), (0.9, 0.6)] {
            let mut covered = [0; 3];
            for _ in 0..ROUNDS {
                let clusters = clusters(&mut chance, number, rate, spread);
                let all = clusters.concat();
                let intervals = [
                    clustered_share(&clusters).unwrap().ci95.unwrap(),
                    clustered_mean(&clusters).unwrap().ci95.unwrap(),
                    wilson(all.iter().sum::<f64>() as u64, all.len() as u64),
                ];
                for (covered, [low, high]) in covered.iter_mut().zip(intervals) {
                    *covered += u32::from(low <= rate && rate <= high);
                }
            }
            let [share, mean, plain] = covered.map(|covered| f64::from(covered) / f64::from(ROUNDS));
            println!(
                "{number} clusters, rate {rate}, spread {spread}: share {share:.3}, t {mean:.3}, Wilson {plain:.3}"
            );
            assert!(share >= 0.94, "{number} clusters, rate {rate}, spread {spread}: {share}");
            assert!(spread < 0.3 || plain < 0.9, "the difference is there to be seen: {plain}");
        }
    }
}

#[test]
fn newcombes_interval_covers_95_percent_and_rarely_hides_a_loss() {
    let mut chance = Chance::new(201);
    for (trials, first, second, is_mixed) in [
        ([20, 20], 0.8, 0.9, false),
        ([50, 30], 0.85, 0.95, false),
        ([200, 200], 0.9, 0.95, true),
        ([10, 10], 0.5, 0.5, true),
    ] {
        let (mut covered, mut hidden) = (0, 0);
        for _ in 0..ROUNDS {
            // Half of the cases are easier and half are harder than the mean: pooled trials then vary less.
            let mut passed = |trials: u64, rate: f64| {
                let of_case = |index: u64| if index.is_multiple_of(2) { 1.0 } else { 2.0 * rate - 1.0 };
                (0..trials).filter(|index| chance.unit() < if is_mixed { of_case(*index) } else { rate }).count() as u64
            };
            let interval = newcombe([passed(trials[0], first), passed(trials[1], second)], trials).unwrap();
            covered += u32::from((interval[0]..=interval[1]).contains(&(first - second)));
            // The true difference is exactly the margin, the hardest case.
            hidden += u32::from(no_worse_than(Some(interval), second - first) == WithinMargin::Shown);
        }
        let [coverage, hidden] = [covered, hidden].map(|count| f64::from(count) / f64::from(ROUNDS));
        println!("{trials:?} {first} {second}: coverage {coverage:.3}, wrongly no worse {hidden:.3}");
        assert!(coverage >= 0.94, "{trials:?}: {coverage}");
        assert!(hidden <= 0.05, "{trials:?}: {hidden}");
    }
}

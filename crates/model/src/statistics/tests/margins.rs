//! Simulations of margins.

use crate::statistics::{Chance, WithinMargin, newcombe, no_worse_than};

const ROUNDS: u32 = 1_000;

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

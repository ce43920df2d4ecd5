//! Simulations of judges and their corrections.

use crate::statistics::{Agreement, Chance};

const ROUNDS: u32 = 3_000;

/// Judge that is right with these probabilities about trials that pass and trials that fail.
struct Judge {
    tpr: f64,
    tnr: f64,
}

impl Judge {
    fn verdict(&self, chance: &mut Chance, passes: bool) -> bool {
        let is_right = chance.unit() < if passes { self.tpr } else { self.tnr };
        is_right == passes
    }

    fn labelled(&self, chance: &mut Chance, trials: u64, rate: f64) -> Agreement {
        Agreement::of((0..trials).map(|_| {
            let passes = chance.unit() < rate;
            (passes, self.verdict(chance, passes))
        }))
    }

    /// Returns κ of infinitely many trials.
    fn kappa(&self, rate: f64) -> f64 {
        let judged = rate * self.tpr + (1.0 - rate) * (1.0 - self.tnr);
        let observed = rate * self.tpr + (1.0 - rate) * self.tnr;
        let expected = rate * judged + (1.0 - rate) * (1.0 - judged);
        (observed - expected) / (1.0 - expected)
    }
}

#[test]
fn the_interval_of_kappa_covers_95_percent() {
    let mut chance = Chance::new(100);
    for trials in [20, 50, 200] {
        for (rate, tpr, tnr) in [(0.5, 0.9, 0.9), (0.8, 0.9, 0.8), (0.9, 0.95, 0.9), (0.7, 0.99, 0.97), (0.5, 0.6, 0.6)]
        {
            let judge = Judge { tpr, tnr };
            let truth = judge.kappa(rate);
            let (mut covered, mut defined) = (0, 0);
            for _ in 0..ROUNDS {
                let Some(kappa) = judge.labelled(&mut chance, trials, rate).kappa() else { continue };
                let [low, high] = kappa.ci95.unwrap();
                defined += 1;
                covered += u32::from(low <= truth && truth <= high);
            }
            let coverage = f64::from(covered) / f64::from(defined);
            println!("κ {truth:.2}, {trials} trials: {coverage:.3}");
            assert!(coverage >= 0.935, "κ {truth:.2}, {trials} trials: {coverage}");
        }
    }
}

#[test]
fn the_interval_of_a_corrected_pass_rate_covers_95_percent() {
    let mut chance = Chance::new(101);
    for (labels, trials) in [(30, 50), (60, 200), (200, 400)] {
        for (rate, tpr, tnr) in
            [(0.6, 0.9, 0.9), (0.9, 0.95, 0.8), (0.3, 0.8, 0.95), (0.97, 0.9, 0.9), (0.5, 0.75, 0.7)]
        {
            let judge = Judge { tpr, tnr };
            let (mut covered, mut defined, mut off) = (0, 0, 0.0);
            for _ in 0..ROUNDS / 2 {
                // The human passes half of the labelled trials.
                let agreement = judge.labelled(&mut chance, labels, 0.5);
                let passed = (0..trials).filter(|_| {
                    let passes = chance.unit() < rate;
                    judge.verdict(&mut chance, passes)
                });
                let passed = passed.count() as u64;
                let Some(corrected) = agreement.corrected_pass_rate(passed, trials) else { continue };
                let [low, high] = corrected.ci95.unwrap();
                defined += 1;
                covered += u32::from(low <= rate && rate <= high);
                off += corrected.mean - rate;
            }
            let coverage = f64::from(covered) / f64::from(defined);
            println!(
                "rate {rate}, {tpr}/{tnr}, {labels} labels, {trials} trials: {coverage:.3}, bias {:.3}",
                off / f64::from(defined)
            );
            assert!(coverage >= 0.94, "rate {rate}, {labels} labels: {coverage}");
        }
    }
}

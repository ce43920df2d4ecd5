//! Simulations of runs that look at the result after every trial.

use std::collections::HashMap;
use std::hash::Hash;

use crate::statistics::{
    Chance, Contract, Decision, Pairs, confidence_sequence, e_above, e_below, e_difference_above, e_two_samples, wilson,
};

/// Number of simulated runs.
const RUNS: u64 = 10_000;
/// Number of trials in a run, with a look at the results after each.
const LOOKS: u64 = 100;

/// Values of a function, each computed once.
struct Table<K, V, F>(HashMap<K, V>, F);

impl<K: Copy + Eq + Hash, V: Copy, F: Fn(K) -> V> Table<K, V, F> {
    fn new(of: F) -> Self {
        Self(HashMap::new(), of)
    }

    fn at(&mut self, key: K) -> V {
        *self.0.entry(key).or_insert_with(|| (self.1)(key))
    }
}

/// Values of a function of the passed and failed trials, each computed once. The table makes 10,000 runs of 100 looks
/// affordable without optimisation.
struct Grid<V, F>(Vec<Option<V>>, u64, F);

impl<V: Copy, F: Fn(u64, u64) -> V> Grid<V, F> {
    fn new(most: u64, of: F) -> Self {
        Self(vec![None; ((most + 1) * (most + 1)) as usize], most + 1, of)
    }

    fn at(&mut self, passed: u64, failed: u64) -> V {
        *self.0[(passed * self.1 + failed) as usize].get_or_insert_with(|| (self.2)(passed, failed))
    }
}

/// Returns the share of runs in which a condition on the passed and failed trials so far is ever true.
fn ever(seed: u64, rate: impl Fn(u64, u64) -> f64, mut is_seen: impl FnMut(u64, u64) -> bool) -> f64 {
    let mut chance = Chance::new(seed);
    let mut run = || {
        let (mut passed, mut failed) = (0, 0);
        (0..LOOKS).any(|_| {
            *if chance.unit() < rate(passed, failed) { &mut passed } else { &mut failed } += 1;
            is_seen(passed, failed)
        })
    };
    (0..RUNS).filter(|_| run()).count() as f64 / RUNS as f64
}

#[test]
fn evidence_about_a_pass_rate_has_a_false_alarm_rate_of_at_most_5_percent() {
    for (seed, limit) in [(1, 0.2), (2, 0.5), (3, 0.8), (4, 0.9), (5, 0.99)] {
        let mut above = Grid::new(LOOKS, |passed, failed| e_above(limit, passed, failed) >= 20.0);
        let mut below = Grid::new(LOOKS, |passed, failed| e_below(limit, passed, failed) >= 20.0);
        let high = ever(seed, |_, _| limit, |passed, failed| above.at(passed, failed));
        let low = ever(seed + 10, |_, _| limit, |passed, failed| below.at(passed, failed));
        // A rate within the null hypothesis that depends on the results so far.
        let changing = |passed: u64, failed: u64| if passed > 3 * failed { limit } else { 0.7 * limit };
        let moved = ever(seed + 20, changing, |passed, failed| above.at(passed, failed));
        println!("limit {limit}: above {high}, below {low}, changing {moved}");
        assert!(high <= 0.05 && low <= 0.05 && moved <= 0.05, "{limit}: {high} {low} {moved}");
    }
}

#[test]
fn confidence_sequences_cover_95_percent_under_peeking_and_fixed_intervals_do_not() {
    let mut sequence = Grid::new(LOOKS, |passed, failed| confidence_sequence(passed, failed, 0.05));
    let mut fixed = Grid::new(LOOKS, |passed, failed| wilson(passed, passed + failed));
    for (seed, rate) in [(30, 0.02), (31, 0.5), (32, 0.8), (33, 0.9), (34, 0.99)] {
        let is_outside = |[low, high]: [f64; 2]| rate < low || rate > high;
        let missed = ever(seed, |_, _| rate, |passed, failed| is_outside(sequence.at(passed, failed)));
        let missed_fixed = ever(seed, |_, _| rate, |passed, failed| is_outside(fixed.at(passed, failed)));
        println!("rate {rate}: sequence misses {missed}, Wilson misses {missed_fixed}");
        assert!(missed <= 0.05, "{rate}: {missed}");
        assert!(missed_fixed > 0.15, "{rate}: the difference is there to be seen: {missed_fixed}");
    }
}

/// Results of a contract's runs: the share of each decision, and the median number of trials.
fn decided(seed: u64, contract: &Contract, rate: f64) -> (f64, f64, u64) {
    let mut decisions = Grid::new(contract.max_trials, |passed, failed| contract.decide(passed, failed));
    let mut chance = Chance::new(seed);
    let (mut success, mut failure, mut trials) = (0, 0, Vec::new());
    for _ in 0..RUNS {
        let (mut passed, mut failed) = (0, 0);
        let decision = loop {
            match decisions.at(passed, failed) {
                Decision::Continue => *if chance.unit() < rate { &mut passed } else { &mut failed } += 1,
                decision => break decision,
            }
        };
        success += u64::from(decision == Decision::Success);
        failure += u64::from(decision == Decision::Failure);
        trials.push(passed + failed);
    }
    trials.sort_unstable();
    (success as f64 / RUNS as f64, failure as f64 / RUNS as f64, trials[trials.len() / 2])
}

#[test]
fn a_contract_of_90_percent_saves_half_of_the_trials_where_the_answer_is_clear() {
    // The numbers of trials that the exact binomial test with a fixed number needs for the same question, with a power of
    // 90 %.
    for (indifference, max_trials, seed) in [(0.1, 112, 40), (0.05, 379, 41)] {
        let contract = Contract { at_least: 0.9, indifference, alpha: 0.05, max_trials };
        for rate in [0.5, 0.99, 0.9, 0.9 - indifference] {
            let (success, failure, median) = decided(seed, &contract, rate);
            let saved = 1.0 - median as f64 / max_trials as f64;
            println!("±{indifference}, {rate}: success {success}, failure {failure}, median {median} of {max_trials}");
            assert!(failure <= 0.05 || rate < 0.9, "{rate}: {failure}");
            assert!(success <= 0.05 || rate > 0.9 - indifference, "{rate}: {success}");
            assert!(saved >= 0.5 || (rate != 0.5 && rate != 0.99), "{rate}: {saved}");
            assert!((success > 0.99 || rate != 0.99) && (failure > 0.99 || rate != 0.5));
        }
    }
}

#[test]
fn the_forecast_of_a_contract_agrees_with_simulated_runs() {
    let contract = Contract { at_least: 0.9, indifference: 0.1, alpha: 0.05, max_trials: 60 };
    for (seed, rate) in [(50, 0.5), (51, 0.85), (52, 0.95)] {
        let (forecast, (success, failure, median)) = (contract.forecast(rate), decided(seed, &contract, rate));
        assert!((forecast.success - success).abs() < 0.02 && (forecast.failure - failure).abs() < 0.02, "{forecast:?}");
        assert!(forecast.median_trials.abs_diff(median) <= 1, "{forecast:?} {median}");
    }
}

/// Returns the pairs of one round: one pair of every case, each with the pass rates of both arms.
fn round(chance: &mut Chance, cases: &[[f64; 2]]) -> Pairs {
    let pair = |rates: &[f64; 2]| match rates.map(|rate| chance.unit() < rate) {
        [true, false] => Pairs { better: 1, ..Pairs::default() },
        [false, true] => Pairs { worse: 1, ..Pairs::default() },
        _ => Pairs { same: 1, ..Pairs::default() },
    };
    cases.iter().map(pair).sum()
}

#[test]
fn paired_evidence_has_a_false_alarm_rate_of_at_most_5_percent_for_cases_of_any_kind() {
    let alike: &[[f64; 2]] = &[[0.9, 0.9], [0.5, 0.5], [0.7, 0.7], [1.0, 1.0]];
    // The arms differ in each case, but not on average.
    let mixed: &[[f64; 2]] = &[[1.0, 0.2], [0.5, 0.7], [0.2, 0.5], [0.3, 0.6]];
    let worse: &[[f64; 2]] = &[[0.9, 0.6], [0.1, 0.5], [0.5, 0.5]];
    for (seed, cases) in [(60, alike), (61, mixed), (62, worse), (63, &[[0.8, 0.8]])] {
        let mut evidence = Table::new(|pairs: Pairs| e_difference_above(0.0, pairs));
        let mut chance = Chance::new(seed);
        let mut run = || {
            let mut pairs = Pairs::default();
            (0..25).any(|_| {
                pairs = pairs + round(&mut chance, cases);
                evidence.at(Pairs { same: 0, ..pairs }) >= 20.0
            })
        };
        let seen = (0..RUNS).filter(|_| run()).count() as f64 / RUNS as f64;
        println!("paired {seed}: {seen}");
        assert!(seen <= 0.05, "{seed}: {seen}");
    }
}

#[test]
fn the_confidence_sequence_of_a_difference_covers_95_percent_under_peeking() {
    let cases: &[&[[f64; 2]]] = &[&[[0.9, 0.7]], &[[0.6, 0.9], [0.4, 0.5]], &[[0.95, 0.95], [0.2, 0.2], [0.6, 0.6]]];
    for (seed, cases) in (70..).zip(cases) {
        let apart = cases.iter().map(|[first, second]| first - second).sum::<f64>() / cases.len() as f64;
        // The sequence excludes the true difference exactly if one of these reaches 2/α.
        let mut is_outside = Table::new(|pairs: Pairs| {
            let swapped = Pairs { better: pairs.worse, worse: pairs.better, same: pairs.same };
            e_difference_above(apart, pairs) >= 40.0 || e_difference_above(-apart, swapped) >= 40.0
        });
        let mut chance = Chance::new(seed);
        let mut run = || {
            let mut pairs = Pairs::default();
            (0..20).any(|_| {
                pairs = pairs + round(&mut chance, cases);
                is_outside.at(pairs)
            })
        };
        let missed = (0..RUNS).filter(|_| run()).count() as f64 / RUNS as f64;
        println!("difference {apart:.2}: {missed}");
        assert!(missed <= 0.05, "{apart}: {missed}");
    }
}

#[test]
fn evidence_about_unmatched_arms_has_a_false_alarm_rate_of_at_most_5_percent() {
    for (seed, block, [first, second]) in
        [(80, [1, 1], [0.5, 0.5]), (81, [1, 1], [0.9, 0.9]), (82, [1, 3], [0.7, 0.7]), (83, [1, 1], [0.4, 0.6])]
    {
        let mut evidence = Table::new(|(passed, blocks): ([u64; 2], u64)| e_two_samples(passed, blocks, block) >= 20.0);
        let mut chance = Chance::new(seed);
        let mut run = |rates: [f64; 2]| {
            let mut passed = [0, 0];
            (1..=30).any(|blocks| {
                for arm in [0, 1] {
                    passed[arm] += (0..block[arm]).filter(|_| chance.unit() < rates[arm]).count() as u64;
                }
                evidence.at((passed, blocks))
            })
        };
        let seen = (0..RUNS).filter(|_| run([first, second])).count() as f64 / RUNS as f64;
        let found = (0..500).filter(|_| run([0.95, 0.3])).count();
        println!("unmatched {seed}: {seen}, found {found} of 500");
        assert!(seen <= 0.05, "{seed}: {seen}");
        assert!(found > 450, "{seed}: a large difference is found: {found} of 500");
    }
}

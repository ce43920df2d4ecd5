//! Figures for planning a run: what a number of trials can show, and how many trials a question needs.
//!
//! All figures are for tests after a fixed number of trials. Sequential tests need fewer trials on average; see
//! [`Contract::forecast`](super::Contract::forecast).

use super::{fisher, wilson_of_share};

/// Largest number of trials for which figures are computed exactly.
const MOST_EXACT: u64 = 1_000;
/// Largest number of trials that a plan proposes.
const MOST_TRIALS: u64 = 100_000;
/// Number of halvings that locate a rate to nine digits.
const HALVINGS: u32 = 30;

/// Returns the smallest number of trials for which a condition holds, if it holds for all larger numbers too; `None`
/// above `most`.
pub(super) fn fewest(most: u64, holds: impl Fn(u64) -> bool) -> Option<u64> {
    let (mut low, mut high) = (0, 1);
    while !holds(high) {
        if high >= most {
            return None;
        }
        (low, high) = (high, (high * 2).min(most));
    }
    while low + 1 < high {
        let middle = u64::midpoint(low, high);
        if holds(middle) { high = middle } else { low = middle }
    }
    Some(high)
}

/// Returns the number of trials after which Wilson's 95 % interval (1927) of a pass rate is at most `half_width` wide on
/// each side of its centre, if a share `rate` of the trials pass; 0.5 needs the most. `None` above 100,000 trials.
pub fn trials_for_precision(half_width: f64, rate: f64) -> Option<u64> {
    fewest(MOST_TRIALS, |trials| {
        let [low, high] = wilson_of_share(rate, trials);
        high - low <= 2.0 * half_width
    })
}

/// Returns the number of trials of the exact binomial test of `p <= at_least - indifference` (Clopper and Pearson
/// 1934): the smallest number for which an agent that passes at the rate `at_least` succeeds with a probability of at
/// least `power`, and one at the lower rate with at most `alpha`. `None` above 1,000 trials.
pub fn trials_for_contract(at_least: f64, indifference: f64, alpha: f64, power: f64) -> Option<u64> {
    let lowest = at_least - indifference;
    (1..=MOST_EXACT).find(|trials| {
        let needed = critical_passes(*trials, lowest, alpha);
        tail(&binomial(*trials, at_least), needed) >= power
    })
}

/// Pass rates that a number of trials can distinguish from a required rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DetectableRates {
    /// Largest true rate that is shown to be too low with the given power; `None` if not even 0 is.
    pub too_low: Option<f64>,
    /// Smallest true rate that is shown to be above the required one with the given power; `None` if not even 1 is.
    pub high_enough: Option<f64>,
}

/// Returns the true pass rates that `trials` trials distinguish from `at_least` with the given power, in the exact
/// one-sided binomial tests at `alpha` (Clopper and Pearson 1934). More than 1,000 trials count as 1,000.
pub fn detectable_rates(trials: u64, at_least: f64, alpha: f64, power: f64) -> DetectableRates {
    let trials = trials.min(MOST_EXACT);
    let above = |limit: f64| {
        let needed = critical_passes(trials, limit, alpha);
        let is_shown = |rate: f64| tail(&binomial(trials, rate), needed) >= power;
        is_shown(1.0).then(|| last([1.0, limit], is_shown))
    };
    DetectableRates { too_low: above(1.0 - at_least).map(|rate| 1.0 - rate), high_enough: above(at_least) }
}

/// Returns the smallest drop from the pass rate `rate` that a comparison of two arms with `trials` trials each shows with
/// the given power, in Fisher's exact two-sided test (1934) at `alpha`: 0.3 is 30 percentage points. `None` if not even
/// a drop to 0 is shown. The smallest detectable rise from `rate` is the smallest drop from `1 - rate`.
///
/// For several cases, `trials` is the number of trials of all cases together: testing within each case loses next to no
/// power if the cases have several trials each. Exact up to 1,000 trials; above that, the drop for 1,000 trials is
/// divided by the square root of the factor by which there are more.
pub fn detectable_drop(trials: u64, rate: f64, alpha: f64, power: f64) -> Option<f64> {
    let n = trials.min(MOST_EXACT);
    let region = rejected_passes(n, alpha);
    let first = binomial(n, rate);
    let is_shown = |lower: f64| {
        let mut sums = binomial(n, lower);
        for at in 1..sums.len() {
            sums[at] += sums[at - 1];
        }
        let chance = |(most, weight): (&Option<u64>, &f64)| most.map_or(0.0, |most| weight * sums[most as usize]);
        region.iter().zip(&first).map(chance).sum::<f64>() >= power
    };
    let drop = is_shown(0.0).then(|| rate - last([0.0, rate], is_shown))?;
    Some(if trials > n { drop * (n as f64 / trials as f64).sqrt() } else { drop })
}

/// Returns the boundary between a value that is shown and one that is not.
fn last([mut shown, mut hidden]: [f64; 2], is_shown: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(shown, hidden);
        if is_shown(middle) { shown = middle } else { hidden = middle }
    }
    shown
}

/// Returns the smallest number of passes that shows a rate above `limit`; more than `trials` if none does.
fn critical_passes(trials: u64, limit: f64, alpha: f64) -> u64 {
    let mut chance = 0.0;
    let beyond = |weight: &&f64| {
        chance += **weight;
        chance <= alpha
    };
    trials + 1 - binomial(trials, limit).iter().rev().take_while(beyond).count() as u64
}

/// Returns, for each number of passes of the first arm, the largest number of passes of the second arm that is shown to
/// be lower; `None` if none is.
fn rejected_passes(trials: u64, alpha: f64) -> Vec<Option<u64>> {
    let rejects = |first: u64, second: u64| second < first && fisher([first, second], [trials; 2]) <= alpha;
    // The number that is *not* rejected grows with the passes of the first arm.
    let mut kept = 0;
    let region = (0..=trials).map(|first| {
        while kept > 0 && !rejects(first, kept - 1) {
            kept -= 1;
        }
        while rejects(first, kept) {
            kept += 1;
        }
        kept.checked_sub(1)
    });
    region.collect()
}

/// Returns the probabilities of 0 to `trials` passes.
fn binomial(trials: u64, rate: f64) -> Vec<f64> {
    let rate = if rate.is_nan() { 0.5 } else { rate.clamp(0.0, 1.0) };
    let mut weights = vec![0.0; trials as usize + 1];
    if rate == 0.0 || rate == 1.0 {
        weights[if rate == 0.0 { 0 } else { trials as usize }] = 1.0;
        return weights;
    }
    // Start at the mode, so that no relevant value underflows.
    let mode = ((trials + 1) as f64 * rate).floor().min(trials as f64) as usize;
    let odds = rate / (1.0 - rate);
    weights[mode] = 1.0;
    for at in mode..trials as usize {
        weights[at + 1] = weights[at] * odds * (trials as usize - at) as f64 / (at + 1) as f64;
    }
    for at in (0..mode).rev() {
        weights[at] = weights[at + 1] / odds * (at + 1) as f64 / (trials as usize - at) as f64;
    }
    let all: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / all).collect()
}

fn tail(weights: &[f64], from: u64) -> f64 {
    weights.iter().skip(from as usize).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binomial_probabilities_are_exact_and_do_not_underflow() {
        let half = binomial(4, 0.5);
        for (weight, exact) in half.iter().zip([1.0, 4.0, 6.0, 4.0, 1.0]) {
            assert!((weight - exact / 16.0).abs() < 1e-15);
        }
        assert!((binomial(1_000, 0.9).iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert_eq!((binomial(2, 0.0), binomial(2, 1.0)), (vec![1.0, 0.0, 0.0], vec![0.0, 0.0, 1.0]));
    }

    #[test]
    fn a_precision_of_5_points_needs_about_400_trials() {
        // (1.96 / 0.1)² = 384, less z² for Wilson's interval.
        assert_eq!(trials_for_precision(0.05, 0.5), Some(381));
        assert!(trials_for_precision(0.05, 0.95).unwrap() < 120);
        assert_eq!((trials_for_precision(0.0, 0.5), trials_for_precision(0.5, 0.5)), (None, Some(1)));
    }

    #[test]
    fn a_fixed_test_of_a_contract_has_its_power() {
        let trials = trials_for_contract(0.9, 0.1, 0.05, 0.8).unwrap();
        assert!((75..=95).contains(&trials), "{trials}: normal approximation gives 83");
        assert!(trials_for_contract(0.9, 0.1, 0.05, 0.9).unwrap() > trials);
        assert_eq!(trials_for_contract(0.9, 0.0, 0.05, 0.8), None);
        // 59 passes of 59 are the fewest that show more than 95 %.
        assert_eq!(critical_passes(58, 0.95, 0.05), 59, "58 are too few");
        assert_eq!(critical_passes(59, 0.95, 0.05), 59);
    }

    #[test]
    fn the_detectable_rates_move_towards_the_contract_with_more_trials() {
        let few = detectable_rates(5, 0.9, 0.05, 0.8);
        assert_eq!(few.high_enough, None, "five passes do not show 90 %");
        assert!(few.too_low.unwrap() < 0.5);
        let many = detectable_rates(200, 0.9, 0.05, 0.8);
        assert!(many.too_low.unwrap() > 0.8 && many.high_enough.unwrap() < 0.97, "{many:?}");
        let none = detectable_rates(0, 0.9, 0.05, 0.8);
        assert_eq!((none.too_low, none.high_enough), (None, None));
    }

    #[test]
    fn the_detectable_drop_is_that_of_fishers_test() {
        // Published sample size to tell 0.9 from 0.6 with Fisher's test, two-sided 5 %, power 80 %: 38 per arm.
        let drop = detectable_drop(38, 0.9, 0.05, 0.8).unwrap();
        assert!((drop - 0.3).abs() < 0.02, "{drop}");
        assert_eq!(detectable_drop(3, 1.0, 0.05, 0.8), None, "three trials cannot show anything");
        assert!(detectable_drop(4, 1.0, 0.05, 0.8).is_some());
        assert_eq!(detectable_drop(0, 0.9, 0.05, 0.8), None);
    }

    #[test]
    fn the_detectable_drop_shrinks_with_the_number_of_trials() {
        let drops: Vec<f64> = [10, 20, 40, 80].iter().map(|n| detectable_drop(*n, 0.9, 0.05, 0.8).unwrap()).collect();
        assert!(drops.windows(2).all(|pair| pair[0] > pair[1]), "{drops:?}");
    }
}

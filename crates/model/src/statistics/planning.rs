//! Figures for planning a run: what a number of trials can show, and how many trials a question needs.

use super::fisher;

/// Largest number of trials for which figures are computed exactly.
const MOST_EXACT: u64 = 1_000;
/// Number of halvings that locate a rate to nine digits.
const HALVINGS: u32 = 30;

/// Returns the smallest number of trials for which a condition holds, if it holds for all larger numbers too; `None`
/// above `most`.
pub fn fewest(most: u64, holds: impl Fn(u64) -> bool) -> Option<u64> {
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

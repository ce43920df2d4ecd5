//! Means with their intervals.

use super::{student, wilson, wilson_of_share};
use crate::Estimate;

/// Returns the mean, the sample standard deviation and Student's 95 % interval; `None` for no values.
pub fn estimate(values: &[f64]) -> Option<Estimate> {
    let (mean, stddev, n) = moments(values)?;
    let half = stddev.zip(student::quantile(n - 1)).map(|(stddev, t)| t * stddev / (n as f64).sqrt());
    let ci95 = half.map(|half| [mean - half, mean + half]).filter(|ends| ends.iter().all(|end| end.is_finite()));
    Some(Estimate { mean, stddev, ci95 })
}

/// Like `estimate`, for amounts that cannot be below 0, such as tokens: the interval does not go below 0 either.
pub fn amount(values: &[f64]) -> Option<Estimate> {
    let estimate = estimate(values)?;
    Some(Estimate { ci95: estimate.ci95.map(|[low, high]| [low.max(0.0), high.max(0.0)]), ..estimate })
}

/// Returns the mean of shares from 0 to 1 with Wilson's interval, which exists even for one value. Student's interval
/// would be empty if all values were equal, and too narrow until a rare failure has occurred. If any value is outside
/// 0 to 1, and therefore not a share, this is the same as `estimate`.
pub fn share(values: &[f64]) -> Option<Estimate> {
    let (mean, stddev, n) = moments(values)?;
    if values.iter().any(|value| value.is_finite() && !(0.0..=1.0).contains(value)) {
        return estimate(values);
    }
    Some(Estimate { mean, stddev, ci95: Some(wilson_of_share(mean, n as u64)) })
}

/// Returns the share of `trials` in which something happened, with Wilson's interval; `None` for no trials.
pub fn rate(happened: u64, trials: u64) -> Option<Estimate> {
    (trials > 0).then(|| Estimate {
        mean: happened.min(trials) as f64 / trials as f64,
        stddev: None,
        ci95: Some(wilson(happened, trials)),
    })
}

/// Returns the mean of the finite values, their sample standard deviation (over n − 1) if there are at least two, and
/// their number.
pub(super) fn moments(values: &[f64]) -> Option<(f64, Option<f64>, usize)> {
    let mut values: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    values.sort_unstable_by(f64::total_cmp);
    let (first, last) = (*values.first()?, *values.last()?);
    let n = values.len();
    // The rounding error of a sum of equal values is larger than their spread, which is zero.
    let mean = if first == last { first } else { values.iter().sum::<f64>() / n as f64 };
    if !mean.is_finite() {
        return None;
    }
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let stddev = (n > 1).then(|| (squares / (n as f64 - 1.0)).sqrt()).filter(|stddev| stddev.is_finite());
    Some((mean, stddev, n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_has_no_deviation_and_no_values_have_no_mean() {
        assert!(estimate(&[]).is_none());
        assert_eq!(estimate(&[2.0]), Some(Estimate { mean: 2.0, stddev: None, ci95: None }));
        let three = estimate(&[1.0, 2.0, 3.0]).unwrap();
        assert_eq!((three.mean, three.stddev), (2.0, Some(1.0)));
        assert!((three.ci95.unwrap()[1] - (2.0 + 4.302_652_730 / 3f64.sqrt())).abs() < 1e-9);
    }

    #[test]
    fn the_interval_of_an_amount_does_not_go_below_zero() {
        let [low, high] = amount(&[1.0, 2.0, 30.0]).unwrap().ci95.unwrap();
        assert_eq!(low, 0.0);
        assert_eq!(high, estimate(&[1.0, 2.0, 30.0]).unwrap().ci95.unwrap()[1]);
    }

    #[test]
    fn equal_shares_still_have_an_interval() {
        let all = share(&[1.0, 1.0, 1.0]).unwrap();
        assert_eq!((all.mean, all.stddev, all.ci95), (1.0, Some(0.0), Some(wilson(3, 3))));
        assert_eq!(share(&[0.5]).unwrap().ci95, Some(wilson_of_share(0.5, 1)));
        assert_eq!(share(&[1.0, 0.0, 1.0]).map(|e| (e.mean, e.ci95)), rate(2, 3).map(|e| (e.mean, e.ci95)));
        assert_eq!(share(&[0.5, 3.0]), estimate(&[0.5, 3.0]));
        assert_eq!((rate(0, 0), share(&[])), (None, None));
    }

    #[test]
    fn non_finite_numbers_are_unknown() {
        for not in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(estimate(&[1.0, not, 3.0]), estimate(&[1.0, 3.0]));
            assert_eq!(share(&[0.5, not]), share(&[0.5]));
            assert_eq!(estimate(&[not]), None);
        }
        assert_eq!(estimate(&[f64::MAX, f64::MAX / 2.0]), None);
        let huge = estimate(&[f64::MAX, -f64::MAX]).unwrap();
        assert_eq!((huge.mean, huge.stddev, huge.ci95), (0.0, None, None));
    }

    #[test]
    fn the_order_of_values_has_no_effect() {
        let values = [0.1, 0.7, 1e9, 3.3, 1e-9, 0.2];
        let mut backwards = values;
        backwards.reverse();
        assert_eq!(estimate(&values), estimate(&backwards));
        assert_eq!(estimate(&[0.1; 3]).map(|e| (e.mean, e.stddev)), Some((0.1, Some(0.0))));
    }
}

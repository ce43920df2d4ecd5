//! Means.

use crate::Estimate;

/// The two-sided 97.5 % quantile of Student's t for 1 to 30 degrees of freedom.
const T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// The mean, the sample's standard deviation and Student's 95 % interval; `None` for no values.
pub fn estimate(values: &[f64]) -> Option<Estimate> {
    if values.is_empty() {
        return None;
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    if values.len() == 1 {
        return Some(Estimate { mean, stddev: None, ci95: None });
    }
    let stddev = (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
    let t = T.get(values.len() - 2).copied().unwrap_or(1.96);
    let half = t * stddev / n.sqrt();
    Some(Estimate { mean, stddev: Some(stddev), ci95: Some([mean - half, mean + half]) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_has_no_spread_and_none_has_no_mean() {
        assert!(estimate(&[]).is_none());
        assert_eq!(estimate(&[2.0]).map(|e| (e.mean, e.stddev)), Some((2.0, None)));
        let three = estimate(&[1.0, 2.0, 3.0]).unwrap();
        assert_eq!((three.mean, three.stddev), (2.0, Some(1.0)));
        assert!((three.ci95.unwrap()[1] - (2.0 + 4.303 / 3f64.sqrt())).abs() < 1e-9);
    }
}

//! Means of values that come in clusters, such as trials of the cases of one suite.

use super::binomial::score_interval;
use super::student;
use crate::Estimate;

/// Returns the mean over all values with the cluster-robust 95 % interval: values within a cluster may be correlated,
/// and the clusters are independent. Student's t has clusters − 1 degrees of freedom. There is no interval for one
/// cluster, and no estimate without a finite value.
///
/// **Formula.** With G clusters, the variance of the mean is (G−1)/G · Σ_g (x̄₋g − x̄)², where x̄₋g is the mean without
/// cluster g: the cluster jackknife CV₃ (Bell and McCaffrey 2002; MacKinnon, Nielsen and Webb 2023). With clusters of
/// equal size, it is the usual cluster-robust variance (Liang and Zeger 1986; for evaluations of models, Miller 2024),
/// and with one value per cluster, it is s²/n. With few clusters of different sizes, the usual variance is too small.
///
/// For shares from 0 to 1, use [`clustered_share`]: this interval has zero width if all clusters agree.
pub fn clustered_mean(clusters: &[Vec<f64>]) -> Option<Estimate> {
    let (clusters, mean, stddev) = totals(clusters)?;
    let half = student::quantile(clusters.len() - 1).map(|t| t * variance(&clusters).sqrt());
    let ci95 = half.map(|half| [mean - half, mean + half]).filter(|ends| ends.iter().all(|end| end.is_finite()));
    Some(Estimate { mean, stddev, ci95 })
}

/// Returns the mean of shares from 0 to 1 with the cluster-robust 95 % interval: Wilson's interval (1927) for the
/// *effective* number of values, with Student's t for clusters − 1 degrees of freedom instead of z.
///
/// **Formula.** The effective number is the number of values divided by the design effect: the cluster-robust variance
/// of the mean, see [`clustered_mean`], divided by the variance x̄(1 − x̄)/N of independent values (Kish 1965; Korn and
/// Graubard 1998). Both are computed after adding two clusters of mean size, one of zeros and one of ones, as Agresti
/// and Coull (1998) add trials to a share: until the rare cluster that differs has been seen, the variance is far too
/// small. The effective number is at least the number of clusters, as if each cluster were one trial, and at most the
/// number of values.
///
/// The same as [`clustered_mean`] if a value is not between 0 and 1.
pub fn clustered_share(clusters: &[Vec<f64>]) -> Option<Estimate> {
    let is_share = |value: &f64| !value.is_finite() || (0.0..=1.0).contains(value);
    if !clusters.iter().flatten().all(is_share) {
        return clustered_mean(clusters);
    }
    let (mut clusters, mean, stddev) = totals(clusters)?;
    let (number, values) = (clusters.len(), clusters.iter().map(|cluster| cluster.size).sum::<f64>());
    let size = values / number as f64;
    clusters.extend([Cluster { sum: 0.0, size }, Cluster { sum: size, size }]);
    let (padded, all) = (mean_of(&clusters), values + 2.0 * size);
    let design_effect = variance(&clusters) / (padded * (1.0 - padded) / all);
    let effective = (values / design_effect).clamp(number as f64, values);
    let ci95 = student::quantile(number - 1).map(|t| score_interval(mean, effective, t));
    Some(Estimate { mean, stddev, ci95 })
}

/// Sum of a cluster's values, and their number.
#[derive(Clone, Copy)]
struct Cluster {
    sum: f64,
    size: f64,
}

/// Returns the clusters that have a finite value, the mean of all values and their standard deviation.
fn totals(clusters: &[Vec<f64>]) -> Option<(Vec<Cluster>, f64, Option<f64>)> {
    let total = |values: &Vec<f64>| {
        let mut values: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
        values.sort_unstable_by(f64::total_cmp);
        Cluster { sum: values.iter().sum(), size: values.len() as f64 }
    };
    let (mean, stddev, _) = super::mean::moments(&clusters.concat())?;
    let mut totals: Vec<Cluster> = clusters.iter().map(total).filter(|cluster| cluster.size > 0.0).collect();
    totals.sort_unstable_by(|one, other| one.sum.total_cmp(&other.sum).then(one.size.total_cmp(&other.size)));
    Some((totals, mean, stddev))
}

fn mean_of(clusters: &[Cluster]) -> f64 {
    let of = |part: fn(&Cluster) -> f64| clusters.iter().map(part).sum::<f64>();
    of(|cluster| cluster.sum) / of(|cluster| cluster.size)
}

/// Returns the variance of the mean by the cluster jackknife; NaN for a single cluster.
fn variance(clusters: &[Cluster]) -> f64 {
    let (mean, number) = (mean_of(clusters), clusters.len() as f64);
    let all: f64 = clusters.iter().map(|cluster| cluster.size).sum();
    // How far the mean moves without the cluster.
    let apart = |cluster: &Cluster| (cluster.sum - cluster.size * mean) / (all - cluster.size);
    clusters.iter().map(|cluster| apart(cluster).powi(2)).sum::<f64>() * (number - 1.0) / number
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::estimate;

    #[test]
    fn with_one_value_per_cluster_the_interval_is_students() {
        let values = [3.0, 5.0, 4.5, 9.0];
        let clusters: Vec<Vec<f64>> = values.iter().map(|value| vec![*value]).collect();
        let (clustered, plain) = (clustered_mean(&clusters).unwrap(), estimate(&values).unwrap());
        assert_eq!((clustered.mean, clustered.stddev), (plain.mean, plain.stddev));
        for (found, exact) in clustered.ci95.unwrap().iter().zip(plain.ci95.unwrap()) {
            assert!((found - exact).abs() < 1e-12);
        }
    }

    #[test]
    fn repeated_values_do_not_narrow_the_interval() {
        let once = clustered_mean(&[vec![1.0], vec![0.0], vec![0.5]]).unwrap();
        let often = clustered_mean(&[vec![1.0; 9], vec![0.0; 9], vec![0.5; 9]]).unwrap();
        for (once, often) in once.ci95.unwrap().iter().zip(often.ci95.unwrap()) {
            assert!((once - often).abs() < 1e-12);
        }
        let share = |times: usize| clustered_share(&[vec![1.0; times], vec![0.0; times], vec![1.0; times]]).unwrap();
        assert_eq!(share(1).ci95, share(50).ci95);
    }

    #[test]
    fn shares_have_an_interval_within_0_and_1_even_if_all_agree() {
        let [low, high] = clustered_share(&[vec![1.0; 10], vec![1.0; 10], vec![1.0; 10]]).unwrap().ci95.unwrap();
        assert!(low > 0.1 && low < 0.5 && high == 1.0, "{low}");
        assert_eq!(clustered_share(&[vec![1.0, 0.0, 1.0]]).map(|estimate| estimate.ci95), Some(None));
        assert_eq!((clustered_share(&[]), clustered_mean(&[vec![f64::NAN]])), (None, None));
        assert_eq!(clustered_share(&[vec![3.0], vec![1.0]]), clustered_mean(&[vec![3.0], vec![1.0]]));
    }

    #[test]
    fn the_order_of_clusters_and_values_has_no_effect() {
        let clusters = [vec![0.1, 0.7], vec![0.2], vec![0.9, 0.3, 0.4]];
        let turned = [vec![0.4, 0.9, 0.3], vec![0.7, 0.1], vec![0.2]];
        assert_eq!(clustered_share(&clusters), clustered_share(&turned));
        assert_eq!(clustered_mean(&clusters), clustered_mean(&turned));
    }
}

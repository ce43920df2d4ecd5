//! Agreement of a judge with human labels, and pass rates corrected for the judge's errors.

use serde::{Deserialize, Serialize};

use super::Z;
use super::mean::rate;
use crate::Estimate;

/// Counts of trials that both a judge and a human have labelled, by both verdicts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agreement {
    /// Both say that the trial passes.
    pub both_pass: u64,
    /// The human says that the trial passes, the judge that it fails.
    pub judge_fails: u64,
    /// The human says that the trial fails, the judge that it passes.
    pub judge_passes: u64,
    /// Both say that the trial fails.
    pub both_fail: u64,
}

impl std::ops::AddAssign for Agreement {
    fn add_assign(&mut self, other: Self) {
        self.both_pass += other.both_pass;
        self.judge_fails += other.judge_fails;
        self.judge_passes += other.judge_passes;
        self.both_fail += other.both_fail;
    }
}

impl Agreement {
    /// Counts pairs of verdicts: first the human's, then the judge's.
    pub fn of(verdicts: impl IntoIterator<Item = (bool, bool)>) -> Self {
        let mut counts = Self::default();
        for verdict in verdicts {
            *match verdict {
                (true, true) => &mut counts.both_pass,
                (true, false) => &mut counts.judge_fails,
                (false, true) => &mut counts.judge_passes,
                (false, false) => &mut counts.both_fail,
            } += 1;
        }
        counts
    }

    /// Returns the number of labelled trials.
    pub fn count(self) -> u64 {
        self.both_pass + self.judge_fails + self.judge_passes + self.both_fail
    }

    /// Returns the share of trials with the same verdict, with Wilson's interval (1927); `None` for no trials.
    pub fn share(self) -> Option<Estimate> {
        rate(self.both_pass + self.both_fail, self.count())
    }

    /// Returns the true positive rate (sensitivity): of the trials that the human passes, the share that the judge also
    /// passes, with Wilson's interval (1927); `None` if the human passes no trial.
    pub fn true_positive_rate(self) -> Option<Estimate> {
        rate(self.both_pass, self.both_pass + self.judge_fails)
    }

    /// Returns the true negative rate (specificity): of the trials that the human fails, the share that the judge also
    /// fails, with Wilson's interval (1927); `None` if the human fails no trial.
    pub fn true_negative_rate(self) -> Option<Estimate> {
        rate(self.both_fail, self.both_fail + self.judge_passes)
    }

    /// Returns κ, the agreement beyond chance (Cohen 1960): (pₒ − pₑ)/(1 − pₑ), where pₒ is the share of equal verdicts
    /// and pₑ the share expected if both gave the same verdicts in random order. 1 is perfect, 0 is chance. `None` if
    /// all verdicts of both are the same.
    ///
    /// The 95 % interval uses the standard error of Fleiss, Cohen and Everitt (1969) after adding one trial to each of
    /// the four counts, as Agresti and Coull (1998) do for a share. Without that, the interval covers as little as 27 %
    /// for 20 trials with few disagreements, and has zero width if there are none. The interval always contains κ.
    pub fn kappa(self) -> Option<Estimate> {
        let counts = [self.both_pass, self.judge_fails, self.judge_passes, self.both_fail].map(|count| count as f64);
        let (mean, _) = kappa_of(counts)?;
        let (center, error) = kappa_of(counts.map(|count| count + 1.0))?;
        let low = (center - Z * error).min(mean).max(-1.0);
        let high = (center + Z * error).max(mean).min(1.0);
        Some(Estimate { mean, stddev: None, ci95: Some([low, high]) })
    }

    /// Corrects the judge's pass rate, `passed` of `trials` other trials, for the judge's errors (Rogan and Gladen
    /// 1978): (rate + TNR − 1)/(TPR + TNR − 1), limited to 0 and 1.
    ///
    /// The 95 % interval is that of Lang and Reiczigel (2014): each of the three rates is moved towards one half, the
    /// variances are combined by the delta method, and the centre is shifted to correct the skewness. It accounts for
    /// the uncertainty of both error rates. It always contains the estimate.
    ///
    /// `None` if a rate is unknown, or if the judge does no better than chance (TPR + TNR ≤ 1): its verdicts then carry
    /// no information about the true rate. If only the moved rates do no better than chance, the interval is `[0, 1]`.
    ///
    /// The labelled trials must be chosen without regard to the judge's verdict, or at random within each human label.
    /// If they are among the `trials`, the interval is slightly too wide.
    pub fn corrected_pass_rate(self, passed: u64, trials: u64) -> Option<Estimate> {
        let apparent = rate(passed, trials)?.mean;
        let (tpr, tnr) = (self.true_positive_rate()?.mean, self.true_negative_rate()?.mean);
        let youden = tpr + tnr - 1.0;
        if youden <= 0.0 {
            return None;
        }
        let mean = ((apparent + tnr - 1.0) / youden).clamp(0.0, 1.0);
        let ci95 = self.interval_of_corrected(apparent, trials as f64).unwrap_or([0.0, 1.0]);
        Some(Estimate { mean, stddev: None, ci95: Some([ci95[0].min(mean), ci95[1].max(mean)]) })
    }

    fn interval_of_corrected(self, apparent: f64, trials: f64) -> Option<[f64; 2]> {
        // The rate after it is moved towards one half, and its variance.
        let moved = |rate: f64, n: f64, more: f64| {
            let rate = (n * rate + more / 2.0) / (n + more);
            (rate, rate * (1.0 - rate) / (n + more))
        };
        let of = |estimate: Estimate, n: u64| moved(estimate.mean, n as f64, 2.0);
        let (apparent, variance) = moved(apparent, trials, Z * Z);
        let (tpr, tpr_variance) = of(self.true_positive_rate()?, self.both_pass + self.judge_fails);
        let (tnr, tnr_variance) = of(self.true_negative_rate()?, self.both_fail + self.judge_passes);
        let youden = tpr + tnr - 1.0;
        if youden <= 0.0 {
            return None;
        }
        let mean = (apparent + tnr - 1.0) / youden;
        let shift = 2.0 * Z * Z * (mean * tpr_variance - (1.0 - mean) * tnr_variance);
        let variance = variance + mean * mean * tpr_variance + (1.0 - mean).powi(2) * tnr_variance;
        let half = Z * variance.sqrt() / youden;
        Some([mean + shift - half, mean + shift + half].map(|end| end.clamp(0.0, 1.0)))
    }
}

/// Returns κ and its standard error for four counts: both pass, only the first, only the second, and both fail.
fn kappa_of(counts: [f64; 4]) -> Option<(f64, f64)> {
    let n: f64 = counts.iter().sum();
    let [both, first, second, neither] = counts.map(|count| count / n);
    let (rows, columns) = ([both + first, second + neither], [both + second, first + neither]);
    let expected = rows[0] * columns[0] + rows[1] * columns[1];
    // NaN if there are no trials.
    if expected.is_nan() || expected >= 1.0 {
        return None;
    }
    let kappa = (both + neither - expected) / (1.0 - expected);
    let rest = 1.0 - kappa;
    let agreeing = |share: f64, at: usize| share * (1.0 - (rows[at] + columns[at]) * rest).powi(2);
    let differing = first * (columns[0] + rows[1]).powi(2) + second * (columns[1] + rows[0]).powi(2);
    let square = agreeing(both, 0) + agreeing(neither, 1) + rest * rest * differing - (kappa - expected * rest).powi(2);
    Some((kappa, (square.max(0.0) / n).sqrt() / (1.0 - expected)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agreement(both_pass: u64, judge_fails: u64, judge_passes: u64, both_fail: u64) -> Agreement {
        Agreement { both_pass, judge_fails, judge_passes, both_fail }
    }

    #[test]
    fn verdicts_are_counted_by_both_results() {
        let counts = Agreement::of([(true, true), (true, false), (false, true), (false, false), (true, true)]);
        assert_eq!(counts, agreement(2, 1, 1, 1));
        assert_eq!(counts.share().map(|share| share.mean), Some(0.6));
        assert_eq!(counts.true_positive_rate().map(|rate| rate.mean), Some(2.0 / 3.0));
        assert_eq!(counts.true_negative_rate().map(|rate| rate.mean), Some(0.5));
    }

    #[test]
    fn kappa_and_its_error_match_a_published_example() {
        // The usual textbook table of 50 grant proposals: pₒ 0.7, pₑ 0.5.
        let (kappa, error) = kappa_of([20.0, 5.0, 10.0, 15.0]).unwrap();
        assert!((kappa - 0.4).abs() < 1e-12 && (error - 0.1264).abs() < 1e-3, "{kappa} {error}");
        let [low, high] = agreement(20, 5, 10, 15).kappa().unwrap().ci95.unwrap();
        assert!(low > 0.1 && low < 0.2 && high > 0.6 && high < 0.7, "{low} {high}");
    }

    #[test]
    fn kappa_of_perfect_agreement_has_an_interval_and_that_of_one_verdict_is_undefined() {
        let perfect = agreement(10, 0, 0, 10).kappa().unwrap();
        assert_eq!((perfect.mean, perfect.ci95.unwrap()[1]), (1.0, 1.0));
        assert!((0.4..0.8).contains(&perfect.ci95.unwrap()[0]), "{perfect:?}");
        assert_eq!((agreement(20, 0, 0, 0).kappa(), Agreement::default().kappa()), (None, None));
        assert_eq!(agreement(0, 10, 10, 0).kappa().map(|kappa| kappa.mean), Some(-1.0));
    }

    #[test]
    fn a_perfect_judge_needs_no_correction() {
        let corrected = agreement(100, 0, 0, 100).corrected_pass_rate(60, 100).unwrap();
        assert!((corrected.mean - 0.6).abs() < 1e-12);
        let [low, high] = corrected.ci95.unwrap();
        assert!(low < 0.51 && high > 0.69 && low > 0.45 && high < 0.75);
    }

    #[test]
    fn a_lenient_judge_is_corrected_downwards() {
        // 90 % of good and 40 % of bad trials pass: 70 % of verdicts pass if 60 % of the trials are good.
        let corrected = agreement(90, 10, 40, 60).corrected_pass_rate(140, 200).unwrap();
        assert!((corrected.mean - 0.6).abs() < 1e-12);
        let [low, high] = corrected.ci95.unwrap();
        assert!(low < 0.45 && high > 0.75, "{low} {high}");
    }

    #[test]
    fn a_judge_no_better_than_chance_corrects_nothing() {
        assert_eq!(agreement(5, 5, 5, 5).corrected_pass_rate(5, 10), None);
        assert_eq!(agreement(5, 0, 0, 0).corrected_pass_rate(5, 10), None);
        assert_eq!(agreement(5, 0, 0, 5).corrected_pass_rate(0, 0), None);
        let weak = agreement(1, 0, 0, 1).corrected_pass_rate(0, 10).unwrap();
        assert_eq!((weak.mean, weak.ci95.unwrap()[0]), (0.0, 0.0));
    }
}

//! Counts of trials by result.

use super::e_process::confidence_sequence;

/// Numbers of trials by result. Trials count in the order in which they were started, up to the first running one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counted {
    /// Passed trials.
    pub passed: u64,
    /// Failed trials.
    pub failed: u64,
    /// Graded trials without a result, for example because no judge was available. They are not a random sample: a
    /// single unmet assertion is enough to decide that a trial failed.
    pub undecided: u64,
}

impl Counted {
    /// Returns the number of trials.
    pub fn trials(self) -> u64 {
        self.passed + self.failed + self.undecided
    }

    /// Returns the share of decided trials that passed, or `None` if no trial is decided.
    pub fn share(self) -> Option<f64> {
        let decided = self.passed + self.failed;
        (decided > 0).then(|| self.passed as f64 / decided as f64)
    }

    /// Returns the numbers of passed and failed trials if every undecided trial failed.
    pub fn worst(self) -> [u64; 2] {
        [self.passed, self.failed + self.undecided]
    }

    /// Returns the numbers of passed and failed trials if every undecided trial passed.
    pub fn best(self) -> [u64; 2] {
        [self.passed + self.undecided, self.failed]
    }

    /// Returns the [`confidence_sequence`] of the pass rate, widened to cover all possible results of the undecided
    /// trials.
    pub fn confidence_sequence(self, alpha: f64) -> [f64; 2] {
        let of = |[passed, failed]: [u64; 2]| confidence_sequence(passed, failed, alpha);
        [of(self.worst())[0], of(self.best())[1]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_confidence_sequence_contains_every_result_of_undecided_trials() {
        let counted = Counted { passed: 8, failed: 1, undecided: 3 };
        let [low, high] = counted.confidence_sequence(0.05);
        for passed in 8..=11 {
            let [lower, upper] = confidence_sequence(passed, 12 - passed, 0.05);
            assert!(low <= lower && upper <= high);
        }
        assert_eq!((counted.trials(), counted.share()), (12, Some(8.0 / 9.0)));
        assert_eq!(Counted::default().confidence_sequence(0.05), [0.0, 1.0]);
    }
}

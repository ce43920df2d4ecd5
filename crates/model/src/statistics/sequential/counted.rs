//! Results of trials that count for a decision.

use super::e_process::confidence_sequence;

/// Numbers of trials by result, in the order in which they were started, up to the first one that is still running.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counted {
    /// Passed trials.
    pub passed: u64,
    /// Failed trials.
    pub failed: u64,
    /// Graded trials without a result, for example because no judge was available. Such a trial may have passed or
    /// failed, and it is not a random one: a single unmet assertion is enough to fail.
    pub undecided: u64,
}

impl Counted {
    /// Returns the number of trials.
    pub fn trials(self) -> u64 {
        self.passed + self.failed + self.undecided
    }

    /// Returns the share of decided trials that passed; `None` without one.
    pub fn share(self) -> Option<f64> {
        let decided = self.passed + self.failed;
        (decided > 0).then(|| self.passed as f64 / decided as f64)
    }

    /// Returns passed and failed trials if every undecided one failed.
    pub fn worst(self) -> [u64; 2] {
        [self.passed, self.failed + self.undecided]
    }

    /// Returns passed and failed trials if every undecided one passed.
    pub fn best(self) -> [u64; 2] {
        [self.passed + self.undecided, self.failed]
    }

    /// Returns the [`confidence_sequence`] of the pass rate, which contains every possible result of the undecided
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

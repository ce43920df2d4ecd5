//! Statements that two arms do not differ by more than a margin.

use serde::{Deserialize, Serialize};

use super::wilson;

/// Returns Newcombe's 95 % interval of the difference of two independent pass rates, first − second (1998, method 10):
/// the distances of the rates from the ends of their Wilson intervals, combined as the root of their squares. `None` if
/// an arm has no trials.
pub fn newcombe(passed: [u64; 2], trials: [u64; 2]) -> Option<[f64; 2]> {
    if trials.contains(&0) {
        return None;
    }
    let rate = |arm: usize| passed[arm].min(trials[arm]) as f64 / trials[arm] as f64;
    let ends = |arm: usize| wilson(passed[arm], trials[arm]);
    let (first, second, [low, high], [other_low, other_high]) = (rate(0), rate(1), ends(0), ends(1));
    let apart = first - second;
    let (down, up) = ((first - low).hypot(other_high - second), (high - first).hypot(second - other_low));
    Some([(apart - down).max(-1.0), (apart + up).min(1.0)])
}

/// Conclusion from an interval about whether a difference is at most a margin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WithinMargin {
    /// The interval lies within the margin: the statement is shown.
    Shown,
    /// The interval lies beyond the margin: the opposite is shown.
    Refuted,
    /// The interval contains the margin, or does not exist: neither is shown.
    Open,
}

/// Tests whether a difference is above −margin, which is non-inferiority: "no worse than 5 points". The interval is
/// that of the difference, new − old.
///
/// The two one-sided tests (Schuirmann 1987) at α compare the interval at 1 − 2α with the margin. With the 95 %
/// interval that is shown everywhere, α is 2.5 %, the value that regulators require for non-inferiority (ICH E9 1998),
/// and the statement always agrees with the interval next to it.
pub fn no_worse_than(interval: Option<[f64; 2]>, margin: f64) -> WithinMargin {
    match interval {
        Some([low, _]) if low > -margin => WithinMargin::Shown,
        Some([_, high]) if high < -margin => WithinMargin::Refuted,
        _ => WithinMargin::Open,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newcombes_interval_matches_published_values() {
        // Newcombe 1998, table II, method 10.
        for (passed, trials, low, high) in [
            ([56, 48], [70, 80], 0.0524, 0.3339),
            ([9, 3], [10, 10], 0.1705, 0.8090),
            ([10, 0], [10, 20], 0.6791, 1.0),
            ([0, 0], [10, 10], -0.2775, 0.2775),
        ] {
            let [found_low, found_high] = newcombe(passed, trials).unwrap();
            assert!((found_low - low).abs() < 1e-4 && (found_high - high).abs() < 1e-4, "{found_low} {found_high}");
        }
        assert_eq!(newcombe([0, 1], [0, 1]), None);
    }

    #[test]
    fn an_interval_within_the_margin_shows_that_nothing_got_worse() {
        assert_eq!(no_worse_than(Some([-0.04, 0.3]), 0.05), WithinMargin::Shown);
        assert_eq!(no_worse_than(Some([-0.4, -0.06]), 0.05), WithinMargin::Refuted);
        assert_eq!(no_worse_than(Some([-0.4, 0.0]), 0.05), WithinMargin::Open);
        assert_eq!(no_worse_than(None, 0.05), WithinMargin::Open);
    }
}

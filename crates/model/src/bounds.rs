//! Lowest and highest possible value of a figure whose evidence is incomplete.

use std::ops::Sub;

use serde::{Deserialize, Serialize};

/// Lowest and highest possible value of a figure. They are equal if everything that the figure depends on is known.
///
/// A trial that is undecided, broken or stale could have passed or failed. If a rate left it out, the rate would depend
/// on which results are missing, and the missing ones are rarely a random sample. So the trial counts as failed for
/// the lower bound and as passed for the upper one. Less evidence can only widen the bounds, and they always contain
/// the value that full evidence would give.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bounds {
    /// Lowest possible value.
    pub min: f64,
    /// Highest possible value.
    pub max: f64,
}

impl Bounds {
    /// Bounds of a share about which nothing is known.
    pub const UNKNOWN_SHARE: Self = Self { min: 0.0, max: 1.0 };

    /// Returns the bounds of a known value.
    pub const fn exact(value: f64) -> Self {
        Self { min: value, max: value }
    }

    /// Returns the value if it is known.
    pub fn value(self) -> Option<f64> {
        (self.min == self.max).then_some(self.min)
    }

    /// Returns the mean of several figures; `None` for none.
    pub fn mean(of: impl IntoIterator<Item = Self>) -> Option<Self> {
        let (lows, highs): (Vec<f64>, Vec<f64>) = of.into_iter().map(|one| (one.min, one.max)).unzip();
        let mean = |mut values: Vec<f64>| {
            // The order of the input does not affect the sum, and the mean of equal values is exact.
            values.sort_unstable_by(f64::total_cmp);
            let (first, last) = (*values.first()?, *values.last()?);
            Some(if first == last { first } else { values.iter().sum::<f64>() / values.len() as f64 })
        };
        Some(Self { min: mean(lows)?, max: mean(highs)? })
    }

    /// Returns `true` if every possible value of `other` is also possible here.
    pub fn contains(self, other: Self) -> bool {
        self.min <= other.min && other.max <= self.max
    }
}

impl Sub for Bounds {
    type Output = Self;

    /// Returns the bounds of the difference of two independent figures.
    fn sub(self, other: Self) -> Self {
        Self { min: self.min - other.max, max: self.max - other.min }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bounds_of_means_and_differences_contain_every_possible_value() {
        let bounds = |min, max| Bounds { min, max };
        assert_eq!(Bounds::mean([Bounds::exact(1.0), bounds(0.0, 1.0)]), Some(bounds(0.5, 1.0)));
        assert_eq!(Bounds::mean([]), None);
        assert_eq!(bounds(0.5, 1.0) - bounds(0.0, 0.25), bounds(0.25, 1.0));
        assert_eq!((Bounds::exact(0.5).value(), bounds(0.5, 1.0).value()), (Some(0.5), None));
        assert!(bounds(0.0, 1.0).contains(bounds(0.0, 0.5)) && !bounds(0.0, 0.5).contains(bounds(0.0, 1.0)));
    }
}

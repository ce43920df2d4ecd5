//! Number of trials of a case: fixed, or as many as a decision needs.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize, Serializer};

use crate::InvalidText;

/// Maximum number of trials of a case. A larger number is probably a typing mistake, and its plan would fill the
/// memory.
pub const MOST_TRIALS: u64 = 100_000;

/// Number of times to run a case under one arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Trials {
    /// A fixed number.
    Fixed(u64),
    /// As many as a decision needs.
    Auto {
        /// Maximum number.
        most: u64,
    },
}

impl Trials {
    /// Default maximum for `auto`. It is enough to show a pass rate of 90 % with one failed trial.
    pub const DEFAULT_MOST: u64 = 40;

    /// Returns the largest number of trials that may run.
    pub fn most(self) -> u64 {
        match self {
            Self::Fixed(trials) => trials,
            Self::Auto { most } => most,
        }
    }
}

impl FromStr for Trials {
    type Err = InvalidText;

    /// Parses `5`, `auto` or `auto:40`.
    fn from_str(written: &str) -> Result<Self, InvalidText> {
        let number = |text: &str| text.parse::<u64>().ok().filter(|number| (1..=MOST_TRIALS).contains(number));
        let parsed = match written.strip_prefix("auto") {
            Some("") => Some(Self::Auto { most: Self::DEFAULT_MOST }),
            Some(rest) => rest.strip_prefix(':').and_then(number).map(|most| Self::Auto { most }),
            None => number(written).map(Self::Fixed),
        };
        let expected = || format!("a number from 1 to {MOST_TRIALS}, `auto` or `auto:MAX`, such as `auto:40`");
        parsed.ok_or_else(|| InvalidText::new(written, expected()))
    }
}

impl Serialize for Trials {
    /// Writes a fixed number as a number, and `auto` in its written form.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Fixed(trials) => serializer.serialize_u64(*trials),
            Self::Auto { .. } => serializer.collect_str(self),
        }
    }
}

impl fmt::Display for Trials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(trials) => trials.fmt(f),
            Self::Auto { most } => write!(f, "auto:{most}"),
        }
    }
}

/// Pass rate that a case requires.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PassRate {
    /// Smallest acceptable pass rate.
    pub at_least: f64,
    /// Width of the range below `at_least` in which either result is acceptable.
    pub tolerance: f64,
}

impl PassRate {
    /// Pass rate that a case with `auto` trials requires if there is no other question about it.
    pub const DEFAULT: Self = Self { at_least: 0.9, tolerance: Self::TOLERANCE };

    /// Tolerance of a required rate that does not set one itself.
    const TOLERANCE: f64 = 0.1;

    /// Creates the requirement with the default tolerance, reduced to half of the rate if the rate is low.
    pub fn at_least(at_least: f64) -> Self {
        Self { at_least, tolerance: Self::TOLERANCE.min(at_least / 2.0) }
    }
}

/// Rule that decides how often a trial is repeated. It is part of the trial's record, because an interval for a fixed
/// number of trials would be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct AutoTrials {
    /// Maximum number of trials for the case and arm.
    pub most: u64,
    /// Required pass rate. If it is set, the outcomes of single trials do not decide the run's result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pass_rate: Option<PassRate>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_trials_is_fixed_or_automatic() {
        let parse = |text: &str| text.parse::<Trials>().ok();
        assert_eq!(parse("5"), Some(Trials::Fixed(5)));
        assert_eq!(parse("auto"), Some(Trials::Auto { most: Trials::DEFAULT_MOST }));
        assert_eq!(parse("auto:12"), Some(Trials::Auto { most: 12 }));
        for wrong in ["", "0", "-1", "x", "auto:", "auto:0", "auto:x", "auto12", "auto:100001", "AUTO", "1.5"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
        for written in ["7", "auto:40"] {
            assert_eq!(parse(written).map(|trials| trials.to_string()).as_deref(), Some(written));
        }
    }

    #[test]
    fn the_default_tolerance_never_reaches_a_rate_of_0() {
        assert_eq!(PassRate::at_least(0.9), PassRate::DEFAULT);
        assert_eq!(PassRate::at_least(0.1).tolerance, 0.05);
    }
}

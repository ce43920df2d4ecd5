//! Size of the random sample of trials that the judge decides.

use std::fmt;
use std::str::FromStr;

use crate::InvalidText;

/// Number of trials, chosen at random, whose judged assertions are decided.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum JudgeSample {
    /// This number of trials.
    Count(usize),
    /// This share of the trials, above 0 and up to 1.
    Share(f64),
}

impl JudgeSample {
    /// Returns the size of the sample of `trials` trials. It is at least one, unless there are none.
    pub fn of(self, trials: usize) -> usize {
        match self {
            Self::Count(count) => count.min(trials),
            // The rounding errors of floating-point numbers must not add a trial.
            Self::Share(share) => ((share * trials as f64 - 1e-9).ceil() as usize).clamp(trials.min(1), trials),
        }
    }
}

impl FromStr for JudgeSample {
    type Err = InvalidText;

    /// Parses a number of trials (`20`) or a share (`20%` or `0.2`).
    fn from_str(written: &str) -> Result<Self, InvalidText> {
        let share = match written.strip_suffix('%') {
            Some(percent) => percent.trim().parse::<f64>().ok().map(|percent| percent / 100.0),
            None if written.contains('.') => written.parse::<f64>().ok(),
            None => None,
        };
        let read = match share {
            Some(share) => Some(Self::Share(share)).filter(|_| share > 0.0 && share <= 1.0),
            None => written.parse().ok().filter(|count| *count > 0).map(Self::Count),
        };
        let expected = "a number of trials such as `20`, or a share such as `20%` or `0.2`";
        read.ok_or_else(|| InvalidText::new(written, expected))
    }
}

impl fmt::Display for JudgeSample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::Share(share) => write!(f, "{}%", (share * 1e6).round() / 1e4),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_a_number_or_a_share_of_trials() {
        let read = |written: &str| written.parse::<JudgeSample>();
        assert_eq!(read("20"), Ok(JudgeSample::Count(20)));
        assert_eq!((read("20%"), read("0.2")), (Ok(JudgeSample::Share(0.2)), Ok(JudgeSample::Share(0.2))));
        assert_eq!(read("100%").map(|sample| sample.to_string()), Ok("100%".to_owned()));
        for wrong in ["0", "0%", "101%", "1.5", "-3", "some", "", "%"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        let of = |written: &str, trials: usize| read(written).unwrap().of(trials);
        assert_eq!((of("20", 5), of("20%", 50), of("20%", 51), of("1%", 3), of("50%", 0)), (5, 10, 11, 1, 0));
    }
}

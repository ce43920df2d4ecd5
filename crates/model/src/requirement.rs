//! Conditions that a run requires of all its trials.

use std::fmt::{self, Display};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Condition that each trial of a run must meet in addition to its assertions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Requirement {
    /// There are no signs of tampering.
    Integrity,
}

impl Requirement {
    /// All requirements, with their names.
    pub const NAMED: [(&'static str, Self); 1] = [("integrity", Self::Integrity)];
}

impl Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Integrity => "integrity",
        })
    }
}

impl FromStr for Requirement {
    type Err = crate::InvalidText;

    fn from_str(written: &str) -> Result<Self, Self::Err> {
        match written {
            "integrity" => Ok(Self::Integrity),
            _ => Err(crate::InvalidText::new(written, "only `integrity` can be required")),
        }
    }
}

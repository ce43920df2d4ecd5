//! Precedence of settings over values in cases.

/// Precedence of a setting over the value that a case sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applies {
    /// Applies to the whole run. Cases cannot set it.
    ToRun,
    /// Overrides the case if it is set on the command line or in a variable. In the configuration, it is only a
    /// default.
    OverCase,
    /// Is only a default for cases, no matter where it is set.
    UnderCase,
}

impl Applies {
    /// Returns the description for the reference page.
    pub fn describe(self) -> &'static str {
        match self {
            Self::ToRun => "run",
            Self::OverCase => "overrides cases",
            Self::UnderCase => "default for cases",
        }
    }
}

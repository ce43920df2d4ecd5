//! Relation of settings to the values of cases.

/// Relation of a setting to a value that a case sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applies {
    /// Applies to the run. Cases cannot set it.
    ToRun,
    /// Overrides the case if it comes from the command line or a variable. In the configuration, it is a default for
    /// cases.
    OverCase,
    /// Is a default for cases, wherever it is set.
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

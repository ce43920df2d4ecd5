//! A regular expression of the user's, and how long an assertion may spend on all of them.

use std::cell::Cell;
use std::time::Duration;

use model::Diagnostic;
use model::decode::Problems;
use script::{DEFAULT_BUDGET, Regex, RegexError};

use crate::place::Place;

/// A regular expression and where it is written.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    /// The expression.
    pub regex: Regex,
    /// Where.
    pub place: Place,
}

/// The time that the regular expressions of one assertion may waste in one trial: only those that are stopped use it
/// up. When it is gone, whatever does not finish at once is stopped.
pub(crate) struct Patience(Cell<Duration>);

impl Patience {
    /// Four tests that never end.
    pub fn new() -> Self {
        Self(Cell::new(DEFAULT_BUDGET * 4))
    }
}

impl Pattern {
    /// Compiles what is written at `place`, or reports what is wrong with it.
    pub fn compile(written: &str, place: Place, problems: &mut Problems) -> Option<Self> {
        match Regex::parse(written) {
            Ok(regex) => Some(Self { regex, place }),
            Err(error) => {
                let mut problem = Diagnostic::error(error.to_string()).at(place.excerpt());
                if let Some(help) = error.help() {
                    problem = problem.help(help);
                }
                problems.push(problem);
                None
            }
        }
    }

    /// Whether some part of `text` matches. The error says in one line why nobody knows.
    pub fn test(&self, text: &str, patience: &Patience) -> Result<bool, String> {
        let budget = patience.0.get().min(DEFAULT_BUDGET);
        let answer = self.regex.is_match_within(text, budget);
        if matches!(answer, Err(RegexError::TimedOut { .. })) {
            patience.0.set(patience.0.get() - budget);
        }
        answer.map_err(|error| format!("{self}: {error}"))
    }

    /// The first part of `text` that matches, if that can be told.
    pub fn found<'t>(&self, text: &'t str) -> Option<&'t str> {
        self.regex.find(text).ok().flatten().map(|found| found.text)
    }
}

impl std::fmt::Display for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.regex.fmt(f)
    }
}

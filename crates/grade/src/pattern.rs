//! A regular expression of the user's, and how long an assertion may spend on all of them.

use std::cell::Cell;
use std::time::Duration;

use expect::{REGEX_TAG, split_regex};
use model::decode::Problems;
use model::{Diagnostic, Node};
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
    /// The regular expression in the text of `node`, whose flags stand before it; one of code has them behind it.
    pub fn of(node: &Node, problems: &mut Problems) -> Option<Self> {
        if node.tag.as_deref() == Some(REGEX_TAG) {
            return Self::of_literal(node, problems);
        }
        Self::compiled(Regex::parse(node.as_str().unwrap_or_default()), Place::of(node), problems)
    }

    /// The same, where it may also be written with slashes and flags: `/a/i`.
    pub fn of_literal(node: &Node, problems: &mut Problems) -> Option<Self> {
        let written = node.as_str().unwrap_or_default();
        let parsed = match split_regex(written) {
            Some((source, flags)) => Regex::literal(source, flags),
            None => Regex::parse(written),
        };
        Self::compiled(parsed, Place::of(node), problems)
    }

    /// The expression, or a report of what is wrong with it.
    fn compiled(parsed: Result<Regex, RegexError>, place: Place, problems: &mut Problems) -> Option<Self> {
        match parsed {
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

    /// Whether it is written with slashes, its flags behind it.
    pub fn is_literal(&self) -> bool {
        self.regex.pattern().starts_with('/') && self.regex.pattern() != self.regex.source()
    }

    /// The first part of `text` that matches, if that can be told.
    pub fn found<'t>(&self, text: &'t str) -> Option<&'t str> {
        self.regex.find(text).ok().flatten().map(|found| found.text)
    }
}

impl std::fmt::Display for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.is_literal() {
            true => f.write_str(self.regex.pattern()),
            false => self.regex.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use model::Source;
    use serde_json::json;

    use super::*;

    #[test]
    fn of_a_hundred_endless_tests_four_have_their_time_and_the_others_none() {
        let node = Node::from_json(&json!("^(a+)+$"), &Source::new("a.yaml", ""));
        let pattern = Pattern::of(&node, &mut Problems::new()).unwrap();
        let endless = format!("{}b", "a".repeat(40));
        let patience = Patience::new();
        let stopped: Vec<String> = (0..100).map(|_| pattern.test(&endless, &patience).unwrap_err()).collect();
        let after = |budget: &str| stopped.iter().filter(|error| error.contains(budget)).count();
        assert_eq!((after("after 250 ms"), after("after 0 ms")), (4, 96), "{stopped:?}");
        // What finishes at once has no need of patience.
        assert_eq!(pattern.test("aaa", &patience), Ok(true));
    }
}

//! Regular expressions written by the user, and the time limit for all expressions in an assertion.

use std::cell::Cell;
use std::time::Duration;

use expect::{REGEX_TAG, SourceLocation, split_regex};
use model::decode::Problems;
use model::{Diagnostic, Node, wrong_flag};
use script::{DEFAULT_BUDGET, Regex, RegexError};

use crate::as_written;

/// Regular expression, and where it is written.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    /// The expression.
    pub regex: Regex,
    /// Source position of the expression.
    pub place: SourceLocation,
}

/// Time that the regular expressions of one assertion may lose to timeouts in one trial. Only expressions that are
/// stopped use it up. Once it is used up, any expression that does not finish immediately is stopped.
pub(crate) struct RegexBudget(Cell<Duration>);

impl RegexBudget {
    /// Creates a limit that allows for four tests that do not terminate.
    pub fn new() -> Self {
        Self(Cell::new(DEFAULT_BUDGET * 4))
    }
}

impl Pattern {
    /// Parses the text of `node` as a regular expression with its flags in front. In code, the flags come after it.
    pub fn from_node(node: &Node, problems: &mut Problems) -> Option<Self> {
        if node.tag.as_deref() == Some(REGEX_TAG) {
            return Self::from_literal(node, problems);
        }
        let written = node.as_str().unwrap_or_default();
        problems.extend(as_written::slashes(written, node.excerpt(), as_written::FLAGS_IN_FRONT));
        problems.extend(as_written::half_written(written, false, node.excerpt()));
        Self::compiled(Regex::parse(written), SourceLocation::from_node(node), problems)
    }

    /// Like `of`, and also accepts slashes and flags: `/a/i`.
    pub fn from_literal(node: &Node, problems: &mut Problems) -> Option<Self> {
        let written = node.as_str().unwrap_or_default();
        if let Some(wrong) = wrong_flag(written) {
            let problem = node.error(wrong);
            let text = format!("if this is not a regular expression in slashes, write `\\{written}`");
            problems.push(problem.help("the flags are `d`, `g`, `i`, `m`, `s`, `u`, `v` and `y`").help(text));
            return None;
        }
        problems.extend(as_written::half_written(written, true, node.excerpt()));
        let parsed = match split_regex(written) {
            Some((source, flags)) => Regex::literal(source, flags),
            None => Regex::parse(written),
        };
        Self::compiled(parsed, SourceLocation::from_node(node), problems)
    }

    /// Returns the expression, or reports what is wrong with it.
    fn compiled(parsed: Result<Regex, RegexError>, place: SourceLocation, problems: &mut Problems) -> Option<Self> {
        match parsed {
            Ok(regex) => {
                let pattern = Self { regex, place };
                pattern.warn_if_nothing_matches(problems);
                Some(pattern)
            }
            Err(error) => {
                let problem = Diagnostic::error(error.to_string()).at(place.excerpt());
                problems.push(error.help().into_iter().fold(problem, Diagnostic::help));
                None
            }
        }
    }

    /// Returns `true` if some part of `text` matches. The error says in one line why the match cannot be decided.
    pub fn test(&self, text: &str, regex_budget: &RegexBudget) -> Result<bool, String> {
        let budget = regex_budget.0.get().min(DEFAULT_BUDGET);
        let answer = self.regex.is_match_within(text, budget);
        if matches!(answer, Err(RegexError::TimedOut { .. })) {
            regex_budget.0.set(regex_budget.0.get() - budget);
        }
        answer.map_err(|error| format!("{self}: {error}"))
    }

    /// Returns the number of parts of `text` that match. The error says in one line why it cannot be decided.
    pub fn count(&self, text: &str) -> Result<usize, String> {
        self.regex.count_within(text, DEFAULT_BUDGET * 4).map_err(|error| format!("{self}: {error}"))
    }

    /// Returns the words that say that it matches every text that is not blank, if that is certain.
    pub fn asserts_nothing(&self) -> Option<String> {
        self.regex.matches_every_text().then(|| format!("{self} matches every answer, so it asserts nothing"))
    }

    /// Returns `true` if it matches the empty text.
    pub fn matches_empty(&self) -> bool {
        self.regex.is_match("").unwrap_or(false)
    }

    /// Adds a warning if it matches every text that is not blank.
    pub fn warn_if_every_answer_matches(&self, problems: &mut Problems) {
        if let Some(message) = self.asserts_nothing() {
            let problem = Diagnostic::warning(message).at(self.place.excerpt());
            problems.push(problem.help("an agent that answers with nothing has failed in any case"));
        }
    }

    /// Adds a warning if it matches every text that is not blank, although no text must match.
    pub fn warn_if_every_answer_is_refused(&self, problems: &mut Problems) {
        if self.regex.matches_every_text() {
            let problem = Diagnostic::warning(format!("{self} matches every answer, so no answer can meet this"));
            problems.push(problem.at(self.place.excerpt()).help("an alternative of the expression may be empty"));
        }
    }

    /// Adds a warning if it matches no text.
    fn warn_if_nothing_matches(&self, problems: &mut Problems) {
        // Slashes that are part of the expression are reported already.
        let has_slashes = !self.is_literal() && model::is_in_slashes(self.regex.pattern());
        if has_slashes || !self.regex.matches_no_text() {
            return;
        }
        let message = format!("{self} can never match: `^` is only at the start of a text, and `$` only at its end");
        let (problem, source) = (Diagnostic::warning(message).at(self.place.excerpt()), self.regex.source());
        problems.push(match source.starts_with("/^") || source.contains("$/") {
            true => problem.help("an expression in slashes has one at each end; others have none"),
            false => problem.help("write `\\^` or `\\$` for the character, or `(?m)` in front for the ends of lines"),
        });
    }

    /// Returns `true` if it is written with slashes, with its flags after it.
    pub fn is_literal(&self) -> bool {
        self.regex.pattern().starts_with('/') && self.regex.pattern() != self.regex.source()
    }

    /// Returns the first part of `text` that matches, if the match can be decided.
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
    fn a_pattern_that_matches_nothing_or_has_slashes_causes_a_warning() {
        let problems = |written: &str| {
            let mut problems = Problems::new();
            let node = Node::from_json(&json!(written), &Source::new("a.yaml", ""));
            Pattern::from_node(&node, &mut problems).unwrap();
            assert!(!problems.iter().any(Diagnostic::is_error), "{problems:?}");
            problems.into_iter().map(|problem| problem.message).collect::<Vec<_>>()
        };
        let never = "can never match: `^` is only at the start of a text, and `$` only at its end";
        assert_eq!(problems("a^b"), [format!("/a^b/ {never}")]);
        assert_eq!(problems("/^hello"), [format!("//^hello/ {never}")]);
        assert_eq!(problems("/hello/i"), ["the slashes of `/hello/i` are part of the expression here"]);
        assert_eq!(problems("/hello/I"), ["the slashes of `/hello/I` are part of the expression here"]);
        assert_eq!(problems("/git push/").len(), 1);
        for plain in ["^a$", "/hello", "/usr/bin/", "/node_modules.*/", "hello/i", "(?m)a\\n^b"] {
            assert_eq!(problems(plain), Vec::<String>::new(), "{plain}");
        }
    }

    #[test]
    fn only_four_of_a_hundred_endless_tests_get_the_full_time() {
        let node = Node::from_json(&json!("^(a+)+$"), &Source::new("a.yaml", ""));
        let pattern = Pattern::from_node(&node, &mut Problems::new()).unwrap();
        let endless = format!("{}b", "a".repeat(40));
        let regex_budget = RegexBudget::new();
        let stopped: Vec<String> = (0..100).map(|_| pattern.test(&endless, &regex_budget).unwrap_err()).collect();
        let after = |budget: &str| stopped.iter().filter(|error| error.contains(budget)).count();
        assert_eq!((after("after 250 ms"), after("after 0 ms")), (4, 96), "{stopped:?}");
        // An expression that finishes at once does not need the limit.
        assert_eq!(pattern.test("aaa", &regex_budget), Ok(true));
    }
}

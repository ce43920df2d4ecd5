//! Problems in the user's files, with enough detail to fix them.

use serde::{Deserialize, Serialize};

use crate::Excerpt;

/// Severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Reported, but does not prevent the run unless `--strict` is set.
    Warning,
    /// Prevents the run.
    Error,
}

/// What a problem is about, if others follow from it or it follows from another one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum DiagnosticKind {
    /// Anything else.
    #[default]
    Other,
    /// A key that its map does not have.
    UnknownKey {
        /// The key as it is written.
        key: String,
        /// Key that it probably means.
        meant: Option<String>,
    },
    /// A map has none of these keys and needs one of them.
    MissingKey(Vec<String>),
    /// A template uses a variable of this name, which does not exist.
    UnknownVariable(String),
    /// A text is empty. In a case for a row, a template may have got nothing from it.
    EmptyText,
    /// A case has the id of an earlier one.
    TakenId,
    /// A case requires a pass rate, and runs a fixed number of trials, which does not test it.
    UntestedRate,
    /// A text is not valid JSON.
    InvalidJson,
    /// A file cannot be read, for this reason.
    UnreadFile(String),
    /// An environment variable is needed and not set.
    UnsetVariable(String),
    /// A script of a model calls a tool that the agent does not offer in this way, which any error may have caused.
    ScriptedCall,
    /// There are no tests.
    NoTests,
    /// A file or folder that may have tests is not read.
    UnreadTests,
}

/// Problem in the user's files. Loading and planning collect all of them and report them together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// Severity, which decides whether the run is prevented.
    pub severity: Severity,
    /// Description of the problem in one line: lower case, without a final period.
    pub message: String,
    /// Location; absent if the problem is not in a file, such as for a command-line argument.
    pub source: Option<Excerpt>,
    /// Short label next to the underlined text.
    pub label: Option<String>,
    /// Ways to fix it.
    pub help: Vec<String>,
    /// What it is about. It is not recorded.
    #[serde(skip)]
    pub kind: DiagnosticKind,
}

impl Diagnostic {
    /// Creates a problem that prevents the run.
    pub fn error(message: impl Into<String>) -> Self {
        let (source, label, help, kind) = (None, None, Vec::new(), DiagnosticKind::Other);
        Self { severity: Severity::Error, message: message.into(), source, label, help, kind }
    }

    /// Creates a warning about something that looks wrong but may be intended.
    pub fn warning(message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(message) }
    }

    /// Sets the location in the user's file.
    pub fn at(mut self, source: Excerpt) -> Self {
        self.source = Some(source);
        self
    }

    /// Sets the location, unless there is one.
    pub fn or_at(self, source: impl FnOnce() -> Excerpt) -> Self {
        if self.source.is_some() { self } else { self.at(source()) }
    }

    /// Adds a label next to the underlined text.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Adds a way to fix the problem.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help.push(help.into());
        self
    }

    /// Adds "did you mean" if `near` is present.
    pub fn suggest(self, near: Option<&str>) -> Self {
        match near {
            Some(near) => self.help(format!("did you mean `{near}`?")),
            None => self,
        }
    }

    /// Sets what it is about.
    pub fn of(mut self, kind: DiagnosticKind) -> Self {
        self.kind = kind;
        self
    }

    /// Says that it is about a map with none of `keys`, one of which it needs.
    pub fn of_missing<K: AsRef<str>>(self, keys: &[K]) -> Self {
        self.of(DiagnosticKind::MissingKey(keys.iter().map(|key| key.as_ref().to_owned()).collect()))
    }

    /// Returns `true` if it is about an unknown key that probably means `key`.
    pub fn means(&self, key: &str) -> bool {
        matches!(&self.kind, DiagnosticKind::UnknownKey { meant: Some(meant), .. } if meant == key)
    }

    /// Returns `true` if it only follows from `cause`, which is reported too: a key that is missing because it is
    /// misspelt, a case whose id is known to be taken, or a variable that is known not to be set.
    pub fn follows_from(&self, cause: &Self) -> bool {
        let place = |problem: &Self| problem.source.as_ref().map(|at| (at.file.clone(), at.line, at.column));
        let file = |problem: &Self| problem.source.as_ref().map(|at| at.file.clone());
        match &self.kind {
            DiagnosticKind::MissingKey(keys) => {
                let is_near = self.source.is_none() || file(self) == file(cause);
                is_near && keys.iter().any(|key| cause.means(key))
            }
            DiagnosticKind::TakenId => {
                cause.kind == DiagnosticKind::TakenId && self.source.is_some() && place(self) == place(cause)
            }
            DiagnosticKind::UnsetVariable(_) => cause.kind == self.kind,
            _ => false,
        }
    }

    /// Returns `true` if it prevents the run.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl std::fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(source) = &self.source {
            write!(f, "{source}: ")?;
        }
        f.write_str(&self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Source, Span};

    fn at_line(problem: Diagnostic, line: usize) -> Diagnostic {
        problem.at(Source::new("f", "a\nb\nc\n").excerpt(Span::new(line * 2 - 2, line * 2 - 1)))
    }

    #[test]
    fn a_missing_key_follows_from_a_misspelt_one_in_its_file() {
        let meaning = |meant: &str, line: usize| {
            let kind = DiagnosticKind::UnknownKey { key: "vlaue".to_owned(), meant: Some(meant.to_owned()) };
            at_line(Diagnostic::error("unknown key `vlaue`").of(kind), line)
        };
        let missing = Diagnostic::error("no `value`").of_missing(&["value", "values"]);
        for (cause, follows) in [(meaning("value", 2), true), (meaning("value", 1), true), (meaning("type", 2), false)]
        {
            assert_eq!(at_line(missing.clone(), 2).follows_from(&cause), follows, "{cause}");
        }
        let elsewhere = missing.clone().at(Source::new("g", "a").excerpt(Span::new(0, 1)));
        assert!(!elsewhere.follows_from(&meaning("value", 1)));
        assert!(missing.follows_from(&meaning("value", 1)), "it is about no file");
        assert!(!meaning("value", 2).follows_from(&at_line(missing, 2)));
    }

    #[test]
    fn a_taken_id_is_reported_once_for_each_place() {
        let taken = |line: usize| at_line(Diagnostic::error("taken").of(DiagnosticKind::TakenId), line);
        assert!(taken(2).follows_from(&taken(2)) && !taken(2).follows_from(&taken(1)));
        assert!(!taken(2).follows_from(&at_line(Diagnostic::error("wrong"), 2)));
    }
}

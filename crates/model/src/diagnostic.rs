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
}

impl Diagnostic {
    /// Creates a problem that prevents the run.
    pub fn error(message: impl Into<String>) -> Self {
        Self { severity: Severity::Error, message: message.into(), source: None, label: None, help: Vec::new() }
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

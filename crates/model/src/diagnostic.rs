//! What is wrong with the user's files, said so that it can be mended at once.

use serde::{Deserialize, Serialize};

use crate::Excerpt;

/// Whether a diagnostic stops the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Shown; stops nothing unless `--strict`.
    Warning,
    /// Nothing runs.
    Error,
}

/// One problem in the user's files. Loading and planning collect all of them and report them in one go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// Whether it stops the run.
    pub severity: Severity,
    /// What is wrong, in one line, lower case, without a final period.
    pub message: String,
    /// Where; absent when no file is to blame, such as for an argument of the command line.
    pub source: Option<Excerpt>,
    /// A few words beside the underlined text.
    pub label: Option<String>,
    /// What to do about it.
    pub help: Vec<String>,
}

impl Diagnostic {
    /// A problem that stops the run.
    pub fn error(message: impl Into<String>) -> Self {
        Self { severity: Severity::Error, message: message.into(), source: None, label: None, help: Vec::new() }
    }

    /// Something that looks wrong but may be meant.
    pub fn warning(message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(message) }
    }

    /// Points at the user's text.
    pub fn at(mut self, source: Excerpt) -> Self {
        self.source = Some(source);
        self
    }

    /// Adds words beside the underlined text.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Adds a way out.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help.push(help.into());
        self
    }

    /// Adds "did you mean" if `near` holds something.
    pub fn suggest(self, near: Option<&str>) -> Self {
        match near {
            Some(near) => self.help(format!("did you mean `{near}`?")),
            None => self,
        }
    }

    /// Whether it stops the run.
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

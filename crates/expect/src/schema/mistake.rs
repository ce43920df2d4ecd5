//! A mistake in the value of a keyword.

use model::Diagnostic;

/// A keyword whose value is wrong.
pub(super) struct Mistake {
    /// The wrong item in the value, if there is one.
    pub(super) item: Option<usize>,
    /// Description of the error, without its location.
    pub(super) problem: Box<Diagnostic>,
}

impl Mistake {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self::from_diagnostic(Diagnostic::error(message))
    }

    pub(super) fn from_diagnostic(problem: Diagnostic) -> Self {
        Self { item: None, problem: Box::new(problem) }
    }

    pub(super) fn help(self, help: impl Into<String>) -> Self {
        Self { problem: Box::new(self.problem.help(help)), ..self }
    }

    pub(super) fn at(self, item: usize) -> Self {
        Self { item: Some(item), ..self }
    }
}

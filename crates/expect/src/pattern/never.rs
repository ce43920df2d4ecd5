//! Replacement for an invalid expectation, which never matches. An expectation with errors must not be evaluated; if
//! it is evaluated anyway, it does not pass.

use crate::prelude::*;

/// Invalid expectation.
#[derive(Debug)]
pub struct Never {
    /// Source position.
    pub place: SourceLocation,
}

impl Rule for Never {
    fn judge(&self, actual: Option<&Value>, _at: &Scope<'_>) -> Found {
        Found::flawed(Flaw::new(&self.place, "the expectation is not valid").actual(actual))
    }
}

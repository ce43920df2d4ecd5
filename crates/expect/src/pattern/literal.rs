//! A number, a boolean or null: the value must be equal, without any coercion.

use crate::prelude::*;

/// Expected value.
#[derive(Debug)]
pub struct Literal {
    /// The value.
    pub value: Value,
    /// Source position.
    pub place: SourceLocation,
}

impl Rule for Literal {
    fn judge(&self, actual: Option<&Value>, _at: &Scope<'_>) -> Found {
        if actual.is_some_and(|actual| value::same(actual, &self.value)) {
            return Found::full();
        }
        let message = format!("expected {}, not {}", value::shown(Some(&self.value)), value::shown(actual));
        Found::flawed(Flaw::new(&self.place, message).expected(self.value.clone()).actual(actual))
    }
}

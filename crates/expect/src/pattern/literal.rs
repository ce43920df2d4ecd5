//! A number, a boolean or null: the value must be equal, without any coercion.

use crate::found::Pass;
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
        match Pass::equal(actual, &self.value) {
            Pass::Yes => return Found::full(),
            Pass::Unknown => return Found::rounded(actual, &self.place),
            Pass::No => {}
        }
        let message = format!("expected {}, not {}", value::shown(Some(&self.value)), value::shown(actual));
        Found::flawed(Flaw::new(&self.place, message).expected(self.value.clone()).actual(actual))
    }

    fn quick_score(&self, actual: Option<&Value>, _at: &Scope<'_>) -> Option<QuickScore> {
        let pass = Pass::equal(actual, &self.value);
        (pass != Pass::Unknown).then(|| QuickScore::from_bool(pass == Pass::Yes))
    }
}

//! A regular expression, matched against a string, or against the JSON of any other value.

use std::sync::Arc;

use crate::host::Pattern;
use crate::prelude::*;

/// Regular expression.
#[derive(Debug)]
pub struct Regex {
    /// The expression as written, `/…/flags`.
    pub written: String,
    /// The compiled expression.
    pub pattern: Arc<dyn Pattern>,
    /// Source position.
    pub place: SourceLocation,
}

impl Rule for Regex {
    fn judge(&self, actual: Option<&Value>, _at: &Scope<'_>) -> Found {
        let expected = || Value::from(self.written.as_str());
        let Some(present) = actual else {
            let flaw = Flaw::new(&self.place, format!("there is no value for {} to match", self.written));
            return Found::flawed(flaw.expected(expected()));
        };
        let text = value::text(present);
        match self.pattern.is_match(text.trim()) {
            Ok(true) => Found::full(),
            Ok(false) => Found::flawed(
                Flaw::new(&self.place, format!("{} does not match", self.written)).expected(expected()).actual(actual),
            ),
            Err(stopped) => Found::unknown(Flaw::new(&self.place, stopped).expected(expected()).actual(actual)),
        }
    }

    fn quick_score(&self, actual: Option<&Value>, _at: &Scope<'_>) -> Option<QuickScore> {
        let Some(present) = actual else { return Some(QuickScore::from_bool(false)) };
        self.pattern.is_match(value::text(present).trim()).ok().map(QuickScore::from_bool)
    }
}

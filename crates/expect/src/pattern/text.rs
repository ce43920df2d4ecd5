//! A string: the value contains it, or equals it according to the rules of a diff.

use crate::prelude::*;
use crate::text_diff::TextDiff;

/// Text that the value must contain.
#[derive(Debug)]
pub struct Text {
    /// The text.
    pub expected: String,
    /// Text comparison of the case. If there is one, containing the text is not enough.
    pub diff: Option<TextDiff>,
    /// Source position.
    pub place: SourceLocation,
}

impl Rule for Text {
    fn judge(&self, actual: Option<&Value>, at: &Scope<'_>) -> Found {
        let Some(Value::String(text)) = actual else {
            let message = format!("expected a string, not {}", value::kind(actual));
            let flaw = Flaw::new(&self.place, message).expected(self.expected.as_str().into());
            return Found::flawed(flaw.actual(actual));
        };
        let text = text.trim();
        match &self.diff {
            Some(diff) => diff.judge(text, &self.expected, at.run.rules, at.quiet, &self.place),
            None if text.contains(self.expected.trim()) => Found::full(),
            None => TextDiff::default().judge(text, self.expected.trim(), at.run.rules, at.quiet, &self.place),
        }
    }

    fn quick_score(&self, actual: Option<&Value>, _at: &Scope<'_>) -> Option<QuickScore> {
        let Some(Value::String(text)) = actual else { return Some(QuickScore::from_bool(false)) };
        let (text, expected) = (text.trim(), self.expected.trim());
        match &self.diff {
            Some(diff) => diff.quick_score(text, expected),
            None if text.contains(expected) => Some(QuickScore::from_bool(true)),
            None => TextDiff::default().quick_score(text, expected),
        }
    }
}

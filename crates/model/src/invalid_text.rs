//! Text that is not a value of a type.

use std::error::Error;
use std::fmt;

/// Reason why a text is not a value of a type with a written form, such as a network policy or a number of trials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidText {
    text: String,
    reason: String,
}

impl InvalidText {
    pub(crate) fn new(text: &str, reason: impl Into<String>) -> Self {
        Self { text: text.to_owned(), reason: reason.into() }
    }

    /// Returns the text.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for InvalidText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl Error for InvalidText {}

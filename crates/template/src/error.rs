//! Errors of templates.

use std::ops::Range;

use model::{Diagnostic, DiagnosticKind, Excerpt, nearest};

/// Error in a string that is not a valid template, or that cannot be evaluated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TemplateError {
    /// Description in one line, in lower case, without a final period.
    pub message: String,
    /// Byte range in the template's text.
    pub range: Range<usize>,
    /// Suggestion for the user.
    pub help: Option<String>,
    /// Location of the error, if it is not in this text but in the text of a variable that it uses.
    pub place: Option<Box<Excerpt>>,
    pub(crate) kind: ErrorKind,
    /// Name of a variable that does not exist.
    pub(crate) unknown_variable: Option<Box<str>>,
    /// Other placeholders in the same template whose variables are missing.
    pub(crate) others: Vec<TemplateError>,
    /// Number of names among which a similar one was searched.
    pub(crate) searched: u32,
}

/// Kind of an error, for code that handles it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ErrorKind {
    #[default]
    Plain,
    /// Something that was looked up does not exist. `is defined` tests for this.
    Missing,
    /// The text is not a template in its dialect.
    Unread,
    /// A limit that the same template might not exceed elsewhere.
    Passing,
}

impl TemplateError {
    /// Creates an error without a position, which the caller adds with [`at`](Self::at).
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            range: 0..0,
            help: None,
            place: None,
            kind: ErrorKind::Plain,
            unknown_variable: None,
            others: Vec::new(),
            searched: 0,
        }
    }

    /// Creates an error about a limit that depends on where the template is used.
    pub(crate) fn passing(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Passing, ..Self::new(message) }
    }

    /// Creates an error about something that does not exist.
    pub(crate) fn missing(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Missing, ..Self::new(message) }
    }

    /// Sets the range, unless the error already has a position.
    pub(crate) fn at(self, range: Range<usize>) -> Self {
        if self.place.is_some() || !self.range.is_empty() { self } else { Self { range, ..self } }
    }

    pub(crate) fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    /// Adds the help "did you mean", or else a list of the known names.
    pub(crate) fn suggest<'k>(self, what: &str, written: &str, known: impl IntoIterator<Item = &'k str>) -> Self {
        let known: Vec<&str> = known.into_iter().collect();
        let searched = known.len().min(SEARCHED) as u32;
        let help = if let Some(near) = nearest(written, known.iter().copied().take(SEARCHED)) {
            Some(format!("did you mean `{near}`?"))
        } else {
            let more = if known.len() > LISTED { ", …" } else { "" };
            let listed = known.iter().take(LISTED).copied().collect::<Vec<_>>().join(", ");
            (!known.is_empty()).then(|| format!("known {what}: {listed}{more}"))
        };
        Self { help: help.or(self.help), searched, ..self }
    }

    /// Creates a warning at `place` that the text is not a template and is kept unchanged.
    pub(crate) fn warning_at(&self, place: Excerpt) -> Diagnostic {
        let message = format!("this is not a template and stays as it is: {}", self.message);
        self.help.iter().fold(Diagnostic::warning(message).at(place), Diagnostic::help)
    }

    /// Creates a diagnostic at `place`.
    pub(crate) fn diagnostic_at(&self, place: Excerpt) -> Diagnostic {
        let place = self.place.as_deref().cloned().unwrap_or(place);
        let problem = Diagnostic::error(&self.message).at(place);
        let unknown = self.unknown_variable.iter().map(|name| DiagnosticKind::UnknownVariable((**name).to_owned()));
        let problem = unknown.fold(problem, Diagnostic::of);
        self.help.iter().fold(problem, Diagnostic::help)
    }
}

/// Maximum number of names in a help text.
const LISTED: usize = 12;

/// Maximum number of names among which a similar one is searched.
const SEARCHED: usize = 1_000;

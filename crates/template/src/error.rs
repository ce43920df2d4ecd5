//! What is wrong with a template.

use std::ops::Range;

use model::{Diagnostic, Excerpt, nearest};

/// Why a text is no valid template, or why it has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TemplateError {
    /// What is wrong, in one line, lower case, without a final period.
    pub message: String,
    /// Where in the template's text, in bytes.
    pub range: Range<usize>,
    /// What to do about it.
    pub help: Option<String>,
    /// Where, if it is not this text that is wrong but a variable's that it uses.
    pub place: Option<Box<Excerpt>>,
    pub(crate) nature: Nature,
    /// Placeholders further on in the same text that name something which is not there, too.
    pub(crate) others: Vec<TemplateError>,
}

/// What an error means for whoever catches it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Nature {
    #[default]
    Plain,
    /// Something that was looked up is not there, which is what `is defined` asks.
    Missing,
    /// The text is no template of its dialect.
    Unread,
    /// A limit that the same template would not pass in another place.
    Passing,
}

impl TemplateError {
    pub(crate) fn new(range: Range<usize>, message: impl Into<String>) -> Self {
        Self { message: message.into(), range, help: None, place: None, nature: Nature::Plain, others: Vec::new() }
    }

    /// A limit that depends on where the template stands.
    pub(crate) fn passing(range: Range<usize>, message: impl Into<String>) -> Self {
        Self { nature: Nature::Passing, ..Self::new(range, message) }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// A warning at `place` that the text is no template and stays as it is.
    pub(crate) fn warning_at(&self, place: Excerpt) -> Diagnostic {
        let message = format!("this is not a template and stays as it is: {}", self.message);
        let problem = Diagnostic::warning(message).at(place);
        match &self.help {
            Some(help) => problem.help(help),
            None => problem,
        }
    }

    /// The same problem, to be drawn at `place`.
    pub(crate) fn diagnostic_at(&self, place: Excerpt) -> Diagnostic {
        let place = self.place.as_deref().cloned().unwrap_or(place);
        let problem = Diagnostic::error(&self.message).at(place);
        match &self.help {
            Some(help) => problem.help(help),
            None => problem,
        }
    }
}

/// A problem whose place is known to the caller only: the result of a filter, a test, a function.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    help: Option<String>,
    nature: Nature,
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), help: None, nature: Nature::Plain }
    }

    /// Something looked up that is not there.
    pub(crate) fn missing(message: impl Into<String>) -> Self {
        Self { nature: Nature::Missing, ..Self::new(message) }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// "Did you mean", or else what there is to choose from.
    pub(crate) fn suggest(self, what: &str, written: &str, known: &[&str]) -> Self {
        match suggestion(what, written, known) {
            Some(help) => self.help(help),
            None => self,
        }
    }

    pub(crate) fn at(self, range: Range<usize>) -> TemplateError {
        let (message, help, nature) = (self.message, self.help, self.nature);
        TemplateError { help, nature, ..TemplateError::new(range, message) }
    }
}

/// How many names a help lists before it stops.
const LISTED: usize = 12;

/// Among how many names the nearest one is searched.
pub(crate) const SEARCHED: usize = 1_000;

/// "Did you mean", or else what there is to choose from.
pub(crate) fn suggestion(what: &str, written: &str, known: &[&str]) -> Option<String> {
    if let Some(near) = nearest(written, known.iter().copied().take(SEARCHED)) {
        return Some(format!("did you mean `{near}`?"));
    }
    let more = if known.len() > LISTED { ", …" } else { "" };
    let listed = known.iter().take(LISTED).copied().collect::<Vec<_>>().join(", ");
    (!known.is_empty()).then(|| format!("known {what}: {listed}{more}"))
}

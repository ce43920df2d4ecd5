//! A string that is a template.

use std::ops::Range;

use model::{Node, Span, Spanned};

use crate::block;
use crate::error::{ErrorKind, TemplateError};
use crate::format::Format;
use crate::names;
use crate::nunjucks;
use crate::path;
use crate::regex_literal;
use crate::segment::{Segment, split};
use crate::syntax::{Part, Whole};

/// Parsed template: plain data.
#[derive(Debug, Clone)]
pub struct Template {
    pub(crate) parts: Vec<Part>,
    pub(crate) whole: Option<Whole>,
    pub(crate) regex: bool,
    /// True if it is written in Nunjucks.
    pub(crate) is_nunjucks: bool,
    text: String,
}

/// Result of a template.
pub(crate) enum Outcome {
    /// Value that a single placeholder names.
    Value(Node),
    Text(String),
}

impl Template {
    /// Parses `text` in the default dialect. Returns `None` if it is not a template: it contains no non-empty `{{ …
    /// }}` and no `{% … %}`. The text then stays unchanged, including comments.
    ///
    /// # Errors
    /// Returns an error if the syntax is invalid, or if the template is nested too deeply.
    pub fn parse(text: &str) -> Result<Option<Self>, TemplateError> {
        Self::parse_as(text, Format::default())
    }

    /// Parses `text` in the dialect of `format`.
    ///
    /// # Errors
    /// See [`Template::parse`].
    pub fn parse_as(text: &str, format: Format) -> Result<Option<Self>, TemplateError> {
        let unread = |error: TemplateError| TemplateError { kind: ErrorKind::Unread, ..error };
        match format {
            Format::Jinja => Self::parse_jinja(text).map_err(unread),
            // The braces may contain other syntax from that language, most of which is not supported here.
            Format::Golang => Ok(format.parse(text)?.map(|(parts, whole)| Self::new(text, parts, whole))),
            _ => Ok(format.parse(text).map_err(unread)?.map(|(parts, whole)| Self::new(text, parts, whole))),
        }
    }

    /// Returns the template with each `${{ … }}` kept as text if it names something that is not a variable, because
    /// workflows of other tools use this syntax. Also returns an error for each.
    pub(crate) fn without_foreign(mut self, is_known: &dyn Fn(&str) -> bool) -> (Self, Vec<TemplateError>) {
        let mut foreign = Vec::new();
        for part in &mut self.parts {
            let Part::Output(expression) = part else { continue };
            let open = self.text[..expression.range.start].rfind("{{");
            let close = self.text[expression.range.end..].find("}}").map(|offset| expression.range.end + offset + 2);
            let (Some(open), Some(close)) = (open, close) else { continue };
            let names = names::of(std::slice::from_ref(part));
            let unknown = names.into_iter().find(|(name, _)| !is_known(name));
            if let Some((name, range)) = unknown.filter(|_| self.text[..open].ends_with('$')) {
                let error = TemplateError::new(format!("there is no variable named `{name}`")).at(range);
                foreign.push(TemplateError { kind: ErrorKind::Unread, ..error });
                *part = Part::Text(self.text[open..close].to_owned());
            }
        }
        (self, foreign)
    }

    fn parse_jinja(text: &str) -> Result<Option<Self>, TemplateError> {
        let segments = split(text, false)?;
        if segments.iter().all(|segment| matches!(segment, Segment::Text(_))) {
            return Ok(None);
        }
        let parts = block::parse(text, &segments)?;
        Ok(Some(Self::new(text, parts, whole_expression(text, &segments))))
    }

    /// Parses `text` in Nunjucks. Returns `None` if it has neither a tag nor a comment.
    pub(crate) fn parse_nunjucks(text: &str) -> Result<Option<Self>, TemplateError> {
        let translated = nunjucks::translated(text);
        let segments = split(&translated, true)?;
        if translated == text && segments.iter().all(|segment| matches!(segment, Segment::Text(_))) {
            return Ok(None);
        }
        let parts = block::parse(&translated, &segments)?;
        Ok(Some(Self { parts, whole: None, regex: false, is_nunjucks: true, text: translated }))
    }

    fn new(text: &str, parts: Vec<Part>, whole: Option<Whole>) -> Self {
        let regex = regex_literal::is_regex_literal(&parts);
        Self { parts, whole, regex, is_nunjucks: false, text: text.to_owned() }
    }

    /// Returns the text as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns each use of a variable, in order. Names that the template sets itself are not included.
    pub fn names(&self) -> Vec<Spanned<String>> {
        let located = |(name, range): (String, Range<usize>)| Spanned::new(name, Span::new(range.start, range.end));
        names::of(&self.parts).into_iter().map(located).collect()
    }
}

/// Returns the placeholder of a template that consists of a single placeholder and white space.
fn whole_expression(text: &str, segments: &[Segment]) -> Option<Whole> {
    let mut found = None;
    for segment in segments {
        match segment {
            Segment::Text(text) if text.trim().is_empty() => {}
            Segment::Expression(inside) if found.is_none() => found = Some(inside),
            _ => return None,
        }
    }
    let inside = found.filter(|inside| text.trim() == &text[inside.range.clone()])?;
    let inner = text[inside.inner.clone()].trim();
    if matches!(inner, "true" | "false" | "none" | "True" | "False" | "None") {
        return None;
    }
    Some(Whole { inner: inner.to_owned(), keys: path::parse(inner) })
}

//! A text that is a template.

use std::ops::Range;

use model::{Span, Spanned};

use crate::block;
use crate::error::{Nature, TemplateError};
use crate::evaluate::evaluate;
use crate::format::Format;
use crate::names;
use crate::path::{self, Key};
use crate::regex_literal;
use crate::resolution::Resolution;
use crate::segment::{Segment, split};
use crate::syntax::Part;
use crate::variables::Variables;
use model::Node;

/// A parsed template: plain data.
#[derive(Debug, Clone)]
pub struct Template {
    pub(crate) parts: Vec<Part>,
    pub(crate) whole: Option<Whole>,
    pub(crate) regex: bool,
    text: String,
}

/// The inside of a placeholder that is all there is.
#[derive(Debug, Clone)]
pub(crate) struct Whole {
    /// Which may be a variable's name even if it is no name otherwise: `user-name`.
    pub(crate) inner: String,
    pub(crate) keys: Option<Vec<Key>>,
}

/// What a template becomes.
pub(crate) enum Outcome {
    /// A placeholder that is all there is names a value.
    Value(Node),
    Text(String),
}

impl Template {
    /// Reads `text` in the default dialect. `None` if it is no template: no `{{ … }}` with something in it, and no
    /// `{% … %}`. Then it stays as it is, comments included.
    ///
    /// # Errors
    /// The syntax is broken, or the template is nested too deeply.
    pub fn parse(text: &str) -> Result<Option<Self>, TemplateError> {
        Self::parse_as(text, Format::default())
    }

    /// Reads `text` in the dialect of `format`.
    ///
    /// # Errors
    /// As for [`Template::parse`].
    pub fn parse_as(text: &str, format: Format) -> Result<Option<Self>, TemplateError> {
        let unread = |error: TemplateError| TemplateError { nature: Nature::Unread, ..error };
        match format {
            Format::Jinja => Self::parse_jinja(text).map_err(unread),
            // What stands in the braces may well be of that language, of which little is known here.
            Format::Golang => Ok(format.parse(text)?.map(|(parts, whole)| Self::new(text, parts, whole))),
            _ => Ok(format.parse(text).map_err(unread)?.map(|(parts, whole)| Self::new(text, parts, whole))),
        }
    }

    /// The same with each `${{ … }}` left as text that names something which is no variable: that is how workflows of
    /// other tools are written. What is said of each, too.
    pub(crate) fn without_foreign(mut self, is_known: &dyn Fn(&str) -> bool) -> (Self, Vec<TemplateError>) {
        let mut foreign = Vec::new();
        for part in &mut self.parts {
            let Part::Output(expression) = part else { continue };
            let open = self.text[..expression.range.start].rfind("{{");
            let close = self.text[expression.range.end..].find("}}").map(|at| expression.range.end + at + 2);
            let (Some(open), Some(close)) = (open, close) else { continue };
            let names = names::of(std::slice::from_ref(part));
            let unknown = names.into_iter().find(|(name, _)| !is_known(name));
            if let Some((name, range)) = unknown.filter(|_| self.text[..open].ends_with('$')) {
                let error = TemplateError::new(range, format!("there is no variable `{name}`"));
                foreign.push(TemplateError { nature: Nature::Unread, ..error });
                *part = Part::Text(self.text[open..close].to_owned());
            }
        }
        (self, foreign)
    }

    fn parse_jinja(text: &str) -> Result<Option<Self>, TemplateError> {
        let segments = split(text)?;
        if segments.iter().all(|segment| matches!(segment, Segment::Text(_))) {
            return Ok(None);
        }
        let parts = block::parse(text, &segments)?;
        Ok(Some(Self::new(text, parts, whole(text, &segments))))
    }

    fn new(text: &str, parts: Vec<Part>, whole: Option<Whole>) -> Self {
        let regex = regex_literal::is_regex_literal(&parts);
        Self { parts, whole, regex, text: text.to_owned() }
    }

    /// As it is written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The variables it uses, each as often as it does, in the order they are written; names that it sets itself are
    /// not among them.
    pub fn names(&self) -> Vec<Spanned<String>> {
        let located = |(name, range): (String, Range<usize>)| Spanned::new(name, Span::new(range.start, range.end));
        names::of(&self.parts).into_iter().map(located).collect()
    }

    /// Whether the text is a regular expression between slashes (`/…{{ name }}…/i`). Then what a variable's name stands
    /// for is put in as text to be matched, with the special characters escaped.
    pub fn is_regex_literal(&self) -> bool {
        self.regex
    }

    /// What it becomes with `variables`: the value itself for a placeholder that is all there is and names one
    /// (`{{ user }}`, `{{ users[0].name }}`), otherwise text.
    ///
    /// # Errors
    /// A name is unknown, an operation has no result, a limit is passed.
    pub fn render(&self, variables: &Variables) -> Result<serde_json::Value, TemplateError> {
        match evaluate(self, &Resolution::new(variables))? {
            Outcome::Value(node) => Ok(node.to_json()),
            Outcome::Text(text) => Ok(text.into()),
        }
    }
}

/// The one placeholder that is all there is but white space.
fn whole(text: &str, segments: &[Segment]) -> Option<Whole> {
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

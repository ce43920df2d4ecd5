//! Splits a string into text segments and tags, and trims the white space between them.
//!
//! - One line end at the end of a template is removed.
//! - Spaces before a statement or comment at the beginning of a line are removed, and so is a line end directly after
//!   one.
//! - `-` inside a delimiter removes all white space on that side.

use std::ops::Range;

use crate::error::TemplateError;
use crate::lexer::{Tag, Token, read_tag};

#[derive(Debug)]
pub(crate) enum Segment {
    /// Text that is kept.
    Text(String),
    /// `{{ … }}`
    Expression(Inside),
    /// `{% … %}`
    Statement(Inside),
}

/// Content of a tag.
#[derive(Debug)]
pub(crate) struct Inside {
    pub(crate) tokens: Vec<Token>,
    /// Range with the delimiters.
    pub(crate) range: Range<usize>,
    /// Range without the delimiters.
    pub(crate) inner: Range<usize>,
}

/// Splits `text`. Text that looks like a template but is not one remains text: `{{}}`, and delimiters that are not
/// closed. With `keeps_space`, only `-` removes white space.
pub(crate) fn split(text: &str, keeps_space: bool) -> Result<Vec<Segment>, TemplateError> {
    let text = if keeps_space { text } else { text.strip_suffix('\n').unwrap_or(text) };
    let mut splitter = Splitter {
        text,
        keeps_space,
        closings: Closings::of(text),
        segments: Vec::new(),
        pending: String::new(),
        before: Edge::default(),
    };
    let mut offset = 0;
    while let Some(open) = next_opening(text, offset) {
        splitter.pending.push_str(&text[offset..open]);
        offset = splitter.delimiter(open)?;
    }
    splitter.pending.push_str(&text[offset..]);
    splitter.finish_text(&Edge::default(), text.len());
    Ok(splitter.segments)
}

/// Effect of a tag on the adjacent text.
#[derive(Debug, Default)]
struct Edge {
    /// True if it has a `-` on this side.
    trims: bool,
    /// True if it is a statement or comment.
    block: bool,
}

/// Offset of the last closing delimiter of each kind. A tag that is opened after it is never closed.
struct Closings {
    expression: Option<usize>,
    statement: Option<usize>,
    comment: Option<usize>,
}

impl Closings {
    fn of(text: &str) -> Self {
        Self { expression: text.rfind("}}"), statement: text.rfind("%}"), comment: text.rfind("#}") }
    }
}

struct Splitter<'a> {
    text: &'a str,
    /// True if white space around statements is kept.
    keeps_space: bool,
    closings: Closings,
    segments: Vec<Segment>,
    /// Text that the following tag may trim.
    pending: String,
    /// End of the tag before `pending`.
    before: Edge,
}

impl Splitter<'_> {
    /// Reads the tag that begins at `open`. Returns the offset at which to continue.
    fn delimiter(&mut self, open: usize) -> Result<usize, TemplateError> {
        let kind = self.text.as_bytes().get(open + 1).copied();
        if kind == Some(b'#') {
            return Ok(self.comment(open));
        }
        let (close, last) = match kind {
            Some(b'{') => ("}}", self.closings.expression),
            _ => ("%}", self.closings.statement),
        };
        let trims = self.text[open + 2..].starts_with('-');
        let start = open + 2 + usize::from(trims);
        if last.is_none_or(|last| last < start) {
            return Ok(self.literal(open, open + 2));
        }
        match read_tag(self.text, start, close) {
            Ok(Some(tag)) if !tag.tokens.is_empty() => Ok(self.tag(open, trims, close == "%}", tag)),
            Ok(Some(tag)) => Ok(self.literal(open, tag.end)),
            Ok(None) => Err(TemplateError::new(format!("this `{}` is not closed", &self.text[open..open + 2]))
                .at(open..open + 2)
                .help(match has_single_brace(&self.text[start..]) {
                    true => "it is closed with two braces, `}}`",
                    false => "a quote or bracket inside it is not closed",
                })),
            Err(error) => Err(error),
        }
    }

    fn comment(&mut self, open: usize) -> usize {
        let closed = self.closings.comment.is_some_and(|last| last >= open + 2);
        let length = if closed { self.text[open + 2..].find("#}") } else { None };
        let Some(length) = length else { return self.literal(open, open + 2) };
        let end = open + 2 + length + 2;
        self.finish_text(&Edge { trims: false, block: true }, open);
        self.before = Edge { trims: false, block: true };
        end
    }

    fn tag(&mut self, open: usize, trims: bool, block: bool, tag: Tag) -> usize {
        self.finish_text(&Edge { trims, block }, open);
        self.before = Edge { trims: tag.trims, block };
        let inside = Inside { tokens: tag.tokens, range: open..tag.end, inner: tag.inner };
        self.segments.push(if block { Segment::Statement(inside) } else { Segment::Expression(inside) });
        tag.end
    }

    fn literal(&mut self, start: usize, end: usize) -> usize {
        self.pending.push_str(&self.text[start..end]);
        end
    }

    /// Ends the text before a tag that begins at `end`.
    fn finish_text(&mut self, after: &Edge, end: usize) {
        let text = std::mem::take(&mut self.pending);
        let mut kept = text.as_str();
        if after.trims {
            kept = kept.trim_end();
        } else if after.block && !self.keeps_space {
            kept = strip_indent(kept, text.len() == end);
        }
        if self.before.trims {
            kept = kept.trim_start();
        } else if self.before.block && !self.keeps_space {
            kept = kept.strip_prefix('\n').unwrap_or(kept);
        }
        if kept.is_empty() {
            return;
        }
        if let Some(Segment::Text(last)) = self.segments.last_mut() {
            last.push_str(kept);
        } else {
            self.segments.push(Segment::Text(kept.to_owned()));
        }
    }
}

/// Returns `text` without its last line, if that consists only of spaces. `whole` is true if the text is the beginning
/// of the template.
fn strip_indent(text: &str, whole: bool) -> &str {
    let line = text.rfind('\n').map(|offset| offset + 1).or(whole.then_some(0));
    match line {
        Some(line) if text[line..].chars().all(|c| c == ' ' || c == '\t') => &text[..line],
        _ => text,
    }
}

/// Returns `true` if the first closing delimiter in `text` is a single brace that closes nothing.
fn has_single_brace(text: &str) -> bool {
    let first = text.find(['}', '{', '"', '\'', '(', '[']).map(|at| &text[at..]);
    first.is_some_and(|rest| rest.starts_with('}') && !rest.starts_with("}}"))
}

fn next_opening(text: &str, from: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    (from..bytes.len().saturating_sub(1))
        .find(|&index| bytes[index] == b'{' && matches!(bytes[index + 1], b'{' | b'%' | b'#'))
}

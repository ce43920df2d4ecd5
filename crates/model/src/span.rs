//! Places in the user's files.

use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

/// A half-open range of bytes in a [`Source`]. Trees have one in every value, so it is kept small: what lies beyond the
/// first 4 GiB of a text is where those end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// The range `start..end`.
    pub fn new(start: usize, end: usize) -> Self {
        let kept = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Self { start: kept(start), end: kept(end.max(start)) }
    }

    /// The first byte.
    pub fn start(self) -> usize {
        self.start as usize
    }

    /// One past the last byte; equal to `start` for a place between two bytes.
    pub fn end(self) -> usize {
        self.end as usize
    }
}

/// A value and where the user wrote it.
#[derive(Debug, Clone, PartialEq)]
pub struct Spanned<T> {
    /// What was written.
    pub value: T,
    /// Where.
    pub span: Span,
}

impl<T> Spanned<T> {
    /// `value`, written at `span`.
    pub fn new(value: T, span: Span) -> Self {
        Self { value, span }
    }
}

/// One file of the user's, as it was read.
#[derive(Debug)]
pub struct Source {
    /// The path as the user would write it, for messages.
    pub path: Arc<str>,
    /// The whole text.
    pub text: String,
    /// Where each line begins; found when the first excerpt is asked for.
    lines: OnceLock<Vec<usize>>,
}

impl PartialEq for Source {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path && self.text == other.text
    }
}

impl Eq for Source {}

impl Source {
    /// A source to be shared by everything that was read from it.
    pub fn new(path: impl Into<Arc<str>>, text: impl Into<String>) -> Arc<Self> {
        Arc::new(Self { path: path.into(), text: text.into(), lines: OnceLock::new() })
    }

    fn lines(&self) -> &[usize] {
        let begins = || std::iter::once(0).chain(self.text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        self.lines.get_or_init(begins)
    }

    /// The line that holds `span`, ready to be drawn without this source.
    pub fn excerpt(&self, span: Span) -> Excerpt {
        let floor = |mut at: usize| {
            at = at.min(self.text.len());
            while !self.text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let start = floor(span.start());
        let end = floor(span.end()).max(start);
        let lines = self.lines();
        let line = lines.partition_point(|begin| *begin <= start);
        let line_start = lines.get(line.saturating_sub(1)).copied().unwrap_or_default();
        let line_end = lines.get(line).map_or(self.text.len(), |next| next - 1);
        let text = self.text[line_start..line_end].trim_end_matches('\r');
        let length = self.text[start..end.min(line_start + text.len()).max(start)].chars().count();
        let column = self.text[line_start..start].chars().count() + 1;
        let (text, skipped) = around(text, start - line_start, column);
        Excerpt { file: Arc::clone(&self.path), line, column, length: length.max(1), text: text.to_owned(), skipped }
    }
}

/// A line that is longer than this, in bytes, is cut. A file without line ends would be kept whole with every place in it.
const LONGEST_LINE: usize = 1_000;
/// What is kept of a long line before the place and after it, in bytes.
const KEPT: usize = 200;

/// What of the line `text` is kept for the place at the byte `at` of it, and how many characters stand before that.
fn around(text: &str, at: usize, column: usize) -> (&str, usize) {
    if text.len() <= LONGEST_LINE {
        return (text, 0);
    }
    let at = at.min(text.len());
    let mut from = at.saturating_sub(KEPT);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let mut to = (at + KEPT).min(text.len());
    while !text.is_char_boundary(to) {
        to -= 1;
    }
    let before = text.get(from..at).map_or(0, |before| before.chars().count());
    (&text[from..to.max(from)], (column - 1).saturating_sub(before))
}

/// A line of the user's file and what to underline in it. It holds the text, so a recorded failure can be drawn after
/// the file has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Excerpt {
    /// The path as the user would write it; those of one file share it.
    pub file: Arc<str>,
    /// 1-based.
    pub line: usize,
    /// 1-based, in characters.
    pub column: usize,
    /// How many characters to underline, at least 1.
    #[serde(default = "one")]
    pub length: usize,
    /// The line without its line end; of a very long one, what is around the underlined part.
    #[serde(default)]
    pub text: String,
    /// How many characters of the line stand before `text`.
    #[serde(default, skip_serializing_if = "is_none")]
    pub skipped: usize,
}

fn is_none(skipped: &usize) -> bool {
    *skipped == 0
}

fn one() -> usize {
    1
}

impl Excerpt {
    /// An excerpt of a whole file that has no line to show, such as a directory or an unreadable file.
    pub fn of_file(path: impl Into<Arc<str>>) -> Self {
        Self { file: path.into(), line: 1, column: 1, length: 1, text: String::new(), skipped: 0 }
    }
}

impl std::fmt::Display for Excerpt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_counts_characters_and_stays_on_its_line() {
        let source = Source::new("a.yaml", "one: 1\nzwei: é→x\r\nthree: 3\n");
        let start = source.text.find('→').unwrap();
        let excerpt = source.excerpt(Span::new(start, source.text.len()));
        assert_eq!((excerpt.line, excerpt.column, excerpt.length), (2, 8, 2));
        assert_eq!(excerpt.text, "zwei: é→x");
        assert_eq!(excerpt.to_string(), "a.yaml:2:8");
    }

    #[test]
    fn a_very_long_line_is_cut_around_the_place() {
        let source = Source::new("a.json", format!("{}é[x]{}", "ä".repeat(2_000), "z".repeat(2_000)));
        let start = source.text.find('x').unwrap();
        let excerpt = source.excerpt(Span::new(start, start + 1));
        assert_eq!((excerpt.line, excerpt.column, excerpt.length), (1, 2_003, 1));
        assert!(excerpt.text.len() <= 2 * KEPT);
        assert_eq!(excerpt.text.chars().nth(excerpt.column - 1 - excerpt.skipped), Some('x'));
    }

    #[test]
    fn an_excerpt_at_the_end_of_the_text_or_inside_a_character_is_safe() {
        let source = Source::new("a", "é");
        assert_eq!(source.excerpt(Span::new(99, 120)).column, 2);
        assert_eq!(source.excerpt(Span::new(1, 2)).column, 1);
    }
}

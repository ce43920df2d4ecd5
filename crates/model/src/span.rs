//! Locations in the user's files.

use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

/// Half-open range of bytes in a [`Source`]. Every value of a tree has one, so it is kept small: an offset beyond 4
/// GiB is stored as 4 GiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// Creates the range `start..end`.
    pub fn new(start: usize, end: usize) -> Self {
        let kept = |index: usize| u32::try_from(index).unwrap_or(u32::MAX);
        Self { start: kept(start), end: kept(end.max(start)) }
    }

    /// Returns the offset of the first byte.
    pub fn start(self) -> usize {
        self.start as usize
    }

    /// Returns the offset after the last byte; equal to `start` for a position between two bytes.
    pub fn end(self) -> usize {
        self.end as usize
    }
}

/// Value with its location in the user's file.
#[derive(Debug, Clone, PartialEq)]
pub struct Spanned<T> {
    /// Value.
    pub value: T,
    /// Location.
    pub span: Span,
}

impl<T> Spanned<T> {
    /// Creates `value` with the location `span`.
    pub fn new(value: T, span: Span) -> Self {
        Self { value, span }
    }
}

/// One of the user's files, as it was read.
#[derive(Debug)]
pub struct Source {
    /// Path as the user would write it, for messages.
    pub path: Arc<str>,
    /// Whole text.
    pub text: String,
    /// Offset at which each line starts; computed for the first excerpt.
    lines: OnceLock<Vec<usize>>,
}

impl PartialEq for Source {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path && self.text == other.text
    }
}

impl Eq for Source {}

impl Source {
    /// Creates a source that everything read from it can share.
    pub fn new(path: impl Into<Arc<str>>, text: impl Into<String>) -> Arc<Self> {
        Arc::new(Self { path: path.into(), text: text.into(), lines: OnceLock::new() })
    }

    fn lines(&self) -> &[usize] {
        let begins = || std::iter::once(0).chain(self.text.match_indices('\n').map(|(offset, _)| offset + 1)).collect();
        self.lines.get_or_init(begins)
    }

    /// Returns the line that contains `span`. It can be drawn without this source.
    pub fn excerpt(&self, span: Span) -> Excerpt {
        let start = self.text.floor_char_boundary(span.start());
        let end = self.text.floor_char_boundary(span.end()).max(start);
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

/// Length in bytes above which a line is cut. Otherwise every location in a file without line ends would keep the
/// whole file.
const MAX_LINE_BYTES: usize = 1_000;
/// Number of bytes kept before and after the location in a long line.
const CONTEXT_BYTES: usize = 200;

/// Returns the kept part of the line around the byte offset `at`, and the number of characters before it.
fn around(text: &str, index: usize, column: usize) -> (&str, usize) {
    if text.len() <= MAX_LINE_BYTES {
        return (text, 0);
    }
    let index = index.min(text.len());
    let from = text.ceil_char_boundary(index.saturating_sub(CONTEXT_BYTES));
    let to = text.floor_char_boundary(index + CONTEXT_BYTES);
    let before = text.get(from..index).map_or(0, |before| before.chars().count());
    (&text[from..to.max(from)], (column - 1).saturating_sub(before))
}

/// Line in the user's file and the part to underline. It holds the text, so a recorded failure can be drawn after the
/// file has changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Excerpt {
    /// Path as the user would write it; excerpts of one file share it.
    pub file: Arc<str>,
    /// Line number, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Number of characters to underline, at least 1.
    #[serde(default = "one")]
    pub length: usize,
    /// Line without its line end; for a very long line, the part around the location.
    #[serde(default)]
    pub text: String,
    /// Number of characters in the line before `text`.
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
    /// Creates an excerpt of a whole file without a line to show, such as a directory or an unreadable file.
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
    fn a_very_long_line_is_cut_around_the_location() {
        let source = Source::new("a.json", format!("{}é[x]{}", "ä".repeat(2_000), "z".repeat(2_000)));
        let start = source.text.find('x').unwrap();
        let excerpt = source.excerpt(Span::new(start, start + 1));
        assert_eq!((excerpt.line, excerpt.column, excerpt.length), (1, 2_003, 1));
        assert!(excerpt.text.len() <= 2 * CONTEXT_BYTES);
        assert_eq!(excerpt.text.chars().nth(excerpt.column - 1 - excerpt.skipped), Some('x'));
    }

    #[test]
    fn an_excerpt_at_the_end_of_the_text_or_inside_a_character_is_safe() {
        let source = Source::new("a", "é");
        assert_eq!(source.excerpt(Span::new(99, 120)).column, 2);
        assert_eq!(source.excerpt(Span::new(1, 2)).column, 1);
    }
}

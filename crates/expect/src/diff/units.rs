//! Splits texts into the units of a comparison.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use super::spaces::{is_space, trimmed};
use super::{Kind, Options};

/// Units of one string.
pub(super) struct Sequence<'t> {
    text: &'t str,
    /// Byte range of each unit. Adjacent words share the white space between them.
    ranges: Vec<Range<usize>>,
    /// Id of each unit.
    pub ids: Vec<u32>,
}

impl<'t> Sequence<'t> {
    /// Returns the text from the first to the last of `units`.
    pub fn text(&self, units: Range<usize>) -> &'t str {
        let first = self.ranges.get(units.start).map_or(self.text.len(), |range| range.start);
        let last = units.end.checked_sub(1).and_then(|last| self.ranges.get(last)).map_or(first, |range| range.end);
        self.text.get(first..last).unwrap_or_default()
    }
}

/// Splits both texts according to `kind` and `options`. Equal units have equal ids. JSON has no units of its own and
/// is split into lines.
pub(super) fn split<'t>(texts: [&'t str; 2], kind: Kind, options: &Options) -> [Sequence<'t>; 2] {
    let mut ids: HashMap<Cow<'t, str>, u32> = HashMap::new();
    let mut id = |unit: &'t str| {
        if kind == Kind::Chars && !options.ignore_case {
            return unit.chars().next().map_or(0, u32::from);
        }
        let next = u32::try_from(ids.len()).unwrap_or(u32::MAX);
        let counts = what_counts(unit, kind, options);
        let counts = if options.ignore_case { Cow::Owned(counts.to_lowercase()) } else { Cow::Borrowed(counts) };
        *ids.entry(counts).or_insert(next)
    };
    texts.map(|text| {
        let ranges = ranges(text, kind, options);
        let ids = ranges.iter().map(|range| id(&text[range.clone()])).collect();
        Sequence { text, ranges, ids }
    })
}

/// Returns the part of a unit that is compared.
fn what_counts<'t>(unit: &'t str, kind: Kind, options: &Options) -> &'t str {
    match kind {
        Kind::Words => trimmed(unit),
        Kind::Lines if options.newline_is_token && unit.contains('\n') => unit,
        Kind::Lines if options.ignore_whitespace == Some(true) => trimmed(unit),
        Kind::Lines if options.ignore_newline_at_eof && !options.newline_is_token => {
            unit.strip_suffix('\n').unwrap_or(unit)
        }
        _ => unit,
    }
}

fn ranges(text: &str, kind: Kind, options: &Options) -> Vec<Range<usize>> {
    match kind {
        Kind::Chars => text.char_indices().map(|(offset, c)| offset..offset + c.len_utf8()).collect(),
        Kind::Words => words(text),
        Kind::WordsWithSpace => words_with_space(text),
        Kind::Lines | Kind::Json => lines(text, options.newline_is_token),
        Kind::Sentences => sentences(text),
    }
}

/// Returns `true` for letters and digits in words. Letters of non-Latin scripts are one-letter words.
fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric()
        || c == '_'
        || matches!(c, '\u{c0}'..='\u{2c6}' | '\u{2c8}'..='\u{2d7}' | '\u{2de}'..='\u{2ff}' | '\u{1e00}'..='\u{1eff}')
}

/// Returns the length in bytes of the prefix of `text` whose characters are in `class`.
fn span(text: &str, class: impl Fn(char) -> bool) -> usize {
    text.find(|c| !class(c)).unwrap_or(text.len())
}

/// Returns the length in bytes of the word at the beginning of `text`, or else of its first character.
fn word_or_char(text: &str) -> usize {
    match span(text, is_word) {
        0 => text.chars().next().map_or(0, char::len_utf8),
        length => length,
    }
}

/// Splits into words and other characters, each with the white space on both sides. Returns white space on its own if
/// there is nothing else.
fn words(text: &str) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut start = 0;
    let mut at = span(text, is_space);
    while at < text.len() {
        let end = at + word_or_char(&text[at..]);
        let next = end + span(&text[end..], is_space);
        ranges.push(start..next);
        (start, at) = (end, next);
    }
    if ranges.is_empty() && at > 0 {
        ranges.push(0..at);
    }
    ranges
}

/// Splits into words, line ends, runs of other white space, and other characters.
fn words_with_space(text: &str) -> Vec<Range<usize>> {
    let within_line = |c| is_space(c) && c != '\n' && c != '\r';
    let unit = |rest: &str| {
        if rest.starts_with("\r\n") {
            return 2;
        }
        match span(rest, within_line) {
            0 => word_or_char(rest),
            length => length,
        }
    };
    cut(text, unit)
}

/// Splits into lines with their ends. If `apart` is true, splits into non-empty lines and line ends.
fn lines(text: &str, apart: bool) -> Vec<Range<usize>> {
    let unit = |rest: &str| match rest.find('\n') {
        None => rest.len(),
        Some(at) if !apart => at + 1,
        Some(offset) => match offset - usize::from(rest[..offset].ends_with('\r')) {
            0 => offset + 1,
            end => end,
        },
    };
    cut(text, unit)
}

/// Splits into sentences and the white space after them.
fn sentences(text: &str) -> Vec<Range<usize>> {
    let unit = |index: usize, rest: &str| {
        let space = span(rest, is_space);
        if space > 0 && index > 0 {
            return space;
        }
        let ends = rest.char_indices().zip(rest.chars().skip(1));
        let mut ends = ends.filter(|((_, c), next)| matches!(c, '.' | '!' | '?') && is_space(*next));
        ends.next().map_or(rest.len(), |((index, _), _)| index + 1)
    };
    cut_at(text, unit)
}

/// Splits a string into units. `unit` returns the length in bytes of the next unit, given the rest of the string.
fn cut(text: &str, unit: impl Fn(&str) -> usize) -> Vec<Range<usize>> {
    cut_at(text, |_, rest| unit(rest))
}

fn cut_at(text: &str, unit: impl Fn(usize, &str) -> usize) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut offset = 0;
    while offset < text.len() {
        let end = offset + unit(offset, &text[offset..]).max(1);
        ranges.push(offset..end);
        offset = end;
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut_into(text: &str, kind: Kind, options: &Options) -> Vec<String> {
        ranges(text, kind, options).into_iter().map(|range| text[range].to_owned()).collect()
    }

    fn units(text: &str, kind: Kind) -> Vec<String> {
        cut_into(text, kind, &Options::default())
    }

    #[test]
    fn a_word_includes_the_white_space_around_it() {
        assert_eq!(units(" a  b, ", Kind::Words), [" a  ", "  b", ", "]);
        assert_eq!(units("Übung×2 日本", Kind::Words), ["Übung×2 ", " 日", "本"]);
        assert_eq!(units(" \n", Kind::Words), [" \n"]);
        assert!(units("", Kind::Words).is_empty());
    }

    #[test]
    fn line_ends_are_separate_units_in_words_with_space() {
        assert_eq!(units("a  \n\r\n\tb\r.", Kind::WordsWithSpace), ["a", "  ", "\n", "\r\n", "\t", "b", "\r", "."]);
    }

    #[test]
    fn a_line_includes_its_newline_unless_newlines_are_tokens() {
        assert_eq!(units("a\n\r\nb", Kind::Lines), ["a\n", "\r\n", "b"]);
        assert_eq!(units("a\n", Kind::Lines), ["a\n"]);
        let apart = Options { newline_is_token: true, ..Options::default() };
        assert_eq!(cut_into("a\n\r\nb\r\n\nc\r", Kind::Lines, &apart), ["a", "\n", "\r\n", "b", "\r\n", "\n", "c\r"]);
    }

    #[test]
    fn a_sentence_ends_before_white_space() {
        assert_eq!(units("A 1.5?!  B. ", Kind::Sentences), ["A 1.5?!", "  ", "B.", " "]);
        assert_eq!(units("  A. B", Kind::Sentences), ["  A.", " ", "B"]);
    }

    #[test]
    fn units_with_the_same_id_are_equal_under_the_options() {
        let equal = |old: &str, new: &str, kind, options: &Options| {
            let [old, new] = split([old, new], kind, options);
            old.ids == new.ids
        };
        let plain = Options::default();
        let folded = Options { ignore_case: true, ..Options::default() };
        assert!(!equal("A", "a", Kind::Chars, &plain) && equal("A", "a", Kind::Chars, &folded));
        assert!(equal("a b", "a\n b ", Kind::Words, &plain));
        let eof = Options { ignore_newline_at_eof: true, ..Options::default() };
        assert!(equal("a\nb", "a\nb\n", Kind::Lines, &eof) && !equal("a", "a\r\n", Kind::Lines, &eof));
    }
}

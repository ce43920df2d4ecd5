//! Strings of the form `/…/flags`.

use std::fmt::Write as _;

use model::REGEX_FLAGS;

use crate::error::TemplateError;
use crate::syntax::Part;
use crate::value::push;

/// Returns `true` if the parts form a regular expression literal, whatever the values of its placeholders are.
pub(crate) fn is_regex_literal(parts: &[Part]) -> bool {
    let mut text = String::new();
    for part in parts {
        match part {
            Part::Text(written) => text.push_str(written),
            Part::Set { .. } | Part::SetMember { .. } | Part::Macro(_) => {}
            // A character that is neither a slash nor a flag.
            _ => text.push('\0'),
        }
    }
    let Some((pattern, flags)) = text.strip_prefix('/').and_then(|rest| rest.rsplit_once('/')) else { return false };
    !pattern.is_empty() && flags.chars().all(|flag| REGEX_FLAGS.contains(flag))
}

/// Characters that may be escaped with a backslash, even with the `u` flag.
const SYNTAX: &str = "\\^$.*+?()[]{}|/";

/// Characters that have a meaning in context: `-` between two others in a class, `,` in a repetition, `=` after `(?`,
/// and any of them doubled in a class with the `v` flag.
const BESIDE_OTHERS: &str = ",-=<>#&!%:;@~`";

/// Maximum distance from the end at which the beginning of an escape is searched: `\u{10FFF`, the name of a group.
const ESCAPE: usize = 64;

/// Appends `text` to the beginning of a regular expression's source so that it is matched literally.
///
/// # Errors
/// Returns an error if the source ends with a backslash, which would change the meaning of the text that follows.
pub(crate) fn push_escaped(source: &mut String, text: &str) -> Result<(), TemplateError> {
    let Some(first) = text.chars().next() else { return Ok(()) };
    if ends_with_backslash(source) {
        return Err(TemplateError::new("a backslash before a value that is already escaped")
            .help("remove the backslash; to match one, write two"));
    }
    let mut escaped = String::with_capacity(text.len());
    let rest = if first.is_ascii_alphanumeric() && ends_in_escape(source) {
        let _ = write!(escaped, "\\x{:02x}", u32::from(first));
        &text[1..]
    } else {
        text
    };
    rest.chars().for_each(|found| escape(found, &mut escaped));
    push(source, &escaped)
}

fn escape(found: char, source: &mut String) {
    let _ = match found {
        '\n' => write!(source, "\\n"),
        '\r' => write!(source, "\\r"),
        '\u{2028}' | '\u{2029}' => write!(source, "\\u{:04x}", u32::from(found)),
        // Only characters that must be escaped are escaped: with the `u` flag, any other backslash is an error.
        _ if SYNTAX.contains(found) => write!(source, "\\{found}"),
        _ if BESIDE_OTHERS.contains(found) => write!(source, "\\x{:02x}", u32::from(found)),
        _ => write!(source, "{found}"),
    };
}

/// Consecutive backslashes.
struct Run {
    /// Offset of the last one.
    last: usize,
    count: usize,
}

/// Returns the last run of backslashes in `source`, if it is near the end.
fn last_run(source: &str) -> Option<Run> {
    let window = source.len().saturating_sub(ESCAPE);
    let last = window + source.as_bytes().get(window..)?.iter().rposition(|byte| *byte == b'\\')?;
    let before = source.as_bytes().get(..=last)?;
    Some(Run { last, count: before.iter().rev().take_while(|byte| **byte == b'\\').count() })
}

/// Returns the number of bytes that must be read to append a value to `source`.
pub(crate) fn looked_at(source: &str) -> usize {
    last_run(source).map_or(0, |run| run.count)
}

/// Returns `true` if the last character of `source` is a backslash that escapes the next character.
fn ends_with_backslash(source: &str) -> bool {
    last_run(source).is_some_and(|run| run.last + 1 == source.len() && run.count % 2 == 1)
}

/// Returns `true` if `source` ends in an escape that a letter or digit would extend: `\1`, `\x4`, `\u00`, `\c`,
/// `\k<a`.
fn ends_in_escape(source: &str) -> bool {
    // A backslash that is itself escaped does not escape anything.
    let Some(run) = last_run(source).filter(|run| run.count % 2 == 1) else { return false };
    let mut letters = source[run.last + 1..].chars();
    let rest = match letters.next() {
        Some(first) if first.is_ascii_digit() => return letters.all(|letter| letter.is_ascii_digit()),
        Some('c') => return letters.as_str().is_empty(),
        Some('x') => return letters.as_str().len() < 2 && letters.all(|letter| letter.is_ascii_hexdigit()),
        Some('u') if !letters.as_str().starts_with('{') => {
            return letters.as_str().len() < 4 && letters.all(|letter| letter.is_ascii_hexdigit());
        }
        Some('u' | 'p' | 'P') => letters.as_str().strip_prefix('{').map(|rest| !rest.contains('}')),
        Some('k') => letters.as_str().strip_prefix('<').map(|rest| !rest.contains('>')),
        _ => None,
    };
    rest.unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(source: &str, text: &str) -> String {
        let mut source = source.to_owned();
        push_escaped(&mut source, text).unwrap();
        source
    }

    #[test]
    fn characters_with_a_contextual_meaning_are_escaped_by_code_point() {
        assert_eq!(joined("[", "a-z"), "[a\\x2dz");
        assert_eq!(joined("a{1", ",2}"), "a{1\\x2c2\\}");
        assert_eq!(joined("(?", ":&&"), "(?\\x3a\\x26\\x26");
        assert_eq!(joined("[", "^]'\" _é"), "[\\^\\]'\" _é");
        assert_eq!(joined("", "\u{2028}\r\n"), "\\u2028\\r\\n");
    }

    #[test]
    fn a_value_does_not_extend_the_escape_before_it() {
        for (source, text, wanted) in [
            (r"(a)\1", "0", r"(a)\1\x30"),
            (r"\x4", "1b", r"\x4\x31b"),
            (r"\u004", "1", r"\u004\x31"),
            (r"\u{4", "1", r"\u{4\x31"),
            (r"\c", "A", r"\c\x41"),
            (r"\k<a", "b", r"\k<a\x62"),
            (r"\p{L", "u", r"\p{L\x75"),
        ] {
            assert_eq!(joined(source, text), wanted);
        }
        for (source, text) in [
            (r"\d", "0"),
            (r"\x41", "1"),
            (r"\u0041", "1"),
            (r"\\1", "0"),
            (r"\1a", "0"),
            (r"\cA", "b"),
            ("1", "0"),
            (r"\p{L}", "u"),
            (r"\1", "é"),
            ("", "a"),
        ] {
            assert_eq!(joined(source, text), format!("{source}{text}"));
        }
    }

    #[test]
    fn a_backslash_before_a_value_is_refused() {
        assert!(push_escaped(&mut r"a\".to_owned(), "d").is_err());
        assert_eq!(joined(r"a\\", "d"), r"a\\d");
        assert_eq!(joined(r"a\", ""), r"a\");
    }
}

//! Finds the rest of a secret at a place where a text was shortened. Findings and summaries are shortened before they
//! are masked, and half a secret no longer has a key's shape.

use std::ops::Range;

use super::shape;

/// Marks the place where text was left out.
const ELLIPSIS: &[u8] = "…".as_bytes();
/// Minimum length of a partial secret that is masked, in bytes.
const LEAST: usize = 6;
/// Maximum number of bytes between the shortened text and the ellipsis.
const MOST_AROUND: usize = 4;
/// Maximum length of a truncated escape, in bytes: `\u001`.
const MOST_OF_AN_ESCAPE: usize = 5;
/// Maximum number of places examined in one text.
const MOST_PLACES: usize = 256;
/// Length in bytes from which a text may have been cut at its end without an ellipsis.
const LONG: usize = 1000;

/// Calls `found` with each range in `text` beside an omission that is a part of one of `forms`; with `shapes`, also
/// with ranges there that look like the beginning of a key.
pub(super) fn search<'f>(
    text: &[u8],
    forms: impl Iterator<Item = &'f Vec<u8>> + Clone,
    shapes: bool,
    mut found: impl FnMut(Range<usize>),
) {
    let mut places = 0;
    let mut from = 0;
    while places < MOST_PLACES
        && let Some(at) = text[from..].iter().position(|byte| *byte == ELLIPSIS[0]).map(|at| from + at)
    {
        from = at + 1;
        if !text[at..].starts_with(ELLIPSIS) {
            continue;
        }
        places += 1;
        let end = at - text[..at].iter().rev().take(MOST_AROUND).take_while(|byte| is_around(**byte)).count();
        let end = end - torn_escape(&text[..end]);
        let rest = &text[at + ELLIPSIS.len()..];
        let start =
            text.len() - rest.len() + rest.iter().take(MOST_AROUND).take_while(|byte| is_around(**byte)).count();
        let (before, after) = (&text[..end], &text[start..]);
        for form in forms.clone() {
            begun(before, form, LEAST).into_iter().for_each(|length| found(end - length..end));
            ended(after, form).into_iter().for_each(|length| found(start..start + length));
        }
        if shapes && let Some(length) = shape::begun(before) {
            found(end - length..end);
        }
        if shapes && let Some(length) = shape::ended(after) {
            found(start..start + length);
        }
    }
    if text.len() >= LONG {
        for form in forms {
            let length = begun(text, form, LEAST);
            length.into_iter().for_each(|length| found(text.len() - length..text.len()));
        }
    }
}

/// Length of a truncated escape at the end of `text`: `\u00` of `\u001b`, `%2` of `%2F`.
fn torn_escape(text: &[u8]) -> usize {
    let tail = &text[text.len().saturating_sub(MOST_OF_AN_ESCAPE)..];
    let Some(at) = tail.iter().rposition(|byte| matches!(byte, b'\\' | b'%' | b'&')) else { return 0 };
    let is_torn = match &tail[at..] {
        [b'\\' | b'%' | b'&'] | [b'\\', b'u' | b'x' | b'U'] => true,
        [b'\\', b'u' | b'x' | b'U', digits @ ..] | [b'%', digits @ ..] => digits.iter().all(u8::is_ascii_hexdigit),
        [b'&', name @ ..] => name.iter().all(|byte| *byte == b'#' || byte.is_ascii_alphanumeric()),
        _ => false,
    };
    if is_torn { tail.len() - at } else { 0 }
}

/// Returns `true` if the byte may stand between a text and its ellipsis: `"text"…`, `text\n[… more]`.
fn is_around(byte: u8) -> bool {
    matches!(byte, b'[' | b']' | b'(' | b')' | b'"' | b'\'' | b'`' | b' ' | b'\n' | b'\t')
}

/// Returns the length of the longest beginning of `form` that `before` ends with, if it is at least `least` bytes.
fn begun(before: &[u8], form: &[u8], least: usize) -> Option<usize> {
    let most = form.len().saturating_sub(1).min(before.len());
    (least..=most).rev().find(|length| before.ends_with(&form[..*length]))
}

/// Returns the length of the longest end of `form` that `after` begins with.
fn ended(after: &[u8], form: &[u8]) -> Option<usize> {
    let most = form.len().saturating_sub(1).min(after.len());
    (LEAST..=most).rev().find(|length| after.starts_with(&form[form.len() - length..]))
}

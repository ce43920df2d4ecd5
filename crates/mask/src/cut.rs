//! Finds the remains of a secret where a string was shortened. Findings, summaries and lines of output are shortened
//! before they are masked, and part of a secret no longer has the shape of a key.
//!
//! Text may be cut next to an ellipsis. Long text may also be cut at its beginning or end without an ellipsis.

use std::ops::Range;

use memchr::memmem;
use regex::bytes::Regex;

use super::{alternation, shape};

/// Marks where text was omitted.
const ELLIPSIS: &[u8] = "…".as_bytes();
/// Minimum length of a partial secret that is masked, in bytes.
const MIN_PART_BYTES: usize = 6;
/// Minimum length of a string that may have been cut without an ellipsis, in bytes. It is below the length of excerpts
/// from long lines, which are the shortest such strings.
const MIN_CUT_BYTES: usize = 190;
/// Minimum length of the part of an encoded secret next to a line end that is masked, in bytes.
const MIN_LINE_PART_BYTES: usize = 8;
/// Minimum length of a line that is masked because it is entirely within an encoded secret, in bytes.
const MIN_WITHIN_BYTES: usize = 16;
/// Maximum number of bytes between the shortened text and the ellipsis.
const MAX_GAP_BYTES: usize = 4;
/// Maximum length of a truncated escape, in bytes: `\u001`.
const MAX_ESCAPE_BYTES: usize = 5;

/// Finds the beginnings and the ends of secrets.
pub(super) struct Parts {
    /// Expression that matches the first [`MIN_PART_BYTES`] bytes of any secret.
    heads: Regex,
    /// Expression that matches the last [`MIN_PART_BYTES`] bytes of any secret.
    tails: Regex,
    /// Length of the longest secret.
    longest: usize,
}

impl Parts {
    /// Returns `None` if there are no `forms` of secrets. None of them may be shorter than [`MIN_PART_BYTES`].
    pub(super) fn new(forms: &[Vec<u8>]) -> Option<Self> {
        Some(Self {
            heads: alternation(forms.iter().map(|form| &form[..MIN_PART_BYTES]))?,
            tails: alternation(forms.iter().map(|form| &form[form.len() - MIN_PART_BYTES..]))?,
            longest: forms.iter().map(Vec::len).max()?,
        })
    }

    /// Returns the length of the longest beginning of one of `forms` with which `text` ends.
    fn begun(&self, forms: &[Vec<u8>], text: &[u8]) -> Option<usize> {
        let text = &text[text.len().saturating_sub(self.longest)..];
        let mut offset = 0;
        while let Some(head) = self.heads.find_at(text, offset) {
            let part = &text[head.start()..];
            if forms.iter().any(|form| form.starts_with(part)) {
                return Some(part.len());
            }
            offset = head.start() + 1;
        }
        None
    }

    /// Returns the length of the longest end of one of `forms` with which `text` begins.
    fn ended(&self, forms: &[Vec<u8>], text: &[u8]) -> Option<usize> {
        let text = &text[..text.len().min(self.longest)];
        let (mut at, mut longest) = (0, None);
        while let Some(tail) = self.tails.find_at(text, at) {
            let part = &text[..tail.end()];
            if forms.iter().any(|form| form.ends_with(part)) {
                longest = Some(part.len());
            }
            at = tail.start() + 1;
        }
        longest
    }
}

/// The encoded forms of secrets.
pub(super) struct Encoded {
    forms: Vec<Vec<u8>>,
    /// All forms, separated by spaces, so that one search finds a line that is within any of them.
    joined: Vec<u8>,
}

impl Encoded {
    pub(super) fn new(forms: Vec<Vec<u8>>) -> Self {
        Self { joined: forms.join(&b' '), forms }
    }
}

/// Calls `found` with each range in `text` next to a cut that is part of one of `forms`. With `shapes`, also calls it
/// with ranges next to an ellipsis that look like part of a key, or of a URL with a password.
pub(super) fn search<'s>(
    text: &[u8],
    secrets: &(impl Iterator<Item = (&'s Parts, &'s [Vec<u8>])> + Clone),
    shapes: bool,
    mut found: impl FnMut(Range<usize>),
) {
    let mut cut = |end: usize, start: usize, has_ellipsis: bool| {
        let end = end - torn_escape(&text[..end]);
        let (before, after) = (&text[..end], &text[start..]);
        let mut begun = |length: usize| found(end - length..end);
        secrets.clone().filter_map(|(parts, forms)| parts.begun(forms, before)).for_each(&mut begun);
        if shapes {
            let key = if has_ellipsis { shape::begun(before) } else { None };
            key.into_iter().chain(shape::begun_url(before)).for_each(begun);
        }
        let mut ended = |length: usize| found(start..start + length);
        secrets.clone().filter_map(|(parts, forms)| parts.ended(forms, after)).for_each(&mut ended);
        if shapes && has_ellipsis {
            shape::ended(after).into_iter().chain(shape::ended_url(after)).for_each(ended);
        }
    };
    if text.len() >= MIN_CUT_BYTES {
        cut(text.len(), 0, false);
    }
    let mut from = 0;
    while let Some(index) = text[from..].iter().position(|byte| *byte == ELLIPSIS[0]).map(|index| from + index) {
        from = index + 1;
        if text[index..].starts_with(ELLIPSIS) {
            let around = |byte: &&u8| is_around(**byte);
            let end = index - text[..index].iter().rev().take(MAX_GAP_BYTES).take_while(around).count();
            let start = index + ELLIPSIS.len();
            cut(end, start + text[start..].iter().take(MAX_GAP_BYTES).take_while(around).count(), true);
        }
    }
}

/// Calls `found` with each range in `text` next to a line end that is part of one of the `encoded` secrets, and with
/// each line that is within one. Programs such as `base64` and `xxd` wrap their output, and lines may arrive one by
/// one, so each line is searched on its own.
pub(super) fn search_lines(text: &[u8], parts: &Parts, encoded: &Encoded, mut found: impl FnMut(Range<usize>)) {
    let mut start = 0;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let end = start + line.trim_ascii_end().len();
        let from = start + (line.len() - line.trim_ascii_start().len());
        start += line.len();
        if from >= end {
            continue;
        }
        let line = &text[from..end];
        let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_');
        // Few other lines contain no space, so the search costs nothing for most lines.
        let may_be_within = (MIN_WITHIN_BYTES..parts.longest).contains(&line.len()) && line.iter().all(is_digit);
        if may_be_within && memmem::find(&encoded.joined, line).is_some() {
            found(from..end);
            continue;
        }
        let is_enough = |length: &usize| *length >= MIN_LINE_PART_BYTES;
        parts.begun(&encoded.forms, line).filter(is_enough).into_iter().for_each(|length| found(end - length..end));
        parts.ended(&encoded.forms, line).filter(is_enough).into_iter().for_each(|length| found(from..from + length));
    }
}

/// Returns the length of a truncated escape at the end of `text`: `\u00` of `\u001b`, `%2` of `%2F`.
fn torn_escape(text: &[u8]) -> usize {
    let tail = &text[text.len().saturating_sub(MAX_ESCAPE_BYTES)..];
    let Some(index) = tail.iter().rposition(|byte| matches!(byte, b'\\' | b'%' | b'&')) else { return 0 };
    let is_torn = match &tail[index..] {
        [b'\\' | b'%' | b'&'] | [b'\\', b'u' | b'x' | b'U'] => true,
        [b'\\', b'u' | b'x' | b'U', digits @ ..] | [b'%', digits @ ..] => digits.iter().all(u8::is_ascii_hexdigit),
        [b'&', name @ ..] => name.iter().all(|byte| *byte == b'#' || byte.is_ascii_alphanumeric()),
        _ => false,
    };
    if is_torn { tail.len() - index } else { 0 }
}

/// Returns `true` if the byte may appear between a string and its ellipsis: `"text"…`,
/// `text\n[… more]`.
fn is_around(byte: u8) -> bool {
    matches!(byte, b'[' | b']' | b'(' | b')' | b'"' | b'\'' | b'`' | b' ' | b'\n' | b'\t')
}

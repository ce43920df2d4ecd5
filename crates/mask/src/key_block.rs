//! Masks parts of private keys. A single line does not reveal that it belongs to a key, whether the lines arrive one by
//! one or are cut out of a text.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use regex::bytes::{Regex, RegexBuilder};

use super::secret::of_private_keys;
use super::{MASKED, Mask, Values};

/// Maximum number of lines in a private key. Later lines are shown again, so that a `BEGIN` marker alone cannot hide
/// other output.
const MAX_LINES: usize = 200;

const BEGIN: &str = "-----BEGIN";
const END: &str = "-----END";
const KEY: &str = "PRIVATE KEY";

/// Private keys that have started but not ended, by stream.
#[derive(Default)]
pub struct KeyBlocks(Mutex<Vec<OpenBlock>>);

struct OpenBlock {
    stream: String,
    lines: usize,
}

impl KeyBlocks {
    /// Masks `line`, the next line of `stream`, if it belongs to a private key that began on an earlier line. `mask`
    /// remembers the line if it [remembers](Mask::remembering) keys.
    pub fn mask(&self, stream: &str, line: &mut String, mask: &Mask) {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = open.iter().position(|open| open.stream == stream) {
            open[index].lines += 1;
            if let Some(seen) = &mask.seen {
                seen.add(digits(line.as_bytes()).map(<[u8]>::to_vec).collect());
            }
            if let Some(end) = line.find(END) {
                let rest = line[end + END.len()..].split_once("-----").map_or("", |(_, rest)| rest);
                *line = format!("{MASKED}{rest}");
                open.swap_remove(index);
            } else if open[index].lines > MAX_LINES {
                open.swap_remove(index);
            } else {
                MASKED.clone_into(line);
            }
        }
        let begun = line.rfind(BEGIN).and_then(|begin| line.get(begin..));
        if begun.is_some_and(|begun| begun.contains(KEY) && !begun.contains(END)) {
            open.push(OpenBlock { stream: stream.to_owned(), lines: 0 });
        }
    }
}

/// Minimum length of a line of a private key that is remembered, in bytes. Text between the lines, such as line numbers
/// and headers, is shorter or contains other characters.
const MIN_LINE_BYTES: usize = 32;
/// Minimum length of the last line of a private key that is remembered, in bytes.
const MIN_LAST_LINE_BYTES: usize = 8;
/// Maximum size of the private keys that one mask remembers, in bytes, so that an agent cannot fill the memory.
const MAX_SEEN_BYTES: usize = 64 << 10;

/// Expression that matches a private key; its first group is the text between its first and its last line.
static WHOLE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let pattern = r"-----BEGIN[ A-Z0-9_\-]{0,100}PRIVATE KEY(?: BLOCK)?-----((?s:.*?))(?:-----END|\z)";
    RegexBuilder::new(pattern).unicode(false).build().ok()
});

/// Private keys in the texts that were masked so far.
#[derive(Default)]
pub(super) struct SeenKeys(Mutex<Seen>);

#[derive(Default)]
struct Seen {
    lines: Vec<Vec<u8>>,
    /// All lines of each key, joined.
    digits: Vec<Vec<u8>>,
    size: usize,
    /// `None` if keys were added since it was compiled.
    compiled: Option<Arc<Values>>,
}

impl SeenKeys {
    /// Remembers the private keys in `text`.
    pub(super) fn note(&self, text: &[u8]) {
        let Some(whole) = WHOLE.as_ref() else { return };
        for body in whole.captures_iter(text).filter_map(|key| key.get(1)) {
            let mut lines: Vec<Vec<u8>> = digits(body.as_bytes()).map(<[u8]>::to_vec).collect();
            let last = body.as_bytes().trim_ascii().rsplit(u8::is_ascii_whitespace).next().unwrap_or_default();
            if !lines.is_empty() && last.len() >= MIN_LAST_LINE_BYTES && last.iter().all(is_digit) {
                lines.push(last.to_vec());
            }
            self.add(lines);
        }
    }

    /// Remembers lines of one private key.
    fn add(&self, mut lines: Vec<Vec<u8>>) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let digits = lines.concat();
        lines.retain(|line| !seen.lines.contains(line));
        if lines.is_empty() || seen.size + digits.len() > MAX_SEEN_BYTES {
            return;
        }
        seen.size += digits.len();
        seen.lines.extend(lines);
        seen.digits.push(digits);
        seen.compiled = None;
    }

    /// Returns the forms of the keys; `None` if there are none.
    pub(super) fn values(&self) -> Option<Arc<Values>> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.compiled.is_none() && !seen.lines.is_empty() {
            seen.compiled = Values::of(of_private_keys(&seen.lines, &seen.digits)).map(Arc::new);
        }
        seen.compiled.clone()
    }
}

/// Returns the lines of digits in `text`, part of a private key.
fn digits(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let words = text.split(u8::is_ascii_whitespace);
    words.filter(|word| word.len() >= MIN_LINE_BYTES && word.iter().all(is_digit))
}

fn is_digit(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(blocks: &KeyBlocks, stream: &str, line: &str) -> String {
        let mut line = line.to_owned();
        blocks.mask(stream, &mut line, &Mask::default());
        line
    }

    #[test]
    fn a_private_key_is_masked_to_its_last_line_but_only_in_its_own_stream() {
        let blocks = KeyBlocks::default();
        let begin = "-----BEGIN RSA PRIVATE KEY-----";
        assert_eq!(masked(&blocks, "stderr", begin), begin);
        assert_eq!(masked(&blocks, "stderr", "MIIEowIBAAKCAQEA"), "[masked]");
        assert_eq!(masked(&blocks, "stdout", "MIIEowIBAAKCAQEA"), "MIIEowIBAAKCAQEA");
        assert_eq!(masked(&blocks, "stderr", "x==-----END RSA PRIVATE KEY-----, and more"), "[masked], and more");
        assert_eq!(masked(&blocks, "stderr", "plain"), "plain");
        masked(&blocks, "stderr", begin);
        (0..MAX_LINES).for_each(|_| assert_eq!(masked(&blocks, "stderr", "x"), "[masked]"));
        assert_eq!(masked(&blocks, "stderr", "x"), "x");
    }
}

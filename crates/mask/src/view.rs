//! A string with one layer of escapes decoded, with a mapping back to the original.
//!
//! A secret can appear as JSON in a URL, with colour codes between its letters, or in HTML. Instead of listing every
//! such form of every secret, the text is decoded layer by layer. A secret found in a layer is masked in the original.

use std::ops::Range;

/// Maximum number of escape layers that are decoded; JSON within JSON within a URL has three.
pub(super) const MAX_LAYERS: usize = 4;

/// A string with its outermost layer of escapes decoded.
pub(super) struct View {
    pub(super) bytes: Vec<u8>,
    /// Origins of its parts, in order.
    pieces: Vec<Piece>,
}

/// A part of a view: copied bytes, or the bytes that an escape represents.
struct Piece {
    /// Start in the view.
    at: usize,
    /// Start in the original.
    from: usize,
    /// Length of the escape in the original; `None` for copied bytes.
    escape: Option<usize>,
}

/// Bytes that an escape represents, at most four.
#[derive(Default)]
struct Decoded {
    bytes: [u8; 4],
    len: usize,
}

impl Decoded {
    fn byte(byte: u8) -> Self {
        Self { bytes: [byte, 0, 0, 0], len: 1 }
    }

    fn letter(letter: char) -> Self {
        let mut meant = Self::default();
        meant.len = letter.encode_utf8(&mut meant.bytes).len();
        meant
    }
}

impl View {
    /// Decodes one layer of escapes in `original`; returns `None` if there are none.
    pub(super) fn decode(original: &[u8]) -> Option<Self> {
        Self::replace(original, may_begin, escape)
    }

    /// Removes the backslashes before letters as a shell does, for which `\n` is `n`. Returns `None` if there are none
    /// but those of other escapes.
    pub(super) fn without_backslashes(original: &[u8]) -> Option<Self> {
        let is_escape = |letter: u8| !letter.is_ascii_alphabetic() || b"befnrtuxU".contains(&letter);
        if original.windows(2).all(|pair| pair[0] != b'\\' || is_escape(pair[1])) {
            return None;
        }
        Self::replace(original, |byte| byte == b'\\', |text| text.get(1).map(|byte| (2, Decoded::byte(*byte))))
    }

    /// Replaces the escapes that `escape` finds at bytes for which `may_begin` returns true; returns `None` if there
    /// are none.
    fn replace(
        original: &[u8],
        may_begin: impl Fn(u8) -> bool,
        escape: impl Fn(&[u8]) -> Option<(usize, Decoded)>,
    ) -> Option<Self> {
        let mut view = Self { bytes: Vec::new(), pieces: Vec::new() };
        let (mut at, mut copied, mut is_same) = (0, 0, true);
        while let Some(next) = original[at..].iter().position(|byte| may_begin(*byte)) {
            at += next;
            let Some((taken, meant)) = escape(&original[at..]) else {
                at += 1;
                continue;
            };
            if is_same {
                view.bytes.reserve(original.len());
                is_same = false;
            }
            view.copy(original, copied..at);
            view.pieces.push(Piece { at: view.bytes.len(), from: at, escape: Some(taken) });
            view.bytes.extend_from_slice(&meant.bytes[..meant.len]);
            at += taken;
            copied = at;
        }
        if is_same {
            return None;
        }
        view.copy(original, copied..original.len());
        Some(view)
    }

    fn copy(&mut self, original: &[u8], range: Range<usize>) {
        if !range.is_empty() {
            self.pieces.push(Piece { at: self.bytes.len(), from: range.start, escape: None });
            self.bytes.extend_from_slice(&original[range]);
        }
    }

    /// Returns the range in the original that corresponds to `range` of the view.
    pub(super) fn original(&self, range: Range<usize>) -> Range<usize> {
        let (start, _) = self.place(range.start);
        let (_, end) = self.place(range.end.saturating_sub(1).max(range.start));
        start..end
    }

    /// Returns the range of the original from which the byte at `at` comes.
    fn place(&self, at: usize) -> (usize, usize) {
        // If several pieces begin here, all but the last are empty.
        let piece = self.pieces.partition_point(|piece| piece.at <= at).checked_sub(1);
        let Some(piece) = piece.and_then(|index| self.pieces.get(index)) else { return (at, at + 1) };
        match piece.escape {
            Some(taken) => (piece.from, piece.from + taken),
            None => (piece.from + (at - piece.at), piece.from + (at - piece.at) + 1),
        }
    }
}

/// Returns every layer of `secret` that differs from the previous one.
pub(crate) fn layers(secret: &str) -> Vec<Vec<u8>> {
    let mut layers: Vec<Vec<u8>> = Vec::new();
    while layers.len() < MAX_LAYERS
        && let Some(view) = View::decode(layers.last().map_or(secret.as_bytes(), Vec::as_slice))
    {
        layers.push(view.bytes);
    }
    layers
}

/// Returns `true` if an escape may begin with this byte.
fn may_begin(byte: u8) -> bool {
    matches!(byte, b'\\' | b'%' | b'&' | 0x00..=0x08 | 0x0b | 0x0c | 0x0e..=0x1f | 0x7f | 0xc2 | 0xe2 | 0xef)
}

/// Decodes the escape with which `text` begins. Returns its length and the bytes that it represents.
fn escape(text: &[u8]) -> Option<(usize, Decoded)> {
    match text {
        [b'\\', rest @ ..] => backslash(rest).map(|(taken, meant)| (taken + 1, meant)),
        [b'%', high, low, ..] => Some((3, Decoded::byte(hex(*high)? << 4 | hex(*low)?))),
        [b'&', rest @ ..] => entity(rest).map(|(taken, meant)| (taken + 1, meant)),
        [0x1b, rest @ ..] => Some((1 + control_sequence(rest), Decoded::default())),
        // The same control sequence introducer as one character.
        [0xc2, 0x9b, rest @ ..] => Some((2 + parameters(rest), Decoded::default())),
        // Characters without width: soft hyphens, joiners and the byte order mark.
        [0xc2, 0xad, ..] => Some((2, Decoded::default())),
        [0xe2, 0x80, 0x8b..=0x8f, ..] | [0xe2, 0x81, 0xa0, ..] | [0xef, 0xbb, 0xbf, ..] => {
            Some((3, Decoded::default()))
        }
        // Control characters without a visible form; UTF-16 text has one next to each letter.
        [0x00..=0x08 | 0x0b | 0x0c | 0x0e..=0x1f | 0x7f, ..] => Some((1, Decoded::default())),
        _ => None,
    }
}

/// Decodes the text after a backslash as in JSON, programs and shells.
fn backslash(rest: &[u8]) -> Option<(usize, Decoded)> {
    let (first, after) = rest.split_first()?;
    let plain = |byte: u8| Some((1, Decoded::byte(byte)));
    match first {
        b'n' => plain(b'\n'),
        b't' => plain(b'\t'),
        b'r' => plain(b'\r'),
        b'b' => plain(0x08),
        b'f' => plain(0x0c),
        b'e' => plain(0x1b),
        b'x' => Some((3, Decoded::letter(char::from_u32(number(after.get(..2)?, 16)?)?))),
        b'u' => unicode(after).map(|(taken, letter)| (taken + 1, Decoded::letter(letter))),
        b'U' => Some((9, Decoded::letter(char::from_u32(number(after.get(..8)?, 16)?)?))),
        b'0'..=b'3' => match after.get(..2).and_then(|digits| number(digits, 8)) {
            Some(low) => Some((3, Decoded::letter(char::from_u32(u32::from(first - b'0') * 64 + low)?))),
            None => (*first == b'0').then_some((1, Decoded::byte(0))),
        },
        byte if byte.is_ascii_punctuation() => plain(*byte),
        _ => None,
    }
}

/// Decodes the part after `\u`: `0041`, `{41}`, or a surrogate pair.
fn unicode(after: &[u8]) -> Option<(usize, char)> {
    if let Some(braced) = after.strip_prefix(b"{") {
        let end = braced.iter().take(7).position(|byte| *byte == b'}')?;
        return Some((end + 2, char::from_u32(number(&braced[..end], 16)?)?));
    }
    let unit = number(after.get(..4)?, 16)?;
    if let (0xd800..=0xdbff, Some(rest)) = (unit, after.get(4..).and_then(|rest| rest.strip_prefix(b"\\u"))) {
        let low = number(rest.get(..4)?, 16)?;
        let letter = low.checked_sub(0xdc00).and_then(|low| char::from_u32(0x10000 + ((unit - 0xd800) << 10) + low))?;
        return Some((10, letter));
    }
    Some((4, char::from_u32(unit)?))
}

/// Decodes the text after an ampersand as in HTML and XML.
fn entity(rest: &[u8]) -> Option<(usize, Decoded)> {
    const NAMES: [(&[u8], u8); 5] = [(b"amp", b'&'), (b"lt", b'<'), (b"gt", b'>'), (b"quot", b'"'), (b"apos", b'\'')];
    let end = rest.iter().take(9).position(|byte| *byte == b';')?;
    let name = &rest[..end];
    let letter = match name {
        [b'#', b'x' | b'X', digits @ ..] => char::from_u32(number(digits, 16)?)?,
        [b'#', digits @ ..] => char::from_u32(number(digits, 10)?)?,
        _ => char::from(NAMES.iter().find(|(known, _)| *known == name)?.1),
    };
    Some((end + 1, Decoded::letter(letter)))
}

/// Returns the length of a terminal's control sequence after the escape character.
fn control_sequence(rest: &[u8]) -> usize {
    match rest {
        [b'[', rest @ ..] => 1 + parameters(rest),
        // Up to a bell or a string terminator: titles and links.
        [b']' | b'P' | b'X' | b'^' | b'_', rest @ ..] => {
            let end = rest.iter().take(4096).position(|byte| matches!(byte, 0x07 | 0x1b));
            match end {
                Some(end) if rest[end] == 0x07 => end + 2,
                Some(end) => end + 1 + if rest.get(end + 1) == Some(&b'\\') { 2 } else { 0 },
                None => 1,
            }
        }
        [b'(' | b')' | b'*' | b'+' | b'#' | b' ', _, ..] => 2,
        [b'7' | b'8' | b'=' | b'>' | b'c' | b'D' | b'E' | b'H' | b'M', ..] => 1,
        _ => 0,
    }
}

/// Returns the length of a control sequence's parameters, including the final letter.
fn parameters(rest: &[u8]) -> usize {
    let end = rest.iter().take(64).position(|byte| !(0x20..=0x3f).contains(byte));
    match end {
        Some(end) if (0x40..=0x7e).contains(&rest[end]) => end + 1,
        Some(end) => end,
        None => 0,
    }
}

fn number(digits: &[u8], radix: u32) -> Option<u32> {
    let is_number = !digits.is_empty() && digits.iter().all(|digit| char::from(*digit).is_digit(radix));
    is_number.then(|| std::str::from_utf8(digits).ok().and_then(|digits| u32::from_str_radix(digits, radix).ok()))?
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn undone(text: &str) -> Vec<String> {
        layers(text).into_iter().map(|layer| String::from_utf8_lossy(&layer).into_owned()).collect()
    }

    #[test]
    fn each_kind_of_escape_is_decoded_one_layer_at_a_time() {
        assert_eq!(undone("plain text, 100 % & more — äöü"), Vec::<String>::new());
        assert_eq!(undone(r#"a\n\"b\/\u00e9\u{41}\x42\103\ud83d\ude00\$"#), ["a\n\"b/éABC😀$"]);
        assert_eq!(undone("%41%2F%c3%a9 &lt;&#39;&#x42;&amp;"), ["A/é <'B&"]);
        assert_eq!(
            undone("g\u{1b}[31mh\u{1b}[0mp\u{200b}_\u{0}x\u{1b}]8;;http://x\u{7}y\u{1b}]0;t\u{1b}\\z"),
            ["ghp_xyz"]
        );
        assert_eq!(undone("%2541"), ["%41", "A"]);
        assert_eq!(undone(r#"\\\"x"#), [r#"\"x"#, "\"x"]);
        assert_eq!(undone(r"\u12 %4 &#; \q"), Vec::<String>::new());
    }

    #[test]
    fn a_match_in_a_view_maps_to_the_original() {
        let original = "x \u{1b}[1ma\\u0062\u{1b}[0mc%64 y";
        let view = View::decode(original.as_bytes()).unwrap();
        let index = view.bytes.windows(4).position(|part| part == b"abcd").unwrap();
        assert_eq!(&original[view.original(index..index + 4)], "a\\u0062\u{1b}[0mc%64");
        assert_eq!(&original[view.original(0..1)], "x");
        let end = view.bytes.len();
        assert_eq!(&original[view.original(end - 1..end)], "y");
    }
}

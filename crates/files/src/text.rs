//! Decoding of text files.

use std::fmt;

/// Byte order mark that some editors write at the start of a UTF-8 file. It is not part of the text.
const MARK: char = '\u{feff}';

/// Bytes that are not UTF-8 text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotUtf8 {
    bytes: Vec<u8>,
}

/// Decodes UTF-8 text, without its byte order mark.
///
/// # Errors
/// Returns the bytes if they are not UTF-8.
pub fn decode(bytes: Vec<u8>) -> Result<String, NotUtf8> {
    let mut text = String::from_utf8(bytes).map_err(|error| NotUtf8 { bytes: error.into_bytes() })?;
    if text.starts_with(MARK) {
        text.drain(..MARK.len_utf8());
    }
    Ok(text)
}

impl NotUtf8 {
    /// Returns the text, as far as it can be guessed: as UTF-16 if the bytes begin with its mark, and otherwise with
    /// the bytes that are not UTF-8 read as Latin-1. Also returns the offset of the first wrong character in it.
    pub fn guess(&self) -> (String, usize) {
        if let Some(units) = self.utf16() {
            return (char::decode_utf16(units).map(|unit| unit.unwrap_or('\u{fffd}')).collect(), 0);
        }
        let mut text = String::with_capacity(self.bytes.len() + 16);
        let mut first = None;
        for chunk in self.bytes.utf8_chunks() {
            text.push_str(chunk.valid());
            if !chunk.invalid().is_empty() {
                first.get_or_insert(text.len());
            }
            text.extend(chunk.invalid().iter().map(|byte| if *byte < 0xa0 { '\u{fffd}' } else { char::from(*byte) }));
        }
        (text, first.unwrap_or_default())
    }

    /// Returns the code units after the mark of UTF-16, if the bytes begin with it.
    fn utf16(&self) -> Option<impl Iterator<Item = u16> + '_> {
        let unit: fn([u8; 2]) -> u16 = match self.bytes.get(..2)? {
            [0xff, 0xfe] => u16::from_le_bytes,
            [0xfe, 0xff] => u16::from_be_bytes,
            _ => return None,
        };
        Some(self.bytes[2..].chunks_exact(2).map(move |pair| unit([pair[0], pair[1]])))
    }
}

impl fmt::Display for NotUtf8 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.utf16().is_some() { "it is UTF-16 text, not UTF-8" } else { "it is not UTF-8 text" })
    }
}

impl std::error::Error for NotUtf8 {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_order_mark_is_not_part_of_the_text() {
        assert_eq!(decode("\u{feff}a\u{feff}".into()).unwrap(), "a\u{feff}");
        assert_eq!(decode(Vec::new()).unwrap(), "");
    }

    #[test]
    fn the_text_of_other_encodings_is_guessed() {
        let wrong = |bytes: &[u8]| {
            let error = decode(bytes.to_vec()).unwrap_err();
            (error.to_string(), error.guess())
        };
        let latin1 = wrong("é: caf\u{0}".as_bytes().iter().chain(b"\xe9\x80!").copied().collect::<Vec<_>>().as_slice());
        assert_eq!(latin1, ("it is not UTF-8 text".to_owned(), ("é: caf\0é\u{fffd}!".to_owned(), 8)));
        let wide = |unit: fn(u16) -> [u8; 2]| "\u{feff}a: é".encode_utf16().flat_map(unit).collect::<Vec<u8>>();
        let utf16 = ("it is UTF-16 text, not UTF-8".to_owned(), ("a: é".to_owned(), 0));
        assert_eq!((wrong(&wide(u16::to_le_bytes)), wrong(&wide(u16::to_be_bytes))), (utf16.clone(), utf16));
    }
}

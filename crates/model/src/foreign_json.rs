//! Reads JSON that another program wrote. Programs that handle text in UTF-16 may write half of a surrogate pair as
//! `\ud83d`, which is valid JSON but not valid text. Such halves are replaced instead of making the whole document
//! unreadable.

use std::collections::HashSet;

use serde::Deserializer as _;
use serde::de::{Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

/// Maximum number of values and keys in a document. A value takes up to a hundred times the memory of its text: 5 MB of
/// empty lists would take 120 MB.
pub const MAX_VALUES: usize = 250_000;

/// First code point that stands for a half in a piece of a stream, from the end of the private use area.
const FIRST_HALF: u32 = 0x10_F800;
/// First half of a surrogate pair.
const FIRST_SURROGATE: u32 = 0xD800;

/// Parses a document. Half of a surrogate pair becomes U+FFFD.
///
/// # Errors
/// Returns the error of the parser if the document is not JSON, or [is too large](is_too_large).
pub fn parse(text: &str) -> Result<Value, serde_json::Error> {
    read(text, |_| char::REPLACEMENT_CHARACTER)
}

/// Parses a document like [`parse`].
///
/// # Errors
/// Returns the error of the parser if the document is not JSON in UTF-8.
pub fn parse_slice(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    match std::str::from_utf8(bytes) {
        Ok(text) => parse(text),
        Err(_) => serde_json::from_slice(bytes),
    }
}

/// Parses a piece of a stream. Halves are kept, so that [`append`] can join them with those of the next piece;
/// [`settle`] must be called on the joined text.
///
/// # Errors
/// Returns the error of the parser if the piece is not JSON.
pub fn parse_piece(text: &str) -> Result<Value, serde_json::Error> {
    read(text, |half| char::from_u32(FIRST_HALF + (half - FIRST_SURROGATE)).unwrap_or(char::REPLACEMENT_CHARACTER))
}

/// Parses a piece of a stream like [`parse_piece`].
///
/// # Errors
/// Returns the error of the parser if the piece is not JSON in UTF-8.
pub fn parse_piece_slice(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    match std::str::from_utf8(bytes) {
        Ok(text) => parse_piece(text),
        Err(_) => serde_json::from_slice(bytes),
    }
}

/// Appends text from a piece of a stream, and joins halves that meet.
pub fn append(text: &mut String, more: &str) {
    let first = text.chars().next_back().and_then(half).filter(|half| *half < 0xDC00);
    let second = more.chars().next().and_then(half).filter(|half| *half >= 0xDC00);
    if let (Some(first), Some(second)) = (first, second)
        && let Some(whole) = char::from_u32(0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00))
    {
        text.pop();
        text.push(whole);
        let mut rest = more.chars();
        rest.next();
        return text.push_str(rest.as_str());
    }
    text.push_str(more);
}

/// Replaces halves that found no other half.
pub fn settle(text: &mut String) {
    if text.chars().any(|letter| half(letter).is_some()) {
        *text = text.chars().map(|letter| half(letter).map_or(letter, |_| char::REPLACEMENT_CHARACTER)).collect();
    }
}

/// Replaces halves in all strings of `value`.
pub fn settle_value(value: &mut Value) {
    match value {
        Value::String(text) => settle(text),
        Value::Array(items) => items.iter_mut().for_each(settle_value),
        Value::Object(entries) => entries.values_mut().for_each(settle_value),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns `true` if a document was refused because it has too many levels or more than [`MAX_VALUES`] values and keys.
pub fn is_too_large(error: &serde_json::Error) -> bool {
    let reason = error.to_string();
    reason.starts_with("recursion limit exceeded") || reason == too_many_values()
}

fn too_many_values() -> String {
    format!("it has more than {MAX_VALUES} values and keys")
}

fn has_too_many_values(text: &str) -> bool {
    // Each value or key needs a byte.
    text.len() > MAX_VALUES && count_values(text) > MAX_VALUES
}

/// Returns the number of values and keys in a document. It need not be valid.
pub fn count_values(text: &str) -> usize {
    let (mut count, mut in_string, mut bytes) = (0, false, text.bytes());
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => in_string = !in_string,
            b'\\' if in_string => drop(bytes.next()),
            b',' | b':' | b'[' | b'{' if !in_string => count += 1,
            _ => {}
        }
    }
    count
}

/// Returns the half that a character stands for.
fn half(letter: char) -> Option<u32> {
    u32::from(letter).checked_sub(FIRST_HALF).map(|offset| FIRST_SURROGATE + offset)
}

fn read(text: &str, stand_in: impl Fn(u32) -> char) -> Result<Value, serde_json::Error> {
    // Some programs begin their output with a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if has_too_many_values(text) {
        return Err(serde_json::Error::custom(too_many_values()));
    }
    serde_json::from_str(text).or_else(|error| match replaced(text, stand_in) {
        Some(text) => serde_json::from_str(&text),
        None => Err(error),
    })
}

/// Returns `text` with each escaped half replaced; `None` if there is none.
fn replaced(text: &str, stand_in: impl Fn(u32) -> char) -> Option<String> {
    let mut whole = String::with_capacity(text.len());
    let (mut rest, mut has_half) = (text, false);
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        whole.push_str(before);
        let code = unit(escape);
        let length = match code {
            Some(0xD800..=0xDBFF) if matches!(escape.get(6..).and_then(unit), Some(0xDC00..=0xDFFF)) => 12,
            Some(0xD800..=0xDFFF) => {
                has_half = true;
                whole.push(stand_in(code?));
                rest = &escape[6..];
                continue;
            }
            Some(_) => 6,
            None => escape.chars().take(2).map(char::len_utf8).sum(),
        };
        whole.push_str(&escape[..length]);
        rest = &escape[length..];
    }
    whole.push_str(rest);
    has_half.then_some(whole)
}

/// Returns the UTF-16 code unit of the escape `\uXXXX` at the beginning of `text`.
fn unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u32::from_str_radix(digits, 16).ok().filter(|_| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

/// Returns the first key of the JSON object `text` that it has twice. A parser keeps only the last one.
pub fn repeated_key(text: &str) -> Option<String> {
    struct Keys;
    impl<'de> Visitor<'de> for Keys {
        type Value = Option<String>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let (mut known, mut repeated) = (HashSet::new(), None);
            while let Some((key, _)) = map.next_entry::<String, IgnoredAny>()? {
                if repeated.is_none() && known.contains(&key) {
                    repeated = Some(key);
                } else {
                    known.insert(key);
                }
            }
            Ok(repeated)
        }
    }
    serde_json::Deserializer::from_str(text).deserialize_map(Keys).ok().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_half_is_replaced_and_everything_else_is_kept() {
        for (text, value) in [
            (r#"{"a":"x\ud83dy"}"#, json!({"a": "x\u{fffd}y"})),
            (r#"{"a":"\ude00"}"#, json!({"a": "\u{fffd}"})),
            (r#"{"a":"\ud83d\ud83d\ude00"}"#, json!({"a": "\u{fffd}😀"})),
            (r#"{"\ud83d":1}"#, json!({"\u{fffd}": 1})),
            (r#"["\ud83d\n", "\\ud83d", "ü\\"]"#, json!(["\u{fffd}\n", "\\ud83d", "ü\\"])),
            (r#""\ud83d\ude00""#, json!("😀")),
        ] {
            assert_eq!(parse(text).unwrap(), value, "{text}");
            assert_eq!(parse_slice(text.as_bytes()).unwrap(), value, "{text}");
        }
        for text in ["{", r#""\ud83d"#, r#""\ud8"#, r#"{"a":\ud83d}"#, "\\", "\"\\"] {
            parse(text).unwrap_err();
        }
    }

    #[test]
    fn a_document_with_too_many_values_is_refused() {
        let lists = |count: usize| format!("[{}[]]", "[],".repeat(count));
        assert!(is_too_large(&parse(&lists(MAX_VALUES / 2)).unwrap_err()));
        assert!(is_too_large(&parse_piece(&format!("[{}0]", r#"{"a":1},"#.repeat(MAX_VALUES / 3 + 1))).unwrap_err()));
        parse(&lists(MAX_VALUES / 2 - 2)).unwrap();
        let text = serde_json::to_string(&"[,:{\"\\".repeat(MAX_VALUES)).unwrap();
        assert_eq!(parse(&text).unwrap(), "[,:{\"\\".repeat(MAX_VALUES));
        assert!(is_too_large(&parse(&"[".repeat(1000)).unwrap_err()));
        assert!(!is_too_large(&parse("{").unwrap_err()));
    }

    #[test]
    fn a_key_that_an_object_has_twice_is_found() {
        assert_eq!(repeated_key(r#"{"a": {"b": 1}, "b": [1], "a": 2}"#).as_deref(), Some("a"));
        for text in [r#"{"a": {"b": 1}, "b": 1}"#, "{}", "[]", "{"] {
            assert_eq!(repeated_key(text), None, "{text}");
        }
    }

    #[test]
    fn halves_of_neighbouring_pieces_are_joined() {
        let read = |pieces: &[&str]| {
            let mut text = String::new();
            for piece in pieces {
                append(&mut text, parse_piece(piece).unwrap().as_str().unwrap());
            }
            settle(&mut text);
            text
        };
        assert_eq!(read(&[r#""a\ud83d""#, r#""\ude00b""#]), "a😀b");
        assert_eq!(read(&[r#""a\ud83d""#, r#""b""#, r#""\ude00""#]), "a\u{fffd}b\u{fffd}");
        assert_eq!(read(&[r#""\ude00""#, r#""\ud83d""#]), "\u{fffd}\u{fffd}");
        let mut value = parse_piece(r#"[{"a":"\ud83d"}]"#).unwrap();
        settle_value(&mut value);
        assert_eq!(value, json!([{"a": "\u{fffd}"}]));
    }
}

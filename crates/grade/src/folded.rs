//! Text comparison that ignores case.

/// Returns the first part of `text` that equals `wanted`, ignoring case.
pub(crate) fn find<'t>(text: &'t str, wanted: &str) -> Option<&'t str> {
    let wanted = fold(wanted);
    let start = fold(text).find(&wanted)?;
    let end = start + wanted.len();
    let mut begins = None;
    let mut folded = 0;
    for (offset, letter) in text.char_indices() {
        if folded >= end {
            return text.get(begins.unwrap_or(offset)..offset);
        }
        folded += letters(letter).map(char::len_utf8).sum::<usize>();
        if begins.is_none() && (folded > start || end == start) {
            begins = Some(offset);
        }
    }
    text.get(begins.unwrap_or(text.len())..)
}

/// Folds the case of `text` for comparison.
pub(crate) fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    text.chars().flat_map(letters).collect()
}

/// Folds a letter: `ß` becomes `ss`, and all forms of the Greek sigma become the same letter.
fn letters(letter: char) -> impl Iterator<Item = char> {
    letter.to_uppercase().flat_map(char::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_match_is_returned_as_written() {
        assert_eq!(find("Within 30 DAYS.", "30 days"), Some("30 DAYS"));
        assert_eq!(find("Die Straße", "STRASSE"), Some("Straße"));
        assert_eq!(find("ΟΔΟΣ", "οδος"), Some("ΟΔΟΣ"));
        assert_eq!(find("ЁЛКА", "ёлка"), Some("ЁЛКА"));
        assert_eq!(find("Straße", "s"), Some("S"));
        assert_eq!(find("aß", "s"), Some("ß"), "half of a folded letter matches the whole letter");
        assert_eq!((find("abc", "d"), find("", "d")), (None, None));
        assert_eq!(find("abc", ""), Some(""));
    }
}

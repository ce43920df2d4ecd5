//! Shortens text from other sources for messages.

/// Maximum length of a one-line string, in characters.
const LINE: usize = 300;

/// Returns about the first `most` bytes of `text`, with a note about the omitted bytes.
pub(super) fn clipped(text: &str, most: usize) -> String {
    let end = text.floor_char_boundary(most);
    match text.len() - end {
        0 => text.to_owned(),
        more => format!("{}\n[… {more} bytes more]", &text[..end]),
    }
}

/// Returns `text` on one line, shortened if it is long.
pub(super) fn one_line(text: &str) -> String {
    model::text::one_line(text, LINE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_cut_at_a_character_boundary() {
        assert_eq!(clipped("äöü", 3), "ä\n[… 4 bytes more]");
        assert_eq!(clipped("äöü", 6), "äöü");
        assert_eq!(one_line(" a\n\n b "), "a b");
        assert!(one_line(&"ä".repeat(400)).ends_with("ä…"));
    }
}

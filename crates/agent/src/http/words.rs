//! Text of others, short enough to be told.

/// The most of a text in one line, in characters.
const LINE: usize = 300;

/// The beginning of `text`, at most about `most` bytes, and how much more there is.
pub(super) fn clipped(text: &str, most: usize) -> String {
    let end = text.floor_char_boundary(most);
    match text.len() - end {
        0 => text.to_owned(),
        more => format!("{}\n[… {more} bytes more]", &text[..end]),
    }
}

/// `text` in one line, cut where it is long.
pub(super) fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LINE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_cut_between_characters() {
        assert_eq!(clipped("äöü", 3), "ä\n[… 4 bytes more]");
        assert_eq!(clipped("äöü", 6), "äöü");
        assert_eq!(one_line(" a\n\n b "), "a b");
        assert!(one_line(&"ä".repeat(400)).ends_with("ä…"));
    }
}

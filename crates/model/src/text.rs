//! Truncation of text for display.

/// Returns `text`, with everything after its first `most` characters replaced by `…`.
pub fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Returns `text` on one line: white space becomes single spaces.
pub fn folded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns `text` on one line of at most about `most` characters.
pub fn one_line(text: &str, most: usize) -> String {
    shortened(&folded(text), most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_cut_between_characters() {
        assert_eq!([2, 3].map(|most| shortened("äöü", most)), ["äö…", "äöü"]);
        assert_eq!(one_line(" a\n\n b\tc ", 3), "a b…");
    }
}

//! Variables as shells write them.

/// Returns the name in the first `$NAME` of `text` that is a word in capitals.
pub fn variable_in_capitals(text: &str) -> Option<&str> {
    let is_of_name = |letter: char| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_';
    text.match_indices('$').find_map(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + 1..]);
        let end = after.find(|letter| !is_of_name(letter)).unwrap_or(after.len());
        let is_part = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '$');
        let is_word = !before.ends_with(is_part) && !after[end..].starts_with(is_part);
        (is_word && end > 1 && after.starts_with(|first: char| !first.is_ascii_digit())).then(|| &after[..end])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_in_capitals_is_a_whole_word() {
        for (text, name) in [
            ("Bearer $TOKEN", Some("TOKEN")),
            ("http://$HOST_1/x", Some("HOST_1")),
            ("/opt/bin:$PATH", Some("PATH")),
            ("$5 $A $filter ${TOKEN} $$TOKEN a$TOKEN $TOKENs $2AB", None),
        ] {
            assert_eq!(variable_in_capitals(text), name, "{text}");
        }
    }
}

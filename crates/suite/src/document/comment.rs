//! Detection of text that is cut off by a comment by mistake: ` #` starts a comment in YAML.

/// Unquoted values that are not prose.
const LITERALS: [&str; 5] = ["true", "false", "null", "~", "-"];

/// Returns the start of the comment that cuts off the unquoted text `source[start..end]`: `order #5` is read as
/// `order`. A `#` followed by a space is an intended comment, and so is any comment after a number or a literal: `30s
/// #seconds`.
pub(super) fn cutting(source: &str, start: usize, end: usize) -> Option<usize> {
    let text = source.get(start..end)?.trim_end();
    let rest = source.get(start + text.len()..)?;
    let comment = rest.trim_start_matches([' ', '\t']);
    let is_apart = comment.len() < rest.len();
    let is_close = comment.strip_prefix('#').is_some_and(|after| after.starts_with(char::is_alphanumeric));
    let is_value = text.starts_with(|first: char| first.is_ascii_digit()) || LITERALS.contains(&text);
    let is_prose = text.contains(' ') || !(text.is_empty() || is_value);
    (is_apart && is_close && is_prose).then(|| source.len() - comment.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_cut_by_a_number_sign_is_distinguished_from_a_comment() {
        let cut = |line: &str, text: &str| {
            let start = line.find(text).unwrap();
            cutting(line, start, start + text.len())
        };
        assert_eq!(cut("says: where is order #5\n", "where is order"), Some(21));
        assert_eq!(cut("- post it in channel  #general", "post it in channel"), Some(22));
        assert_eq!(cut("says: order #5", "order"), Some(12), "one word is enough");
        assert_eq!(cut("contains: hello #5 is here", "hello"), Some(16));
        for (line, text) in [
            ("says: where is order # the fifth", "where is order"),
            ("timeout: 30s #seconds", "30s"),
            ("retry: true #once", "true"),
            ("says: order # five", "order"),
            ("says: where is order#5", "where is order#5"),
            ("says: where is order", "where is order"),
            ("says: where is it\n#5", "where is it"),
            ("says: where is it #!", "where is it"),
        ] {
            assert_eq!(cut(line, text), None, "{line}");
        }
    }
}

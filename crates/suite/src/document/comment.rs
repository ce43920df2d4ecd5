//! Detection of text that is accidentally cut off by a comment: ` #` starts a comment in YAML.

/// Unquoted values that are not prose.
const LITERALS: [&str; 5] = ["true", "false", "null", "~", "-"];

/// Returns the start of the comment that cuts off the unquoted text `source[start..end]`: `order #5` is read as
/// `order`, and so is `order #{{id}}`. A `#` followed by a space is an intended comment, and so is any comment after a
/// number or a literal: `30s #seconds`. If no text precedes it, only a number or a placeholder is considered cut off,
/// because values are often commented out: `model: #fast`.
pub(super) fn cutting(source: &str, start: usize, end: usize) -> Option<usize> {
    let text = source.get(start..end)?.trim_end();
    let rest = source.get(start + text.len()..)?;
    let comment = rest.trim_start_matches([' ', '\t']);
    let is_apart = comment.len() < rest.len();
    let after = comment.strip_prefix('#')?;
    if text.is_empty() {
        let is_meant = after.starts_with(|first: char| first.is_ascii_digit()) || after.starts_with("{{");
        return (is_apart && is_meant).then(|| source.len() - comment.len());
    }
    let is_close = after.starts_with(|first: char| first.is_alphanumeric() || "{[(<\"'$@".contains(first));
    let is_value = text.starts_with(|first: char| first.is_ascii_digit()) || LITERALS.contains(&text);
    let is_prose = text.contains(' ') || !is_value;
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
        assert_eq!(cut("input: refund #{{id}}, please", "refund"), Some(14));
        assert_eq!(cut("says: fix #[12], then stop", "fix"), Some(10));
        assert_eq!(cutting("says: #5\n", 5, 5), Some(6));
        assert_eq!(cutting("- #{{id}}", 1, 1), Some(2));
        for line in ["model: #fast", "steps: # first", "steps:"] {
            let colon = line.find(':').unwrap() + 1;
            assert_eq!(cutting(line, colon, colon), None, "{line}");
        }
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

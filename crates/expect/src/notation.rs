//! Notation for regular expressions, schemas and functions in an expectation.

/// Tag of a regular expression.
pub const REGEX_TAG: &str = "!re";
/// Tag of a JSON Schema.
pub const SCHEMA_TAG: &str = "!json-schema";
/// Tag of a function in a module. The text identifies the function to the host.
pub const FUNCTION_TAG: &str = "!function";

/// Splits `/source/flags` into the source and the flags, if `text` has that form.
pub fn split_regex(text: &str) -> Option<(&str, &str)> {
    let (source, flags) = text.strip_prefix('/')?.rsplit_once('/')?;
    let known = |(index, flag): (usize, char)| "dgimsuvy".contains(flag) && !flags[..index].contains(flag);
    (!source.is_empty() && flags.char_indices().all(known)).then_some((source, flags))
}

/// Returns the flag because of which `text` is not a regular expression, if it looks like one with a flag from another
/// language or in capitals: `/a/x`, `/a/I`.
pub fn unknown_flag(text: &str) -> Option<char> {
    let (source, flags) = text.strip_prefix('/')?.rsplit_once('/')?;
    // A path such as `/usr/lib` has a similar form.
    let is_path = source.is_empty() || source.replace("\\/", "").contains('/');
    let mut unknown = flags.chars().filter(|flag| !"dgimsuvy".contains(*flag));
    let first = unknown.next().filter(|flag| "xXnaAlLUJDSGIMVY".contains(*flag))?;
    let is_distinct = flags.char_indices().all(|(at, flag)| !flags[..at].contains(flag));
    (!is_path && is_distinct && unknown.next().is_none()).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::{split_regex, unknown_flag};

    #[test]
    fn a_flag_of_another_language_is_found() {
        assert_eq!(["/a b/x", "/a\\/b/ix", "/a/I"].map(unknown_flag), [Some('x'), Some('x'), Some('I')]);
        for text in ["/usr/lib", "/usr/bin", "/a/b/x", "/a/i", "//x", "a/x", "/a/", "/etc/ssl"] {
            assert_eq!(unknown_flag(text), None, "{text}");
        }
        assert_eq!(split_regex("/a/gi"), Some(("a", "gi")));
    }
}

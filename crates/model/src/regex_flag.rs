//! Flags of regular expressions that are written with slashes.

/// Flags after the last slash.
pub const REGEX_FLAGS: &str = "dgimsuvy";

/// Flags of other languages, and capitals of flags.
const OTHER_FLAGS: &str = "xXnaAlLUJDSGIMVY";

/// Returns what is wrong with the flags of `text`, if it certainly looks like a regular expression: `/a/x`, `/a/I`,
/// `/a/ig2`, `/a/ii`. A path such as `/usr/lib` has a similar form.
pub fn wrong_flag(text: &str) -> Option<String> {
    let (source, flags) = text.strip_prefix('/')?.rsplit_once('/')?;
    let is_path = source.is_empty() || source.replace("\\/", "").contains('/');
    let unknown: Vec<char> = flags.chars().filter(|flag| !REGEX_FLAGS.contains(*flag)).collect();
    let is_of_regex = source.contains(['\\', '^', '$', '(', '|']);
    let has_flags = flags.contains(['g', 'i']);
    let is_wrong = match unknown.as_slice() {
        [] => has_flags && flags.len() < 4,
        [flag] if !has_twice(flags) && OTHER_FLAGS.contains(*flag) => true,
        [flag] if !has_twice(flags) && has_flags && flags.len() > 2 && !flag.is_lowercase() => true,
        [..] => is_of_regex && flags.len() < 4 && flags.chars().all(|flag| flag.is_ascii_alphanumeric()),
    };
    flags_problem(flags).filter(|_| is_wrong && !is_path)
}

/// Returns `true` if an expression is written like one in JavaScript, with slashes around it. A path in slashes is not,
/// even if it has wildcards.
pub fn is_in_slashes(written: &str) -> bool {
    let Some((pattern, flags)) = written.strip_prefix('/').and_then(|rest| rest.rsplit_once('/')) else { return false };
    let is_one = !pattern.is_empty() && !pattern.replace("\\/", "").contains('/');
    is_one && flags.chars().all(|flag| REGEX_FLAGS.contains(flag)) && (flags.contains('i') || pattern.contains(' '))
}

/// Returns what is wrong with `flags`: one that regular expressions do not have, or one that is given twice.
pub fn flags_problem(flags: &str) -> Option<String> {
    if let Some(unknown) = flags.chars().find(|flag| !REGEX_FLAGS.contains(*flag)) {
        return Some(format!("`{unknown}` is not a flag of a regular expression"));
    }
    let (_, twice) = flags.char_indices().find(|(at, flag)| flags[..*at].contains(*flag))?;
    Some(format!("the flag `{twice}` is given twice"))
}

fn has_twice(flags: &str) -> bool {
    flags.char_indices().any(|(at, flag)| flags[..at].contains(flag))
}

#[cfg(test)]
mod tests {
    use super::wrong_flag;

    #[test]
    fn a_flag_that_regular_expressions_do_not_have_is_found() {
        let texts = ["/a b/x", "/a\\/b/ix", "/a/I", "/a/ig2", "/^a/q", "/a|b/gz", "/a/ii", "/a/gig"];
        let flags = ['x', 'x', 'I', '2', 'q', 'z', 'i', 'g'];
        for (text, flag) in texts.iter().zip(flags) {
            assert!(wrong_flag(text).is_some_and(|wrong| wrong.contains(&format!("`{flag}`"))), "{text}");
        }
        let others = "/usr/lib|/usr/bin|/a/b/x|/a/i|//x|a/x|/a/|/etc/ssl|/srv/i18n|/dev/i2c|/^a$/|/a.*/gi|/a/mm";
        for text in others.split('|') {
            assert_eq!(wrong_flag(text), None, "{text}");
        }
    }
}

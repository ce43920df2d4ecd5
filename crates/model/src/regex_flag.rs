//! Flags of regular expressions that are written with slashes.

/// Flags after the last slash.
const FLAGS: &str = "dgimsuvy";

/// Flags of other languages, and capitals of flags.
const OTHER_FLAGS: &str = "xXnaAlLUJDSGIMVY";

/// Returns what is wrong with the flags of `text`, if it certainly looks like a regular expression: `/a/x`, `/a/I`,
/// `/a/ig2`, `/a/ii`. A path such as `/usr/lib` has a similar form.
pub fn wrong_flag(text: &str) -> Option<String> {
    let (source, flags) = text.strip_prefix('/')?.rsplit_once('/')?;
    let is_path = source.is_empty() || source.replace("\\/", "").contains('/');
    let twice = || flags.char_indices().find(|(at, flag)| flags[..*at].contains(*flag)).map(|(_, flag)| flag);
    let unknown: Vec<char> = flags.chars().filter(|flag| !FLAGS.contains(*flag)).collect();
    let is_of_regex = source.contains(['\\', '^', '$', '(', '|']);
    let has_flags = flags.contains(['g', 'i']);
    let wrong = match unknown.as_slice() {
        [] => twice().filter(|_| has_flags && flags.len() < 4),
        [flag] if twice().is_none() && OTHER_FLAGS.contains(*flag) => Some(*flag),
        [flag] if twice().is_none() && has_flags && flags.len() > 2 && !flag.is_lowercase() => Some(*flag),
        [flag, ..] if is_of_regex && flags.len() < 4 && flags.chars().all(|flag| flag.is_ascii_alphanumeric()) => {
            Some(*flag)
        }
        _ => None,
    };
    wrong.filter(|_| !is_path).map(|flag| match FLAGS.contains(flag) {
        true => format!("the flag `{flag}` is given twice"),
        false => format!("`{flag}` is not a flag of a regular expression"),
    })
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

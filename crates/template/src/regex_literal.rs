//! Texts of the form `/…/flags`.

use crate::syntax::Part;

const FLAGS: &str = "dgimsuvy";

/// Whether the parts make a regular expression between slashes, whatever the placeholders in it become.
pub(crate) fn is_regex_literal(parts: &[Part]) -> bool {
    let mut text = String::new();
    for part in parts {
        match part {
            Part::Text(written) => text.push_str(written),
            Part::Set { .. } | Part::SetMember { .. } | Part::Macro(_) => {}
            // Something that is neither a slash nor a flag.
            _ => text.push('\0'),
        }
    }
    let Some((pattern, flags)) = text.strip_prefix('/').and_then(|rest| rest.rsplit_once('/')) else { return false };
    !pattern.is_empty() && flags.chars().all(|flag| FLAGS.contains(flag))
}

/// `text` as the source of a regular expression that matches just it.
pub(crate) fn escape(text: &str) -> String {
    let mut source = String::with_capacity(text.len());
    for found in text.chars() {
        match found {
            '\n' => source.push_str("\\n"),
            '\r' => source.push_str("\\r"),
            '\u{2028}' => source.push_str("\\u2028"),
            '\u{2029}' => source.push_str("\\u2029"),
            _ => {
                // Only what must be escaped may be: with the flag `u` any other backslash is an error.
                if "\\^$.*+?()[]{}|/".contains(found) {
                    source.push('\\');
                }
                source.push(found);
            }
        }
    }
    source
}

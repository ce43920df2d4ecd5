//! Generates a string that matches a regular expression.

use regex_syntax::hir::{Class, Hir, HirKind};

/// Maximum length of a sample, in bytes.
const MAX_SAMPLE_BYTES: usize = 4_096;

/// Returns a string that matches `pattern`. `None` if the `regex` crate cannot parse it: look-around and
/// back-references have no sample.
pub(super) fn sample(pattern: &str) -> Option<String> {
    let written = pattern.strip_prefix('/').and_then(|rest| rest.rsplit_once('/')).map(|(body, _)| body);
    let parsed = regex_syntax::parse(written.unwrap_or(pattern)).ok()?;
    let mut text = Vec::new();
    write(&parsed, &mut text);
    String::from_utf8(text).ok().filter(|text| !text.is_empty() && text.len() <= MAX_SAMPLE_BYTES)
}

fn write(hir: &Hir, text: &mut Vec<u8>) {
    if text.len() > MAX_SAMPLE_BYTES {
        return;
    }
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => text.extend_from_slice(&literal.0),
        HirKind::Class(class) => text.extend(letter(class).to_string().into_bytes()),
        HirKind::Repetition(repetition) => {
            for _ in 0..repetition.min.max(1) {
                write(&repetition.sub, text);
                if text.len() > MAX_SAMPLE_BYTES {
                    return;
                }
            }
        }
        HirKind::Capture(capture) => write(&capture.sub, text),
        HirKind::Concat(parts) => parts.iter().for_each(|part| write(part, text)),
        HirKind::Alternation(parts) => parts.iter().take(1).for_each(|part| write(part, text)),
    }
}

/// Returns a letter from the class, a visible one if possible.
fn letter(class: &Class) -> char {
    let ranges: Vec<(char, char)> = match class {
        Class::Unicode(class) => class.iter().map(|range| (range.start(), range.end())).collect(),
        Class::Bytes(class) => class.iter().map(|range| (char::from(range.start()), char::from(range.end()))).collect(),
    };
    let visible =
        ['a', 'A', '0', ' '].into_iter().find(|letter| ranges.iter().any(|(from, to)| (from..=to).contains(&letter)));
    visible.or_else(|| ranges.first().map(|(from, _)| *from)).unwrap_or(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_matches_its_pattern() {
        for pattern in ["sk-[a-z0-9]{20}", "(?i)section", r"^\d+ of (two|three)\b", "a+b*c?", "plain", "[^a]"] {
            let text = sample(pattern).unwrap();
            assert!(regex::Regex::new(pattern).unwrap().is_match(&text), "{pattern}: {text}");
        }
        assert_eq!(sample("/de(li|la)/i").as_deref(), Some("deli"));
        assert_eq!(sample("^(?!git )"), None);
        assert_eq!(sample("a{9999999}"), None);
    }
}

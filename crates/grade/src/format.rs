//! Formats strings, numbers and lists for findings.

pub(crate) use model::text::counted as count;

/// Maximum length of a string in a finding, in characters.
const SHOWN: usize = 120;

/// Returns `text` in quotes on one line, cut if it is long.
pub(crate) fn quoted(text: &str) -> String {
    let shown: String = text.chars().take(SHOWN).collect();
    let rest = if shown.len() < text.len() { "…" } else { "" };
    format!("{}{rest}", serde_json::Value::from(shown))
}

/// Returns `text`, cut if it is long.
pub(crate) fn shortened(text: &str) -> String {
    model::text::shortened(text, SHOWN)
}

/// Formats a number with commas between thousands. A fraction is kept.
pub(crate) fn thousands(number: f64) -> String {
    let text = number.to_string();
    let (whole, fraction) = text.split_once('.').map_or((text.as_str(), ""), |(whole, fraction)| (whole, fraction));
    let mut out = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// Joins a list: `a, b and c`.
pub(crate) fn list(items: &[String]) -> String {
    joined(items, "and")
}

/// Joins alternatives, and what is absent: `a, b or c`.
pub(crate) fn any_of(items: &[String]) -> String {
    joined(items, "or")
}

fn joined(items: &[String], word: &str) -> String {
    match items {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} {word} {last}", first.join(", ")),
    }
}

/// Joins names: `` `a`, `b` and `c` ``.
pub(crate) fn names<T: std::fmt::Display>(names: &[T]) -> String {
    list(&names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>())
}

/// Returns at most `most` of `lines`, and how many are omitted.
pub(crate) fn few(lines: Vec<String>, most: usize) -> Vec<String> {
    let omitted = lines.len().saturating_sub(most);
    let mut lines: Vec<String> = lines.into_iter().take(most).collect();
    if omitted > 0 {
        lines.push(format!("… and {omitted} more"));
    }
    lines
}

/// Adds "a" or "an" before `what`, which may begin with a quote.
pub(crate) fn one(what: &str) -> String {
    let first = what.chars().find(|c| c.is_alphanumeric());
    let article = if first.is_some_and(|c| "aeiouAEIOU".contains(c)) { "an" } else { "a" };
    format!("{article} {what}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lists_and_quotes_are_formatted_for_messages() {
        assert_eq!(thousands(1_234_567.0), "1,234,567");
        assert_eq!(thousands(999.0), "999");
        assert_eq!(thousands(1000.5), "1,000.5");
        assert_eq!(count(1, "turn"), "1 turn");
        assert_eq!(list(&["a".into(), "b".into(), "c".into()]), "a, b and c");
        assert_eq!(few(vec!["a".into(), "b".into(), "c".into()], 2), ["a", "b", "… and 1 more"]);
        assert_eq!(quoted("a\n\"b\""), r#""a\n\"b\"""#);
        assert!(quoted(&"é".repeat(121)).ends_with("\"…"));
    }
}

//! Splits a long YAML list into parts that can be parsed in parallel.

use std::ops::Range;

/// Minimum length of a part in bytes: parsing less is not slower than starting a thread for it.
const SHORTEST: usize = 64 * 1024;

/// Start of an item of a list that is the whole document. In such a document no other line can start like this,
/// except inside quotes or brackets.
const ITEM: &str = "- ";

/// Returns the parts of `text`, each of which starts with an item. Returns `None` if it is not a list, too short, or
/// contains several documents.
pub(super) fn split(text: &str) -> Option<Vec<Range<usize>>> {
    let is_content = |line: &&str| !line.trim().is_empty() && !line.starts_with('#');
    if text.len() < 2 * SHORTEST || !text.lines().find(is_content)?.starts_with(ITEM) {
        return None;
    }
    if ["\n---", "\n...", "\r---", "\r..."].iter().any(|mark| text.contains(mark)) {
        return None;
    }
    let mut parts = Vec::new();
    let mut start = 0;
    for (line_end, _) in text.match_indices("\n- ") {
        let next = line_end + 1;
        if next - start >= SHORTEST && text.len() - next >= SHORTEST {
            parts.push(start..next);
            start = next;
        }
    }
    parts.push(start..text.len());
    (parts.len() > 1).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_is_split_at_its_items_without_loss() {
        let text = format!("# many\n\n{}", "- a: 1\n  b: [- 2]\n".repeat(20_000));
        let parts = split(&text).unwrap();
        assert_eq!(parts.len(), text.len() / SHORTEST);
        assert_eq!(parts.iter().map(|part| &text[part.clone()]).collect::<String>(), text);
        assert!(parts[1..].iter().all(|part| text[part.start..].starts_with("- a: 1\n")));
    }

    #[test]
    fn short_inputs_non_lists_and_multiple_documents_are_not_split() {
        assert_eq!(split("- a\n- b\n"), None);
        assert_eq!(split(&"a: 1\n".repeat(50_000)), None);
        assert_eq!(split(&"- a\n---\n".repeat(50_000)), None);
        assert_eq!(split(""), None);
    }
}

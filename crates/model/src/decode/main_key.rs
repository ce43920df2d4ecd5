//! Advice about a text in the place of a map, or of a list of maps, and about the rest of a text that became a key or a
//! comment.

use crate::{Diagnostic, Node, NodeKind, Spanned};

/// Lists of maps, each with the main key of an item.
const OF_MAPS: [(&str, &str); 6] = [
    ("`files_committed`", "path"),
    ("`files_staged`", "path"),
    ("`files_unstaged`", "path"),
    ("`copy_trees`", "from"),
    ("`calls`", "call"),
    ("`tools` of a step", "name"),
];

/// Maps for which a text is written that belongs to their main key.
const WITH_MAIN_KEY: [(&str, &str); 8] = [
    ("a fixture file", "path"),
    ("an item of `copy_trees`", "from"),
    ("a tool call", "name"),
    ("`code`", "runtime"),
    ("`runner`", "runtime"),
    ("`store`", "path"),
    ("`tool_fails`", "command"),
    ("`user`", "goal"),
];

/// Returns the map that the text `node` probably means, in the place of the map or the list of maps `what`.
pub(super) fn meant(node: &Node, what: &str) -> Option<String> {
    let mut tables = OF_MAPS.iter().chain(&WITH_MAIN_KEY).filter(|_| node.as_str().is_some());
    let (_, key) = tables.find(|(name, _)| *name == what)?;
    Some(format!("{{ {key}: {} }}", node.to_json()))
}

/// Returns `true` for a key without a colon in `{ }`, which is probably the rest of a text with a comma before it.
pub fn is_rest_of_text(name: &Spanned<String>, value: &Node) -> bool {
    let after = value.source.text.get(name.span.end()..).unwrap_or_default().trim_start();
    let is_yaml = [".yaml", ".yml"].iter().any(|end| value.source.path.ends_with(end));
    is_yaml && matches!(value.kind, NodeKind::Null) && after.starts_with([',', '}'])
}

/// Advice about such a key.
pub const QUOTE_COMMA: &str = "put a text that has a comma in quotes";

/// Returns `true` for an empty value that is followed by a comment without a space, such as `#general`.
pub(super) fn is_comment(node: &Node) -> bool {
    let after = node.source.text.get(node.span.start()..).and_then(|rest| rest.lines().next());
    let written = after.and_then(|line| line.split_once(" #")).map(|(before, comment)| (before.trim_end(), comment));
    written.is_some_and(|(before, comment)| {
        (before.is_empty() || before.ends_with(':')) && comment.starts_with(char::is_alphanumeric)
    })
}

/// Returns `true` if the key `name` is a further item of a text in the place of a list: `tags: a, b` in `{ }`. The report
/// about the list then has all items.
pub(super) fn completes_list(
    entries: &[(Spanned<String>, Node)],
    name: &Spanned<String>,
    problems: &mut [Diagnostic],
) -> bool {
    let Some(at) = entries.iter().position(|(key, value)| key.span == name.span && is_rest_of_text(key, value)) else {
        return false;
    };
    let Some(first) = entries[..at].iter().rposition(|(_, value)| value.as_str().is_some()) else { return false };
    let place = entries[first].1.excerpt();
    let is_about_list = |problem: &&mut Diagnostic| {
        problem.source.as_ref() == Some(&place) && problem.message.contains("must be a list")
    };
    let Some(problem) = problems.iter_mut().find(is_about_list) else { return false };
    let others = entries[first + 1..=at].iter().map(|(key, _)| key.value.as_str());
    let items: Vec<&str> = entries[first].1.as_str().into_iter().chain(others).collect();
    problem.help = vec![format!("write `[{}]`", items.join(", "))];
    true
}

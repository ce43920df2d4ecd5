//! Advice about a text in the place of a map, or of a list of maps, and about the rest of a text that became a key.

use crate::{Node, NodeKind, Spanned};

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

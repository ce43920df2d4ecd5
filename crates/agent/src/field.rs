//! Code shared by the configurations of several agents.

use model::decode::Problems;
use model::{Node, NodeKind};

/// YAML tag of a string that refers to a function.
const FUNCTION: &str = "!function";

/// Reports functions anywhere in `node` as errors, for an agent that does not support them.
pub(super) fn without_functions(node: &Node, agent: &str, problems: &mut Problems) {
    match &node.kind {
        NodeKind::List(items) => items.iter().for_each(|item| without_functions(item, agent, problems)),
        NodeKind::Map(entries) => entries.iter().for_each(|(_, value)| without_functions(value, agent, problems)),
        _ if node.tag.as_deref() == Some(FUNCTION) => {
            problems.push(node.error(format!("`{agent}` cannot be configured with a function")));
        }
        _ => {}
    }
}

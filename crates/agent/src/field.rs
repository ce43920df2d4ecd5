//! Code shared by the configurations of several agents.

use model::decode::{Fields, Problems};
use model::{Node, NodeKind};

/// YAML tag of a text that refers to a function.
const FUNCTION: &str = "!function";

/// Returns the value under either spelling of a key, because configurations are written in YAML and in TypeScript,
/// which use different conventions. Both spellings at once are an error.
pub(super) fn either<'a>(
    fields: &mut Fields<'a>,
    snake: &'static str,
    camel: &'static str,
    problems: &mut Problems,
) -> Option<&'a Node> {
    match (fields.get(snake), fields.get(camel)) {
        (Some(_), Some(camel_node)) => {
            problems.push(camel_node.error(format!("`{camel}` and `{snake}` are the same; write one of them")));
            None
        }
        (found, None) | (None, found) => found,
    }
}

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

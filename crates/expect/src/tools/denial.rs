//! Expectations that only say what a call must not be. "Some call is not like this" is rarely what the author means,
//! so no call may match them.

use model::{Node, NodeKind};

use crate::compile::Compiler;
use crate::meta::is_meta;

/// Returns `true` if `node` only contains negative conditions.
pub fn is_denial(compiler: &Compiler<'_>, node: &Node) -> bool {
    if node.tag.is_some() {
        return false;
    }
    match &node.kind {
        NodeKind::List(items) => !items.is_empty() && items.iter().all(|item| is_denial(compiler, item)),
        NodeKind::Map(entries) => {
            let mut rules = entries.iter().filter(|(key, _)| !is_meta(&key.value)).peekable();
            rules.peek().is_some() && rules.all(|(key, operand)| denies(compiler, &key.value, operand))
        }
        _ => false,
    }
}

fn denies(compiler: &Compiler<'_>, operator: &str, operand: &Node) -> bool {
    compiler.is_built_in(operator)
        && match operator {
            "$not" | "$nin" => true,
            "$ne" => matches!(operand.kind, NodeKind::String(_)),
            "$expect" => is_denial(compiler, operand),
            "$and" | "$or" => matches!(operand.kind, NodeKind::List(_)) && is_denial(compiler, operand),
            _ => false,
        }
}

//! `$in` and `$nin`: one of these values, or none of them.

use model::{Node, NodeKind};

use crate::compile::Compiler;
use crate::prelude::*;

#[derive(Debug)]
struct Membership {
    values: Vec<Value>,
    wanted: bool,
    place: SourceLocation,
}

pub(super) fn read(compiler: &mut Compiler<'_>, operand: &Node, operator: &'static str) -> Option<Box<dyn Rule>> {
    let NodeKind::List(items) = &operand.kind else {
        compiler.wrong_operand(operand, operator, "a list of values");
        return None;
    };
    let values = items.iter().map(Node::to_json).collect();
    Some(Box::new(Membership { values, wanted: operator == "$in", place: SourceLocation::from_node(operand) }))
}

impl Rule for Membership {
    fn judge(&self, actual: Option<&Value>, _at: &Scope<'_>) -> Found {
        let is_in = actual.is_some_and(|actual| self.values.iter().any(|value| value::same(value, actual)));
        if is_in == self.wanted {
            return Found::full();
        }
        let list = Value::Array(self.values.clone());
        let shown = value::shown(Some(&list));
        let which = if self.wanted { "none" } else { "one" };
        let message = format!("{} is {which} of {shown}", value::shown(actual));
        let expected = if self.wanted { list } else { format!("none of {shown}").into() };
        Found::flawed(Flaw::new(&self.place, message).expected(expected).actual(actual))
    }
}

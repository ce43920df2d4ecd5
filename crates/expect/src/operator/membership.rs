//! `$in` and `$nin`: one of these values, or none of them.

use model::{Node, NodeKind};

use crate::compile::{Compiler, Operator};
use crate::prelude::*;

/// The `$in` operator.
pub const IN: Operator = Operator {
    name: "$in",
    summary: "The value is one of these.",
    read: |compiler, operand| Membership::read(compiler, operand, "$in", true),
};

/// The `$nin` operator.
pub const NIN: Operator = Operator {
    name: "$nin",
    summary: "The value is none of these.",
    read: |compiler, operand| Membership::read(compiler, operand, "$nin", false),
};

#[derive(Debug)]
struct Membership {
    values: Vec<Value>,
    wanted: bool,
    place: Place,
}

impl Membership {
    fn read(compiler: &mut Compiler<'_>, operand: &Node, operator: &str, wanted: bool) -> Option<Box<dyn Rule>> {
        let NodeKind::List(items) = &operand.kind else {
            compiler.wrong_operand(operand, operator, "a list of values");
            return None;
        };
        let values = items.iter().map(Node::to_json).collect();
        Some(Box::new(Self { values, wanted, place: Place::of(operand) }))
    }
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

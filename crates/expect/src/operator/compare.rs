//! `$gt`, `$gte`, `$lt`, `$lte`: comparison with a value of the same type.

use std::cmp::Ordering;

use model::{Node, NodeKind};

use crate::compile::{Compiler, Operator};
use crate::prelude::*;

/// The `$gt` operator.
pub const GT: Operator = Operator {
    name: "$gt",
    summary: "The value is greater than this one.",
    read: |compiler, operand| Compare::read(compiler, operand, "$gt", "greater than", |order| order.is_gt()),
};

/// The `$gte` operator.
pub const GTE: Operator = Operator {
    name: "$gte",
    summary: "The value is greater than or equal to this one.",
    read: |compiler, operand| Compare::read(compiler, operand, "$gte", "at least", |order| order.is_ge()),
};

/// The `$lt` operator.
pub const LT: Operator = Operator {
    name: "$lt",
    summary: "The value is less than this one.",
    read: |compiler, operand| Compare::read(compiler, operand, "$lt", "less than", |order| order.is_lt()),
};

/// The `$lte` operator.
pub const LTE: Operator = Operator {
    name: "$lte",
    summary: "The value is less than or equal to this one.",
    read: |compiler, operand| Compare::read(compiler, operand, "$lte", "at most", |order| order.is_le()),
};

#[derive(Debug)]
struct Compare {
    bound: Value,
    words: &'static str,
    holds: fn(Ordering) -> bool,
    place: Place,
}

impl Compare {
    fn read(
        compiler: &mut Compiler<'_>,
        operand: &Node,
        operator: &str,
        words: &'static str,
        holds: fn(Ordering) -> bool,
    ) -> Option<Box<dyn Rule>> {
        if !matches!(operand.kind, NodeKind::Number(_) | NodeKind::String(_)) {
            compiler.wrong_operand(operand, operator, "a number or a text");
            return None;
        }
        Some(Box::new(Self { bound: operand.to_json(), words, holds, place: Place::of(operand) }))
    }
}

impl Rule for Compare {
    fn judge(&self, actual: Option<&Value>, _at: &Scope<'_>) -> Found {
        let order = actual.and_then(|actual| value::compare(actual, &self.bound));
        if order.is_some_and(self.holds) {
            return Found::full();
        }
        let bound = value::shown(Some(&self.bound));
        let message = match order {
            Some(_) => format!("{} is not {} {bound}", value::shown(actual), self.words),
            None => format!("{} cannot be compared with {bound}", value::kind(actual)),
        };
        let words = if self.words == "greater than" { "more than" } else { self.words };
        let expected = format!("{words} {}", value::told(&self.bound));
        Found::flawed(Flaw::new(&self.place, message).expected(expected.into()).actual(actual))
    }
}

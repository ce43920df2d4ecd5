//! `$gt`, `$gte`, `$lt`, `$lte`: comparison with a value of the same type.

use std::cmp::Ordering;

use model::{Node, NodeKind};

use crate::compile::Compiler;
use crate::prelude::*;

#[derive(Debug)]
struct Compare {
    bound: Value,
    words: &'static str,
    holds: fn(Ordering) -> bool,
    place: SourceLocation,
}

pub(super) fn read(compiler: &mut Compiler<'_>, operand: &Node, operator: &'static str) -> Option<Box<dyn Rule>> {
    if !matches!(operand.kind, NodeKind::Number(_) | NodeKind::String(_)) {
        compiler.wrong_operand(operand, operator, "a number or a string");
        return None;
    }
    let (words, holds): (_, fn(Ordering) -> bool) = match operator {
        "$gt" => ("greater than", Ordering::is_gt),
        "$gte" => ("at least", Ordering::is_ge),
        "$lt" => ("less than", Ordering::is_lt),
        _ => ("at most", Ordering::is_le),
    };
    Some(Box::new(Compare { bound: operand.to_json(), words, holds, place: SourceLocation::from_node(operand) }))
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
        let expected = format!("{words} {}", value::describe(&self.bound));
        Found::flawed(Flaw::new(&self.place, message).expected(expected.into()).actual(actual))
    }
}

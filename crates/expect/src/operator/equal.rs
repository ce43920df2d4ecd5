//! `$eq` and `$ne`: exactly this value, or any other.

use model::Node;

use crate::compile::Operator;
use crate::prelude::*;

/// The `$eq` operator.
pub const EQ: Operator = Operator {
    name: "$eq",
    summary: "The value is equal to this one.",
    read: |_, operand| Some(Equal::of(operand, true)),
};

/// The `$ne` operator.
pub const NE: Operator = Operator {
    name: "$ne",
    summary: "The value is not equal to this one.",
    read: |_, operand| Some(Equal::of(operand, false)),
};

#[derive(Debug)]
struct Equal {
    value: Value,
    wanted: bool,
    place: Place,
}

impl Equal {
    fn of(operand: &Node, wanted: bool) -> Box<dyn Rule> {
        Box::new(Self { value: operand.to_json(), wanted, place: Place::of(operand) })
    }
}

impl Rule for Equal {
    fn judge(&self, actual: Option<&Value>, _at: &Scope<'_>) -> Found {
        let is_equal = actual.is_some_and(|actual| value::same(actual, &self.value));
        if is_equal == self.wanted {
            return Found::full();
        }
        let shown = value::shown(Some(&self.value));
        let (message, expected) = if self.wanted {
            (format!("expected exactly {shown}, not {}", value::shown(actual)), self.value.clone())
        } else {
            (format!("expected anything but {shown}"), format!("not {}", value::told(&self.value)).into())
        };
        Found::flawed(Flaw::new(&self.place, message).expected(expected).actual(actual))
    }
}

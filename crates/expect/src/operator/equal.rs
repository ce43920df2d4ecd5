//! `$eq` and `$ne`: exactly this value, or any other.

use model::Node;
use serde_json::Value;

use super::{Example, Operator};
use crate::found::{Flaw, Found};
use crate::matcher::{At, Rule};
use crate::place::Place;
use crate::value;

/// The `$eq` operator.
pub const EQ: Operator = Operator {
    name: "$eq",
    summary: "The value is exactly this one.",
    operand: "a value",
    details: "Maps and lists are compared all the way down, without regard to the order of keys. Texts are compared as \
              they are: nothing is trimmed. A missing value equals nothing.",
    scoring: "All or nothing.",
    examples: &[
        Example { expectation: r#"{"$eq": "a"}"#, matches: &[r#""a""#], differs: &[r#""ab""#, r#""a ""#] },
        Example {
            expectation: r#"{"$eq": {"a": [1, 2]}}"#,
            matches: &[r#"{"a": [1.0, 2]}"#],
            differs: &[r#"{"a": [1, 2, 3]}"#, r#"{"a": [1, 2], "b": 0}"#],
        },
    ],
    read: |_, operand| Some(Equal::of(operand, true)),
};

/// The `$ne` operator.
pub const NE: Operator = Operator {
    name: "$ne",
    summary: "The value is anything but this one.",
    operand: "a value",
    details: "The opposite of `$eq`; a missing value is anything but.",
    scoring: "All or nothing.",
    examples: &[Example { expectation: r#"{"$ne": 1}"#, matches: &["2", r#""1""#], differs: &["1", "1.0"] }],
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
    fn judge(&self, actual: Option<&Value>, _at: &At<'_>) -> Found {
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

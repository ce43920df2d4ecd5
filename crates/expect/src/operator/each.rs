//! `$each`: every item of a list matches.

use serde_json::Value;

use super::{Example, Operator};
use crate::found::{Flaw, Found};
use crate::matcher::{At, Matcher, Rule};
use crate::place::Place;
use crate::strategy::Strategy;
use crate::value;

/// The `$each` operator.
pub const EACH: Operator = Operator {
    name: "$each",
    summary: "Every item of the list matches.",
    operand: "an expectation",
    details: "It holds of an empty list. With several items each has a path of its own: `users.$each[2]`.",
    scoring: "The items share the score equally.",
    examples: &[Example {
        expectation: r#"{"$each": {"status": "active"}}"#,
        matches: &[r#"[{"status": "active"}, {"status": "active", "id": 1}]"#, "[]"],
        differs: &[r#"[{"status": "active"}, {"status": "gone"}]"#, r#"{"status": "active"}"#],
    }],
    read: |compiler, operand| {
        let wanted = compiler.matcher(operand);
        Some(Box::new(Each { wanted, place: Place::of(operand) }))
    },
};

#[derive(Debug)]
struct Each {
    wanted: Matcher,
    place: Place,
}

impl Rule for Each {
    fn judge(&self, actual: Option<&Value>, at: &At<'_>) -> Found {
        let Some(Value::Array(items)) = actual else {
            let message = format!("`$each` needs a list, not {}", value::kind(actual));
            let critical = self.wanted.critical;
            return Found::flawed(Flaw { critical, ..Flaw::new(&self.place, message).actual(actual) });
        };
        let shares = Strategy::Weighted.distribute(&at.run.rules.budget, &vec![Some(1.0); items.len()]);
        let found = items.iter().enumerate().map(|(index, item)| {
            let here = At { present: true, ..at.item("$each", index, items.len()) };
            self.wanted.judge(Some(item), &here)
        });
        Strategy::Weighted.aggregate(found, &shares, &self.place)
    }
}

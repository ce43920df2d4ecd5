//! `$expect`: an expectation with metadata.

use serde_json::Value;

use super::{Example, Operator};
use crate::found::Found;
use crate::matcher::{At, Matcher, Rule};

/// The `$expect` operator.
pub const EXPECT: Operator = Operator {
    name: "$expect",
    summary: "The expectation holds; `$score`, `$title` and their like may stand beside it.",
    operand: "an expectation",
    details: "It changes nothing by itself: it gives a text, a regular expression or a number a place for its weight, \
              title, dimension and threshold.",
    scoring: "The inner expectation's.",
    examples: &[Example {
        expectation: r#"{"$and": [{"$expect": "/Spring/", "$score": 80}, {"$expect": "/Flower/", "$score": 20}]}"#,
        matches: &[r#""Spring Flower""#],
        differs: &[r#""Spring""#],
    }],
    read: |compiler, operand| {
        let inner = compiler.matcher(operand);
        Some(Box::new(Expect { inner }))
    },
};

#[derive(Debug)]
struct Expect {
    inner: Matcher,
}

impl Rule for Expect {
    fn judge(&self, actual: Option<&Value>, at: &At<'_>) -> Found {
        self.inner.judge(actual, &At { strategy: at.strategy, ..at.below("") })
    }
}

//! `$or`: at least one item holds.

use super::and::Branches;
use super::{Example, Operator};
use crate::strategy::Strategy;

/// The `$or` operator.
pub const OR: Operator = Operator {
    name: "$or",
    summary: "At least one item of the list holds.",
    operand: "a list of expectations",
    details: "Every branch is tried, and the best one counts. An empty list never holds. What fails in a branch is told \
              only when no branch holds.",
    scoring: "The best branch's score times its weight; a branch without a weight is worth the whole.",
    examples: &[Example {
        expectation: r#"{"$or": [{"name": "get_user"}, {"name": "find_person"}]}"#,
        matches: &[r#"{"name": "find_person"}"#],
        differs: &[r#"{"name": "delete"}"#],
    }],
    read: |compiler, operand| Branches::read(compiler, operand, "$or", Strategy::Max),
};

//! `$or`: at least one item holds.

use super::and::Branches;
use crate::compile::Operator;
use crate::strategy::Strategy;

/// The `$or` operator.
pub const OR: Operator = Operator {
    name: "$or",
    summary: "At least one expectation in the list matches the value.",
    read: |compiler, operand| Branches::read(compiler, operand, "$or", Strategy::Max),
};

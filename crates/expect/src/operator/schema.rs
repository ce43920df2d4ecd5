//! `$schema`: the value conforms to a JSON Schema.

use crate::compile::Operator;

/// The `$schema` operator.
pub const SCHEMA: Operator = Operator {
    name: "$schema",
    summary: "The value satisfies a JSON Schema.",
    read: |compiler, operand| Some(compiler.schema(operand)),
};

//! `$schema`: the value conforms to a JSON Schema.

use super::{Example, Operator};

/// The `$schema` operator.
pub const SCHEMA: Operator = Operator {
    name: "$schema",
    summary: "The value satisfies a JSON Schema.",
    operand: "a JSON Schema",
    details: "Draft 7 unless `$schema` inside says otherwise; formats and the keywords of ajv-keywords are checked. A map \
              whose `type` is one of JSON Schema's is taken as one without this operator, too, unless \
              `disableHeuristicSchema` is set.",
    scoring: "All or nothing.",
    examples: &[Example {
        expectation: r#"{"$schema": {"type": "object", "properties": {"age": {"type": "number", "minimum": 18}}}}"#,
        matches: &[r#"{"age": 18}"#],
        differs: &[r#"{"age": 17}"#, r#"[]"#],
    }],
    read: |compiler, operand| Some(compiler.schema(operand)),
};

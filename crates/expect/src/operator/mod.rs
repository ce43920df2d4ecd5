//! Operators, and the table of all operators in the order in which users see them.

mod all;
mod and;
mod compare;
mod contains;
mod custom;
mod diff;
mod each;
mod equal;
mod exists;
mod expect;
mod expr;
mod membership;
mod not;
mod nth;
mod sequence;
mod sort;

use crate::compile::{Operator, Operators, Read};

/// All operators.
pub const OPERATORS: &[Operator] = &[
    operator("$and", "All expectations in the list match the value.", and::read),
    operator("$or", "At least one expectation in the list matches the value.", and::read),
    operator("$not", "The expectation does not match.", not::read),
    operator("$contains", "An item of the list, a part of the string, or a subset of the map matches.", contains::read),
    operator("$all", "Each expectation matches an item of the list, in any order.", all::read),
    operator("$each", "Every item of the list matches.", each::read),
    operator(
        "$sequence",
        "The expectations match items of the list in the same order, with any items in between.",
        sequence::read,
    ),
    operator("$exists", "The value exists (`true`), or does not (`false`).", exists::read),
    operator("$sort", "The list, sorted by `$by`, matches the rest of the map.", sort::read),
    operator("$nth", "The item at `$index` matches the rest of the map.", nth::read),
    operator("$first", "The first item of the list matches.", nth::read),
    operator("$last", "The last item of the list matches.", nth::read),
    operator("$eq", "The value is equal to this one.", equal::read),
    operator("$ne", "The value is not equal to this one.", equal::read),
    operator("$gt", "The value is greater than this one.", compare::read),
    operator("$gte", "The value is greater than or equal to this one.", compare::read),
    operator("$lt", "The value is less than this one.", compare::read),
    operator("$lte", "The value is less than or equal to this one.", compare::read),
    operator("$in", "The value is one of these.", membership::read),
    operator("$nin", "The value is none of these.", membership::read),
    operator(EXPR, "A JavaScript expression is true.", expr::read),
    operator("$schema", "The value satisfies a JSON Schema.", |compiler, operand, _| Some(compiler.schema(operand))),
    operator("$diff", "The string is equal to this one, except for the listed changes.", diff::read),
    operator("$expect", "The expectation matches. Use this to add `$score`, `$title` and so on.", expect::read),
];

/// Name of the operator whose operand is code.
pub const EXPR: &str = "$expr";

/// All operators for a compiler.
pub(crate) const ALL: Operators = Operators { built_in: OPERATORS, custom: custom::read };

const fn operator(name: &'static str, summary: &'static str, read: Read) -> Operator {
    Operator { name, summary, read }
}

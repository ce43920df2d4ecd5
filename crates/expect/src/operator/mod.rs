//! Operators, one file each, and the table of all operators in the order in which users see them.

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
mod or;
mod schema;
mod sequence;
mod sort;

use crate::compile::{Operator, Operators};

/// All operators.
pub const OPERATORS: &[Operator] = &[
    and::AND,
    or::OR,
    not::NOT,
    contains::CONTAINS,
    all::ALL,
    each::EACH,
    sequence::SEQUENCE,
    exists::EXISTS,
    sort::SORT,
    nth::NTH,
    nth::FIRST,
    nth::LAST,
    equal::EQ,
    equal::NE,
    compare::GT,
    compare::GTE,
    compare::LT,
    compare::LTE,
    membership::IN,
    membership::NIN,
    expr::EXPR,
    schema::SCHEMA,
    diff::DIFF,
    expect::EXPECT,
];

/// Name of the operator whose operand is code.
pub const EXPR: &str = expr::EXPR.name;

/// All operators for a compiler.
pub(crate) const ALL: Operators = Operators { built_in: OPERATORS, custom: custom::read };

//! Operators, one file each, and the table of all operators in the order in which users see them.

mod all;
mod and;
mod compare;
mod contains;
pub mod custom;
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

use model::Node;

use crate::compile::Compiler;
use crate::matcher::Rule;

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

/// An operator. `docs/reference/operators.md` describes it and has its examples.
#[derive(Debug)]
pub struct Operator {
    /// Name with the `$`.
    pub name: &'static str,
    /// Its meaning, in one sentence.
    pub summary: &'static str,
    pub(crate) read: Read,
}

/// Function that reads an operand. Returns `None` if the operand is invalid, which has been reported.
pub(crate) type Read = fn(&mut Compiler<'_>, &Node) -> Option<Box<dyn Rule>>;

//! The operators: a file each, and the table of them all in the order users see.

mod all;
mod and;
mod compare;
mod contains;
pub mod custom;
mod diff;
mod each;
mod equal;
mod example;
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

pub use self::example::{Example, SelfTest, self_test};
use crate::compile::Compiler;
use crate::matcher::Rule;

/// Every operator.
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

/// The operator whose operand is code.
pub const EXPR: &str = expr::EXPR.name;

/// An operator, as it describes itself.
#[derive(Debug)]
pub struct Operator {
    /// Its name, with the `$`.
    pub name: &'static str,
    /// What it asks for, in one line.
    pub summary: &'static str,
    /// What it takes.
    pub operand: &'static str,
    /// What else there is to know about what it means, in Markdown.
    pub details: &'static str,
    /// What it scores, in one or two sentences.
    pub scoring: &'static str,
    /// Expectations with values that match and values that do not.
    pub examples: &'static [Example],
    pub(crate) read: Read,
}

/// Reads an operand. `None` where something is wrong with it, which has been told.
pub(crate) type Read = fn(&mut Compiler<'_>, &Node) -> Option<Box<dyn Rule>>;

//! The `$operator` matching and scoring engine: a value in, a scored tree out.
//!
//! An expectation is written as data: a text that must be contained, a regular expression, a number, a list by position,
//! a map of the keys that matter, a JSON Schema, or operators such as `$contains`, `$sequence` and `$expr`.
//! [`Expectation`] reads it once, tells everything that is wrong with it at its place, and then judges any number of
//! values. What comes out is [`Found`]: whether it matches, a score from 0 to 1, every flaw with its path and the user's
//! line, and a tree of parts with weights and dimensions.
//!
//! The engine does no I/O and runs no script: regular expressions and code come from a [`Host`]. Templates are resolved
//! before it sees an expectation.

mod allowance;
mod compile;
pub mod context;
pub mod diff;
mod expectation;
mod found;
mod host;
mod idle;
mod kept;
mod matcher;
mod meta;
mod operator;
mod path;
mod pattern;
mod place;
mod reference;
mod returned;
mod rules;
pub mod schema;
mod strategy;
mod text_diff;
mod tools;
mod tried;
mod value;
mod weight;

pub use compile::{FUNCTION_TAG, REGEX_TAG, SCHEMA_TAG, split_regex};
pub use expectation::{Data, Expectation};
pub use found::{Flaw, Found, Pass};
pub use host::{Answer, Argument, Function, Host, Invalid, Naming, Pattern, Trouble};
pub use operator::{EXPR, Example, OPERATORS, Operator, SelfTest, self_test};
pub use place::Place;
pub use reference::{reference, wrong_examples};
pub use rules::{Rules, Strict};
pub use strategy::Strategy;
pub use weight::{Budget, Shares};

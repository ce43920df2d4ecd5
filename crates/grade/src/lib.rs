//! GRADE: turns evidence into findings.
//!
//! [`compile`] reads what a case asserts, once, and reports everything that is wrong with it. [`grade`] judges the
//! evidence of a trial: pure, synchronous, a function of its arguments. [`Responder`] answers an agent's questions from
//! the case's prepared answers. The assertions are in `assertion/`, a file each, and describe themselves: their
//! documentation and the self-test are made from the same [`ASSERTIONS`].
//!
//! Nothing here knows a process, a sandbox, a clock or a terminal.

mod arguments;
mod assertion;
mod branch_name;
mod call_pattern;
mod check;
mod claim;
mod declarations;
mod example;
mod folded;
mod given;
mod glob;
mod javascript;
mod json_path;
mod json_source;
pub mod judge;
mod masked;
mod paths;
mod pattern;
mod place;
mod reading;
mod reference;
mod repository;
mod responder;
mod sandbox_file;
mod schema;
mod score;
mod scripts;
mod self_test;
mod shell;
mod skill_use;
mod verdict;
mod warning;
mod words;
mod yaml;

pub use assertion::{ASSERTIONS, Assertion, Field, Parameter, find};
pub use check::{Check, Context, claim, compile, grade, nothing_asserted};
pub use declarations::declarations;
pub use example::Example;
pub use expect::OPERATORS;
pub use judge::{Breaker, Cache, Judge, consult};
pub use masked::looks_at_masked;
pub use paths::{glob_fronts, lexical_touches};
pub use reference::{operators_reference, reference, templates_reference};
pub use responder::Responder;
pub use schema::assertion_schema;
pub use score::{score, weighted_score};
pub use scripts::Scripts;
pub use self_test::{SelfTestResult, operator_self_test, self_test};
pub use skill_use::{made_use_of, triggered};
pub use warning::warnings;

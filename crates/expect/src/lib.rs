//! The `$operator` engine for matching and scoring: a value in, a scored tree out.
//!
//! An expectation is written as data: a string that must be contained, a regular expression, a number, a list by
//! position, a map of the keys that matter, a JSON Schema, or operators such as `$contains`, `$sequence` and `$expr`.
//! [`Expectation`] compiles it once, reports all problems with their locations, and then judges any number of values.
//! The result is [`Found`]: the verdict, a score from 0 to 1, every mismatch with its path and source line, and a tree
//! of parts with weights and dimensions.
//!
//! The engine does no I/O and runs no scripts: regular expressions and code come from a [`Host`]. Templates are
//! resolved before the engine reads an expectation. A program without a script engine uses [`WithoutScripts`]:
//!
//! ```
//! use std::sync::Arc;
//!
//! use model::decode::Problems;
//! use model::{Node, Source};
//! use serde_json::json;
//! use trialrun_expect::{Data, Expectation, Host, Pass, Rules, WithoutScripts};
//!
//! let host: Arc<dyn Host> = Arc::new(WithoutScripts);
//! let written = json!({"name": "/^A/", "tags": {"$contains": "new"}});
//! let written = Node::from_json(&written, &Source::new("expectation", ""));
//! let mut problems = Problems::new();
//! let expectation = Expectation::from_value(&written, Rules::default(), &host, None, &mut problems);
//! assert!(problems.is_empty());
//!
//! let judge = |value| expectation.judge(Some(&value), &Data::default());
//! let found = judge(json!({"name": "Ada", "tags": ["new", "regular"]}));
//! assert_eq!((found.pass, found.score), (Pass::Yes, 1.0));
//!
//! let found = judge(json!({"name": "Ada", "tags": []}));
//! assert_eq!((found.pass, found.score), (Pass::No, 0.5));
//! assert_eq!(found.flaws[0].message.as_deref(), Some("the list is empty"));
//! ```

mod allowance;
mod candidates;
mod compile;
pub mod context;
mod contradiction;
pub mod diff;
mod example;
mod expectation;
mod found;
mod host;
mod idle;
mod matcher;
mod meta;
mod nearly_regex;
mod notation;
mod operator;
mod path;
mod pattern;
mod prelude;
mod quick_score;
mod returned;
mod rule;
mod rules;
pub mod schema;
mod source_location;
mod strategy;
mod text_diff;
mod tools;
mod truncated_value;
mod value;
mod weight;
mod without_scripts;

pub use compile::Operator;
pub use example::{Example, SelfTest, self_test};
pub use expectation::Expectation;
pub use found::{Flaw, Found, Pass};
pub use host::{Answer, Argument, Function, Host, Invalid, Naming, Pattern, Trouble};
pub use meta::is_meta;
pub use notation::{FUNCTION_TAG, REGEX_TAG, SCHEMA_TAG, split_regex};
pub use operator::{EXPR, OPERATORS};
pub use rule::Data;
pub use rules::{Rules, Strict};
pub use source_location::SourceLocation;
pub use strategy::Strategy;
pub use value::same;
pub use weight::{Budget, Shares};
pub use without_scripts::WithoutScripts;

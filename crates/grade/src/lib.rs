//! Grades trials: turns evidence into findings.
//!
//! [`compile`] reads a case's assertions once, and reports all problems. [`grade`] judges the evidence of a trial: it
//! is pure, synchronous and a function of its arguments. [`Responder`] answers an agent's questions with the case's
//! prepared answers. The assertions are in `assertion/`, one file each, and describe themselves: their documentation
//! and the self-test are made from the same [`ASSERTIONS`].
//!
//! This crate does not depend on processes, sandboxes, clocks or terminals.
//!
//! ```
//! use std::sync::Arc;
//!
//! use model::{
//!     AssertionScope, Arguments, AssertionSpec, Case, Collected, Ending, Evidence, Excerpt, Limits, Node, Source, Span,
//!     Spanned, Status, Trace,
//! };
//! use serde_json::json;
//! use trialrun_grade::{Context, compile, grade};
//!
//! // The case's `contains: hello` assertion.
//! let hello = Node::from_json(&json!("hello"), &Source::new("case.yaml", "contains: hello"));
//! let mut case = Case::new("greeting", Excerpt::of_file("case.yaml"));
//! case.assertions.push(AssertionSpec {
//!     id: "greets".to_owned(),
//!     kind: Spanned::new("contains".to_owned(), Span::default()),
//!     weight: 1.0,
//!     node: hello.clone(),
//!     arguments: Arguments::Brief(hello),
//!     about: AssertionScope::Trial,
//! });
//! let (checks, problems) = compile(&case, &Context::default());
//! assert!(problems.is_empty());
//!
//! let mut trace = Trace::default();
//! trace.answer = Some("Hello, Ada!".to_owned());
//! let evidence = Evidence {
//!     trace,
//!     collected: Collected::default(),
//!     ending: Ending::Finished,
//!     limits: Arc::new(Limits::default()),
//!     unused_responses: Vec::new(),
//!     agent_ms: None,
//! };
//! let findings = grade(&checks, &evidence);
//! assert_eq!((findings[0].status, findings[0].reason.as_str()), (Status::Met, "the answer contains \"Hello\""));
//! ```

mod arguments;
mod as_written;
mod assertion;
mod assertion_type;
mod assertions;
mod branch_name;
mod call_pattern;
mod check;
mod claim;
mod consult;
mod consult_hosted;
mod context;
mod contradiction;
mod declarations;
mod evidence;
mod example;
mod folded;
mod format;
mod function_check;
mod functions;
mod given;
mod glob;
mod grader;
mod hosted;
mod javascript;
mod json_path;
mod json_source;
pub mod judge;
mod masked;
mod matcher;
mod pattern;
mod promptfoo;
mod reading;
mod reference;
mod responder;
mod rewards;
mod sandbox_file;
mod schema;
mod score;
mod scripts;
mod self_test;
mod shell;
mod skill_use;
mod text_answer;
mod verdict;
mod warning;
mod yaml;

pub use assertion::skill_used::is_used;
pub use assertion::{ran_nothing, schema_errors};
pub use assertion_type::{Assertion, Field, Parameter, Reported};
pub use assertions::{ASSERTIONS, find};
pub use check::{Check, claim, compile, grade, mistake, nothing_asserted};
pub use consult::{consult, shown_to_judge};
pub use consult_hosted::ask_hosted;
pub use context::{Context, KnownTools};
pub use declarations::declarations;
pub use evidence::integrity::{integrity, is_planted_code};
pub use evidence::paths::{glob_fronts, lexical_touches};
pub use evidence::test_run::is_own_command;
pub use example::Example;
pub use expect::OPERATORS;
pub use functions::Functions;
pub use judge::{Breaker, Cache, Judge};
pub use masked::looks_at_masked;
pub use reference::reference;
pub use responder::Responder;
pub use schema::assertion_schema;
pub use score::score;
pub use scripts::Scripts;
pub use self_test::{SelfTestResult, operator_self_test, self_test};
pub use shell::{ScriptFiles, is_check, recipes, scripts_in, scripts_of};
pub use skill_use::{made_use_of, triggered};
pub use warning::warnings;

//! Embedded script engine: JavaScript and TypeScript with limits, and ECMAScript regular expressions.
//!
//! The engine is QuickJS. This crate does not depend on agents or assertions. A [`Runtime`] imports the user's
//! modules, calls their functions and evaluates [`Expression`]s, each within limits on time and memory. Values are
//! exchanged as [`Value`]. A script has no access to the machine. For anything else, it sends requests to the host
//! through a [`HostFunction`].
//!
//! A [`Regex`] does not need a runtime: every thread has its own engine for them, created on first use, so that a test
//! takes about a microsecond and threads never wait for each other. An expression that consists only of words does not
//! need an engine at all.
//!
//! ```
//! use std::borrow::Cow;
//! use std::time::Duration;
//!
//! use trialrun_script::{Expression, Options, Regex, Runtime, Value};
//!
//! let mut runtime = Runtime::new(Options::new("/"))?;
//! let expression = Expression::parse("items.filter((item) => item > 1).length").expect("it is valid");
//! let items = Value::from(vec![1.0.into(), 2.0.into(), 3.0.into()]);
//! let scope = |name: &str| (name == "items").then(|| Cow::Borrowed(&items));
//! assert_eq!(runtime.evaluate(&expression, &scope, Duration::from_secs(1))?, Value::Number(2.0));
//! assert!(Regex::parse("(?i)hello").and_then(|regex| regex.is_match("Hello!")).expect("it is valid"));
//! # Ok::<(), trialrun_script::ScriptError>(())
//! ```

mod absent_names;
mod code_runtime;
mod compiled;
mod convert;
mod deadline;
mod embedded;
mod engine;
mod error;
mod evaluate;
mod expression;
mod external;
mod launcher;
mod module;
mod names;
mod opening;
mod options;
mod pipes;
mod plain;
mod platform;
mod positions;
mod prelude;
mod pump;
mod realm;
mod reference;
mod regex;
mod runtime;
mod shim;
mod source_map;
mod syntax;
mod task;
#[cfg(test)]
mod test_project;
pub mod thread;
mod trace;
mod typescript;
mod unknown_names;
mod value;

pub use code_runtime::{CodeRuntime, ModuleProgram};
pub use error::{Frame, ScriptError};
pub use expression::{Expression, FreeName, SyntaxError};
pub use launcher::{Launched, Launcher, Process, ProcessLimits, ProjectRuntime, RuntimeChoice, Wake};
pub use module::library::{Library, Variable};
pub use opening::open;
pub use options::{Console, Level, Options};
pub use platform::{BUN, DENO, NODE, Platform};
pub use positions::{Inside, ValueLocation, positions};
pub use prelude::{Call, Tests, Written};
pub use pump::Progress;
pub use reference::{Reference, ReferenceError, Referred};
pub use regex::{DEFAULT_BUDGET, Match, Regex, RegexError};
pub use runtime::{Module, Runtime};
pub use shim::FETCH;
pub use task::Task;
pub use typescript::Language;
pub use value::{Function, HostFunction, Key, Native, NativeFunction, Request, Value};

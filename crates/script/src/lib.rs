//! The embedded script engine: JavaScript and TypeScript with limits, and ECMAScript regular expressions.
//!
//! The engine is QuickJS. It knows no agent and no assertion. A [`Runtime`] imports the user's modules, calls their
//! functions and evaluates [`Expression`]s, each within a budget of time and memory. What crosses is a [`Value`]. A
//! script has no access to the machine; what it needs of the world it asks the host for, with an [`Asks`].
//!
//! A [`Regex`] needs no runtime: every thread has an engine for them, made when it is first needed, so that a test costs
//! about a microsecond and threads never wait for each other. One that is nothing but words needs no engine either.

mod compiled;
mod convert;
mod deadline;
mod engine;
mod error;
mod evaluate;
mod expression;
#[cfg(test)]
mod folder;
mod module;
mod plain;
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
pub mod thread;
mod trace;
mod typescript;
mod value;

pub use error::{Frame, ScriptError};
pub use expression::{Expression, FreeName, SyntaxError};
pub use module::library::{Library, Variable};
pub use positions::{Inside, Place, positions};
pub use prelude::{Call, Tests, Written};
pub use pump::{Progress, Request, Task};
pub use realm::{Console, Level};
pub use reference::{Reference, ReferenceError, Referred};
pub use regex::{DEFAULT_BUDGET, Match, Regex, RegexError};
pub use runtime::{Module, Options, Runtime};
pub use shim::FETCH;
pub use typescript::Language;
pub use value::{Asks, Function, Key, Native, NativeFunction, Value};

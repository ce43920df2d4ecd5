//! The embedded script engine: ECMAScript regular expressions that stop when their time is up.
//!
//! The engine is QuickJS. It knows no agent and no assertion. Every thread has an engine of its own, made when it is
//! first needed, so that a test costs about a microsecond and threads never wait for each other.

mod engine;
mod regex;

pub use regex::{DEFAULT_BUDGET, Match, Regex, RegexError};

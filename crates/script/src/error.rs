//! Errors of scripts, with their locations in the user's files.

use std::fmt;
use std::time::Duration;

use model::{Diagnostic, Excerpt};

use crate::absent_names::is_absent_in_node;
use crate::platform::HEAP;

/// Error of a script.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// It threw an exception, or a promise without a handler was rejected.
    #[error("{name}: {message}")]
    Thrown {
        /// Name of the error, such as `TypeError`. `Error` for values that are not error objects.
        name: String,
        /// Message of the error.
        message: String,
        /// Location of the throw, in the file as the user wrote it.
        place: Option<Box<Excerpt>>,
        /// Stack, innermost frame first, without frames outside the user's code.
        stack: Vec<Frame>,
    },
    /// It is not valid JavaScript.
    #[error("{message}")]
    Syntax {
        /// Description of the error.
        message: String,
        /// Location of the error.
        place: Option<Box<Excerpt>>,
        /// Suggestion, if there is one.
        help: Option<String>,
    },
    /// It refers to something that does not exist: a file, a package, an export, a part of Node.js.
    #[error("{what}")]
    Missing {
        /// Whole sentence: what is missing, and why.
        what: String,
        /// File or directory that refers to it.
        from: String,
        /// Location of the import, if it is in the text of a file.
        place: Option<Box<Excerpt>>,
        /// Suggestion, if there is one.
        help: Option<String>,
    },
    /// It exceeded its time limit.
    #[error("stopped after {} s", budget.as_millis() as f64 / 1000.0)]
    TimedOut {
        /// The time limit.
        budget: Duration,
        /// The function that was stopped, or the last call in it, if it is known.
        place: Option<Box<Excerpt>>,
    },
    /// It needed more memory than the limit. The runtime must not be used again.
    #[error("needed more than {} of memory", Bytes(*limit))]
    OutOfMemory {
        /// The limit in bytes.
        limit: usize,
        /// Location of the allocation, if enough memory was left to determine it.
        place: Option<Box<Excerpt>>,
    },
    /// It waits for a promise that can no longer be settled.
    #[error("it waits for a promise that is never settled")]
    NeverSettled,
    /// The process in which it ran has ended, or cannot be used any more.
    #[error("{what}")]
    Crashed {
        /// Whole sentence: what happened.
        what: String,
        /// Location of the last call that is known.
        place: Option<Box<Excerpt>>,
    },
    /// It threw an error about its environment: a server cannot be reached, or the machine has run out of something. Only
    /// code in another process has such errors.
    #[error("{what}")]
    Environment {
        /// Name and message of the error.
        what: String,
        /// Location of the throw, in the file as the user wrote it.
        place: Option<Box<Excerpt>>,
    },
    /// The user's runtime is not installed, or too old.
    #[error("{0}")]
    NoRuntime(String),
    /// The engine itself failed, or the request was impossible.
    #[error("{0}")]
    Failed(String),
}

/// Stack frame of an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Name of the function, if it has one.
    pub function: Option<String>,
    /// Path as the user would write it.
    pub file: String,
    /// Line, 1-based.
    pub line: usize,
    /// Column, 1-based, in characters.
    pub column: usize,
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { function, file, line, column } = self;
        match function {
            Some(name) => write!(f, "{name} ({file}:{line}:{column})"),
            None => write!(f, "{file}:{line}:{column}"),
        }
    }
}

/// Message about decorators in the embedded engine.
pub(crate) const DECORATORS: &str = "decorators are not supported here";

/// Returns advice about a name of the module that tests import, which is not defined without the import.
fn missing_import(message: &str) -> Option<&'static str> {
    Some(match message.strip_suffix(" is not defined")?.trim_matches('\'') {
        "scenario" => "write `import { scenario } from \"trialrun\"` at the top of the file",
        "persona" => "write `import { persona } from \"trialrun\"` at the top of the file",
        "assert" => "write `import { assert } from \"trialrun\"` at the top of the file",
        _ => return None,
    })
}

struct Bytes(usize);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 >= 1 << 20 { write!(f, "{} MiB", self.0 >> 20) } else { write!(f, "{} KiB", self.0 >> 10) }
    }
}

impl ScriptError {
    /// Creates an error for a failure of the engine.
    pub(crate) fn engine(error: &rquickjs::Error) -> Self {
        Self::Failed(format!("the script engine failed: {error}"))
    }

    /// Returns the location in the user's file, if it is known.
    pub fn place(&self) -> Option<&Excerpt> {
        match self {
            Self::Thrown { place, .. }
            | Self::Syntax { place, .. }
            | Self::Missing { place, .. }
            | Self::TimedOut { place, .. }
            | Self::OutOfMemory { place, .. }
            | Self::Crashed { place, .. }
            | Self::Environment { place, .. } => place.as_deref(),
            Self::NeverSettled | Self::NoRuntime(_) | Self::Failed(_) => None,
        }
    }

    /// Returns `true` if the script needed something that scripts do not have, such as a module of Node.js, and names it
    /// in the line that failed. No answer of an agent can be the cause of this. If a script evaluates code of an agent,
    /// that code has its own lines.
    pub fn is_limit(&self) -> bool {
        match self {
            Self::Missing { .. } => true,
            Self::Thrown { message, place: Some(place), .. } => {
                let Some((what, _)) = message.split_once(" is not available here") else { return false };
                let first = what.split_whitespace().next().unwrap_or_default().trim_matches(['\'', '`', '"']);
                let mut names = first.split(['.', '(']).filter(|name| !name.is_empty());
                names.any(|name| place.text.contains(name))
            }
            _ => false,
        }
    }

    /// Returns `true` if a module could not be loaded because it, or a package that it imports, needs something that the
    /// embedded engine does not have.
    pub(crate) fn needs_another_runtime(&self) -> bool {
        const ABSENT: [&str; 3] = [" is not available here", "JSX is not supported", "extension is not supported"];
        let is_absent = |text: &str| ABSENT.iter().any(|words| text.contains(words));
        match self {
            Self::Missing { what, .. } => is_absent(what),
            Self::Syntax { message, .. } => message == DECORATORS,
            // A package was not written for this engine.
            Self::Thrown { message, stack, .. } => {
                is_absent(message) || stack.first().is_some_and(|frame| frame.file.contains("node_modules/"))
            }
            _ => false,
        }
    }

    /// Returns the error with advice about the runtime that has what is missing.
    pub(crate) fn with_advice(self, advice: String) -> Self {
        match self {
            Self::Missing { what, from, place, .. } => Self::Missing { what, from, place, help: Some(advice) },
            Self::Syntax { message, place, .. } => Self::Syntax { message, place, help: Some(advice) },
            Self::Thrown { name, message, place, stack } => {
                Self::Thrown { name, message: format!("{message} ({advice})"), place, stack }
            }
            other => other,
        }
    }

    /// Returns a suggestion, if there is one.
    pub fn help(&self) -> Option<&str> {
        match self {
            Self::Syntax { help, .. } | Self::Missing { help, .. } => help.as_deref(),
            Self::Thrown { message, .. } if self.is_limit() && !is_absent_in_node(message) => {
                Some("`code: {runtime: node}` in the configuration runs code in Node.js, which has more")
            }
            Self::Thrown { name, message, .. } if name == "ReferenceError" => missing_import(message),
            Self::OutOfMemory { limit, .. } if *limit < HEAP => {
                Some("`code: {runtime: node}` in the configuration runs code in Node.js, with more memory")
            }
            Self::NeverSettled => Some("a promise is awaited whose `resolve` is never called"),
            _ => None,
        }
    }

    /// Returns the stack, innermost frame first. Empty for all errors other than [`ScriptError::Thrown`].
    pub fn stack(&self) -> &[Frame] {
        match self {
            Self::Thrown { stack, .. } => stack,
            _ => &[],
        }
    }

    /// Converts the error to a diagnostic about the user's files, with its location if there is one.
    pub fn diagnostic(&self) -> Diagnostic {
        let mut diagnostic = Diagnostic::error(self.to_string());
        if let Some(place) = self.place() {
            diagnostic = diagnostic.at(place.clone());
        }
        if let Some(help) = self.help() {
            diagnostic = diagnostic.help(help);
        }
        diagnostic
    }
}

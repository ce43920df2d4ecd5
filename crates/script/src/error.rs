//! What goes wrong with a script, told with the place in the user's file.

use std::fmt;
use std::time::Duration;

use model::{Diagnostic, Excerpt};

/// Why a script has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// It threw, or a promise nobody looked at was rejected.
    #[error("{name}: {message}")]
    Thrown {
        /// The error's name, `TypeError`; `Error` for things that are no error objects.
        name: String,
        /// Its message.
        message: String,
        /// Where it was thrown, in the file as the user wrote it.
        place: Option<Box<Excerpt>>,
        /// The way there, innermost first, without what is not the user's.
        stack: Vec<Frame>,
    },
    /// It is no valid program.
    #[error("{message}")]
    Syntax {
        /// What is wrong.
        message: String,
        /// Where.
        place: Option<Box<Excerpt>>,
        /// What to write instead, where that can be told.
        help: Option<String>,
    },
    /// Something it refers to is not there: a file, a package, an export, a part of Node.js.
    #[error("{what}")]
    Missing {
        /// The whole sentence: what is not there, and why.
        what: String,
        /// The file or directory that refers to it.
        from: String,
        /// The import, if a file's text has it.
        place: Option<Box<Excerpt>>,
        /// What to do about it, where that can be told.
        help: Option<String>,
    },
    /// It took longer than it was given.
    #[error("stopped after {} ms", budget.as_millis())]
    TimedOut {
        /// What it was given.
        budget: Duration,
        /// The function that was stopped, or the last call in it, as far as it is known.
        place: Option<Box<Excerpt>>,
    },
    /// It needed more memory than there is. The runtime must not be used again.
    #[error("needed more than {} of memory", Bytes(*limit))]
    OutOfMemory {
        /// In bytes.
        limit: usize,
        /// Where it was, as far as there was memory to tell.
        place: Option<Box<Excerpt>>,
    },
    /// It waits for a promise that nothing can settle any more.
    #[error("it waits for a promise that is never settled")]
    NeverSettled,
    /// The engine itself is at fault, or it was asked for something impossible.
    #[error("{0}")]
    Failed(String),
}

/// One step on the way to an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The function, if it has a name.
    pub function: Option<String>,
    /// The path as the user would write it.
    pub file: String,
    /// 1-based.
    pub line: usize,
    /// 1-based, in characters.
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

struct Bytes(usize);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 >= 1 << 20 { write!(f, "{} MiB", self.0 >> 20) } else { write!(f, "{} KiB", self.0 >> 10) }
    }
}

impl ScriptError {
    /// Something the engine did not do.
    pub(crate) fn engine(error: &rquickjs::Error) -> Self {
        Self::Failed(format!("the script engine failed: {error}"))
    }

    /// Where it happened in the user's file, if that is known.
    pub fn place(&self) -> Option<&Excerpt> {
        match self {
            Self::Thrown { place, .. }
            | Self::Syntax { place, .. }
            | Self::Missing { place, .. }
            | Self::TimedOut { place, .. }
            | Self::OutOfMemory { place, .. } => place.as_deref(),
            Self::NeverSettled | Self::Failed(_) => None,
        }
    }

    /// What to do about it, where that can be told.
    pub fn help(&self) -> Option<&str> {
        match self {
            Self::Syntax { help, .. } | Self::Missing { help, .. } => help.as_deref(),
            Self::NeverSettled => Some("somewhere a promise is awaited whose `resolve` is never called"),
            _ => None,
        }
    }

    /// The steps to the error, innermost first; empty for everything but [`ScriptError::Thrown`].
    pub fn stack(&self) -> &[Frame] {
        match self {
            Self::Thrown { stack, .. } => stack,
            _ => &[],
        }
    }

    /// The same as an error about the user's files, at its place if it has one.
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

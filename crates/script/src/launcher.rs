//! The choice of the runtime for the user's code, and how processes of the user's own runtime are started.

use std::fmt;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use crate::platform::{BUN, DENO, NODE, Platform};

/// Runtime for the user's code.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RuntimeChoice {
    /// The embedded engine, and Node.js for modules that need more, if it is installed.
    #[default]
    Auto,
    /// The embedded engine.
    Embedded,
    /// A runtime of the user.
    External(&'static Platform),
}

impl RuntimeChoice {
    /// All choices with their names.
    pub const NAMES: [(&'static str, Self); 5] = [
        ("auto", Self::Auto),
        ("embedded", Self::Embedded),
        ("node", Self::External(&NODE)),
        ("bun", Self::External(&BUN)),
        ("deno", Self::External(&DENO)),
    ];
}

/// Where the code of a project runs.
#[derive(Clone)]
pub struct ProjectRuntime {
    /// The choice of the project.
    pub choice: RuntimeChoice,
    /// Starts the external runtime.
    pub launcher: Arc<dyn Launcher>,
}

impl fmt::Debug for ProjectRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProjectRuntime").field("choice", &self.choice).finish_non_exhaustive()
    }
}

/// Function that is called after something has arrived from code that runs in another process.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// Limits on the resources of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessLimits {
    /// CPU time.
    pub processor: Duration,
    /// Amount of data in bytes.
    pub memory: u64,
}

/// Starts processes of the user's JavaScript runtime, contained and in the directory of the project.
pub trait Launcher: Send + Sync {
    /// Starts the program of `platform` with `arguments`. The process reads messages from file descriptor 3, and writes
    /// them to 4. `printed` contains its stdout and stderr.
    ///
    /// # Errors
    /// Returns an error if it cannot be started, of the kind `NotFound` if it is not installed.
    fn launch(&self, platform: &Platform, arguments: &[String], limits: ProcessLimits) -> io::Result<Launched>;
}

/// A process that was started.
pub struct Launched {
    /// Messages to the process.
    pub input: Box<dyn Write + Send>,
    /// Messages from the process.
    pub output: Box<dyn Read + Send>,
    /// What the process and its children print.
    pub printed: Box<dyn Read + Send>,
    /// The process. Dropping it ends all its processes.
    pub process: Box<dyn Process>,
}

/// A process of a JavaScript runtime with its children. Dropping it ends all of them.
pub trait Process: Send {
    /// Waits for its end, at most for `timeout`. Returns its exit code, or 128 + the signal; `None` if it still runs.
    ///
    /// # Errors
    /// Returns an error if the system cannot report the status.
    fn wait(&mut self, timeout: Duration) -> io::Result<Option<i32>>;
}

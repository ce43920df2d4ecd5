//! Options of a runtime.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::launcher::Wake;
use crate::module::library::Library;

/// Limits and environment of a runtime.
pub struct Options {
    /// Total heap size in bytes.
    pub memory: usize,
    /// Native stack size in bytes. It must leave room on the thread that uses the runtime.
    pub stack: usize,
    /// Directory in which package names are resolved if no file imports them. Also the result of `process.cwd()`.
    pub base_dir: PathBuf,
    /// Directory to which displayed paths are relative.
    pub shown_from: PathBuf,
    /// Receiver of console output. If there is none, the output is dropped.
    pub console: Option<Console>,
    /// Cache of files. With a clone of another runtime's library, the same files are not read again.
    pub library: Library,
    /// True to freeze all built-in objects from the start, so that a script cannot affect the next one. Packages then
    /// do not work if they extend built-in objects, or assign a property that a built-in object has.
    pub frozen: bool,
    /// Stop flag. While any thread has set it, all scripts are stopped.
    pub stop: Option<Arc<AtomicBool>>,
    /// True for a runtime that only loads a module, to find out what it exports. An external runtime may then load other
    /// modules afterwards, in the same process.
    pub is_inspection: bool,
    /// Called after something has arrived from code that runs in another process, so that the thread that waits for it
    /// makes the next step.
    pub wake: Option<Wake>,
}

impl Options {
    /// Returns options with 64 MiB of memory, 1 MiB of stack, no console, and a new library.
    pub fn new(base_dir: impl Into<PathBuf>) -> Self {
        let base_dir = base_dir.into();
        Self {
            memory: 64 << 20,
            stack: 1 << 20,
            shown_from: base_dir.clone(),
            base_dir,
            console: None,
            library: Library::new(),
            frozen: false,
            stop: None,
            is_inspection: false,
            wake: None,
        }
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { memory, stack, base_dir, .. } = self;
        f.debug_struct("Options")
            .field("memory", memory)
            .field("stack", stack)
            .field("base_dir", base_dir)
            .finish_non_exhaustive()
    }
}

/// Level of a console line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// `console.debug`, `console.trace`.
    Debug,
    /// `console.log`, `console.info` and everything else.
    Info,
    /// `console.warn`.
    Warning,
    /// `console.error`, a failed `console.assert`.
    Error,
}

/// Receiver of the lines that scripts write to the console.
pub type Console = Box<dyn FnMut(Level, &str)>;

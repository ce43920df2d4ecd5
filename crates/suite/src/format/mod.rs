//! The formats a suite may be written in. A new one is a file here and a line in [`FORMATS`].

mod scenario;

use std::path::Path;

use model::decode::Problems;
use model::{Case, Node};

use crate::library::Library;

pub use scenario::{OPENING, near_miss, run};

/// A way to write cases down.
pub trait Format: Sync {
    /// Its name, such as `scenario`.
    fn name(&self) -> &'static str;

    /// How a file of this format is told from others, to follow its name in a message.
    fn mark(&self) -> &'static str;

    /// Whether a file that was only come across is meant to be of this format, by a look at its text, which is too
    /// broken to be parsed.
    fn is_meant(&self, text: &str) -> bool;

    /// Whether a file that was only come across is meant to be of this format, if only nearly. Any other is passed over.
    fn resembles(&self, file: &SuiteFile<'_>) -> bool;

    /// Whether `file`, which must be a suite, is meant to be of this format, broken or not.
    fn recognises(&self, file: &SuiteFile<'_>) -> bool;

    /// The cases of `file`. A case with problems is given as far as it could be read, so that what comes after
    /// loading can look for more of them.
    fn read(&self, file: &SuiteFile<'_>, library: &Library, problems: &mut Problems) -> Vec<Case>;
}

/// A file that may hold a suite.
pub struct SuiteFile<'a> {
    /// Where it is, absolute.
    pub path: &'a Path,
    /// What is written in it.
    pub root: &'a Node,
}

impl SuiteFile<'_> {
    /// The directory that the paths in the file start at.
    pub fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }
}

/// Every format; the first that recognises a file reads it.
pub static FORMATS: &[&dyn Format] = &[&scenario::Scenario];

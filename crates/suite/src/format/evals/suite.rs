//! Properties shared by the cases of a suite.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{Definition, RunnerOptions, Skill};

use crate::coverage::KeyLog;
use crate::fixtures;

/// Properties shared by the cases of a suite.
pub(super) struct Suite<'a> {
    /// Name of the skill as written.
    pub(super) name: &'a str,
    /// Kind of the definition: skill or sub-agent.
    pub(super) definition: Definition,
    /// The skill, if it was found.
    pub(super) skill: Option<&'a Arc<Skill>>,
    /// Folder to which file paths are relative.
    pub(super) directory: &'a Path,
    /// Agent and model that run the cases, if the suite names them.
    pub(super) runner: Arc<RunnerOptions>,
    /// Current time, in milliseconds since 1970.
    pub(super) now_ms: Option<i64>,
    /// Files that were read so far.
    pub(super) contents: &'a mut Contents,
    /// Keys that were read so far.
    pub(super) keys: KeyLog,
}

/// Consequence of a key that only describes something.
pub(super) const DESCRIPTIVE: &str = "it has no effect: trialrun takes it for a description";

/// Files of one suite. Each is read only once, because many cases use the same files.
#[derive(Default)]
pub(super) struct Contents(HashMap<PathBuf, (Arc<[u8]>, bool)>);

impl Contents {
    pub(super) fn get(&mut self, path: &Path) -> std::io::Result<(Arc<[u8]>, bool)> {
        if let Some((content, executable)) = self.0.get(path) {
            return Ok((Arc::clone(content), *executable));
        }
        let (content, executable) = fixtures::bytes(path)?;
        let content: Arc<[u8]> = content.into();
        self.0.insert(path.to_owned(), (Arc::clone(&content), executable));
        Ok((content, executable))
    }
}

//! What a sandbox holds before the agent starts.

use std::path::PathBuf;
use std::sync::Arc;

use crate::{Excerpt, Spanned};

/// A fixtures block with everything it names read in: the same block always builds the same sandbox.
#[derive(Debug, Clone, Default)]
pub struct Fixtures {
    /// Make the sandbox a git repository.
    pub git_init: bool,
    /// The branch to be on after the baseline commit; `main` when absent.
    pub git_branch: Option<String>,
    /// Directory trees copied in first, in order.
    pub copy_trees: Vec<CopyTree>,
    /// Files of the baseline commit.
    pub files_committed: Vec<FixtureFile>,
    /// Files added to the index after the baseline commit.
    pub files_staged: Vec<FixtureFile>,
    /// Files written last and left untracked.
    pub files_unstaged: Vec<FixtureFile>,
    /// Shell commands run in the finished tree, in order.
    pub setup_commands: Vec<Spanned<String>>,
    /// Variables for setup commands and the agent, in the order they are written.
    pub env: Vec<(String, String)>,
    /// Where the block stands, for messages.
    pub source: Option<Excerpt>,
}

impl Fixtures {
    /// Whether building the sandbox means doing anything at all.
    pub fn is_empty(&self) -> bool {
        !self.git_init
            && self.copy_trees.is_empty()
            && self.files_committed.is_empty()
            && self.files_staged.is_empty()
            && self.files_unstaged.is_empty()
            && self.setup_commands.is_empty()
    }
}

/// The contents of a directory, merged into a directory of the sandbox.
#[derive(Debug, Clone)]
pub struct CopyTree {
    /// An existing directory.
    pub from: PathBuf,
    /// Relative to the sandbox, `.` for its root, without `..`.
    pub to: String,
    /// Where it is written.
    pub source: Excerpt,
}

/// One file of a fixture.
#[derive(Debug, Clone)]
pub struct FixtureFile {
    /// Relative to the sandbox, without `..`.
    pub path: String,
    /// The bytes, whatever they are.
    pub content: Arc<[u8]>,
    /// Whether the file it was read from can be executed.
    pub executable: bool,
    /// Where it is written.
    pub source: Excerpt,
}

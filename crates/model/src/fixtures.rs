//! Contents of a sandbox before the agent starts.

use std::path::PathBuf;
use std::sync::Arc;

use crate::{Excerpt, Spanned};

/// Fixtures block with the contents of all the files to which it refers. The same block always builds the same
/// sandbox.
#[derive(Debug, Clone, Default)]
pub struct Fixtures {
    /// True if the sandbox is turned into a git repository.
    pub git_init: bool,
    /// Branch to check out after the baseline commit; `main` if absent.
    pub git_branch: Option<String>,
    /// Directories that are created first.
    pub directories: Vec<String>,
    /// Directory trees copied first, in order.
    pub copy_trees: Vec<CopyTree>,
    /// Files of the baseline commit.
    pub files_committed: Vec<FixtureFile>,
    /// Files added to the index after the baseline commit.
    pub files_staged: Vec<FixtureFile>,
    /// Files written last and left untracked.
    pub files_unstaged: Vec<FixtureFile>,
    /// Shell commands run in the finished tree, in order.
    pub setup_commands: Vec<Spanned<String>>,
    /// Environment variables for setup commands and the agent, in the order in which they are written.
    pub env: Vec<(String, String)>,
    /// Absolute path at which processes also see the working directory, without `..`.
    pub workdir: Option<String>,
    /// Location of this path, or of the first folder at an absolute path.
    pub absolute_source: Option<Excerpt>,
    /// Folders outside of the working directory, at absolute paths.
    pub outside: Vec<OuterFolder>,
    /// Location of the block, for messages.
    pub source: Option<Excerpt>,
}

impl Fixtures {
    /// Returns the files in the working directory, other than those of trees.
    pub fn files(&self) -> impl Iterator<Item = &FixtureFile> {
        [&self.files_committed, &self.files_staged, &self.files_unstaged].into_iter().flatten()
    }

    /// Returns `true` if building the sandbox requires no work.
    pub fn is_empty(&self) -> bool {
        !self.git_init
            && self.directories.is_empty()
            && self.workdir.is_none()
            && self.outside.is_empty()
            && self.copy_trees.is_empty()
            && self.files_committed.is_empty()
            && self.files_staged.is_empty()
            && self.files_unstaged.is_empty()
            && self.setup_commands.is_empty()
    }
}

/// Directory whose contents are merged into a directory of the sandbox.
#[derive(Debug, Clone)]
pub struct CopyTree {
    /// Existing source directory.
    pub from: PathBuf,
    /// Target directory relative to the sandbox, `.` for its root, without `..`.
    pub to: String,
    /// Location in the user's file.
    pub source: Excerpt,
}

/// Folder outside of the working directory, which processes can change.
#[derive(Debug, Clone, Default)]
pub struct OuterFolder {
    /// Absolute path at which processes see it, without `..`.
    pub path: String,
    /// Directories that are created first, relative to the folder.
    pub directories: Vec<String>,
    /// Trees copied into it; their targets are relative to the folder.
    pub trees: Vec<CopyTree>,
    /// Files in it; their paths are relative to the folder.
    pub files: Vec<FixtureFile>,
}

/// File of a fixture.
#[derive(Debug, Clone)]
pub struct FixtureFile {
    /// Path relative to the sandbox, without `..`.
    pub path: String,
    /// Content as bytes.
    pub content: Arc<[u8]>,
    /// True if the source file is executable.
    pub executable: bool,
    /// Location in the user's file.
    pub source: Excerpt,
}

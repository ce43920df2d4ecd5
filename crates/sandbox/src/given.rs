//! A fixture as it was given to the agent, in a place that the agent does not see.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use walkdir::DirEntry;

use super::SandboxError;
use super::deadline::Deadline;
use super::owner::{Base, Purpose};
use super::registry::Registry;
use super::steering::SteeringFiles;
use super::template::Template;
use super::tree_copy::copy_tree;

/// The fixture of one trial.
#[derive(Debug)]
pub(super) enum Given {
    /// The template from which the sandbox was copied.
    Template(Arc<Template>),
    /// What setup commands left: the git directories, ignore files and files that steer tools, and everything in the
    /// home and the directory for temporary files.
    Saved(Base),
}

/// Names of the directories in a saved fixture.
const WORK: &str = "work";
const HOME: &str = "home";
const TMP: &str = "tmp";

impl Given {
    /// Saves what setup commands left in a sandbox's directories.
    ///
    /// # Errors
    /// Returns an error if it cannot be copied.
    pub(super) fn save(
        [work, home, tmp]: [&Path; 3],
        steering: &SteeringFiles,
        root: &Path,
        registry: &Arc<Registry>,
        deadline: Deadline,
    ) -> Result<Self, SandboxError> {
        let base = Base::make(root, "given", Purpose::Sandbox, false, registry)?;
        let mut repositories: Vec<PathBuf> = Vec::new();
        let is_left_out = |entry: &DirEntry| {
            let path = entry.path();
            if is_git_metadata(entry) {
                repositories.push(path.to_owned());
            }
            let relative = path.strip_prefix(work).unwrap_or(path);
            !entry.file_type().is_dir()
                && !steering.restored.contains(relative)
                && !steering.manifests.contains(relative)
                && path.file_name() != Some(OsStr::new(".gitignore"))
                && !repositories.iter().any(|repository| path.starts_with(repository))
        };
        let saved = copy_tree(work, &base.path().join(WORK), deadline, is_left_out);
        saved.map_err(SandboxError::io("save the fixture in", work))?;
        for (from, name) in [(home, HOME), (tmp, TMP)] {
            copy_tree(from, &base.path().join(name), deadline, |_| false)
                .map_err(SandboxError::io("save the fixture in", from))?;
        }
        Ok(Self::Saved(base))
    }

    /// Returns the working directory.
    pub(super) fn work(&self) -> PathBuf {
        match self {
            Self::Template(template) => template.work().to_owned(),
            Self::Saved(base) => base.path().join(WORK),
        }
    }

    /// Returns the git directory of the working directory.
    pub(super) fn git(&self) -> Option<PathBuf> {
        Some(self.work().join(".git")).filter(|git| is_directory(git))
    }

    /// Returns the home directory and the directory for temporary files, if setup commands could write to them.
    pub(super) fn home_and_tmp(&self) -> Option<[PathBuf; 2]> {
        match self {
            Self::Template(_) => None,
            Self::Saved(base) => Some([HOME, TMP].map(|name| base.path().join(name))),
        }
    }
}

/// Returns `true` for git metadata of any form: a `.git` folder, file or link, and a bare repository.
pub(super) fn is_git_metadata(entry: &DirEntry) -> bool {
    entry.file_name().eq_ignore_ascii_case(".git") || (entry.file_type().is_dir() && is_git_directory(entry.path()))
}

/// Returns `true` if git takes the folder `path` for a git directory.
pub(super) fn is_git_directory(path: &Path) -> bool {
    let has = |name: &str| path.join(name).symlink_metadata().is_ok();
    has("HEAD") && has("objects") && has("refs") && is_directory(path)
}

/// Returns `true` for a directory that is not a link.
pub(super) fn is_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir())
}

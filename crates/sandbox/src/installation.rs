//! Installation of a skill in a sandbox.

use std::path::{Path, PathBuf};

use super::Request;

/// A skill and its destination.
#[derive(Debug, Clone)]
pub(super) struct Installation {
    pub(super) from: PathBuf,
    /// Relative to the working directory.
    pub(super) to: String,
}

impl Installation {
    /// Returns the installation that `request` specifies.
    pub(super) fn of(request: &Request) -> Option<Self> {
        let (skill, folder) = request.skill.as_ref()?;
        let from = skill.directory.clone()?;
        Some(Self { from, to: format!("{}/{}", folder.trim_end_matches('/'), skill.file_name()) })
    }
}

/// Returns `true` for the parts of a skill that are not installed: its tests and evals, which contain the answers, its
/// own repository, and Python's caches.
pub(super) fn not_installed(path: &Path) -> bool {
    path.ends_with("__pycache__") || [".git", "evals", "tests"].iter().any(|own| path == Path::new(own))
}

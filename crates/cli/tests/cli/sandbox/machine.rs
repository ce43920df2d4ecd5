//! Properties of sandbox kinds that tests need.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sandbox::SandboxOptions;

/// Settings of a sandbox kind that works on this machine.
#[derive(Default)]
pub(super) struct Settings {
    pub(super) options: SandboxOptions,
    /// Environment variables of the user, in addition to `PATH`.
    pub(super) env: Vec<(String, String)>,
    /// True if such sandboxes are known to work here.
    pub(super) must_hold: bool,
    /// Machine on which the processes run, if it is a different one.
    pub(super) elsewhere: Option<Arc<dyn Elsewhere>>,
}

/// Stand-in for another machine.
pub(super) trait Elsewhere: Send + Sync {
    /// Returns the path on this machine for a path on the other one.
    fn real(&self, path: &Path) -> PathBuf;
}

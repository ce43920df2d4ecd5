//! What a kind of sandbox needs in tests.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sandbox::SandboxOptions;

/// Settings of a kind that this machine can hold.
#[derive(Default)]
pub(super) struct Settings {
    pub(super) options: SandboxOptions,
    /// Variables of the user in addition to `PATH`.
    pub(super) env: Vec<(String, String)>,
    /// True if it is known that such sandboxes work here.
    pub(super) must_hold: bool,
    /// Machine on which its processes run, if it is another one.
    pub(super) elsewhere: Option<Arc<dyn Elsewhere>>,
}

/// A machine that stands in for another one.
pub(super) trait Elsewhere: Send + Sync {
    /// Returns the path on this machine at which a path of the other one is.
    fn real(&self, path: &Path) -> PathBuf;
}

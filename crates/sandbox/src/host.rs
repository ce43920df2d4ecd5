//! What the machine lends to a run. The CLI gathers it; nothing in this crate asks the machine by itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::supervise::Supervisor;

/// The machine, as far as trials may see it.
#[derive(Debug, Clone)]
pub struct Host {
    /// The environment to pick from; nothing of it reaches an agent unless it is on an allow-list.
    pub env: BTreeMap<String, String>,
    /// The user's real home, for sign-ins that live there and for `setting_sources: [user]`.
    pub home: Option<PathBuf>,
    /// Where sandboxes are made.
    pub temp: PathBuf,
    /// Starts processes so that none outlives its trial.
    pub supervisor: Supervisor,
}

impl Host {
    /// A variable that is set and not empty.
    pub fn var(&self, name: &str) -> Option<&str> {
        self.env.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The first executable file of that name on the host's `PATH`; a name with a slash is taken as it is.
    pub fn find_program(&self, name: &str) -> Option<PathBuf> {
        if name.contains('/') {
            return is_executable(Path::new(name)).then(|| PathBuf::from(name));
        }
        let path = self.var("PATH")?;
        path.split(':')
            .filter(|dir| !dir.is_empty())
            .map(|dir| Path::new(dir).join(name))
            .find(|file| is_executable(file))
    }
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

//! A run's access to the machine. The CLI fills it in; this crate itself never reads the machine's settings.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::program::is_executable;
use crate::supervise::Supervisor;

/// The parts of the machine that trials may use.
#[derive(Debug, Clone)]
pub struct Host {
    /// Environment of this process. A variable reaches an agent only if it is on an allow-list.
    pub env: BTreeMap<String, String>,
    /// The user's real home, for credentials stored there and for `setting_sources: [user]`.
    pub home: Option<PathBuf>,
    /// Directory in which sandboxes are created.
    pub temp: PathBuf,
    /// Starts processes in such a way that none of them outlives its trial.
    pub supervisor: Supervisor,
}

impl Host {
    /// Returns the value of a variable if it is set and not empty.
    pub fn var(&self, name: &str) -> Option<&str> {
        self.env.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Returns the first executable file with this name on the host's `PATH`. A name with a slash is used as a path.
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

//! Directories to remove when a run is aborted.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{SandboxError, removal};

/// All directories of the run. A directory is entered before it is created, and deleted from the list after its
/// removal. The handler for signals and panics calls [`remove_all`](Self::remove_all) last.
#[derive(Debug, Default)]
pub struct Registry {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    closed: bool,
    /// Maps a path to `true` if it must be kept.
    directories: BTreeMap<PathBuf, bool>,
}

impl Registry {
    /// Creates an empty registry.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Removes every directory that must not be kept, and rejects new entries from now on. Returns the directories
    /// that could not be removed, with the errors.
    pub fn remove_all(&self) -> Vec<(PathBuf, io::Error)> {
        let directories = {
            let mut state = self.state();
            state.closed = true;
            std::mem::take(&mut state.directories)
        };
        let doomed = directories.into_iter().filter(|(_, keep)| !keep);
        doomed.filter_map(|(path, _)| removal::remove(&path).err().map(|error| (path, error))).collect()
    }

    /// Returns all directories that are currently entered.
    pub fn directories(&self) -> Vec<PathBuf> {
        self.state().directories.keys().cloned().collect()
    }

    pub(super) fn enter(self: &Arc<Self>, path: &Path, keep: bool) -> Result<Entry, SandboxError> {
        let mut state = self.state();
        if state.closed {
            return Err(SandboxError::Ending);
        }
        state.directories.insert(path.to_owned(), keep);
        Ok(Entry { registry: Arc::clone(self), path: path.to_owned() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A directory's entry in the registry. Dropping it deletes the entry.
#[derive(Debug)]
pub(super) struct Entry {
    registry: Arc<Registry>,
    path: PathBuf,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.registry.state().directories.remove(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remove_all_removes_unkept_entries_and_rejects_new_ones() {
        let root = tempfile::tempdir().unwrap();
        let registry = Registry::new();
        let paths = ["gone", "kept", "struck"].map(|name| root.path().join(name));
        paths.iter().for_each(|path| std::fs::create_dir(path).unwrap());
        let _gone = registry.enter(&paths[0], false).unwrap();
        let _kept = registry.enter(&paths[1], true).unwrap();
        drop(registry.enter(&paths[2], false).unwrap());
        assert!(registry.remove_all().is_empty());
        assert_eq!(paths.each_ref().map(|path| path.exists()), [false, true, true]);
        assert!(matches!(registry.enter(&paths[0], false), Err(SandboxError::Ending)));
    }
}

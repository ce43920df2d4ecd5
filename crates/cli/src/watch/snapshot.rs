//! State of files at one point in time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Maximum depth of folders. Hardly any project has deeper ones.
const DEPTH: usize = 32;

/// Kind of change of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The file did not exist before.
    New,
    /// The file was removed.
    Gone,
    /// Its content or identity has changed.
    Other,
}

/// Properties that change when a file changes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    changed: Option<SystemTime>,
    length: u64,
    inode: u64,
}

/// Existing files with their stamps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    files: BTreeMap<PathBuf, Stamp>,
}

impl Snapshot {
    /// Returns the files at `paths`; for folders, everything below them. Folders that people do not edit are skipped:
    /// dot folders, packages, caches.
    pub fn of<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Self {
        let mut snapshot = Self::default();
        for path in paths {
            snapshot.add(path, 0);
        }
        snapshot
    }

    fn add(&mut self, path: &Path, depth: usize) {
        if self.files.contains_key(path) || depth > DEPTH {
            return;
        }
        let Ok(found) = std::fs::metadata(path) else { return };
        if found.is_file() {
            use std::os::unix::fs::MetadataExt;
            let stamp = Stamp { changed: found.modified().ok(), length: found.len(), inode: found.ino() };
            self.files.insert(path.to_owned(), stamp);
        } else if found.is_dir() {
            for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
                // Links to folders may form cycles.
                let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
                if is_entered(&entry.path(), is_folder) {
                    self.add(&entry.path(), depth + 1);
                }
            }
        }
    }

    /// Number of files.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Adds the files of `other` that are missing.
    pub fn add_new(&mut self, other: Self) {
        for (path, stamp) in other.files {
            self.files.entry(path).or_insert(stamp);
        }
    }

    /// Returns the differences to `now`.
    pub fn changes(&self, now: &Self) -> BTreeMap<PathBuf, Change> {
        let gone = self.files.keys().filter(|path| !now.files.contains_key(*path)).map(|path| (path, Change::Gone));
        let others = now.files.iter().filter_map(|(path, stamp)| match self.files.get(path) {
            None => Some((path, Change::New)),
            Some(before) => (before != stamp).then_some((path, Change::Other)),
        });
        gone.chain(others).map(|(path, change)| (path.clone(), change)).collect()
    }
}

fn is_entered(path: &Path, is_folder: bool) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    // Temporary files of editors.
    let is_passing = name.starts_with(b".") || name.ends_with(b"~") || name.starts_with(b"#");
    let is_link_to_folder = !is_folder && path.is_dir();
    !is_passing && !is_link_to_folder && !(is_folder && (name == b"node_modules" || path.join("CACHEDIR.TAG").exists()))
}

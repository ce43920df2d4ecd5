//! Hashes by which a copy of the project is compared with the one in which a run was planned.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use agent::Configured;
use mask::Mask;
use script::Library;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::dependencies::named_in_text;
use crate::invocation::hash_of;

/// Hashes of files in the folder of a project. Each file is read once.
pub(crate) struct ContentHashes<'a> {
    root: &'a Path,
    known: HashMap<PathBuf, Option<String>>,
}

impl<'a> ContentHashes<'a> {
    /// Creates the hashes for the project in the folder `root`.
    pub(crate) fn new(root: &'a Path) -> Self {
        Self { root, known: HashMap::new() }
    }

    /// Returns the SHA-256 of the names and contents of files. Folders, and files that cannot be read, are not part of
    /// it. A file outside of the project counts with the last part of its path, because projects are in different
    /// folders.
    pub(crate) fn of_files(&mut self, files: impl IntoIterator<Item = PathBuf>) -> String {
        let mut all = Sha256::new();
        for (name, hash) in self.by_name(files) {
            all.update(name.as_os_str().as_encoded_bytes());
            all.update([0]);
            all.update(hash);
        }
        model::text::hex(&all.finalize())
    }

    /// Returns the names of the files, with the SHA-256 of each, as for [`Self::of_files`].
    pub(crate) fn by_name(&mut self, files: impl IntoIterator<Item = PathBuf>) -> BTreeSet<(PathBuf, String)> {
        let mut named = BTreeSet::new();
        for file in files {
            let hash = self.known.entry(file.clone()).or_insert_with(|| hash_of(&file)).clone();
            let name = file.strip_prefix(self.root).ok().or_else(|| file.file_name().map(Path::new));
            named.extend(name.map(Path::to_owned).zip(hash));
        }
        named
    }

    /// Returns the SHA-256 of an agent's configuration without secrets, and of its `files`. Paths in the project count
    /// relative to it.
    pub(crate) fn of_agent(&mut self, config: &Configured, files: &BTreeSet<PathBuf>, mask: &Mask) -> String {
        let mut value = config.node.to_json();
        mask.value(&mut value);
        let text = value.to_string().replace(&format!("{}/", self.root.display()), "");
        let mut all = Sha256::new();
        all.update(text);
        all.update(self.of_files(files.iter().cloned()));
        model::text::hex(&all.finalize())
    }
}

/// Returns the files that an agent's configuration names, with the modules that these import.
pub(crate) fn files_of_agent(config: &Configured) -> BTreeSet<PathBuf> {
    let mut files = with_imports(named_in_value(&config.node.to_json(), &config.directory));
    files.retain(|path| path.is_file());
    files
}

/// Returns all files below `folder`.
pub(crate) fn files_below(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = walkdir::WalkDir::new(folder).into_iter().flatten();
    entries.filter(|entry| entry.file_type().is_file()).map(walkdir::DirEntry::into_path)
}

/// Returns the files that are named in the texts of `value`, relative to `directory`.
pub(crate) fn named_in_value(value: &Value, directory: &Path) -> BTreeSet<PathBuf> {
    match value {
        Value::String(text) => named_in_text(text, directory),
        Value::Array(items) => items.iter().flat_map(|item| named_in_value(item, directory)).collect(),
        Value::Object(fields) => fields.values().flat_map(|field| named_in_value(field, directory)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => BTreeSet::new(),
    }
}

/// Returns `files` with the modules that they import.
pub(crate) fn with_imports(files: BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
    let library = Library::new();
    let imported: Vec<PathBuf> =
        files.iter().filter(|file| file.is_file()).flat_map(|file| library.imports(file)).collect();
    files.into_iter().chain(imported).collect()
}

//! Files that a configuration names with `file://`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use globset::GlobBuilder;
use model::decode::Problems;
use model::{Node, NodeKind, Source};
use walkdir::WalkDir;

use super::reading::{Reading, moved_to};
use crate::document::{self, Language};
use crate::path;

/// Start of a reference to a file.
pub(super) const FILE: &str = "file://";

/// Endings of modules that the script engine runs.
const MODULES: [&str; 6] = ["js", "cjs", "mjs", "ts", "cts", "mts"];

/// Maximum number of files that a pattern matches.
const MAX_MATCHES: usize = 10_000;

/// Returns the ending of the name of a file in lower case.
pub(super) fn ending(path: &Path) -> String {
    path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase()).unwrap_or_default()
}

/// Returns `true` if the file at `path` is a module.
pub(super) fn is_module(path: &Path) -> bool {
    MODULES.contains(&ending(path).as_str())
}

/// Splits `FILE:FUNCTION`.
pub(super) fn with_function(reference: &str) -> (&str, Option<&str>) {
    match reference.rsplit_once(':') {
        // In Python, the function may belong to a class: `file.py:Class.method`.
        Some((file, name)) if file.ends_with(".py") && !name.is_empty() => (file, Some(name)),
        Some((file, name)) if !name.is_empty() && !name.contains(['/', '\\', '.']) => (file, Some(name)),
        _ => (reference, None),
    }
}

impl Reading<'_> {
    /// Returns the absolute path of `reference`, which may begin with `file://`.
    pub(super) fn path_of(&self, reference: &str) -> PathBuf {
        path::resolve(&self.directory, reference.strip_prefix(FILE).unwrap_or(reference))
    }

    /// Returns the files that match `reference`, which may contain wildcards, sorted by path. A missing file is
    /// reported at `at`.
    pub(super) fn files(&self, reference: &str, at: &Node, problems: &mut Problems) -> Vec<PathBuf> {
        let written = reference.strip_prefix(FILE).unwrap_or(reference);
        let path = self.path_of(reference);
        if path.is_file() {
            return vec![path];
        }
        if !written.contains(['*', '?', '[', '{']) {
            let near = path::near(&path, written);
            problems.push(at.error(format!("there is no file `{written}`")).suggest(near.as_deref()));
            return Vec::new();
        }
        let pattern = path.to_string_lossy().into_owned();
        let fixed = Path::new(&pattern[..pattern.find(['*', '?', '[', '{']).unwrap_or(pattern.len())]);
        let base = if pattern.ends_with('/') { Some(fixed) } else { fixed.parent() }.unwrap_or(Path::new("/"));
        let Ok(glob) = GlobBuilder::new(&pattern).literal_separator(true).build() else {
            problems.push(at.error(format!("`{written}` is not a valid pattern of files")));
            return Vec::new();
        };
        let glob = glob.compile_matcher();
        let files = WalkDir::new(base).sort_by_file_name().into_iter().flatten().map(|entry| entry.path().to_owned());
        let found: Vec<PathBuf> =
            files.filter(|path| glob.is_match(path) && path.is_file()).take(MAX_MATCHES).collect();
        if found.is_empty() {
            problems.push(at.error(format!("no file matches `{written}`")));
        }
        found
    }

    /// Opens a file that `at` names.
    pub(super) fn open(&self, path: &Path, at: &Node, problems: &mut Problems) -> Option<Arc<Source>> {
        let shown = self.library.shown(path);
        match document::open(path, &shown) {
            Ok(source) => Some(source),
            Err(problem) => {
                problems.push(match path.exists() {
                    true => at.error(problem.message.clone()).help(shown),
                    false => {
                        let near = path::near(path, &shown);
                        at.error(format!("there is no file `{shown}`")).suggest(near.as_deref())
                    }
                });
                None
            }
        }
    }

    /// Returns the value in a file that `at` names: that of JSON and YAML, otherwise the text.
    pub(super) fn value_in(&self, path: &Path, at: &Node, problems: &mut Problems) -> Option<Node> {
        let source = self.open(path, at, problems)?;
        match Language::from_path(path) {
            Some(language) => document::read(&source, language, problems),
            None => {
                let text = Node { kind: NodeKind::String(source.text.trim().to_owned()), ..document::start(&source) };
                Some(moved_to(text, at))
            }
        }
    }
}

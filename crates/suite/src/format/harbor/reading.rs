//! What is known about a task while it is read.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::decode::{Fields, Problems, add_unknown_key};
use model::{Diagnostic, Excerpt, Node, NodeKind, Source};

use crate::coverage::{KeyLog, Treatment, Unknown};
use crate::document;
use crate::library::Library;

/// A task while it is read.
pub(super) struct Reading<'a> {
    /// Folder of the task.
    pub(super) own: &'a Path,
    pub(super) library: &'a Library,
    /// Keys that were read so far.
    pub(super) keys: KeyLog,
    /// Problems with the task.
    pub(super) found: Problems,
    /// Reasons why the task needs a sandbox with an image of its own.
    pub(super) needs_image: Problems,
}

/// Names of keys with the consequences of ignoring them.
pub(super) type Ignored<'a> = [(&'a str, &'a str)];

impl<'a> Reading<'a> {
    pub(super) fn new(own: &'a Path, library: &'a Library) -> Self {
        Self { own, library, keys: KeyLog::default(), found: Problems::new(), needs_image: Problems::new() }
    }

    /// Opens a file of the task.
    pub(super) fn open(&mut self, path: &Path) -> Option<Arc<Source>> {
        document::open(path, &self.library.shown(path)).map_err(|problem| self.found.push(*problem)).ok()
    }

    /// Records the keys of a map. Keys that harbor does not know have no effect there.
    pub(super) fn close(&mut self, fields: &Fields<'_>, path: &str, ignored: &Ignored<'_>) {
        let mut misspelt = Problems::new();
        let unknown = |_: &str, _: &Node| Unknown::Ignored("it has no effect there either".to_owned());
        let broken = self.keys.close(fields, path, ignored, unknown, &mut misspelt);
        misspelt.into_iter().for_each(|problem| add_unknown_key(fields.node(), problem, &mut self.found));
        self.found.extend(broken);
    }

    /// Refuses a key, which is `full` in the coverage, and marks it as known.
    pub(super) fn refuse(&mut self, fields: &mut Fields<'_>, key: &'static str, full: &str, consequence: &str) {
        if fields.get(key).is_some() {
            let place = fields.key_span(key).unwrap_or_default();
            self.refuse_at(full, fields.node().source.excerpt(place), consequence);
        }
    }

    /// Refuses something that is called `key` in the coverage.
    pub(super) fn refuse_at(&mut self, key: &str, place: Excerpt, consequence: &str) {
        self.keys.add(key.to_owned(), Treatment::Refused, Some(consequence.to_owned()), place.clone());
        self.found.push(Diagnostic::error(format!("`{key}` is not supported: {consequence}")).at(place));
    }

    /// Records that `key` has no effect.
    pub(super) fn ignore(&mut self, key: &str, place: Excerpt, consequence: &str) {
        self.keys.add(key.to_owned(), Treatment::Ignored, Some(consequence.to_owned()), place);
    }

    /// Records that `key` needs a sandbox with an image of its own, because of `reason`.
    pub(super) fn need_image(&mut self, key: &str, place: Excerpt, reason: &str) {
        let consequence = format!("{reason}: use `docker` or `podman` sandboxes, with an image that is built from it");
        self.keys.add(key.to_owned(), Treatment::Refused, Some(consequence), place.clone());
        self.needs_image.push(Diagnostic::error(reason).at(place));
    }

    /// Reads a map of variables. A value can be that of a variable of this machine there; here, only its default is
    /// used.
    pub(super) fn variables(&mut self, fields: &mut Fields<'_>, full: &str) -> Vec<(String, String)> {
        let written = fields.text_map("env", &mut self.found).unwrap_or_default();
        let Some(map) = fields.get("env") else { return Vec::new() };
        let mut variables = Vec::new();
        for (name, value) in written {
            let place = map.source.excerpt(value.span);
            let inner = value.value.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
            match inner.map(|inner| inner.split_once(":-").map_or((inner, None), |(name, value)| (name, Some(value)))) {
                None => variables.push((name, value.value)),
                Some((_, Some(default))) => {
                    let consequence = "variables of this machine are not given to tasks, so the default is used";
                    self.ignore(&format!("{full}.{name}"), place, consequence);
                    variables.push((name, default.to_owned()));
                }
                Some((variable, None)) => {
                    let consequence = format!("the variable `{variable}` of this machine is not given to tasks");
                    self.refuse_at(&format!("{full}.{name}"), place, &consequence);
                }
            }
        }
        variables
    }

    /// Returns the path of a part of the task if it exists.
    pub(super) fn part(&self, names: &[&str]) -> Option<PathBuf> {
        let path = names.iter().fold(self.own.to_owned(), |path, name| path.join(name));
        path.exists().then_some(path)
    }
}

/// Returns `true` for a map or a list without entries.
pub(super) fn is_empty(node: &Node) -> bool {
    match &node.kind {
        NodeKind::Map(entries) => entries.is_empty(),
        NodeKind::List(items) => items.is_empty(),
        _ => false,
    }
}

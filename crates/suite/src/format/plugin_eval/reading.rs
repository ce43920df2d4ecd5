//! What is known about a case while it is read.

use std::path::Path;

use model::Node;
use model::decode::{Fields, Problems, add_unknown_key};

use crate::coverage::{KeyLog, Unknown};
use crate::library::Library;

/// A case while it is read.
pub(super) struct Reading<'a> {
    /// Folder of the case.
    pub(super) own: &'a Path,
    /// Folder of the suite.
    pub(super) suite: &'a Path,
    pub(super) library: &'a Library,
    /// Keys that were read so far.
    pub(super) keys: KeyLog,
    /// Problems with the case.
    pub(super) found: Problems,
}

impl<'a> Reading<'a> {
    pub(super) fn new(own: &'a Path, suite: &'a Path, library: &'a Library) -> Self {
        Self { own, suite, library, keys: KeyLog::default(), found: Problems::new() }
    }

    /// Records the keys of a map and adds the problems with them.
    pub(super) fn close(
        &mut self,
        fields: &Fields<'_>,
        path: &str,
        ignored: &[(&str, &str)],
        unknown: impl Fn(&str, &Node) -> Unknown,
    ) {
        let mut misspelt = Problems::new();
        let broken = self.keys.close(fields, path, ignored, unknown, &mut misspelt);
        let unknown = misspelt.into_iter().chain(broken);
        unknown.for_each(|problem| add_unknown_key(fields.node(), problem, &mut self.found));
    }
}

/// Decides about a key that trialrun does not know.
pub(super) fn unknown(_: &str, _: &Node) -> Unknown {
    Unknown::Ignored("it has no effect there either".to_owned())
}

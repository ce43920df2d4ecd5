//! Hash of the project's configuration.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::{calibration, configured};
use crate::content_hash::{ContentHashes, named_in_value, with_imports};
use crate::overrides::Overrides;
use crate::session::Session;

/// Returns the SHA-256 of the configuration file and of the files that change what it means: modules that it imports
/// or names for fixtures, prices and the judge's calibration. Agents have hashes of their own.
pub(super) fn hash(args: &Overrides, session: &Session) -> String {
    let project = &session.project;
    let fixtures = project.tree.as_ref().and_then(|tree| tree.get("fixtures")).map(model::Node::to_json);
    let mut files: BTreeSet<PathBuf> = fixtures.iter().flat_map(|value| named_in_value(value, &project.root)).collect();
    files.extend(project.file.clone());
    files.extend(configured::pricing(args, session));
    files.extend(calibration::file(args, session));
    ContentHashes::new(&project.root).of_files(with_imports(files))
}

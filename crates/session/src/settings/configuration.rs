//! Hashes of the project's configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::{calibration, configured};
use crate::content_hash::{ContentHashes, named_in_value, with_imports};
use crate::overrides::Overrides;
use crate::session::Session;

/// Returns the SHA-256 of the configuration file and of each file that changes what it means: modules that it imports or
/// names for fixtures, prices and the judge's calibration. Agents have hashes of their own.
pub(super) fn hashes(args: &Overrides, session: &Session) -> BTreeMap<String, String> {
    let project = &session.project;
    let fixtures = project.tree.as_ref().and_then(|tree| tree.get("fixtures")).map(model::Node::to_json);
    let mut files: BTreeSet<PathBuf> = fixtures.iter().flat_map(|value| named_in_value(value, &project.root)).collect();
    files.extend(project.file.clone());
    files.extend(configured::pricing(args, session));
    files.extend(calibration::file(args, session));
    let named = ContentHashes::new(&project.root).by_name(with_imports(files));
    named.into_iter().map(|(name, hash)| (name.display().to_string(), hash)).collect()
}

/// Returns what is different about a file of the configuration; `None` if nothing is.
pub(super) fn difference(here: &BTreeMap<String, String>, run: &BTreeMap<String, String>) -> Option<String> {
    let names: BTreeSet<&String> = here.keys().chain(run.keys()).collect();
    names.into_iter().find_map(|name| match (here.get(name), run.get(name)) {
        (Some(here), Some(run)) if here == run => None,
        (Some(_), Some(_)) => Some(format!("{name} is not that of the run")),
        (None, _) => Some(format!("{name} is missing, which the configuration needs")),
        (_, None) => Some(format!("the configuration needs {name}, which the run does not have")),
    })
}

//! The command that started a run, as recorded for `run --resume`.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use model::Invocation;
use runner::Plan;
use sha2::{Digest, Sha256};

use crate::machine;

/// Returns the command of this process, with the files of `plan`. `None` if it cannot be recorded.
pub fn invocation(plan: &Plan, cwd: &Path) -> Option<Invocation> {
    let files: HashSet<&Arc<str>> = plan.trials.iter().map(|trial| &trial.case.source.file).collect();
    let suites: BTreeMap<String, String> =
        files.into_iter().filter_map(|file| Some((file.to_string(), hash_of(&cwd.join(&**file))?))).collect();
    Some(Invocation { arguments: machine::arguments()?, directory: cwd.to_str()?.to_owned(), suites })
}

/// Returns the SHA-256 of a regular file of at most 1 GiB; `None` if it cannot be read.
pub fn hash_of(file: &Path) -> Option<String> {
    let content = files::read_named(file, 1 << 30).ok()?;
    Some(Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect())
}

//! The command that started a run, as recorded for `run --resume`.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use model::Invocation;
use runner::{Plan, PlannedTrial};
use sha2::{Digest, Sha256};

use crate::machine;

/// Returns the command of this process, with the files that decide what the trials of `plan` do. `None` if it cannot
/// be recorded.
pub fn invocation(plan: &Plan, cwd: &Path) -> Option<Invocation> {
    let of_trial = |trial: &Arc<PlannedTrial>| -> Vec<Arc<str>> {
        test_files(trial).cloned().chain(argument(trial, cwd)).collect()
    };
    let files: HashSet<Arc<str>> = plan.trials.iter().flat_map(of_trial).collect();
    let suites: BTreeMap<String, String> =
        files.into_iter().filter_map(|file| Some((file.to_string(), hash_of(&cwd.join(&*file))?))).collect();
    Some(Invocation { arguments: machine::arguments()?, directory: cwd.to_str()?.to_owned(), suites })
}

/// Returns the files in which the case of `trial` is written: its suite, and the table with its row.
pub fn test_files(trial: &PlannedTrial) -> impl Iterator<Item = &Arc<str>> {
    [&trial.case.source.file].into_iter().chain(&trial.case.table)
}

/// Returns the file that the agent of `trial` takes as its argument, such as recorded answers or a module.
fn argument(trial: &PlannedTrial, cwd: &Path) -> Option<Arc<str>> {
    let argument = trial.argument.as_ref()?;
    cwd.join(&**argument).is_file().then(|| Arc::clone(argument))
}

/// Returns the SHA-256 of a regular file of at most 1 GiB; `None` if it cannot be read.
pub fn hash_of(file: &Path) -> Option<String> {
    let content = files::read_named(file, 1 << 30).ok()?;
    Some(Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect())
}

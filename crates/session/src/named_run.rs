//! Runs that the user refers to by name.

use model::RunRow;
use store::{RunFilter, Store};

use crate::error::Error;

/// Returns the run to which `wanted` refers. If several runs have that label, a note says which one is used.
///
/// # Errors
/// Returns an error if there is no such run, or if the record cannot be read.
pub fn named_run(store: &dyn Store, wanted: &str) -> Result<(RunRow, Option<String>), Error> {
    let run = store.select(wanted)?;
    if run.label.as_deref() != Some(wanted) {
        return Ok((run, None));
    }
    let named = store.runs(&RunFilter { named: Some(wanted.to_owned()), ..RunFilter::default() })?;
    let same = named.iter().filter(|other| other.label == run.label).count();
    let note = (same > 1).then(|| format!("{same} runs have the label `{wanted}`; {} is the newest", run.short));
    Ok((run, note))
}

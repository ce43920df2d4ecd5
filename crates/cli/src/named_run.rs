//! Runs that the user refers to by name.

use model::RunRow;
use store::{RunFilter, Store};

use crate::error::CliError;
use crate::terminal::Terminal;

/// Returns the run to which `wanted` refers. If several runs have that label, a note says which one is used.
pub fn named_run(store: &dyn Store, wanted: &str, terminal: &Terminal) -> Result<RunRow, CliError> {
    let run = store.select(wanted)?;
    if run.label.as_deref() == Some(wanted) {
        let named = store.runs(&RunFilter { named: Some(wanted.to_owned()), ..RunFilter::default() })?;
        let same = named.iter().filter(|other| other.label == run.label).count();
        if same > 1 {
            let note = format!("note: {same} runs have the label `{wanted}`; {} is the newest\n", run.short);
            terminal.err(&note);
        }
    }
    Ok(run)
}

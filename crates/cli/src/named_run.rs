//! Runs that the user refers to by name.

use model::RunRow;
use store::Store;

use crate::error::CliError;
use crate::terminal::Terminal;

/// Returns the run to which `wanted` refers. If several runs have that label, a note says which one is used.
pub fn named_run(store: &dyn Store, wanted: &str, terminal: &Terminal) -> Result<RunRow, CliError> {
    let (run, note) = session::named_run(store, wanted)?;
    if let Some(note) = note {
        terminal.err(&format!("note: {note}\n"));
    }
    Ok(run)
}

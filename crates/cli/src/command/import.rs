//! `trialrun import`.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::process::ExitCode;

use store::ArchiveError;

use crate::error::CliError;
use crate::global::Global;
use crate::project::ProjectContext;
use crate::terminal::Terminal;

/// Arguments of `import`.
#[derive(Debug, clap::Args)]
pub struct ImportArgs {
    /// Files that `trialrun export` wrote
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

/// Adds runs from files to the record. A run that is recorded already stays as it is.
pub fn run(global: &Global, args: &ImportArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let context = ProjectContext::find(global, &[])?;
    // Opened first, so that a wrong name changes nothing.
    let mut opened = Vec::new();
    for path in &args.files {
        let shown = path.display();
        let file = File::open(context.cwd.join(path))
            .map_err(|error| CliError::usage(format!("cannot read {shown}: {error}")))?;
        opened.push((shown, file));
    }
    let mut store = context.open_store()?;
    for (shown, file) in opened {
        match store::import(&mut *store, BufReader::new(file)) {
            Ok(imported) => {
                let row = store.select(&imported.run)?;
                let name = row.label.as_deref().unwrap_or(&row.short);
                terminal.out(&format!("Recorded run {name} from {shown} (finished trials: {}).\n", row.finished));
            }
            Err(ArchiveError::Present(run)) => {
                terminal.out(&format!("Run {run} of {shown} is already recorded.\n"));
            }
            Err(ArchiveError::Store(error)) => return Err(error.into()),
            Err(error) => return Err(CliError::usage(format!("cannot import {shown}: {error}"))),
        }
    }
    Ok(ExitCode::SUCCESS)
}

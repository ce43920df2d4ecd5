//! `trialrun import`.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use store::ArchiveError;

use crate::error::CliError;
use crate::global::Global;
use crate::place;
use crate::terminal::Terminal;

/// Arguments of `import`.
#[derive(Debug, clap::Args)]
pub struct ImportArgs {
    /// Files that `trialrun export` wrote
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

/// Adds runs from files to the record. A run that is already recorded stays unchanged.
pub fn run(global: &Global, args: &ImportArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let context = place::open(global, &[])?;
    let files = opened(&context.cwd, &args.files)?;
    let mut store = context.open_store()?;
    for (shown, file) in files {
        match store::import(&mut *store, file) {
            Ok(imported) => {
                let row = store.select(&imported.run)?;
                let name = row.label.as_deref().unwrap_or(&row.short);
                terminal.out(&format!("Recorded run {name} from {shown} (finished trials: {}).\n", row.finished));
            }
            Err(ArchiveError::Present(run)) => {
                terminal.out(&format!("Run {run} of {shown} is already recorded.\n"));
            }
            Err(error) => return Err(refused(&shown, error)),
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Opens all files before any of them is used, so that a wrong name changes nothing. Returns each file with its name.
pub fn opened(cwd: &Path, files: &[PathBuf]) -> Result<Vec<(String, BufReader<File>)>, CliError> {
    let open = |path: &PathBuf| {
        let file = File::open(cwd.join(path))
            .map_err(|error| CliError::usage(format!("cannot read {}: {error}", path.display())))?;
        Ok((path.display().to_string(), BufReader::new(file)))
    };
    files.iter().map(open).collect()
}

/// Returns the error for a file that cannot be imported.
pub fn refused(shown: &str, error: ArchiveError) -> CliError {
    match error {
        ArchiveError::Store(error) => error.into(),
        error => CliError::usage(format!("cannot import {shown}: {error}")),
    }
}

//! The repository and the CI service that the program runs in, for reports.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::error::CliError;

/// Variable with the file for the summary of a step of GitHub Actions.
const STEP_SUMMARY: &str = "GITHUB_STEP_SUMMARY";

/// Returns the folder of the current directory in its repository; empty at its root and outside of any.
pub fn folder_in_repository() -> PathBuf {
    let cwd = std::env::current_dir().unwrap_or_default();
    // In a worktree it is a file.
    let is_root = |folder: &&Path| folder.join(".git/HEAD").exists() || folder.join(".git").is_file();
    let root = cwd.ancestors().find(is_root);
    root.and_then(|root| cwd.strip_prefix(root).ok()).map(Path::to_owned).unwrap_or_default()
}

/// Opens the file for the summary of this step of GitHub Actions, to append to it. `None` if there is no such file.
pub fn step_summary() -> Result<Option<Box<dyn Write + Send>>, CliError> {
    let Some(file) = std::env::var_os(STEP_SUMMARY).filter(|file| !file.is_empty()) else { return Ok(None) };
    let opened = File::options().append(true).create(true).open(&file);
    let opened = opened.map_err(|error| {
        let file = Path::new(&file).display();
        CliError::usage(format!("cannot write {file}: {error}")).hint(format!("the `{STEP_SUMMARY}` variable names it"))
    })?;
    Ok(Some(Box::new(opened)))
}

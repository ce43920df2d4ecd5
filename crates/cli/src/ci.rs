//! The repository and the CI service in which the program runs, for reports.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::error::CliError;

/// Variable with the path of the file for the step summary in GitHub Actions.
const STEP_SUMMARY: &str = "GITHUB_STEP_SUMMARY";

/// Returns the folder of the current directory in its repository; empty at the root and outside any repository.
pub fn folder_in_repository() -> PathBuf {
    let cwd = std::env::current_dir().unwrap_or_default();
    // In a worktree, `.git` is a file.
    let is_root = |folder: &&Path| folder.join(".git/HEAD").exists() || folder.join(".git").is_file();
    let root = cwd.ancestors().find(is_root);
    root.and_then(|root| cwd.strip_prefix(root).ok()).map(Path::to_owned).unwrap_or_default()
}

/// Opens the file for the summary of this step in GitHub Actions for appending. `None` if there is no such file.
pub fn step_summary() -> Result<Option<Box<dyn Write + Send>>, CliError> {
    let Some(file) = std::env::var_os(STEP_SUMMARY).filter(|file| !file.is_empty()) else { return Ok(None) };
    let opened = File::options().append(true).create(true).open(&file);
    let opened = opened.map_err(|error| {
        let file = Path::new(&file).display();
        CliError::usage(format!("cannot write {file}: {error}")).hint(format!("the `{STEP_SUMMARY}` variable names it"))
    })?;
    Ok(Some(Box::new(opened)))
}

//! `trialrun licenses`.

use std::process::ExitCode;

use crate::error::CliError;
use crate::terminal::Terminal;

/// Packages and licence texts, written by `scripts/licenses`.
const NOTICES: &str = include_str!("../third-party-notices.txt");

/// Prints the notices.
pub fn run(terminal: &Terminal) -> Result<ExitCode, CliError> {
    terminal.out(NOTICES);
    Ok(ExitCode::SUCCESS)
}

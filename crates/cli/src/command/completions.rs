//! `trialrun completions`.

use std::process::ExitCode;

use clap_complete::Shell;

use crate::error::CliError;
use crate::terminal::Terminal;

/// Arguments of `completions`.
#[derive(Debug, clap::Args)]
pub struct CompletionsArgs {
    /// Shell to complete for
    shell: Shell,
}

/// Prints a completion script for the command line given by `definition`.
pub fn run(args: &CompletionsArgs, definition: &mut clap::Command, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, definition, "trialrun", &mut script);
    terminal.out(&String::from_utf8_lossy(&script));
    Ok(ExitCode::SUCCESS)
}

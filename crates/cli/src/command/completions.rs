//! `trialrun completions`.

use std::process::ExitCode;

use clap_complete::Shell;

use crate::args::Args;
use crate::error::CliError;
use crate::terminal::Terminal;

/// Arguments of `completions`.
#[derive(Debug, clap::Args)]
pub struct CompletionsArgs {
    /// Which shell
    shell: Shell,
}

/// Prints a completion script.
pub fn run(args: &CompletionsArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::definition(), "trialrun", &mut script);
    terminal.out(&String::from_utf8_lossy(&script));
    Ok(ExitCode::SUCCESS)
}

//! `trialrun man`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ValueHint;
use clap_mangen::Man;

use crate::error::CliError;
use crate::terminal::Terminal;

/// Arguments of `man`.
#[derive(Debug, clap::Args)]
pub struct ManArgs {
    /// Directory to write the pages of all commands into [default: print the main page]
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    dir: Option<PathBuf>,
}

/// Prints the manual page for the command line given by `definition`, or writes one page per command.
pub fn run(args: &ManArgs, definition: clap::Command, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let definition = with_long_help(definition);
    let Some(dir) = &args.dir else {
        let mut page = Vec::new();
        Man::new(definition).render(&mut page).map_err(|error| unwritten(Path::new("the page"), &error))?;
        terminal.out(&String::from_utf8_lossy(&page));
        return Ok(ExitCode::SUCCESS);
    };
    std::fs::create_dir_all(dir).map_err(|error| unwritten(dir, &error))?;
    clap_mangen::generate_to(definition, dir).map_err(|error| unwritten(dir, &error))?;
    let count = dir.read_dir().map_err(|error| unwritten(dir, &error))?.count();
    terminal.out(&format!("wrote {count} pages into {}\n", dir.display()));
    Ok(ExitCode::SUCCESS)
}

/// Gives each option a long help text: pages show no other of an option that a short help leaves out.
fn with_long_help(command: clap::Command) -> clap::Command {
    let described = |option: clap::Arg| match (option.get_long_help(), option.get_help().cloned()) {
        (None, Some(help)) => option.long_help(help),
        _ => option,
    };
    command.mut_args(described).mut_subcommands(with_long_help)
}

fn unwritten(path: &Path, error: &std::io::Error) -> CliError {
    CliError::environment(format!("cannot write {}: {error}", path.display()))
}

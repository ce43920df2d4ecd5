//! Errors of commands: those of a session, with their exit codes.

use std::process::ExitCode;

use session::ErrorKind;

use crate::{exit, signals};

pub use session::Error as CliError;

/// Returns the exit code of the program for `error`.
pub fn code(error: &CliError) -> ExitCode {
    ExitCode::from(match error.kind() {
        ErrorKind::Usage => exit::INVALID,
        ErrorKind::Nothing => exit::NOTHING,
        ErrorKind::Environment => exit::INCOMPLETE,
        ErrorKind::Stopped => signals::exit_code().unwrap_or(exit::INCOMPLETE),
    })
}

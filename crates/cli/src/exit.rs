//! Exit codes, which are a stable interface.

use std::io::Write;
use std::process::ExitCode;

/// Everything passed.
pub const PASSED: u8 = 0;
/// At least one trial failed.
pub const FAILED: u8 = 1;
/// The usage, the settings or a suite is invalid; nothing ran.
pub const INVALID: u8 = 2;
/// Some trials are broken or undecided, and none failed.
pub const INCOMPLETE: u8 = 3;
/// Nothing was tested: no case was selected, or every trial was skipped.
pub const NOTHING: u8 = 4;
/// A bug.
pub const BUG: u8 = 70;

/// Returns the exit code for a run that was stopped by a signal or another cause.
pub fn of_stop(reason: &str) -> ExitCode {
    ExitCode::from(match reason {
        "SIGINT" => 130,
        "SIGTERM" => 143,
        "SIGHUP" => 129,
        _ => INCOMPLETE,
    })
}

/// Prints the message from the argument parser; help and version are not errors.
pub fn of_usage(error: &clap::Error) -> ExitCode {
    if let Err(unwritten) = error.print()
        && unwritten.kind() != std::io::ErrorKind::BrokenPipe
        && !error.use_stderr()
    {
        let _ = writeln!(anstream::stderr(), "error: cannot write to standard output: {unwritten}");
        return ExitCode::from(INCOMPLETE);
    }
    ExitCode::from(if error.use_stderr() { INVALID } else { PASSED })
}

/// Runs the program. A panic is a bug, and the message says how to report it. The stack is unwound first, so that
/// sandboxes and processes are cleaned up.
pub fn or_bug(program: impl FnOnce() -> ExitCode + std::panic::UnwindSafe) -> ExitCode {
    std::panic::catch_unwind(program).unwrap_or_else(|_| {
        let _ = writeln!(
            anstream::stderr(),
            "\ntrialrun {} panicked, which is a bug. Everything recorded so far is safe. Please report the lines above.",
            env!("CARGO_PKG_VERSION")
        );
        ExitCode::from(BUG)
    })
}

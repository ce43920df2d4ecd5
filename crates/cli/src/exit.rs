//! Exit codes: a contract with whoever calls the program.

use std::process::ExitCode;

/// Everything passed.
pub const PASSED: u8 = 0;
/// Some trial failed.
pub const FAILED: u8 = 1;
/// Usage, settings or a suite are invalid; nothing ran.
pub const INVALID: u8 = 2;
/// Broken or undecided, nothing failed.
pub const INCOMPLETE: u8 = 3;
/// Nothing was selected.
pub const NOTHING: u8 = 4;
/// A bug.
pub const BUG: u8 = 70;

/// The code of a run that a signal or something else stopped.
pub fn of_stop(reason: &str) -> ExitCode {
    ExitCode::from(match reason {
        "SIGINT" => 130,
        "SIGTERM" => 143,
        "SIGHUP" => 129,
        _ => INCOMPLETE,
    })
}

/// Prints what the parser has to say: help and version are no errors.
pub fn of_usage(error: &clap::Error) -> ExitCode {
    let _ = error.print();
    ExitCode::from(if error.use_stderr() { INVALID } else { PASSED })
}

/// A panic is a bug of ours: it says so and says what helps to mend it.
pub fn report_bugs() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        default(info);
        anstream::eprintln!(
            "\ntrialrun {} has a bug: it panicked. Recorded trials are safe. Please report the lines above.",
            env!("CARGO_PKG_VERSION")
        );
        // Trials run in tasks whose panic makes them broken; anywhere else nothing sensible is left to do.
        if std::thread::current().name() == Some("main") {
            std::process::exit(i32::from(BUG));
        }
    }));
}

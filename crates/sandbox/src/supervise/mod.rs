//! Containment: no process outlives its trial.
//!
//! The binary starts itself again as a *supervisor* for every agent and every command, with a hidden first argument,
//! before it has started any thread. The supervisor adopts whatever loses its parent below it (it is a subreaper) and,
//! where the machine allows it, puts everything into a pid namespace. It ends all of it when the program ends, when it
//! is told to, or when the harness is gone, which it learns from a pipe (the *lifeline*).
//!
//! ```text
//! harness ── __supervise ── __supervise-space ── __supervise-init (pid 1) ── program      with a namespace
//! harness ── __supervise ── program                                                      the floor
//! ```
//!
//! `program` is reached through `__supervise-exec`, which gives it a session of its own, so that Ctrl-C in a terminal
//! does not reach it, and a clean signal mask.
//!
//! Signals to a supervisor: SIGTERM, SIGINT or SIGHUP ask everything below politely with SIGTERM; a second one, SIGUSR1
//! or the end of the lifeline kill at once. It exits as its program did: with its code, or 128 + the signal; with 127 or
//! 126 when the program cannot be found or run; with 125 and a line on stderr that starts with [`MARK`] when the trouble
//! is its own.

mod captured;
mod contained;
mod descendants;
mod exec;
mod keeper;
mod lifeline;
mod run;
mod space;
mod supervisor;
mod words;

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

pub use captured::Captured;
pub use contained::Contained;
pub use lifeline::Lifeline;
pub use run::{Output, run};
pub use supervisor::{Containment, Supervisor};

/// What a line on stderr starts with when it comes from the supervisor and not from the program.
pub const MARK: &str = "trialrun supervisor: ";

/// The exit code for the supervisor's own trouble.
pub const TROUBLE: u8 = 125;

type Role = fn(&words::Words) -> Result<u8, String>;

const ROLES: &[(&str, Role)] = &[
    ("__supervise", keeper::main),
    ("__supervise-space", space::main),
    ("__supervise-init", space::init),
    ("__supervise-exec", exec::main),
    ("__supervise-probe", keeper::probe),
];

/// Whether the binary's first argument asks for one of the hidden roles.
pub fn is_role(argument: &OsStr) -> bool {
    find(argument).is_some()
}

fn find(argument: &OsStr) -> Option<Role> {
    ROLES.iter().find(|(name, _)| argument == *name).map(|(_, role)| *role)
}

/// Plays the role that the first of `args` names; `args` are the binary's arguments without its own name. To be called
/// before the process has a second thread. The only part of this crate that is a process of its own: it writes to
/// stderr, waits for signals and says how to exit.
pub fn main(args: &[OsString]) -> ExitCode {
    let role = args.split_first().and_then(|(role, words)| Some((find(role)?, words)));
    let Some((play, words)) = role else { return trouble("no such role") };
    match words::Words::parse(words.iter().cloned()).and_then(|words| play(&words)) {
        Ok(code) => ExitCode::from(code),
        Err(because) => trouble(&because),
    }
}

fn trouble(because: &str) -> ExitCode {
    say(because);
    ExitCode::from(TROUBLE)
}

/// One marked line on stderr; where stderr is gone there is nobody to tell.
fn say(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{MARK}{line}");
}

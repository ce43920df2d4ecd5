//! Containment: no process outlives its trial.
//!
//! For every agent and every command, the binary starts itself again as a *supervisor*, with a hidden first argument,
//! which its `main` passes to [`answer()`] before it starts any thread. The supervisor adopts all descendants that lose their parent
//! (it is a subreaper) and, if the machine allows it, puts them all into a PID namespace. It kills them all when the
//! program ends, on request, or when the harness has ended, which it detects with a pipe (the *lifeline*).
//!
//! ```text
//! harness ── __supervise ── __supervise-space ── __supervise-init (pid 1) ── program      with a namespace
//! harness ── __supervise ── program                                                      without a namespace
//! harness ── __supervise ── engine ·· program                                             in a container
//!                        └─ engine ·· __supervise-listen       in the container that creates the network for it
//! harness ── __supervise ── __supervise-remote ·· program                                on another machine
//! ```
//!
//! `program` is started through `__supervise-exec`, which gives it a new session, so that Ctrl-C in a terminal does not
//! reach it, and a clean signal mask.
//!
//! Signals to a supervisor: SIGTERM, SIGINT or SIGHUP send SIGTERM to all descendants. A second one, SIGUSR1 or the end
//! of the lifeline kills them at once. The supervisor exits like its program: with its code, or 128 + the signal. It
//! exits with 127 or 126 if the program cannot be found or run, and with 125 and a line on stderr that starts with
//! [`MESSAGE_PREFIX`] if the supervisor itself fails.

mod answer;
mod arguments;
mod captured;
mod contained;
mod container;
mod container_network;
mod descendants;
mod engine;
mod exec;
mod isolation;
mod keeper;
mod lifeline;
#[cfg(target_os = "linux")]
mod listeners;
#[cfg(target_os = "linux")]
mod loopback;
pub(crate) mod mock;
#[cfg(not(target_os = "linux"))]
mod no_listeners;
mod process;
mod remote;
#[cfg(target_os = "linux")]
mod restriction;
#[cfg(target_os = "linux")]
mod root;
mod run;
mod socket_path;
#[cfg_attr(not(target_os = "linux"), path = "no_space.rs")]
mod space;
mod supervisor;
#[cfg(target_os = "linux")]
mod system_calls;

use std::process::ExitCode;

pub use answer::{STAND_IN, SupervisorError, answer};
pub use captured::Captured;
pub use contained::Contained;
pub(crate) use container::{ContainerProcess, ServedNetwork};
pub(crate) use engine::error_message;
pub(crate) use isolation::{Isolation, ServedPorts};
pub use isolation::{Limits, Network};
pub use lifeline::Lifeline;
#[cfg(target_os = "linux")]
pub(crate) use listeners::probe as probe_listeners;
#[cfg(target_os = "linux")]
pub use listeners::{Arrival, Ended, Listeners, Served};
pub use mock::{CommandOutput, MockRequest};
#[cfg(not(target_os = "linux"))]
pub(crate) use no_listeners::probe as probe_listeners;
#[cfg(not(target_os = "linux"))]
pub use no_listeners::{Arrival, Ended, Listeners, Served};
pub use process::Process;
pub(crate) use remote::RemoteProcess;
pub use run::{Output, run};
pub(crate) use socket_path::short_path;
pub use supervisor::{Containment, Supervisor};

/// Prefix of lines on stderr that come from the supervisor rather than the program.
pub const MESSAGE_PREFIX: &str = "trialrun supervisor: ";

/// Exit code for failures of the supervisor itself.
pub const SUPERVISOR_FAILED: u8 = 125;

fn failure(reason: &str) -> ExitCode {
    say(reason);
    ExitCode::from(SUPERVISOR_FAILED)
}

/// Writes one marked line to stderr. Errors are ignored, because there is nowhere else to report them.
fn say(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{MESSAGE_PREFIX}{line}");
}

//! The last step before the program starts: a new session and a cleared signal mask.

use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sys::signal::SigSet;

use super::arguments::Arguments;
use super::{say, space};

/// Replaces this process with the program. Returns only if that fails.
pub(super) fn main(arguments: &Arguments) -> Result<u8, String> {
    let Some((program, args)) = arguments.program.split_first() else { return Err("no program to run".into()) };
    if let Some(isolation) = &arguments.isolation {
        space::limit(isolation)?;
    }
    if let Some(owner) = arguments.owner {
        space::be(owner)?;
    }
    // Fails only if this process already leads a group, and then Ctrl-C does not reach it either.
    let _ = nix::unistd::setsid();
    space::die_with_parent()?;
    // A blocked signal stays blocked across exec, and the supervisor blocks the signals it waits for.
    SigSet::empty().thread_set_mask().map_err(|error| format!("cannot unblock signals: {error}"))?;
    if let Some(isolation) = &arguments.isolation {
        space::restrict(isolation);
    }
    if let Some(container) = &arguments.container {
        container.open_network()?;
    }
    let error = Command::new(program).args(args).exec();
    say(&format!("cannot run {}: {error}", program.to_string_lossy()));
    Ok(if error.kind() == ErrorKind::NotFound { 127 } else { 126 })
}

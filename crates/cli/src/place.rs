//! The place in which a command works: the current directory, its environment and the machine.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use session::{Overrides, Place, Planned, RunSpec, Session, Signals};

use crate::error::CliError;
use crate::global::Global;
use crate::{log, machine, signals};

/// How signals reach the runs of this program.
pub const SIGNALS: Signals = Signals { connect: signals::forward, was_received: signals::was_received };

/// Opens the project of `targets` from the current directory.
pub fn open(global: &Global, targets: &[String]) -> Result<Session, CliError> {
    open_in(global, current_directory()?, targets)
}

/// Opens the project of `targets` from `directory`.
pub fn open_in(global: &Global, directory: PathBuf, targets: &[String]) -> Result<Session, CliError> {
    let (state, host) = (global.state.clone(), Arc::new(machine::host()?));
    let session = Session::open(Place { directory, state, agents: Vec::new(), host }, targets);
    log::hide(&session.mask());
    Ok(session)
}

/// Opens the project that `overrides` are about, resolves them and plans the cases.
pub fn plan(global: &Global, overrides: &Overrides) -> Result<(Session, Planned), CliError> {
    plan_in(global, &current_directory()?, overrides)
}

/// The same from another directory.
pub fn plan_in(global: &Global, directory: &Path, overrides: &Overrides) -> Result<(Session, Planned), CliError> {
    let session = open_in(global, directory.to_owned(), &overrides.places(directory)?)?;
    let planned = session.plan(&session.resolve(overrides)?)?;
    Ok((session, planned))
}

/// Opens the project that `overrides` are about, and resolves them.
pub fn resolve(global: &Global, overrides: &Overrides) -> Result<(Session, RunSpec), CliError> {
    let session = open(global, &overrides.places(&current_directory()?)?)?;
    let spec = session.resolve(overrides)?;
    Ok((session, spec))
}

fn current_directory() -> Result<PathBuf, CliError> {
    std::env::current_dir()
        .map_err(|error| CliError::environment(format!("the current directory cannot be read: {error}")))
}

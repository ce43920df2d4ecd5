//! The place in which a command works: the current directory, its environment and the machine.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent::Agent;
use sandbox::Host;
use session::{Overrides, Place, Planned, RunSpec, Session, Signals};

use crate::error::CliError;
use crate::global::Global;
use crate::{log, machine, signals};

/// How signals reach the runs of this program.
pub const SIGNALS: Signals = Signals { connect: signals::forward, was_received: signals::was_received };

/// Opens the project of `targets` from the current directory.
pub fn open(global: &Global, targets: &[String]) -> Result<Session, CliError> {
    let (directory, host) = (current_directory()?, Arc::new(machine::host()?));
    let place = Place { directory, state: global.state.clone(), agents: Vec::new(), host };
    let session = Session::open(place, targets)?;
    log::hide(&session.mask());
    Ok(session)
}

/// Opens the project of `directory` for a program that uses this one, with agents of that program.
pub fn open_for(
    global: &Global,
    directory: PathBuf,
    agents: Vec<&'static dyn Agent>,
    host: Arc<Host>,
) -> Result<Session, CliError> {
    let session = Session::open(Place { directory, state: global.state.clone(), agents, host }, &[])?;
    log::hide(&session.mask());
    Ok(session)
}

/// Opens the project of `targets` from `directory`. Runs are recorded where `here` records them.
pub fn open_from(here: &Session, directory: &Path, targets: &[String]) -> Session {
    let session = here.in_directory(directory.to_owned(), targets);
    log::hide(&session.mask());
    session
}

/// Opens the project that `overrides` are about, resolves them and plans the cases.
pub fn plan(global: &Global, overrides: &Overrides) -> Result<(Session, Planned), CliError> {
    let session = open(global, &overrides.places(&current_directory()?)?)?;
    let planned = session.plan(&session.resolve(overrides)?)?;
    Ok((session, planned))
}

/// Opens the project that `overrides` are about from `directory`, and plans the cases. Runs are recorded where `here`
/// records them.
pub fn plan_from(here: &Session, directory: &Path, overrides: &Overrides) -> Result<(Session, Planned), CliError> {
    let session = open_from(here, directory, &overrides.places(directory)?);
    let planned = session.plan(&session.resolve(overrides)?)?;
    Ok((session, planned))
}

/// Opens the project that `overrides` are about, and resolves them.
pub fn resolve(global: &Global, overrides: &Overrides) -> Result<(Session, RunSpec), CliError> {
    let session = open(global, &overrides.places(&current_directory()?)?)?;
    let spec = session.resolve(overrides)?;
    Ok((session, spec))
}

/// Returns the current directory.
pub fn current_directory() -> Result<PathBuf, CliError> {
    std::env::current_dir()
        .map_err(|error| CliError::environment(format!("the current directory cannot be read: {error}")))
}

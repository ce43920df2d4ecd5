//! The project in which cases run: its configuration, its skills and its record.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent::Agent;
use mask::{Mask, Secrets};
use model::Diagnostic;
use sandbox::Host;
use script::{Library, RuntimeChoice};
use store::{Location, Store};
use suite::Project;

use crate::error::Error;
use crate::javascript::runtime_for;
use crate::path::shown;
use crate::state::State;

/// Place from which a session is opened.
pub struct Place {
    /// Directory to which relative paths refer; absolute.
    pub directory: PathBuf,
    /// Folder or URL of the record, if it is not the project's.
    pub state: Option<PathBuf>,
    /// Agents of the program that opens the session, in addition to [`agent::AGENTS`].
    pub agents: Vec<&'static dyn Agent>,
    /// The machine, with the environment.
    pub host: Arc<Host>,
}

/// A project with its record, opened from a directory of this machine.
pub struct Session {
    /// Directory to which relative paths refer.
    pub cwd: PathBuf,
    /// The configuration; defaults if there is none.
    pub project: Project,
    /// Problems in the configuration.
    pub diagnostics: Vec<Diagnostic>,
    /// Folder and record of runs.
    pub state: State,
    /// Agents of the program that opened the session.
    pub agents: Vec<&'static dyn Agent>,
    /// Assertions and operators of the program that opened the session.
    pub functions: Option<Arc<dyn grade::Functions>>,
    /// The machine.
    pub host: Arc<Host>,
}

/// Returns the project for `start`; messages show paths relative to `cwd`.
fn project_at(start: &Path, cwd: &Path, host: &Arc<Host>) -> (Project, Vec<Diagnostic>) {
    Project::find_on(start, cwd, &host.env, &|root| {
        // The configuration itself makes the choice for all other code.
        Library::for_project(Vec::new(), Some(runtime_for(host, root, RuntimeChoice::Auto)))
    })
}

impl Session {
    /// Opens the project of `targets`, which are those of a run. The configuration is searched upwards, first from the
    /// first target that is a path, then from the directory, because the project of the tests takes precedence. The
    /// record belongs to the directory, so that runs started there are found there.
    ///
    /// # Errors
    /// Returns an error if this build has no store for the record.
    pub fn open(place: Place, targets: &[String]) -> Result<Self, Error> {
        let here = project_at(&place.directory, &place.directory, &place.host);
        let state = State::of(&here.0, place.state.as_deref(), &place.directory, &place.host.env)?;
        Ok(Self::of(here, place, state, targets))
    }

    /// Opens the project of `targets` from another `directory`. Runs are recorded where this session records them.
    pub fn in_directory(&self, directory: PathBuf, targets: &[String]) -> Self {
        let here = project_at(&directory, &directory, &self.host);
        let place = Place { directory, state: None, agents: self.agents.clone(), host: Arc::clone(&self.host) };
        Self::of(here, place, self.state.clone(), targets)
    }

    fn of((here, here_problems): (Project, Vec<Diagnostic>), place: Place, state: State, targets: &[String]) -> Self {
        let Place { directory: cwd, agents, host, .. } = place;
        let start = targets.first().map(|target| cwd.join(target)).filter(|path| path.exists());
        let (project, diagnostics) = match start {
            Some(path) => {
                let start = if path.is_dir() { path.as_path() } else { path.parent().unwrap_or(&cwd) };
                let found = project_at(start, &cwd, &host);
                // A file outside any project runs in the project of the directory: one with a configuration or with
                // skills.
                let is_project = here.file.is_some() || here.skills_dir.is_dir();
                let is_ours = is_project || start.canonicalize().is_ok_and(|start| start.starts_with(&cwd));
                if found.0.file.is_none() && !found.0.is_unread && is_ours { (here, here_problems) } else { found }
            }
            None => (here, here_problems),
        };
        Self { cwd, project, diagnostics, state, agents, functions: None, host }
    }

    /// Returns the environment variables.
    pub fn environment(&self) -> &BTreeMap<String, String> {
        &self.host.env
    }

    /// Returns the mask for everything that the session outputs about the files of the project.
    pub fn mask(&self) -> Mask {
        Mask::of(self.environment()).with_secrets(&self.secrets())
    }

    /// Returns the secrets in the configuration, and the password of the record.
    pub(crate) fn secrets(&self) -> Secrets {
        let secrets = self.project.tree.as_ref().map(Secrets::of).unwrap_or_default();
        match &self.state.record {
            Location::Postgres(settings) => secrets.and_in_url(&settings.with_password()),
            _ => secrets,
        }
    }

    /// Returns a path on the command line relative to the project's folder. Anything else stays as written.
    pub fn relative_to_root(&self, written: &str) -> String {
        let path = self.cwd.join(written);
        if self.cwd == self.project.root || !path.exists() {
            return written.to_owned();
        }
        shown(&path, &self.project.root)
    }

    /// Opens the record for writing. It excludes itself from git.
    pub fn open_store(&self) -> Result<Box<dyn Store>, Error> {
        self.state.open()
    }

    /// Opens the record for reading; returns an error with a hint if it does not exist.
    pub fn read_store(&self) -> Result<Box<dyn Store>, Error> {
        self.find_store()?.ok_or_else(|| {
            let place = match self.state.record_folder() {
                Some(folder) => shown(folder, &self.cwd),
                None => self.state.record.to_string(),
            };
            Error::usage(format!("nothing is recorded in {place}"))
                .hint("`trialrun run` records runs; `--state DIR` selects another folder")
        })
    }

    /// Opens the record for reading; `None` if it does not exist.
    pub fn find_store(&self) -> Result<Option<Box<dyn Store>>, Error> {
        Ok(store::open_existing(&self.state.record)?)
    }
}

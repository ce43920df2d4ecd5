//! The project in which cases run: its configuration, its skills and its record.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use agent::Agent;
use mask::{Mask, Secrets};
use model::Diagnostic;
use sandbox::Host;
use store::Store;
use suite::Project;

use crate::error::Error;
use crate::layer::Layer;
use crate::owner::owner;

/// File name of the record in the state folder.
const DATABASE: &str = "runs.db";

/// Variable that names the state folder.
pub const STATE: &str = "TRIALRUN_STATE";

/// Default state folder of a project.
const STATE_FOLDER: &str = ".trialrun";

/// Place from which a session is opened.
pub struct Place {
    /// Directory to which relative paths refer; absolute.
    pub directory: PathBuf,
    /// Folder of the record, if it is not the project's.
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
    /// Folder of the record.
    pub state: PathBuf,
    /// Source of the setting for that folder.
    pub state_from: Layer,
    /// Absolute path of the record.
    pub database: PathBuf,
    /// Agents of the program that opened the session.
    pub agents: Vec<&'static dyn Agent>,
    /// The machine.
    pub host: Arc<Host>,
}

impl Session {
    /// Opens the project of `targets`, which are those of a run. The configuration is searched upwards, first from the
    /// first target that is a path, then from the directory, because the project of the tests takes precedence. The
    /// record belongs to the directory, so that runs started there are found there.
    pub fn open(place: Place, targets: &[String]) -> Self {
        let Place { directory: cwd, state, agents, host } = place;
        let environment = &host.env;
        let (here, here_problems) = Project::find_with(&cwd, &cwd, environment);
        let set = environment.get(STATE).filter(|state| !state.is_empty()).map(PathBuf::from);
        let state_from = match (&state, &set, &here.file) {
            (Some(_), ..) => Layer::CommandLine,
            (None, Some(_), _) => Layer::Environment(STATE.to_owned()),
            (None, None, Some(file)) if here.state != here.root.join(STATE_FOLDER) => Layer::Project(shown(file, &cwd)),
            _ => Layer::BuiltIn,
        };
        let named = state.or(set).map(|state| cwd.join(state));
        let database = match (&named, &here.store) {
            (None, Some(file)) => file.value.clone(),
            (Some(state), _) => state.join(DATABASE),
            (None, None) => here.state.join(DATABASE),
        };
        let state = named.unwrap_or_else(|| here.state.clone());
        let start = targets.first().map(|target| cwd.join(target)).filter(|path| path.exists());
        let (project, diagnostics) = match start {
            Some(path) => {
                let start = if path.is_dir() { path.as_path() } else { path.parent().unwrap_or(&cwd) };
                let found = Project::find_with(start, &cwd, environment);
                // A file outside any project runs in the project of the directory: one with a configuration or with
                // skills.
                let is_project = here.file.is_some() || here.skills_dir.is_dir();
                let is_ours = is_project || start.canonicalize().is_ok_and(|start| start.starts_with(&cwd));
                if found.0.file.is_none() && is_ours { (here, here_problems) } else { found }
            }
            None => (here, here_problems),
        };
        Self { cwd, project, diagnostics, state, state_from, database, agents, host }
    }

    /// Returns the environment variables.
    pub fn environment(&self) -> &BTreeMap<String, String> {
        &self.host.env
    }

    /// Returns the mask for everything that the session outputs about the files of the project.
    pub fn mask(&self) -> Mask {
        let secrets = self.project.tree.as_ref().map(Secrets::of).unwrap_or_default();
        Mask::of(self.environment()).with_secrets(&secrets)
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
        let folder = self.database.parent().unwrap_or(&self.state);
        let failed = |error: std::io::Error| {
            Error::usage(format!("cannot record into {}: {error}", folder.display()))
                .hint("nothing was run; `--state DIR` selects another folder")
        };
        // An existing folder may contain more than the record.
        match folder == self.state || !folder.exists() {
            true => create_state_folder(folder).map_err(failed)?,
            false => std::fs::create_dir_all(folder).map_err(failed)?,
        }
        Ok(store::open(&self.database.as_path().into(), &owner())?)
    }

    /// Opens the record for reading; returns an error with a hint if it does not exist.
    pub fn read_store(&self) -> Result<Box<dyn Store>, Error> {
        self.find_store()?.ok_or_else(|| {
            Error::usage(format!(
                "nothing is recorded in {}",
                shown(self.database.parent().unwrap_or(&self.state), &self.cwd)
            ))
            .hint("`trialrun run` records runs; `--state DIR` selects another folder")
        })
    }

    /// Opens the record for reading; `None` if it does not exist.
    pub fn find_store(&self) -> Result<Option<Box<dyn Store>>, Error> {
        Ok(store::open_existing(&self.database.as_path().into())?)
    }
}

/// Creates the state folder if it does not exist, and excludes it from git.
pub fn create_state_folder(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let ignore = folder.join(".gitignore");
    if ignore.exists() { Ok(()) } else { std::fs::write(&ignore, "*\n") }
}

/// Returns `path` without `.` and `..`; links are not resolved.
pub fn normalize(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

/// Returns a path as a user in `cwd` would write it.
pub fn shown(path: &Path, cwd: &Path) -> String {
    path.strip_prefix(cwd).unwrap_or(path).display().to_string()
}

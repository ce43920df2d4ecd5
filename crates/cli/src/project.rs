//! The project in which a command works: its configuration, its skills and its record.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use model::Diagnostic;
use store::Store;
use suite::Project;

use crate::error::CliError;
use crate::global::Global;
use crate::layer::Layer;

/// File name of the record in the state folder.
const DATABASE: &str = "runs.db";

/// Variable that names the state folder.
pub const STATE: &str = "TRIALRUN_STATE";

/// Default state folder of a project.
const STATE_FOLDER: &str = ".trialrun";

/// A project, found from the current directory and the targets of the command.
pub struct ProjectContext {
    /// Current directory of the command.
    pub cwd: PathBuf,
    /// The configuration; defaults if there is none.
    pub project: Project,
    /// Problems in the configuration.
    pub diagnostics: Vec<Diagnostic>,
    /// Folder of the record.
    pub state: PathBuf,
    /// Source of the setting for that folder.
    pub state_from: Layer,
    /// Environment variables.
    pub environment: BTreeMap<String, String>,
    /// Absolute path of the record.
    pub database: PathBuf,
}

impl ProjectContext {
    /// Finds the project. The configuration is searched upwards, first from the first target that is a path, then from
    /// the current directory, because the project of the tests takes precedence. The record belongs to the current
    /// directory, so that runs started here are found here.
    pub fn find(global: &Global, targets: &[String]) -> Result<Self, CliError> {
        let cwd = std::env::current_dir()
            .map_err(|error| CliError::environment(format!("the current directory cannot be read: {error}")))?;
        let environment = crate::machine::environment();
        let (here, here_problems) = Project::find_with(&cwd, &cwd, &environment);
        let set = environment.get(STATE).filter(|state| !state.is_empty()).map(PathBuf::from);
        let state_from = match (&global.state, &set, &here.file) {
            (Some(_), ..) => Layer::CommandLine,
            (None, Some(_), _) => Layer::Environment(STATE),
            (None, None, Some(file)) if here.state != here.root.join(STATE_FOLDER) => Layer::Project(shown(file, &cwd)),
            _ => Layer::BuiltIn,
        };
        let named = global.state.clone().or(set).map(|state| cwd.join(state));
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
                let found = Project::find_with(start, &cwd, &environment);
                // A file outside any project runs in the project of the current directory: one with a configuration or
                // with skills.
                let is_project = here.file.is_some() || here.skills_dir.is_dir();
                let is_ours = is_project || start.canonicalize().is_ok_and(|start| start.starts_with(&cwd));
                if found.0.file.is_none() && is_ours { (here, here_problems) } else { found }
            }
            None => (here, here_problems),
        };
        Ok(Self { cwd, project, diagnostics, state, state_from, environment, database })
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
    pub fn open_store(&self) -> Result<Box<dyn Store>, CliError> {
        let folder = self.database.parent().unwrap_or(&self.state);
        let failed = |error: std::io::Error| {
            CliError::usage(format!("cannot record into {}: {error}", folder.display()))
                .hint("nothing was run; `--state DIR` selects another folder")
        };
        // An existing folder may contain more than the record.
        match folder == self.state || !folder.exists() {
            true => create_state_folder(folder).map_err(failed)?,
            false => std::fs::create_dir_all(folder).map_err(failed)?,
        }
        Ok(store::open(&self.database, std::process::id())?)
    }

    /// Opens the record for reading; returns an error with a hint if it does not exist.
    pub fn read_store(&self) -> Result<Box<dyn Store>, CliError> {
        self.find_store()?.ok_or_else(|| {
            CliError::usage(format!(
                "nothing is recorded in {}",
                shown(self.database.parent().unwrap_or(&self.state), &self.cwd)
            ))
            .hint("`trialrun run` records runs; `--state DIR` selects another folder")
        })
    }

    /// Opens the record for reading; `None` if it does not exist.
    pub fn find_store(&self) -> Result<Option<Box<dyn Store>>, CliError> {
        Ok(store::open_existing(&self.database)?)
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

//! Place of what trialrun keeps for a project: a folder, and the record of runs.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use store::postgres::Surroundings;
use store::{Location, LocationError, Store, StoreError};
use suite::Project;

use crate::error::{ELSEWHERE, Error};
use crate::layer::Layer;
use crate::owner::owner;
use crate::path::shown;
use crate::run_lock::{LockError, RunLock};

/// File name of the record in the state folder.
const DATABASE: &str = "runs.db";

/// Variable that names the state folder.
pub const STATE: &str = "TRIALRUN_STATE";

/// Default state folder of a project.
const STATE_FOLDER: &str = ".trialrun";

/// Place of what trialrun keeps for a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// Folder for files about runs, such as artefacts and caches; absolute. It also contains the record, unless that is
    /// elsewhere.
    pub folder: PathBuf,
    /// The record of runs.
    pub record: Location,
    /// Source of the setting.
    pub from: Layer,
}

impl State {
    /// Returns the place that is `chosen` on the command line, otherwise that of the environment, of the project, or
    /// the built-in one.
    pub(crate) fn of(
        project: &Project,
        chosen: Option<&Path>,
        cwd: &Path,
        environment: &BTreeMap<String, String>,
    ) -> Result<Self, Error> {
        let variable = environment.get(STATE).filter(|value| !value.is_empty());
        let named = match chosen {
            Some(chosen) => Some((chosen, Layer::CommandLine)),
            None => variable.map(|value| (Path::new(value), Layer::Environment(STATE.to_owned()))),
        };
        if let Some((written, from)) = named {
            return Ok(match location(written, environment)? {
                Location::File(folder) => Self::in_folder(cwd.join(folder), from),
                record => Self { folder: project.state.clone(), record, from },
            });
        }
        if let Some(problem) = project.missing_of_record.first() {
            return Err(Error::of(problem).hint(format!("`--state` or `{STATE}` selects another record")));
        }
        let is_moved = project.state != project.root.join(STATE_FOLDER);
        let from = match &project.file {
            Some(file) if is_moved => Layer::Project(shown(file, cwd)),
            _ => Layer::BuiltIn,
        };
        let state = Self::in_folder(project.state.clone(), from);
        let Some(store) = &project.store else { return Ok(state) };
        let mut record =
            parsed(&store.value).map_err(|error| Error::from(error).hint(format!("it is set in {}", store.source)))?;
        complete(&mut record, environment)?;
        let is_file = matches!(record, Location::File(_));
        let from = if is_file { state.from } else { Layer::Project(store.source.to_string()) };
        Ok(Self { record, from, ..state })
    }

    fn in_folder(folder: PathBuf, from: Layer) -> Self {
        Self { record: Location::File(folder.join(DATABASE)), folder, from }
    }

    /// Returns the folder of the record; `None` if the record is not a file of this machine.
    pub fn record_folder(&self) -> Option<&Path> {
        match &self.record {
            Location::File(file) => Some(file.parent().unwrap_or(&self.folder)),
            _ => None,
        }
    }

    /// Returns the place as a user in `cwd` would write it.
    pub fn shown(&self, cwd: &Path) -> String {
        match &self.record {
            Location::File(_) => shown(&self.folder, cwd),
            record => record.to_string(),
        }
    }

    /// Opens the record for writing, and creates it and its folder if they do not exist.
    pub(crate) fn open(&self) -> Result<Box<dyn Store>, Error> {
        if let Some(folder) = self.record_folder() {
            // An existing folder may contain more than the record.
            let created = match folder == self.folder || !folder.exists() {
                true => create_state_folder(folder),
                false => Ok(()),
            };
            created.map_err(|error| {
                let message = format!("cannot record into {}: {error}", folder.display());
                // A file or a path that cannot be a folder is a wrong setting.
                let refused = match error.kind() {
                    ErrorKind::NotADirectory | ErrorKind::AlreadyExists | ErrorKind::InvalidInput => {
                        Error::usage(message)
                    }
                    _ => Error::environment(message),
                };
                refused.hint(format!("nothing was run; {ELSEWHERE}"))
            })?;
        }
        Ok(store::open(&self.record, &owner())?)
    }

    /// Locks the run with that full id, so that only one process of this machine runs its trials.
    ///
    /// # Errors
    /// Returns an error if another process has locked the run, or the lock file cannot be used.
    pub fn lock(&self, run: &str) -> Result<RunLock, LockError> {
        let file = match &self.record {
            Location::File(file) => file.with_extension("lock"),
            _ => {
                create_state_folder(&self.folder)?;
                self.folder.join(DATABASE).with_extension("lock")
            }
        };
        RunLock::acquire(&file, run)
    }
}

/// Reads a path or the URL of a record. What the URL of a database does not say, such as a password, comes from the
/// variables and the password file of its own tools.
///
/// # Errors
/// Returns an error if there is no store for the URL, or the URL or a variable is not valid.
pub fn location(written: &Path, environment: &BTreeMap<String, String>) -> Result<Location, StoreError> {
    let mut location = parsed(written)?;
    complete(&mut location, environment)?;
    Ok(location)
}

fn parsed(written: &Path) -> Result<Location, StoreError> {
    let Some(text) = written.to_str() else { return Ok(Location::File(written.to_owned())) };
    Ok(text.parse()?)
}

fn complete(location: &mut Location, environment: &BTreeMap<String, String>) -> Result<(), StoreError> {
    if let Location::Postgres(settings) = location {
        let variable = |name: &str| environment.get(name).cloned();
        let home = environment.get("HOME").map(Path::new);
        settings.complete(&Surroundings { variable: &variable, home }).map_err(LocationError::from)?;
    }
    Ok(())
}

/// Creates the state folder if it does not exist, and excludes it from git.
pub fn create_state_folder(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let ignore = folder.join(".gitignore");
    if ignore.exists() { Ok(()) } else { std::fs::write(&ignore, "*\n") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::session_with;

    #[test]
    fn a_record_can_be_outside_of_the_state_folder() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        std::fs::write(root.join("trialrun.yaml"), "store:\n  path: elsewhere/traces.db\n").unwrap();
        let (project, _) = Project::find_with(&root, &root, &BTreeMap::new());
        let state = State::of(&project, None, &root, &BTreeMap::new()).unwrap();
        assert_eq!(state.folder, root.join(".trialrun"));
        assert_eq!(state.record, Location::File(root.join("elsewhere/traces.db")));
        let typed = State::of(&project, Some(Path::new("typed")), &root, &BTreeMap::new()).unwrap();
        assert_eq!((typed.record, typed.from), (Location::File(root.join("typed/runs.db")), Layer::CommandLine));
    }

    #[test]
    fn a_record_whose_variable_is_not_set_can_be_replaced() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("trialrun.yaml"), "state: postgres://me:${env.SECRET}@db/runs\n").unwrap();
        let (project, _) = Project::find_with(directory.path(), directory.path(), &BTreeMap::new());
        let error = State::of(&project, None, directory.path(), &BTreeMap::new()).unwrap_err();
        assert_eq!(error.to_string(), "`state` needs the `SECRET` variable, which is not set");
        assert_eq!(error.hints()[0], "it is used in trialrun.yaml:1:8");
        State::of(&project, Some(Path::new("typed")), directory.path(), &BTreeMap::new()).unwrap();
    }

    #[test]
    fn an_unknown_kind_of_record_is_refused_without_its_password() {
        let directory = tempfile::tempdir().unwrap();
        let url = "other://user:hunter2@db/runs";
        let environment = BTreeMap::from([(STATE.to_owned(), url.to_owned())]);
        let (project, _) = Project::find_with(directory.path(), directory.path(), &environment);
        let error = State::of(&project, None, directory.path(), &environment).unwrap_err();
        assert!(error.to_string().contains("`other://`") && !error.to_string().contains("hunter2"), "{error}");
        std::fs::write(directory.path().join("trialrun.yaml"), format!("state: {url}\n")).unwrap();
        let (project, _) = Project::find_with(directory.path(), directory.path(), &BTreeMap::new());
        let error = State::of(&project, None, directory.path(), &BTreeMap::new()).unwrap_err();
        assert_eq!(error.hints(), ["it is set in trialrun.yaml:1:8"]);
    }

    #[test]
    fn a_variable_that_is_not_valid_is_not_blamed_on_the_configuration() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("trialrun.yaml"), "state: postgres://db/runs\n").unwrap();
        let environment = BTreeMap::from([("PGSSLMODE".to_owned(), "bogus".to_owned())]);
        let (project, _) = Project::find_with(directory.path(), directory.path(), &environment);
        let error = State::of(&project, None, directory.path(), &environment).unwrap_err();
        assert!(error.to_string().contains("`PGSSLMODE` must be `disable`"), "{error}");
        assert!(error.hints().is_empty(), "{:?}", error.hints());
    }

    #[test]
    fn a_session_elsewhere_records_where_the_first_one_does() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        for folder in ["one", "two"] {
            std::fs::create_dir(root.join(folder)).unwrap();
            let config = format!("store:\n  path: {folder}.db\n");
            std::fs::write(root.join(folder).join("trialrun.yaml"), config).unwrap();
        }
        let one = session_with(&root.join("one"), &[]);
        let two = one.in_directory(root.join("two"), &[]);
        assert_eq!((&two.state, &two.project.root), (&one.state, &root.join("two")));
    }
}

//! Runs in directories as used by agent-skill-eval: `--workspace DIR --iteration N`, with
//! `<skill>-workspace/iteration-N` below it. They contain a run's artefacts, which identify the run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use model::RunRow;
use serde_json::Value;
use store::{RunFilter, Store};

use crate::error::CliError;
use crate::global::Global;
use crate::named_run::named_run;
use crate::place;
use crate::terminal::Terminal;

/// Artefact that identifies its run.
const SUITE: &str = "suite.json";

/// Artefact that lists what a run left on remotes.
const CLEANUP: &str = "cleanup.json";

/// Artefact that agent-skill-eval writes in place of [`SUITE`].
const THEIRS: &str = "evals_meta.json";

/// Names of a run on the command line of agent-skill-eval.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct WorkspaceArgs {
    /// Directory of an iteration, of a skill, or of all skills
    #[arg(long, short = 'w', value_name = "DIR", hide = true)]
    workspace: Option<PathBuf>,
    /// Iteration [default: the last one]; without a workspace, its directory
    #[arg(long, short = 'i', value_name = "N|DIR", hide = true)]
    iteration: Option<String>,
}

/// A workspace on the command line.
struct Place<'a> {
    workspace: Option<&'a Path>,
    iteration: Option<&'a str>,
}

impl WorkspaceArgs {
    /// Returns the run in the workspace, or else the one that `named` refers to, and its record. With a workspace,
    /// `named` is an iteration. A workspace without runs stands for the recorded runs of its skill.
    ///
    /// # Errors
    /// Returns an error if the workspace has no such run, if several skills each have one, or if the record does
    /// not exist.
    pub fn find(
        &self,
        global: &Global,
        named: Option<&str>,
        default: &str,
    ) -> Result<(Box<dyn Store>, RunRow), CliError> {
        let session = place::open(global, &[])?;
        let Place { workspace: Some(workspace), iteration } = self.place(named)? else {
            let store = session.read_store()?;
            let run = named_run(&*store, named.unwrap_or(default), &Terminal::new(global))?;
            return Ok((store, run));
        };
        if !workspace.exists() {
            let store = session.read_store()?;
            let run = recorded(&*store, workspace, iteration)?;
            return Ok((store, run));
        }
        let WorkspaceRun { run, record } = run_in(workspace, iteration)?;
        let store = match record.filter(|_| global.state.is_none()) {
            Some(record) => {
                let location = session::location(Path::new(&record), session.environment())?;
                store::open_existing(&location)?.ok_or_else(|| {
                    CliError::usage(format!("the run {run} was recorded in {record}, which does not exist"))
                        .hint("`--state DIR` selects the folder that the record is in now")
                })?
            }
            None => session.read_store()?,
        };
        let run = store.select(&run)?;
        Ok((store, run))
    }

    /// Returns the directory of the run, if there is a workspace. `named` is an iteration, as in [`Self::find`].
    ///
    /// # Errors
    /// See [`Self::find`].
    pub fn directory(&self, named: Option<&str>) -> Result<Option<PathBuf>, CliError> {
        let Place { workspace, iteration } = self.place(named)?;
        let workspace = workspace.filter(|workspace| workspace.exists());
        workspace.map(|workspace| directory(workspace, iteration)).transpose()
    }

    /// Returns the `cleanup.json` files in the workspace: of one iteration, or of all.
    ///
    /// # Errors
    /// See [`Self::find`].
    pub fn manifests(&self, named: Option<&str>) -> Result<Vec<PathBuf>, CliError> {
        let Place { workspace: Some(workspace), iteration } = self.place(named)? else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for home in [vec![workspace.to_owned()], skills(workspace)].concat() {
            let is_wanted = |number: &str| iteration.is_none_or(|iteration| number == iteration);
            let iterations = iterations(&home).into_iter().filter(|(number, _)| is_wanted(number));
            found.extend(iterations.map(|(_, path)| path.join(CLEANUP)));
        }
        found.extend(iteration.is_none().then(|| workspace.join(CLEANUP)));
        found.retain(|file| file.is_file());
        Ok(found)
    }

    /// Returns `true` if a workspace is given, even one that does not exist.
    pub fn is_used(&self) -> bool {
        self.workspace.is_some() || self.iteration.is_some()
    }

    /// Returns the workspace and the iteration; `named` is an iteration if there is a workspace.
    fn place<'a>(&'a self, named: Option<&'a str>) -> Result<Place<'a>, CliError> {
        let iteration = self.iteration.as_deref();
        match (&self.workspace, iteration) {
            (Some(workspace), _) => Ok(Place { workspace: Some(workspace), iteration: iteration.or(named) }),
            (None, Some(directory)) if Path::new(directory).is_dir() => {
                Ok(Place { workspace: Some(Path::new(directory)), iteration: None })
            }
            (None, Some(iteration)) => {
                let message = format!("`--iteration {iteration}` is not a directory, and no `--workspace` contains it");
                Err(CliError::usage(message).hint("`--workspace DIR --iteration N` selects an iteration"))
            }
            (None, None) => Ok(Place { workspace: None, iteration: None }),
        }
    }
}

/// Maximum size of a file of a workspace, in bytes.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// Contents of the artefacts that identify a run.
struct WorkspaceRun {
    /// Id of the run.
    run: String,
    /// Path or URL of the record.
    record: Option<String>,
}

fn run_in(workspace: &Path, iteration: Option<&str>) -> Result<WorkspaceRun, CliError> {
    let directory = directory(workspace, iteration)?;
    let file = directory.join(SUITE);
    let wrong = |why: String| CliError::usage(format!("{}: {why}", file.display()));
    let text = files::read_named_text(&file, MAX_FILE_BYTES).map_err(|error| wrong(error.to_string()))?;
    let suite: Value = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    let text = |key: &str| suite.get(key).and_then(Value::as_str);
    let run = text("run_id").map(str::to_owned).ok_or_else(|| wrong("it does not name a run".to_owned()))?;
    Ok(WorkspaceRun { run, record: text("record").map(str::to_owned) })
}

/// Returns the newest recorded run for the path of a workspace: `…/SKILL-workspace/iteration-N`. Either part of the
/// path may be missing. Runs without a label are the first iteration.
fn recorded(store: &dyn Store, workspace: &Path, iteration: Option<&str>) -> Result<RunRow, CliError> {
    let names = || workspace.iter().rev().filter_map(|name| name.to_str());
    let skill = names().find_map(|name| name.strip_suffix("-workspace")).filter(|skill| *skill != "eval");
    let iteration = iteration.or_else(|| names().next()?.strip_prefix("iteration-"));
    if iteration.is_none() && !names().any(|name| name.ends_with("-workspace")) {
        let message =
            format!("{} does not exist, and its name is not that of a skill's workspace", workspace.display());
        return Err(CliError::usage(message).hint("the workspace of the skill `NAME` is called `NAME-workspace`"));
    }
    for run in store.runs(&RunFilter::default())? {
        let is_wanted = iteration.is_none_or(|iteration| run.label.as_deref().unwrap_or("1") == iteration);
        let is_about = |skill: &str| -> Result<bool, CliError> {
            Ok(store.info(&run.id)?.skills.iter().any(|known| known.name == skill))
        };
        if is_wanted && skill.map_or(Ok(true), is_about)? {
            return Ok(run);
        }
    }
    let of_skill = skill.map(|skill| format!(" of the `{skill}` skill")).unwrap_or_default();
    let what = iteration.map_or("run".to_owned(), |iteration| format!("run with the label `{iteration}`"));
    Err(CliError::usage(format!("{} does not exist, and no {what}{of_skill} is recorded", workspace.display()))
        .hint("`trialrun history` lists recorded trials; `run --workspace DIR` writes a workspace"))
}

/// Returns the record of the run that wrote the directory of an iteration, and its id; `None` if the record is gone.
pub fn recorded_in(directory: &Path, environment: &BTreeMap<String, String>) -> Option<(Box<dyn Store>, String)> {
    let text = files::read_named_text(&directory.join(SUITE), MAX_FILE_BYTES).ok()?;
    let suite: Value = serde_json::from_str(&text).ok()?;
    let record = suite.get("record").and_then(Value::as_str)?;
    let location = session::location(Path::new(record), environment).ok()?;
    let store = store::open_existing(&location).ok()??;
    let run = store.select(suite.get("run_id").and_then(Value::as_str)?).ok()?;
    Some((store, run.id))
}

/// Returns the directories of skills in a workspace.
fn skills(workspace: &Path) -> Vec<PathBuf> {
    let of_skill = |name: &str| name.ends_with("-workspace");
    folders(workspace).into_iter().filter(|(name, _)| of_skill(name)).map(|(_, path)| path).collect()
}

/// Returns the iterations in the directory of a skill, with their directories.
fn iterations(home: &Path) -> Vec<(String, PathBuf)> {
    let folders = folders(home).into_iter();
    folders.filter_map(|(name, path)| Some((name.strip_prefix("iteration-")?.to_owned(), path))).collect()
}

fn directory(workspace: &Path, iteration: Option<&str>) -> Result<PathBuf, CliError> {
    if iteration.is_none() && workspace.join(SUITE).is_file() {
        return Ok(workspace.to_owned());
    }
    let skills = skills(workspace);
    let home = match skills.as_slice() {
        [] => workspace,
        [only] => only,
        _ => {
            let names: Vec<String> = skills.iter().map(|path| format!("--workspace {}", path.display())).collect();
            return Err(
                CliError::usage(format!("{} contains several skills", workspace.display())).hint(names.join(", "))
            );
        }
    };
    let (mut iterations, others): (Vec<_>, Vec<_>) =
        iterations(home).into_iter().partition(|(_, path)| path.join(SUITE).is_file());
    let is_theirs =
        |number: &str, path: &Path| iteration.is_none_or(|wanted| wanted == number) && path.join(THEIRS).is_file();
    let is_of_other_tool =
        workspace.join(THEIRS).is_file() || others.iter().any(|(number, path)| is_theirs(number, path));
    // Sorted by number, so that 10 comes after 9; then by name.
    iterations.sort_by_key(|(number, _)| (number.parse::<u64>().unwrap_or(0), number.clone()));
    let found = match iteration {
        Some(wanted) => iterations.iter().find(|(number, _)| number == wanted),
        None => iterations.last(),
    };
    found.map(|(_, path)| path.clone()).ok_or_else(|| {
        if is_of_other_tool {
            let message = format!("the results in {} were written by agent-skill-eval", home.display());
            return CliError::usage(format!("{message}; trialrun does not read them, except for `cleanup`"))
                .hint("`trialrun run --skill DIR --evals FILE` records the suite again");
        }
        let there: Vec<&str> = iterations.iter().map(|(number, _)| number.as_str()).collect();
        let hint = match there.as_slice() {
            [] => "`trialrun run --workspace DIR` creates one".to_owned(),
            there => format!("iterations: {}", there.join(", ")),
        };
        CliError::usage(format!("{} does not contain this iteration", home.display())).hint(hint)
    })
}

fn folders(directory: &Path) -> Vec<(String, PathBuf)> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path()))).collect()
}

//! Runs in directories as used by agent-skill-eval: `--workspace DIR --iteration N`, with
//! `<skill>-workspace/iteration-N` below it. They contain a run's artefacts, which identify the run.

use std::path::{Path, PathBuf};

use model::RunRow;
use serde_json::Value;
use store::{RunFilter, Store};

use crate::error::CliError;
use crate::global::Global;
use crate::named_run::named_run;
use crate::project::ProjectContext;
use crate::terminal::Terminal;

/// Artefact that identifies its run.
const SUITE: &str = "suite.json";

/// Names of a run on the command line of agent-skill-eval.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct WorkspaceArgs {
    /// Directory of an iteration, of a skill, or of all skills
    #[arg(long, short = 'w', value_name = "DIR", hide = true)]
    workspace: Option<PathBuf>,
    /// Iteration [default: the last one]
    #[arg(long, short = 'i', value_name = "N", hide = true, requires = "workspace")]
    iteration: Option<String>,
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
        let context = ProjectContext::find(global, &[])?;
        let Some(workspace) = &self.workspace else {
            let store = context.read_store()?;
            let run = named_run(&*store, named.unwrap_or(default), &Terminal::new(global))?;
            return Ok((store, run));
        };
        let iteration = self.iteration.as_deref().or(named);
        if !workspace.exists() {
            let store = context.read_store()?;
            let run = recorded(&*store, workspace, iteration)?;
            return Ok((store, run));
        }
        let WorkspaceRun { run, record } = run_in(workspace, iteration)?;
        let store = match record.filter(|_| global.state.is_none()) {
            Some(record) => store::open_existing(&record)?.ok_or_else(|| {
                CliError::usage(format!("the run {run} was recorded in {}, which does not exist", record.display()))
                    .hint("`--state DIR` selects the folder that the record is in now")
            })?,
            None => context.read_store()?,
        };
        let run = store.select(&run)?;
        Ok((store, run))
    }

    /// Returns the directory of the run, if there is a workspace.
    ///
    /// # Errors
    /// See [`Self::find`].
    pub fn directory(&self) -> Result<Option<PathBuf>, CliError> {
        let workspace = self.workspace.as_deref().filter(|workspace| workspace.exists());
        workspace.map(|workspace| directory(workspace, self.iteration.as_deref())).transpose()
    }
}

/// Returns the artefacts directory for a run with a workspace.
pub fn artifacts(workspace: &Path, skills: &[model::SkillInfo], iteration: Option<&str>) -> PathBuf {
    let iteration = format!("iteration-{}", iteration.unwrap_or("1"));
    match skills {
        [skill] => workspace.join(format!("{}-workspace", skill.name)).join(iteration),
        _ => workspace.join(iteration),
    }
}

/// Maximum size of a file of a workspace, in bytes.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// Contents of the artefacts that identify a run.
struct WorkspaceRun {
    /// Id of the run.
    run: String,
    /// Path of the record.
    record: Option<PathBuf>,
}

fn run_in(workspace: &Path, iteration: Option<&str>) -> Result<WorkspaceRun, CliError> {
    let directory = directory(workspace, iteration)?;
    let file = directory.join(SUITE);
    let wrong = |why: String| CliError::usage(format!("{}: {why}", file.display()));
    let text = files::read_named_text(&file, MAX_FILE_BYTES).map_err(|error| wrong(error.to_string()))?;
    let suite: Value = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    let text = |key: &str| suite.get(key).and_then(Value::as_str);
    let run = text("run_id").map(str::to_owned).ok_or_else(|| wrong("it does not name a run".to_owned()))?;
    Ok(WorkspaceRun { run, record: text("record").map(PathBuf::from) })
}

/// Returns the newest recorded run for the path of a workspace: `…/SKILL-workspace/iteration-N`. Either part of the
/// path may be missing. Runs without a label are the first iteration.
fn recorded(store: &dyn Store, workspace: &Path, iteration: Option<&str>) -> Result<RunRow, CliError> {
    let names = || workspace.iter().rev().filter_map(|name| name.to_str());
    let skill = names().find_map(|name| name.strip_suffix("-workspace")).filter(|skill| *skill != "eval");
    let iteration = iteration.or_else(|| names().next()?.strip_prefix("iteration-"));
    for run in store.runs(&RunFilter::default())? {
        let is_wanted = iteration.is_none_or(|iteration| run.label.as_deref().unwrap_or("1") == iteration);
        let is_about = |skill: &str| -> Result<bool, CliError> {
            Ok(store.info(&run.id)?.skills.iter().any(|known| known.name == skill))
        };
        if is_wanted && skill.map_or(Ok(true), is_about)? {
            return Ok(run);
        }
    }
    let of = skill.map(|skill| format!(" of the `{skill}` skill")).unwrap_or_default();
    let what = iteration.map_or("run".to_owned(), |iteration| format!("run with the label `{iteration}`"));
    Err(CliError::usage(format!("{} does not exist, and no {what}{of} is recorded", workspace.display()))
        .hint("`trialrun history` lists recorded trials; `run --workspace DIR` writes a workspace"))
}

fn directory(workspace: &Path, iteration: Option<&str>) -> Result<PathBuf, CliError> {
    if iteration.is_none() && workspace.join(SUITE).is_file() {
        return Ok(workspace.to_owned());
    }
    let of_skill = |name: &str| name.ends_with("-workspace");
    let skills: Vec<PathBuf> =
        folders(workspace).into_iter().filter(|(name, _)| of_skill(name)).map(|(_, path)| path).collect();
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
    let iterations = folders(home).into_iter().filter_map(|(name, path)| {
        let number = name.strip_prefix("iteration-")?.to_owned();
        path.join(SUITE).is_file().then_some((number, path))
    });
    // Sorted by number, so that 10 comes after 9; then by name.
    let mut iterations: Vec<(String, PathBuf)> = iterations.collect();
    iterations.sort_by_key(|(number, _)| (number.parse::<u64>().unwrap_or(0), number.clone()));
    let found = match iteration {
        Some(wanted) => iterations.iter().find(|(number, _)| number == wanted),
        None => iterations.last(),
    };
    found.map(|(_, path)| path.clone()).ok_or_else(|| {
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

//! The artefacts directory: files about a run and each of its trials, written while the run is in progress.
//!
//! A [`Tree`] is the directory. [`open`] creates the reporter that writes it from events alone. Post-grade commands
//! need a trial's files before the trial has an outcome, so their caller passes the preliminary result to
//! [`Tree::write_graded`].
//!
//! Each file is complete at any time, because it is written under a temporary name and then renamed. Only
//! `progress.jsonl` and the agent's logs grow line by line.

mod folder;
mod progress;
mod regraded;
mod reporter;
mod run;
mod trial;
mod trial_folders;

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use model::{Collected, HookKind, HookRecord, Outcome, RunInfo, TrialId, TrialRecord};
use serde_json::Value;

use crate::Reporter;
use folder::Folder;
use trial_folders::TrialFolders;

pub use folder::ArtifactsError;
pub use run::merged as merged_side_effects;
pub(crate) use trial_folders::folder_name;

/// Files of a run, at the top level.
const OF_RUN: [&str; 5] = [PROGRESS, "suite.json", "summary.json", "benchmark.json", "cleanup.json"];

/// Files of a trial.
const OF_TRIAL: [&str; 11] = [
    "trial.json",
    RUN_META,
    GRADING,
    TIMING,
    "outputs/output.txt",
    "outputs/stdout.log",
    "outputs/stderr.log",
    PRE_STATE,
    POST_STATE,
    "outputs/post_grade_hooks.json",
    PATCH,
];

const PROGRESS: &str = "progress.jsonl";
const RUN_META: &str = "run_meta.json";
const GRADING: &str = "grading.json";
const TIMING: &str = "timing.json";
const PRE_STATE: &str = "outputs/pre_state.json";
const POST_STATE: &str = "outputs/post_state.json";
const PATCH: &str = "outputs/diff.patch";
const OUTPUTS: &str = "outputs";

/// A trial and the folder for its files, relative to the top level.
struct TrialFolder {
    trial: String,
    path: PathBuf,
}

/// Absolute paths of a trial's files, as passed to post-grade commands.
#[derive(Debug, Clone)]
pub struct TrialFiles {
    /// Folder of its outputs.
    pub outputs: PathBuf,
    /// State of the repository before the agent ran.
    pub pre_state: PathBuf,
    /// State of the repository after the agent ran.
    pub post_state: PathBuf,
    /// Durations and usage.
    pub timing: PathBuf,
    /// Description of the trial.
    pub run_meta: PathBuf,
    /// Results of its assertions.
    pub grading: PathBuf,
}

/// The directory of one run.
pub struct Tree {
    folder: Folder,
    folders: TrialFolders,
    trials: Vec<TrialFolder>,
    /// Path or URL of the record of the run.
    record: String,
    /// Description of the run, as in the events: without secrets.
    info: OnceLock<RunInfo>,
    /// Trials whose folders exist.
    made: Mutex<HashSet<PathBuf>>,
    progress: Mutex<Progress>,
    changed: Condvar,
}

/// Progress of the reporter.
#[derive(Default)]
struct Progress {
    /// Commands whose start it has seen.
    hooks: HashSet<HookCall>,
    /// `true` if the reporter has stopped.
    gone: bool,
}

/// A command that is about to run: its hook, its number, and its trial and attempt.
type HookCall = (HookKind, usize, Option<(String, u32)>);

/// Opens the reporter that writes the directory from the run's events. Each tree has one reporter.
pub(crate) fn open(tree: &Arc<Tree>) -> Box<dyn Reporter> {
    Box::new(reporter::Artifacts::new(Arc::clone(tree)))
}

/// Opens the directory at `root`, which the run of `trials` wrote, and returns the reporter that brings it up to date
/// when that run is graded again. The new run is recorded in `record`.
///
/// # Errors
/// Returns an error if the directory was not written by a run, or is in use.
pub fn open_regraded(root: &Path, trials: &[TrialId], record: &str) -> Result<Box<dyn Reporter>, ArtifactsError> {
    let tree = Tree::with(Folder::reopen(root)?, trials, record);
    Ok(Box::new(regraded::Regraded::new(Arc::new(tree))))
}

impl Tree {
    /// Takes over the directory at `root` for the trials of `info`, which are recorded in `record`. Files of an
    /// earlier run are removed.
    ///
    /// # Errors
    /// Returns an error if the directory contains foreign files or cannot be written.
    pub fn open(root: &Path, info: &RunInfo, record: &str) -> Result<Arc<Self>, ArtifactsError> {
        let folder = Folder::open(root)?;
        folder.enter(OF_RUN.iter().map(PathBuf::from)).map_err(ArtifactsError::io(folder::WRITE, root))?;
        Ok(Arc::new(Self::with(folder, &info.trials, record)))
    }

    fn with(folder: Folder, ids: &[TrialId], record: &str) -> Self {
        let reserved: Vec<&str> = OF_RUN.iter().copied().chain([folder::INDEX]).collect();
        let folders = TrialFolders::new(ids, &reserved);
        let trial_folder = |trial: String| Some(TrialFolder { path: folders.get(&trial)?.to_owned(), trial });
        let trials = ids.iter().filter_map(|id| trial_folder(id.to_string())).collect();
        Self {
            folder,
            folders,
            trials,
            record: record.to_owned(),
            info: OnceLock::new(),
            made: Mutex::default(),
            progress: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Returns the path of the directory: absolute, with links resolved.
    pub fn root(&self) -> &Path {
        self.folder.root()
    }

    /// Returns the files of the trial with that printed id; `None` if the run has no such trial.
    pub fn files(&self, trial: &str) -> Option<TrialFiles> {
        let folder = self.root().join(self.folders.get(trial)?);
        Some(TrialFiles {
            outputs: folder.join(OUTPUTS),
            pre_state: folder.join(PRE_STATE),
            post_state: folder.join(POST_STATE),
            timing: folder.join(TIMING),
            run_meta: folder.join(RUN_META),
            grading: folder.join(GRADING),
        })
    }

    /// Waits until the reporter has seen that this command is about to run, so that everything before it is written.
    /// Returns `false` if `timeout` expires first.
    pub fn catch_up(&self, hook: HookKind, number: usize, trial: Option<(&str, u32)>, timeout: Duration) -> bool {
        let moment: HookCall = (hook, number, trial.map(|(trial, attempt)| (trial.to_owned(), attempt)));
        let waiting = |seen: &mut Progress| !seen.gone && !seen.hooks.contains(&moment);
        let (mut seen, _) =
            self.changed.wait_timeout_while(self.progress(), timeout, waiting).unwrap_or_else(PoisonError::into_inner);
        seen.hooks.remove(&moment)
    }

    /// Writes the preliminary result of a trial, for post-grade commands. It must not contain secrets.
    ///
    /// # Errors
    /// Returns an error if a file cannot be written.
    pub fn write_graded(&self, record: &TrialRecord, collected: &Collected, attempt: u32) -> io::Result<()> {
        self.write_states(&record.id, collected)?;
        self.write_trial(record, attempt)
    }

    fn hook_seen(&self, hook: HookKind, number: usize, trial: Option<(String, u32)>) {
        self.progress().hooks.insert((hook, number, trial));
        self.changed.notify_all();
    }

    fn close(&self) {
        self.progress().gone = true;
        self.changed.notify_all();
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the trial's folder, and creates it if needed.
    fn trial_folder(&self, trial: &str) -> io::Result<&Path> {
        let folder = self.folders.get(trial).ok_or_else(|| io::Error::other(format!("no trial is called {trial}")))?;
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if !made.contains(folder) {
            self.folder.enter(OF_TRIAL.iter().map(|file| folder.join(file)))?;
            self.folder.make(&folder.join(OUTPUTS))?;
            made.insert(folder.to_owned());
        }
        Ok(folder)
    }

    /// Removes the files of an earlier attempt at a trial.
    fn clear(&self, folder: &Path) {
        for file in OF_TRIAL {
            let _ = std::fs::remove_file(self.root().join(folder).join(file));
        }
    }

    fn write_states(&self, trial: &str, collected: &Collected) -> io::Result<()> {
        let folder = self.trial_folder(trial)?;
        let [before, after] = trial::states(collected.repository_change.as_deref());
        self.json(&folder.join(PRE_STATE), &before)?;
        self.json(&folder.join(POST_STATE), &after)?;
        match &collected.patch {
            Some(patch) => self.folder.write(&folder.join(PATCH), patch.as_bytes()),
            None => Ok(()),
        }
    }

    /// Writes the files of a trial with a final or preliminary result.
    fn write_trial(&self, record: &TrialRecord, attempt: u32) -> io::Result<()> {
        let folder = self.trial_folder(&record.id)?;
        if let Some(info) = self.info.get() {
            self.json(&folder.join(RUN_META), &trial::run_meta(record, info))?;
        }
        let has_begun = record.ending.is_some() || !record.attempts.is_empty();
        if has_begun {
            self.json(&folder.join(TIMING), &trial::timing(record, attempt))?;
            let answer = record.answer.as_deref().unwrap_or_default();
            self.folder.write(&folder.join("outputs/output.txt"), answer.as_bytes())?;
        }
        self.write_grading(folder, record)
    }

    /// Writes the files of a trial that grading changes.
    fn write_regraded(&self, record: &TrialRecord) -> io::Result<()> {
        let folder = self.trial_folder(&record.id)?;
        self.write_grading(folder, record)
    }

    fn write_grading(&self, folder: &Path, record: &TrialRecord) -> io::Result<()> {
        let file = folder.join(GRADING);
        if matches!(record.outcome, Outcome::Passed | Outcome::Failed | Outcome::Undecided) {
            self.json(&file, &trial::grading(record))?;
        } else {
            // A trial whose case no longer exists may have been graded before.
            let _ = std::fs::remove_file(self.root().join(file));
        }
        self.json(&folder.join("trial.json"), &crate::trial_json(record))
    }

    fn write_hooks(&self, trial: &str, records: &[HookRecord]) -> io::Result<()> {
        let folder = self.trial_folder(trial)?;
        self.json(&folder.join("outputs/post_grade_hooks.json"), &trial::hooks(records))
    }

    fn json(&self, file: &Path, value: &Value) -> io::Result<()> {
        self.folder.write(file, serde_json::to_string_pretty(value)?.as_bytes())
    }
}

//! The artifacts directory: files about a run and each of its trials, written while the run goes on.
//!
//! A [`Tree`] is the directory; [`Tree::reporter`] writes it from events alone. Who runs commands after grading hands it
//! what a trial would come to, [`Tree::write_graded`], because they are to find its files before the trial has an outcome.
//!
//! Each file is whole at any time: it is written beside its place and moved there. `progress.jsonl` and the agent's logs
//! grow line by line.

mod folder;
mod place;
mod progress;
mod reporter;
mod run;
mod trial;

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use model::{Collected, HookKind, HookRecord, Outcome, RunInfo, TrialRecord};
use serde_json::Value;

use crate::Reporter;
use folder::Folder;
use place::Places;

pub use run::merged as merged_side_effects;

/// Files of a run, at the top.
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

/// A trial and where its files are, relative to the top.
struct Place {
    trial: String,
    path: PathBuf,
}

/// The files of a trial that commands after grading are told of; absolute.
#[derive(Debug, Clone)]
pub struct TrialFiles {
    /// The trial's own folder.
    pub folder: PathBuf,
    /// Its outputs.
    pub outputs: PathBuf,
    /// The repository before the agent came.
    pub pre_state: PathBuf,
    /// The repository after it had gone.
    pub post_state: PathBuf,
    /// What it took.
    pub timing: PathBuf,
    /// What it is about.
    pub run_meta: PathBuf,
    /// What its assertions came to.
    pub grading: PathBuf,
}

/// The directory of one run.
pub struct Tree {
    folder: Folder,
    places: Places,
    trials: Vec<Place>,
    /// The record that the run is in.
    record: PathBuf,
    /// As events tell it: without secrets.
    info: OnceLock<RunInfo>,
    /// Trials whose folders are made.
    made: Mutex<HashSet<PathBuf>>,
    seen: Mutex<Seen>,
    news: Condvar,
}

/// How far the reporter has come.
#[derive(Default)]
struct Seen {
    /// Commands that it knows are about to run.
    hooks: HashSet<Moment>,
    /// It shows nothing any more.
    gone: bool,
}

/// A command that is about to run: when, its number, and the trial and its attempt.
type Moment = (HookKind, usize, Option<(String, u32)>);

impl Tree {
    /// Takes over the directory at `root`, for the trials of `info`, which are recorded in `record`. What an earlier run wrote
    /// there is removed.
    ///
    /// # Errors
    /// Why it cannot be used: it holds files of somebody else's, or cannot be written.
    pub fn open(root: &Path, info: &RunInfo, record: &Path) -> Result<Arc<Self>, String> {
        let folder = Folder::open(root)?;
        let reserved: Vec<&str> = OF_RUN.iter().copied().chain([folder::INDEX]).collect();
        let places = Places::of(&info.trials, &reserved);
        let place = |trial: String| Some(Place { path: places.get(&trial)?.to_owned(), trial });
        let trials = info.trials.iter().filter_map(|id| place(id.to_string())).collect();
        folder
            .enter(OF_RUN.iter().map(PathBuf::from))
            .map_err(|error| format!("cannot write artefacts to {}: {error}", root.display()))?;
        Ok(Arc::new(Self {
            folder,
            places,
            trials,
            record: record.to_owned(),
            info: OnceLock::new(),
            made: Mutex::default(),
            seen: Mutex::default(),
            news: Condvar::new(),
        }))
    }

    /// The directory: absolute, links resolved.
    pub fn root(&self) -> &Path {
        self.folder.root()
    }

    /// Writes the directory from the events of its run. There is one for a tree.
    pub fn reporter(self: &Arc<Self>) -> Box<dyn Reporter> {
        Box::new(reporter::Artifacts::new(Arc::clone(self)))
    }

    /// The files of the trial with that printed id; `None` if it is none of the run's.
    pub fn files(&self, trial: &str) -> Option<TrialFiles> {
        let folder = self.root().join(self.places.get(trial)?);
        Some(TrialFiles {
            outputs: folder.join(OUTPUTS),
            pre_state: folder.join(PRE_STATE),
            post_state: folder.join(POST_STATE),
            timing: folder.join(TIMING),
            run_meta: folder.join(RUN_META),
            grading: folder.join(GRADING),
            folder,
        })
    }

    /// Waits until the reporter knows that this command is about to run, so that everything before it is written. `false`
    /// if it does not come to that in `patience`.
    pub fn catch_up(&self, hook: HookKind, number: usize, trial: Option<(&str, u32)>, patience: Duration) -> bool {
        let moment: Moment = (hook, number, trial.map(|(trial, attempt)| (trial.to_owned(), attempt)));
        let waiting = |seen: &mut Seen| !seen.gone && !seen.hooks.contains(&moment);
        let (mut seen, _) =
            self.news.wait_timeout_while(self.seen(), patience, waiting).unwrap_or_else(PoisonError::into_inner);
        seen.hooks.remove(&moment)
    }

    /// Writes what a trial would come to now, for commands that look at it. Nothing in it may be a secret.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn write_graded(&self, record: &TrialRecord, collected: &Collected, attempt: u32) -> io::Result<()> {
        self.write_states(&record.id, collected)?;
        self.write_trial(record, attempt)
    }

    fn told(&self, hook: HookKind, number: usize, trial: Option<(String, u32)>) {
        self.seen().hooks.insert((hook, number, trial));
        self.news.notify_all();
    }

    fn leave(&self) {
        self.seen().gone = true;
        self.news.notify_all();
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The trial's folder, made.
    fn place(&self, trial: &str) -> io::Result<&Path> {
        let place = self.places.get(trial).ok_or_else(|| io::Error::other(format!("no trial is called {trial}")))?;
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if !made.contains(place) {
            self.folder.enter(OF_TRIAL.iter().map(|file| place.join(file)))?;
            self.folder.make(&place.join(OUTPUTS))?;
            made.insert(place.to_owned());
        }
        Ok(place)
    }

    /// Removes what an attempt before has left of a trial.
    fn clear(&self, place: &Path) {
        for file in OF_TRIAL {
            let _ = std::fs::remove_file(self.root().join(place).join(file));
        }
    }

    fn write_states(&self, trial: &str, collected: &Collected) -> io::Result<()> {
        let place = self.place(trial)?;
        let [before, after] = trial::states(collected.repository_change.as_deref());
        self.json(&place.join(PRE_STATE), &before)?;
        self.json(&place.join(POST_STATE), &after)?;
        match &collected.patch {
            Some(patch) => self.folder.write(&place.join(PATCH), patch.as_bytes()),
            None => Ok(()),
        }
    }

    /// What is known of a trial that has come to something, or would.
    fn write_trial(&self, record: &TrialRecord, attempt: u32) -> io::Result<()> {
        let place = self.place(&record.id)?;
        if let Some(info) = self.info.get() {
            self.json(&place.join(RUN_META), &trial::run_meta(record, info))?;
        }
        let has_begun = record.ending.is_some() || !record.attempts.is_empty();
        if has_begun {
            self.json(&place.join(TIMING), &trial::timing(record, attempt))?;
            let answer = record.answer.as_deref().unwrap_or_default();
            self.folder.write(&place.join("outputs/output.txt"), answer.as_bytes())?;
        }
        if matches!(record.outcome, Outcome::Passed | Outcome::Failed | Outcome::Undecided) {
            self.json(&place.join(GRADING), &trial::grading(record))?;
        }
        self.json(&place.join("trial.json"), &crate::trial_json(record))
    }

    fn write_hooks(&self, trial: &str, records: &[HookRecord]) -> io::Result<()> {
        let place = self.place(trial)?;
        self.json(&place.join("outputs/post_grade_hooks.json"), &trial::hooks(records))
    }

    fn json(&self, file: &Path, value: &Value) -> io::Result<()> {
        self.folder.write(file, serde_json::to_string_pretty(value)?.as_bytes())
    }
}

//! What a store can do, whatever holds the data.

use std::path::PathBuf;

use model::{Envelope, LiveTrial, RunInfo, RunRow, Step, TrialRecord, TrialRow};
use serde_json::Value;

use crate::{SelectError, Selectable, select_run, select_trial};

/// Where runs are recorded and read again.
pub trait Store: Send {
    /// Keeps `events`, all of them or none. They come in the order of their numbers; a run's first event is its
    /// `run_started`. When this returns, they survive the end of the process, however it ends.
    fn append(&mut self, events: &[Envelope]) -> Result<(), StoreError>;

    /// Adds `bytes` to the end of what is kept for a trial under `name`, such as the agent's raw output.
    fn append_blob(&mut self, run: &str, trial: &str, name: &str, bytes: &[u8]) -> Result<(), StoreError>;

    /// Recorded runs, newest first.
    fn runs(&self, filter: &RunFilter) -> Result<Vec<RunRow>, StoreError>;

    /// What the run of that whole id set out to do.
    fn info(&self, run: &str) -> Result<RunInfo, StoreError>;

    /// Finished trials, the one that finished last first.
    fn trials(&self, filter: &TrialFilter) -> Result<Vec<TrialRow>, StoreError> {
        let mut rows = Vec::new();
        self.each_trial(filter, &mut |row| {
            rows.push(row);
            true
        })?;
        Ok(rows)
    }

    /// Gives finished trials to `take`, newest first, until it returns `false`. Only one is in memory at a time.
    fn each_trial(&self, filter: &TrialFilter, take: &mut dyn FnMut(TrialRow) -> bool) -> Result<(), StoreError>;

    /// A finished trial, by the whole ids of its run and its own.
    fn trial(&self, run: &str, trial: &str) -> Result<TrialRecord, StoreError>;

    /// Every event of one trial so far, in order.
    fn trial_events(&self, run: &str, trial: &str) -> Result<Vec<StoredEvent>, StoreError>;

    /// Every event of a run, in order, read as they are asked for. The iterator sees the run as it was when it was
    /// made, even while the run goes on.
    fn events<'a>(
        &'a self,
        run: &str,
    ) -> Result<Box<dyn Iterator<Item = Result<StoredEvent, StoreError>> + 'a>, StoreError>;

    /// The trials of a run that have begun and have no outcome, in the order they began.
    fn live(&self, run: &str) -> Result<Vec<LiveTrial>, StoreError>;

    /// What is kept beside the events of a trial.
    fn blobs(&self, run: &str, trial: &str) -> Result<Vec<BlobInfo>, StoreError>;

    /// Everything that was appended under `name`; `None` if nothing was.
    fn blob(&self, run: &str, trial: &str, name: &str) -> Result<Option<Vec<u8>>, StoreError>;

    /// Forgets a run and everything that belongs to it.
    fn remove(&mut self, run: &str) -> Result<(), StoreError>;

    /// Shows `each` known event of a run in order and returns how many events were left out because this version does
    /// not know them.
    fn replay(&self, run: &str, each: &mut dyn FnMut(&Envelope)) -> Result<usize, StoreError> {
        let mut unknown = 0;
        for event in self.events(run)? {
            match event? {
                StoredEvent::Known(envelope) => each(&envelope),
                StoredEvent::Unknown(_) => unknown += 1,
            }
        }
        Ok(unknown)
    }

    /// The run that `wanted` names: `latest`, `previous`, a label (the newest run that carries it) or the front of an
    /// id.
    fn select(&self, wanted: &str) -> Result<RunRow, StoreError> {
        let mut rows = self.runs(&RunFilter::default())?;
        let found = select_run(&rows, wanted)?;
        Ok(rows.swap_remove(found))
    }

    /// The finished trial that `wanted` names, in the newest run that has one: its id, the id without its arm and
    /// repetition, its case, or the front of its id. `RUN/…` looks in that run only.
    fn select_trial(&self, wanted: &str) -> Result<TrialRow, StoreError> {
        let runs = self.runs(&RunFilter::default())?;
        let mut problem = None;
        for run in &runs {
            let mut trials = self.trials(&TrialFilter::of_run(&run.id))?;
            match select_trial(&trials, wanted) {
                Ok(found) => return Ok(trials.swap_remove(found)),
                Err(error @ SelectError::AmbiguousTrial { .. }) => return Err(error.into()),
                Err(error) => problem = problem.or((!trials.is_empty()).then_some(error)),
            }
        }
        if let Some((run, trial)) = wanted.split_once('/')
            && let Ok(found) = select_run(&runs, run)
        {
            let mut trials = self.trials(&TrialFilter::of_run(&runs[found].id))?;
            let found = select_trial(&trials, trial)?;
            return Ok(trials.swap_remove(found));
        }
        Err(problem.unwrap_or(SelectError::NoRuns).into())
    }
}

/// Which runs to list.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    /// At most so many, the newest.
    pub last: Option<usize>,
    /// Only those that started before this.
    pub before: Option<jiff::Timestamp>,
}

/// Which trials to list. Every condition that is given must hold.
#[derive(Debug, Clone, Default)]
pub struct TrialFilter {
    /// Of the run with this whole id.
    pub run: Option<String>,
    /// Of the suite, or skill, of this name.
    pub suite: Option<String>,
    /// Of the case with this id.
    pub case: Option<String>,
    /// Whose id contains this text.
    pub text: Option<String>,
    /// At most so many, those that finished last.
    pub last: Option<usize>,
}

impl TrialFilter {
    /// All of a run's.
    pub fn of_run(run: &str) -> Self {
        Self { run: Some(run.to_owned()), ..Self::default() }
    }
}

/// An event as it was read.
#[derive(Debug, Clone, PartialEq)]
pub enum StoredEvent {
    /// One that this version knows.
    Known(Box<Envelope>),
    /// One that another version wrote; kept as it is.
    Unknown(Value),
}

impl StoredEvent {
    /// The envelope, if this version knows it.
    pub fn known(self) -> Option<Envelope> {
        match self {
            Self::Known(envelope) => Some(*envelope),
            Self::Unknown(_) => None,
        }
    }

    /// The agent's step, if it is one.
    pub fn step(&self) -> Option<&Step> {
        match self {
            Self::Known(envelope) => match &envelope.event {
                model::Event::Step(step) => Some(step),
                _ => None,
            },
            Self::Unknown(_) => None,
        }
    }
}

/// Something kept beside a trial's events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobInfo {
    /// Its name.
    pub name: String,
    /// Its length in bytes.
    pub length: u64,
}

impl Selectable for RunRow {
    fn id(&self) -> &str {
        &self.id
    }

    fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }
}

/// Why the record cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A newer program wrote it. Nothing was touched.
    #[error(
        "{} was written by a newer trialrun (format {found}; this one knows up to {known}); it was not touched", path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The newest format this program knows.
        known: u32,
    },
    /// It is not a record of runs. Nothing was touched.
    #[error("{} is not a record of trialrun; it was not touched", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be opened.
    #[error("cannot open the record {}: {because}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        because: String,
    },
    /// The file was taken away while a run was being recorded.
    #[error("the record {} was removed or replaced while it was being written", path.display())]
    Gone {
        /// The file.
        path: PathBuf,
    },
    /// The database said no.
    #[error("the record cannot be read or written: {0}")]
    Database(#[from] rusqlite::Error),
    /// What is stored cannot be understood.
    #[error("the record is damaged: {0}")]
    Damaged(String),
    /// No run has that id.
    #[error("no run has the id `{0}`")]
    UnknownRun(String),
    /// No finished trial has that id.
    #[error("run {run} has no finished trial `{trial}`")]
    UnknownTrial {
        /// The run.
        run: String,
        /// The trial.
        trial: String,
    },
    /// What the user named is not there, or is there twice.
    #[error(transparent)]
    Select(#[from] SelectError),
}

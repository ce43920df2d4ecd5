//! The interface of every store, whatever holds the data.

use jiff::Timestamp;
use model::{
    Envelope, Event, Lease, LiveTrial, RunInfo, RunResults, RunRow, SideEffects, Step, Summary, TrialRecord, TrialRow,
};
use serde_json::Value;

use crate::location::LocationError;
use crate::{Location, SelectError, Verification, select_run, select_trial};

/// Records runs and reads them back.
pub trait Store: Send {
    /// Stores `events`, all of them or none. They must be in numerical order; a run's first event is its
    /// `run_started`. After this method returns, they survive the end of the process for any reason. The first event
    /// gives the run to the owner of this store, and each call renews its lease. If another owner has taken the run
    /// over, nothing is stored.
    fn append(&mut self, events: &[Envelope]) -> Result<(), StoreError>;

    /// Renews the lease of a run, given its full id, while there are no events.
    fn renew(&mut self, run: &str, at: Timestamp) -> Result<(), StoreError>;

    /// Returns recorded runs, newest first.
    fn runs(&self, filter: &RunFilter) -> Result<Vec<RunRow>, StoreError>;

    /// Returns the settings and planned trials of the run with that full id.
    fn info(&self, run: &str) -> Result<RunInfo, StoreError>;

    /// Counts a run's trials that have an outcome, by outcome, with their tokens and cost. Summary fields that depend
    /// on findings are empty, unless the run has ended.
    fn summary(&self, run: &str) -> Result<Summary, StoreError>;

    /// Returns the runs that have finished trials, newest first, with the results of their cases.
    fn results(&self, filter: &ResultFilter) -> Result<Vec<RunResults>, StoreError>;

    /// Returns the suite and the case of each finished trial, without duplicates, in the order of their names.
    fn cases(&self) -> Result<Vec<(String, String)>, StoreError>;

    /// Returns finished trials: those of the newest run first, and within each run the most recently finished first.
    fn trials(&self, filter: &TrialFilter) -> Result<Vec<TrialRow>, StoreError> {
        let mut rows = Vec::new();
        self.each_trial(filter, &mut |row| {
            rows.push(row);
            true
        })?;
        Ok(rows)
    }

    /// Calls `take` with finished trials, in the order of [`trials`](Self::trials), until it returns `false`. Only one
    /// trial is in memory at a time.
    fn each_trial(&self, filter: &TrialFilter, take: &mut dyn FnMut(TrialRow) -> bool) -> Result<(), StoreError>;

    /// Returns a finished trial, given the full ids of its run and of the trial.
    fn trial(&self, run: &str, trial: &str) -> Result<TrialRecord, StoreError> {
        let unknown = || StoreError::UnknownTrial { run: run.to_owned(), trial: trial.to_owned() };
        self.records(run, &[trial])?.pop().ok_or_else(unknown)
    }

    /// Returns finished trials of a run in the given order, by the full ids of the run and of the trials.
    fn records(&self, run: &str, trials: &[&str]) -> Result<Vec<TrialRecord>, StoreError>;

    /// Returns all events of one trial so far, in order.
    fn trial_events(&self, run: &str, trial: &str) -> Result<Vec<StoredEvent>, StoreError>;

    /// Returns all events of a run, in order. The iterator reads them on demand. It sees the run as it was when the
    /// iterator was created, even while the run continues.
    fn events<'a>(
        &'a self,
        run: &str,
    ) -> Result<Box<dyn Iterator<Item = Result<StoredEvent, StoreError>> + 'a>, StoreError>;

    /// Returns the trials of a run that have started and have no outcome yet, in the order in which they started.
    fn live(&self, run: &str) -> Result<Vec<LiveTrial>, StoreError>;

    /// Gives an interrupted run to the owner of this store at the time `at`, so that it can resume the run: removes its
    /// end, its cancelled trials and the events of trials that did not finish. `lease` is the lease that the caller
    /// found to have ended. If the run has another one by now, or was changed after it was recorded, it is rejected.
    fn reopen(&mut self, run: &str, lease: Option<&Lease>, at: Timestamp) -> Result<(), StoreError>;

    /// Changes the events so far of a trial that has no outcome, to remove a secret that became known only now.
    fn rewrite(&mut self, run: &str, trial: &str, change: &mut dyn FnMut(&mut Event)) -> Result<(), StoreError>;

    /// Compares a run with its chain of hashes. Events of trials without an outcome are not part of the chain.
    fn verify(&self, run: &str) -> Result<Verification, StoreError>;

    /// Removes the chain of a run that was copied from a run without a chain.
    fn remove_chain(&mut self, run: &str) -> Result<(), StoreError>;

    /// Adds to the side effects of a run that were removed from remotes after it. The run itself is not changed.
    fn record_cleanup(&mut self, run: &str, removed: &[SideEffects]) -> Result<(), StoreError>;

    /// Returns the side effects of a run that were removed from remotes after it.
    fn cleaned(&self, run: &str) -> Result<Vec<SideEffects>, StoreError>;

    /// Deletes a run and everything that belongs to it.
    fn remove(&mut self, run: &str) -> Result<(), StoreError>;

    /// Opens the judgements that the runs in this store share, and removes those stored before `since`.
    fn judgements(&self, since: Timestamp) -> Result<Box<dyn Judgements>, StoreError>;

    /// Calls `each` with the known events of a run in order. Returns the number of events that were skipped because
    /// this version does not know them.
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

    /// Returns the run to which `wanted` refers: `latest`, `previous`, `latest~N`, a label (the newest run with that
    /// label) or the prefix of an id.
    fn select(&self, wanted: &str) -> Result<RunRow, StoreError> {
        // A run is found without reading thousands of others. Only an error message needs those.
        for filter in [RunFilter::from_name(wanted), RunFilter::default()] {
            let mut rows = self.runs(&filter)?;
            if let Ok(found) = select_run(&rows, wanted) {
                return Ok(rows.swap_remove(found));
            }
        }
        Err(select_run(&self.runs(&RunFilter::default())?, wanted).err().unwrap_or(SelectError::NoRuns).into())
    }

    /// Returns the finished trial to which `wanted` refers, in the newest run that has one: its id, the id without arm
    /// and repetition, its case, or the prefix of its id. `RUN/…` searches that run first.
    fn select_trial(&self, wanted: &str) -> Result<TrialRow, StoreError> {
        if let Some((run, trial)) = wanted.split_once('/')
            && let Ok(run) = self.select(run)
        {
            let mut trials = self.trials(&TrialFilter::of_run(&run.id))?;
            match select_trial(&trials, trial) {
                Ok(found) => return Ok(trials.swap_remove(found)),
                Err(error @ SelectError::AmbiguousTrial { .. }) => return Err(error.into()),
                Err(_) => {}
            }
        }
        let named = TrialFilter { named: Some(wanted.to_owned()), last: Some(1), ..TrialFilter::default() };
        // If no trial has that name, the message lists the trials of the newest run.
        let any = TrialFilter { last: Some(1), ..TrialFilter::default() };
        for filter in [named, any] {
            if let Some(newest) = self.trials(&filter)?.pop() {
                let mut trials = self.trials(&TrialFilter::of_run(&newest.run))?;
                let found = select_trial(&trials, wanted)?;
                return Ok(trials.swap_remove(found));
            }
        }
        Err(SelectError::NoRuns.into())
    }
}

/// Judgements by key. They do not belong to any run, and losing them costs only requests. Several processes may use
/// them at the same time.
pub trait Judgements: Send {
    /// Returns the judgement with this key.
    fn get(&self, key: &str) -> Result<Option<String>, StoreError>;

    /// Stores a judgement, replacing any with the same key. It must not contain secrets.
    fn put(&self, key: &str, judgement: &str, at: Timestamp) -> Result<(), StoreError>;
}

/// Filter for listing runs.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    /// Maximum number of runs, newest first.
    pub last: Option<usize>,
    /// Only runs that started before this time.
    pub before: Option<Timestamp>,
    /// Only runs with this label, or with an id that starts with it.
    pub named: Option<String>,
    /// Only runs that a signal stopped or that have no end.
    pub interrupted: bool,
}

impl RunFilter {
    /// Selects the runs among which `wanted` refers to one: the newest runs, or those with that label or id.
    fn from_name(wanted: &str) -> Self {
        let back = match wanted {
            "latest" => Some(0),
            "previous" => Some(1),
            _ => wanted.strip_prefix("latest~").and_then(|back| back.parse::<usize>().ok()),
        };
        match back {
            Some(back) => Self { last: Some(back.saturating_add(1)), ..Self::default() },
            None => Self { named: Some(wanted.to_owned()), ..Self::default() },
        }
    }
}

/// Filter for the results of runs. All given conditions must hold.
#[derive(Debug, Clone, Default)]
pub struct ResultFilter {
    /// Name of the suite or skill.
    pub suite: Option<String>,
    /// Id of the case.
    pub case: Option<String>,
    /// Maximum number of runs, newest first.
    pub last: Option<usize>,
    /// Number of newest runs whose cases are counted. Without a suite and a case, older runs that have ended are
    /// returned with only their summary, because counting the cases of thousands of runs takes seconds.
    pub with_cases: usize,
}

/// Filter for listing trials. All given conditions must hold.
#[derive(Debug, Clone, Default)]
pub struct TrialFilter {
    /// Full id of the run.
    pub run: Option<String>,
    /// Name of the suite or skill.
    pub suite: Option<String>,
    /// Id of the case.
    pub case: Option<String>,
    /// Text that the trial's id contains.
    pub text: Option<String>,
    /// Id of the trial, the id without its arm, or the prefix of its id or case.
    pub named: Option<String>,
    /// Maximum number of trials, counted from the first.
    pub last: Option<usize>,
}

impl TrialFilter {
    /// Selects all trials of a run.
    pub fn of_run(run: &str) -> Self {
        Self { run: Some(run.to_owned()), ..Self::default() }
    }
}

/// An event as it was read.
#[derive(Debug, Clone, PartialEq)]
pub enum StoredEvent {
    /// An event that this version knows.
    Known(Box<Envelope>),
    /// An event that another version wrote; kept unchanged.
    Unknown(Value),
}

impl StoredEvent {
    /// Returns the envelope, if this version knows it.
    pub fn known(self) -> Option<Envelope> {
        match self {
            Self::Known(envelope) => Some(*envelope),
            Self::Unknown(_) => None,
        }
    }

    /// Returns the agent's step, if the event is one.
    pub fn step(&self) -> Option<&Step> {
        match self {
            Self::Known(envelope) => match &envelope.event {
                Event::Step(step) => Some(step),
                _ => None,
            },
            Self::Unknown(_) => None,
        }
    }
}

/// Reason why the record cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A newer version wrote the record. It was not changed.
    #[error(
        "{location} was written by a newer version of trialrun (format {found}; this version supports up to {known}); it was not changed"
    )]
    Newer {
        /// Place of the record.
        location: Location,
        /// Format of the record.
        found: u32,
        /// Newest format that this version knows.
        known: u32,
    },
    /// The file or the schema is not a record of runs. It was not changed.
    #[error("{location} is not a record of trialrun; it was not changed")]
    Foreign {
        /// Place of the record.
        location: Location,
    },
    /// The record cannot be opened.
    #[error("cannot open the record {location}: {reason}")]
    Open {
        /// Place of the record.
        location: Location,
        /// Reason.
        reason: String,
    },
    /// The server of the record does not answer, whatever the settings are.
    #[error("cannot reach the record {location}: {reason}")]
    Unreachable {
        /// Place of the record.
        location: Location,
        /// Reason.
        reason: String,
    },
    /// The file was removed or replaced while a run was being recorded.
    #[error("the record {location} was removed or replaced while it was being written")]
    Gone {
        /// Place of the record.
        location: Location,
    },
    /// The backend cannot read or write. Contains its own message.
    #[error("the record cannot be read or written: {0}")]
    Backend(String),
    /// The stored data cannot be interpreted.
    #[error("the record is damaged: {0}")]
    Damaged(String),
    /// The place of the record is not known.
    #[error(transparent)]
    Location(#[from] LocationError),
    /// Another owner writes the run.
    #[error("the run {run} now belongs to {owner}")]
    Taken {
        /// Id of the run.
        run: String,
        /// Description of the owner.
        owner: String,
    },
    /// The run does not match its chain of hashes.
    #[error("the run {run} was changed after it was recorded: {reason}")]
    Changed {
        /// Id of the run.
        run: String,
        /// First difference.
        reason: String,
    },
    /// No run has that id.
    #[error("no run has the id `{0}`")]
    UnknownRun(String),
    /// No finished trial has that id.
    #[error("run {run} has no finished trial `{trial}`")]
    UnknownTrial {
        /// Id of the run.
        run: String,
        /// Id of the trial.
        trial: String,
    },
    /// The name given by the user matches nothing, or is ambiguous.
    #[error(transparent)]
    Select(#[from] SelectError),
}

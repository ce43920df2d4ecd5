//! What users do with runs in the queue from other terminals.

use std::ops::Deref;

use store::postgres::Settings;
use tokio::runtime::Runtime;

use crate::database::Database;
use crate::error::QueueError;
use crate::statements::Announcement;
use crate::statements::control::QueuedRun;
use crate::statements::watch::HeldTrial;
use crate::waiting::{WaitingTrials, explain};

/// The queue, from the view of a command that neither coordinates nor runs trials.
pub struct Queue {
    database: Database,
    runtime: Threads,
}

/// Threads of a connection. They can be dropped anywhere, also in an asynchronous program.
struct Threads(Option<Runtime>);

/// A worker that answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerState {
    /// Name of its machine.
    pub host: String,
    /// Id of its process.
    pub pid: u32,
    /// Version of trialrun.
    pub program: String,
    /// What it has, such as `agent:codex`.
    pub has: Vec<String>,
    /// Number of trials that it runs at once.
    pub slots: u64,
}

impl Queue {
    /// Connects to the queue.
    ///
    /// # Errors
    /// Returns an error if the queue cannot be used.
    pub fn open(settings: &Settings) -> Result<Self, QueueError> {
        let runtime = Threads::new()?;
        let database = runtime.block_on(Database::open(settings, None))?;
        Ok(Self { database, runtime })
    }

    /// Connects to the queue; `None` if the database has none. Changes nothing in the database.
    ///
    /// # Errors
    /// Returns an error if the queue cannot be used.
    pub fn open_existing(settings: &Settings) -> Result<Option<Self>, QueueError> {
        let runtime = Threads::new()?;
        let database = Database::unprepared(settings);
        let exists = runtime.block_on(database.exists())?;
        Ok(exists.then_some(Self { database, runtime }))
    }

    /// Returns the trials that workers run.
    ///
    /// # Errors
    /// Returns an error if the queue cannot be read.
    pub fn held(&self) -> Result<Vec<HeldTrial>, QueueError> {
        self.runtime.block_on(self.database.held())
    }

    /// Returns the trials of a run that wait, by what they wait for.
    ///
    /// # Errors
    /// Returns an error if the queue cannot be read.
    pub fn waiting(&self, run: &QueuedRun) -> Result<Vec<WaitingTrials>, QueueError> {
        self.runtime.block_on(async {
            let Some(obstacles) = self.database.obstacles(run).await? else { return Ok(Vec::new()) };
            let (groups, workers) = (self.database.waiting_groups(run).await?, self.database.workers().await?);
            let refusals = self.database.refusals(&run.id).await?;
            Ok(explain(run, groups, &obstacles, &workers, &refusals))
        })
    }

    /// Returns the runs that are not finished, oldest first.
    ///
    /// # Errors
    /// Returns an error if the queue cannot be read.
    pub fn runs(&self) -> Result<Vec<QueuedRun>, QueueError> {
        self.runtime.block_on(self.database.queued_runs())
    }

    /// Returns the workers that answer.
    ///
    /// # Errors
    /// Returns an error if the queue cannot be read.
    pub fn workers(&self) -> Result<Vec<WorkerState>, QueueError> {
        let workers = self.runtime.block_on(self.database.workers())?;
        let worker = |worker: Announcement| WorkerState {
            host: worker.host,
            pid: u32::try_from(worker.pid).unwrap_or_default(),
            program: worker.program,
            has: worker.has,
            slots: u64::try_from(worker.slots).unwrap_or_default(),
        };
        Ok(workers.into_iter().map(worker).collect())
    }

    /// Lets workers start no more trials of a run. Returns `false` if it does not run.
    ///
    /// # Errors
    /// Returns an error if the queue cannot be changed.
    pub fn pause(&self, run: &str) -> Result<bool, QueueError> {
        self.runtime.block_on(self.database.set_state(run, &["running"], "paused"))
    }

    /// Lets workers start trials of a paused run again. Returns `false` if it is not paused.
    ///
    /// # Errors
    /// Returns an error if the queue cannot be changed.
    pub fn resume(&self, run: &str) -> Result<bool, QueueError> {
        self.runtime.block_on(self.database.set_state(run, &["paused"], "running"))
    }

    /// Changes limits of a run in US dollars and tokens. Returns `false` if it has already ended.
    ///
    /// # Errors
    /// Returns an error if the queue cannot be changed.
    pub fn set_budget(&self, run: &str, max_cost: Option<f64>, max_tokens: Option<f64>) -> Result<bool, QueueError> {
        self.runtime.block_on(self.database.set_budget(run, max_cost, max_tokens))
    }

    /// Stops a run: its trials end, and its coordinator writes its reports. Returns `false` if it has already ended.
    ///
    /// # Errors
    /// Returns an error if the queue cannot be changed.
    pub fn cancel(&self, run: &str) -> Result<bool, QueueError> {
        self.runtime.block_on(self.database.set_state(run, &["running", "paused"], "stopping"))
    }

    /// Stops one trial, whose name may lack its arm. Returns the trials with the name that have not ended; nothing is
    /// stopped unless there is exactly one.
    ///
    /// # Errors
    /// Returns an error if the queue cannot be changed.
    pub fn cancel_trial(&self, run: &str, trial: &str) -> Result<Vec<String>, QueueError> {
        self.runtime.block_on(self.database.cancel_trial(run, trial))
    }
}

impl Threads {
    fn new() -> Result<Self, QueueError> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let failed = |error| QueueError::File("cannot start a thread".to_owned(), error);
        Ok(Self(Some(runtime.map_err(failed)?)))
    }
}

impl Deref for Threads {
    type Target = Runtime;

    #[expect(clippy::expect_used, reason = "it is taken only when it is dropped")]
    fn deref(&self) -> &Runtime {
        self.0.as_ref().expect("a runtime")
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            // Waiting for it is an error in an asynchronous program.
            runtime.shutdown_background();
        }
    }
}

//! The record and the queue, for requests that are answered at the same time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::{Gate, RunRow};
use queue::Queue;
use report::ListedRun;
use store::postgres::Settings;
use store::{Location, RunFilter, Store, StoreError};

use super::problem::Problem;

/// Maximum number of open connections to the record that no request uses.
const IDLE: usize = 8;

/// The record, and the queue in the same database.
pub struct Record {
    location: Location,
    /// Database of the queue, if workers can run trials.
    queue_settings: Option<Settings>,
    idle: Mutex<Vec<Box<dyn Store>>>,
    queue: Mutex<Option<Arc<Queue>>>,
}

impl Record {
    pub fn new(location: Location, queue_settings: Option<Settings>) -> Self {
        Self { location, queue_settings, idle: Mutex::default(), queue: Mutex::default() }
    }

    /// Returns the place of the record, without a password.
    pub fn place(&self) -> String {
        self.location.to_string()
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Box<dyn Store>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the record; `None` if nothing is recorded yet.
    pub fn open(&self) -> Result<Option<Box<dyn Store>>, Problem> {
        // In an expression of its own, so that the lock is not held while a connection is made.
        let idle = self.idle().pop();
        match idle {
            Some(store) => Ok(Some(store)),
            None => Ok(store::open_existing(&self.location)?),
        }
    }

    /// Keeps an open record for another request.
    pub fn keep(&self, store: Box<dyn Store>) {
        let mut idle = self.idle();
        if idle.len() < IDLE {
            idle.push(store);
        }
    }

    /// Calls `work` with the record. Returns an error if nothing is recorded yet.
    pub fn read<T>(&self, work: impl FnOnce(&dyn Store) -> Result<T, Problem>) -> Result<T, Problem> {
        let store = self.open()?.ok_or_else(|| Problem::not_found("Nothing is recorded yet."))?;
        let done = work(&*store);
        // After an error of the server, the connection may be lost.
        if done.as_ref().err().is_none_or(|problem| !problem.status.is_server_error()) {
            self.keep(store);
        }
        done
    }

    /// Returns runs, newest first; none if nothing is recorded yet.
    pub fn runs(&self, filter: &RunFilter) -> Result<Vec<RunRow>, Problem> {
        let Some(store) = self.open()? else { return Ok(Vec::new()) };
        let runs = store.runs(filter)?;
        self.keep(store);
        Ok(runs)
    }

    /// Returns the queue; `None` if it has no database, or if no run has used workers yet.
    pub fn queue(&self) -> Result<Option<Arc<Queue>>, Problem> {
        let Some(settings) = &self.queue_settings else { return Ok(None) };
        let known = self.queue.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if known.is_some() {
            return Ok(known);
        }
        let Some(queue) = Queue::open_existing(settings)?.map(Arc::new) else { return Ok(None) };
        Ok(Some(Arc::clone(self.queue.lock().unwrap_or_else(PoisonError::into_inner).insert(queue))))
    }

    /// Returns `true` if workers can run trials.
    pub fn has_queue(&self) -> bool {
        self.queue_settings.is_some()
    }
}

/// Returns the run with its summary, which a run in progress does not have yet.
pub fn listed(store: &dyn Store, run: RunRow) -> Result<ListedRun, StoreError> {
    let summary = match &run.summary {
        Some(summary) => summary.clone(),
        None => store.summary(&run.id)?,
    };
    // A list does not fail because of one run that cannot be read.
    let gate = store.info(&run.id).map(|info| Gate::from_settings(&info.settings)).unwrap_or_default();
    Ok(ListedRun { alive: session::is_active(&run), run, summary, gate })
}

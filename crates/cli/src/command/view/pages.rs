//! The pages of one run, read from the record while another process may still be writing it.

use std::collections::HashMap;
use std::error::Error;
use std::path::PathBuf;

use model::{Event, LiveTrial, RunRow, TrialRecord};
use report::{ServedRun, ServedState};
use store::{RunFilter, Store, StoreError, StoredEvent, TrialFilter};

/// Maximum number of new trials that are read one by one. If there are more, the whole run is read at once.
const MAX_SINGLE_READS: usize = 32;

/// Reason why a page cannot be made.
pub type PageError = Box<dyn Error + Send + Sync>;

/// Pages of a run. Each request reads the changes first.
pub struct Pages {
    store: Box<dyn Store>,
    run: String,
    folder: PathBuf,
    /// Number of the current state, from 1.
    version: u64,
    current: Option<Current>,
}

/// The state that was read last.
struct Current {
    run: RunRow,
    live: Vec<LiveTrial>,
    is_active: bool,
    index: String,
    served: ServedRun,
    /// Trials in `served`: the id of each, with its start time in microseconds.
    known: HashMap<String, i64>,
}

impl Pages {
    /// Creates the pages for the run with that full id. `folder` is the folder of the current directory in its
    /// repository.
    pub fn new(store: Box<dyn Store>, run: &str, folder: PathBuf) -> Self {
        Self { store, run: run.to_owned(), folder, version: 0, current: None }
    }

    /// Returns the index as JSON, and its version.
    pub fn index(&mut self) -> Result<(u64, &str), PageError> {
        self.refresh()?;
        Ok((self.version, self.current.as_ref().map_or("", |current| &current.index)))
    }

    /// Returns the transcript of a trial; `None` if there is no such trial.
    pub fn transcript(&self, trial: &str) -> Result<Option<Vec<u8>>, PageError> {
        let mut events = self.store.trial_events(&self.run, trial)?;
        if events.is_empty() {
            // The trial may have moved from the journal to its pack in the meantime.
            events = self.store.trial_events(&self.run, trial)?;
        }
        let events: Vec<_> = events.into_iter().filter_map(StoredEvent::known).collect();
        if events.is_empty() { Ok(None) } else { Ok(Some(report::transcript(&events)?)) }
    }

    /// Reads the state if it has changed.
    fn refresh(&mut self) -> Result<(), PageError> {
        let named = RunFilter { named: Some(self.run.clone()), ..RunFilter::default() };
        let mut rows = self.store.runs(&named)?.into_iter();
        let run = rows.find(|row| row.id == self.run).ok_or_else(|| StoreError::UnknownRun(self.run.clone()))?;
        let live = if run.finished_at.is_none() { self.store.live(&self.run)? } else { Vec::new() };
        let is_active = session::is_active(&run);
        let previous = self.current.take();
        if let Some(current) = previous.as_ref()
            && (&current.run, &current.live, current.is_active) == (&run, &live, is_active)
        {
            self.current = previous;
            return Ok(());
        }
        let is_new = previous.as_ref().is_none_or(|current| current.run != run);
        let (mut served, mut known) = match previous {
            Some(Current { served, known, .. }) => (served, known),
            None => self.nothing()?,
        };
        if is_new {
            (served, known) = self.with_finished(served, known)?;
        }
        self.version += 1;
        let state = ServedState { run: &run, live: &live, is_active, version: self.version };
        let index = served.index(&state)?;
        self.current = Some(Current { run, live, is_active, index, served, known });
        Ok(())
    }

    fn nothing(&self) -> Result<(ServedRun, HashMap<String, i64>), StoreError> {
        Ok((ServedRun::new(self.store.info(&self.run)?, self.folder.clone()), HashMap::new()))
    }

    /// Adds trials that have finished in the meantime. If trials have disappeared or run again, for example because a
    /// run was resumed, everything is read again.
    fn with_finished(
        &self,
        mut served: ServedRun,
        mut known: HashMap<String, i64>,
    ) -> Result<(ServedRun, HashMap<String, i64>), StoreError> {
        let rows = self.store.trials(&TrialFilter::of_run(&self.run))?;
        let recorded: HashMap<&str, i64> =
            rows.iter().map(|row| (row.id.as_str(), row.started_at.as_microsecond())).collect();
        if known.iter().any(|(id, started)| recorded.get(id.as_str()) != Some(started)) {
            (served, known) = self.nothing()?;
        }
        let new: Vec<&str> = rows.iter().map(|row| row.id.as_str()).filter(|id| !known.contains_key(*id)).collect();
        let mut add = |record: &TrialRecord| {
            if known.insert(record.id.to_string(), record.started_at.as_microsecond()).is_none() {
                served.add(record);
            }
        };
        if new.len() > MAX_SINGLE_READS {
            self.store.replay(&self.run, &mut |envelope| {
                if let Event::TrialFinished(record) = &envelope.event {
                    add(record);
                }
            })?;
        } else {
            for id in new {
                add(&self.store.trial(&self.run, id)?);
            }
        }
        // Reading all events takes long, so they are read only for finished runs, where every question has an answer.
        if self.store.info(&self.run)?.decisions > 0 && self.store.select(&self.run)?.finished_at.is_some() {
            self.store.replay(&self.run, &mut |envelope| {
                if let Event::Decided(decision) = &envelope.event {
                    served.decide(decision);
                }
            })?;
        }
        Ok((served, known))
    }
}

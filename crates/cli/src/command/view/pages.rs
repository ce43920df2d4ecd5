//! The pages of one run, read from the record while another process may still be writing it.

use std::collections::HashMap;
use std::error::Error;
use std::path::PathBuf;

use hyper::StatusCode;
use hyper::header::{self, HeaderValue};
use jiff::Timestamp;
use model::{Event, LiveTrial, RunRow, TrialRecord};
use report::{ServedRun, ServedState};
use store::{RunFilter, Store, StoreError, StoredEvent, TrialFilter};

use crate::http_server::{Answer, page, response};

/// Maximum number of new trials that are read one by one. If there are more, the whole run is read at once.
const MAX_SINGLE_READS: usize = 32;

/// Reason why a page cannot be made.
pub type PageError = Box<dyn Error + Send + Sync>;

/// Pages of a run. Each request reads the changes first.
pub struct Pages {
    run: String,
    folder: PathBuf,
    /// Address of the list of runs, if the server has one.
    record: Option<&'static str>,
    /// Number of the current state. It also grows from one server to the next.
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
    /// repository, and `record` the address of the list of runs, if the server has one.
    pub fn new(run: &str, folder: PathBuf, record: Option<&'static str>) -> Self {
        let version = u64::try_from(Timestamp::now().as_millisecond()).unwrap_or_default();
        Self { run: run.to_owned(), folder, record, version, current: None }
    }

    /// Returns the document, which requests everything else.
    pub fn document(&mut self, store: &dyn Store) -> Result<Answer, PageError> {
        self.refresh(store)?;
        let index = self.current.as_ref().map_or("", |current| &current.index);
        let (document, policy) = ServedRun::page(index)?;
        Ok(page(StatusCode::OK, document, &format!("{policy}; frame-ancestors 'none'")))
    }

    /// Returns the index, unless it is the version `known` that the client has.
    pub fn index(&mut self, store: &dyn Store, known: Option<&str>) -> Result<Answer, PageError> {
        self.refresh(store)?;
        let tag = format!("\"{}\"", self.version);
        let is_known = known == Some(&tag);
        let status = if is_known { StatusCode::NOT_MODIFIED } else { StatusCode::OK };
        let index = self.current.as_ref().filter(|_| !is_known).map_or("", |current| &current.index);
        let mut answer = response(status, "application/json", index.to_owned());
        answer.headers_mut().insert(header::ETAG, HeaderValue::try_from(tag)?);
        Ok(answer)
    }

    /// Returns the transcript of a trial; `None` if there is no such trial.
    pub fn transcript(&self, store: &dyn Store, trial: &str) -> Result<Option<Answer>, PageError> {
        let mut events = store.trial_events(&self.run, trial)?;
        if events.is_empty() {
            // The trial may have moved from the journal to its pack in the meantime.
            events = store.trial_events(&self.run, trial)?;
        }
        let events: Vec<_> = events.into_iter().filter_map(StoredEvent::known).collect();
        if events.is_empty() {
            return Ok(None);
        }
        Ok(Some(response(StatusCode::OK, "application/octet-stream", report::transcript(&events)?)))
    }

    /// Reads the state if it has changed.
    fn refresh(&mut self, store: &dyn Store) -> Result<(), PageError> {
        let named = RunFilter { named: Some(self.run.clone()), ..RunFilter::default() };
        let mut rows = store.runs(&named)?.into_iter();
        let run = rows.find(|row| row.id == self.run).ok_or_else(|| StoreError::UnknownRun(self.run.clone()))?;
        let live = if run.finished_at.is_none() { store.live(&self.run)? } else { Vec::new() };
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
            None => self.nothing(store)?,
        };
        if is_new {
            (served, known) = self.with_finished(store, served, known)?;
        }
        self.version += 1;
        let state = ServedState { run: &run, live: &live, is_active, version: self.version, record: self.record };
        let index = served.index(&state)?;
        self.current = Some(Current { run, live, is_active, index, served, known });
        Ok(())
    }

    fn nothing(&self, store: &dyn Store) -> Result<(ServedRun, HashMap<String, i64>), StoreError> {
        Ok((ServedRun::new(store.info(&self.run)?, self.folder.clone()), HashMap::new()))
    }

    /// Adds trials that have finished in the meantime. If trials have disappeared or run again, for example because a
    /// run was resumed, everything is read again.
    fn with_finished(
        &self,
        store: &dyn Store,
        mut served: ServedRun,
        mut known: HashMap<String, i64>,
    ) -> Result<(ServedRun, HashMap<String, i64>), StoreError> {
        let rows = store.trials(&TrialFilter::of_run(&self.run))?;
        let recorded: HashMap<&str, i64> =
            rows.iter().map(|row| (row.id.as_str(), row.started_at.as_microsecond())).collect();
        if known.iter().any(|(id, started)| recorded.get(id.as_str()) != Some(started)) {
            (served, known) = self.nothing(store)?;
        }
        let new: Vec<&str> = rows.iter().map(|row| row.id.as_str()).filter(|id| !known.contains_key(*id)).collect();
        let mut add = |record: &TrialRecord| {
            if known.insert(record.id.to_string(), record.started_at.as_microsecond()).is_none() {
                served.add(record);
            }
        };
        if new.len() > MAX_SINGLE_READS {
            store.replay(&self.run, &mut |envelope| {
                if let Event::TrialFinished(record) = &envelope.event {
                    add(record);
                }
            })?;
        } else {
            for id in new {
                add(&store.trial(&self.run, id)?);
            }
        }
        // Reading all events takes long, so they are read only for finished runs, where every question has an answer.
        if store.info(&self.run)?.decisions > 0 && store.select(&self.run)?.finished_at.is_some() {
            store.replay(&self.run, &mut |envelope| {
                if let Event::Decided(decision) = &envelope.event {
                    served.decide(decision);
                }
            })?;
        }
        Ok((served, known))
    }
}

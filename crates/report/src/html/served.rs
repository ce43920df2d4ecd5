//! Pages of one run for a server. They can be shown while the run is in progress.

use std::io;
use std::path::PathBuf;

use model::{DecisionRecord, Envelope, Event, LiveTrial, RunInfo, RunRow, TrialId, TrialRecord};
use serde_json::{Value, json};

use super::index::{Index, Row};
use super::page;
use super::transcript::Transcript;
use crate::terminal::{Paint, Style, doing};
use crate::totals::RunTotals;

/// A recorded run as pages for a browser. The server first sends the document from [`page`](Self::page). The document
/// then requests `index`, the JSON from [`index`](Self::index), and `trial/ID`, the bytes from [`transcript`].
pub struct ServedRun {
    info: RunInfo,
    folder: PathBuf,
    totals: RunTotals,
    /// Finished trials: position in the plan, row of the index.
    trials: Vec<(usize, Row)>,
}

/// State of the run to show.
pub struct ServedState<'a> {
    /// The run's entry in the list of runs.
    pub run: &'a RunRow,
    /// Trials that have started and have no outcome yet.
    pub live: &'a [LiveTrial],
    /// True while the run's process exists and the run has not ended.
    pub is_active: bool,
    /// Number that changes with the state.
    pub version: u64,
    /// Address of the list of runs, if the server has one.
    pub record: Option<&'a str>,
}

impl ServedRun {
    /// Creates the pages of a run, still without trials. `folder` is the folder of the current directory in its
    /// repository.
    pub fn new(info: RunInfo, folder: PathBuf) -> Self {
        Self { totals: RunTotals::new(&info, true), info, folder, trials: Vec::new() }
    }

    /// Adds a finished trial.
    pub fn add(&mut self, record: &TrialRecord) {
        let place = self.totals.add(record);
        let at = self.trials.partition_point(|(other, _)| *other <= place);
        self.trials.insert(at, (place, Row::new(record, &self.folder)));
    }

    /// Adds a decision about the number of trials.
    pub fn decide(&mut self, decision: &DecisionRecord) {
        if !self.totals.has(decision) {
            self.totals.decide(decision);
        }
    }

    /// Returns the index of the run as JSON.
    ///
    /// # Errors
    /// Returns an error if the index cannot be serialised.
    pub fn index(&self, state: &ServedState<'_>) -> serde_json::Result<String> {
        let rows = self.trials.iter().map(|(_, row)| row).collect();
        let index = Index::new(&self.info, &self.totals, state.run.duration_ms, state.run.signal.as_deref(), rows);
        let running: Vec<Value> = state.live.iter().map(|trial| self.running(trial)).collect();
        serde_json::to_string(&index.live(json!({
            "version": state.version,
            "record": state.record,
            "is_active": state.is_active,
            "is_over": state.run.finished_at.is_some(),
            "running": running,
        })))
    }

    /// Describes a trial that has no outcome yet.
    fn running(&self, trial: &LiveTrial) -> Value {
        let planned: Option<&TrialId> = self.info.trials.get(self.totals.place(&trial.id));
        let doing = trial.last_step.as_ref().and_then(|step| doing(step, &Paint::new(Style::plain())));
        json!({
            "id": trial.id,
            "suite": planned.map(|id| &id.suite),
            "case": planned.map_or(&*trial.id, |id| &*id.case),
            "arm": planned.map(|id| &id.arm),
            "repetition": planned.map_or(1, |id| id.repetition),
            "attempt": trial.attempt,
            "since": trial.since,
            "waiting_on": trial.waiting_on,
            "waiting_since": trial.waiting_since,
            "last_step_at": trial.last_step_at,
            "doing": doing,
        })
    }

    /// Returns the document for this index, and its content security policy.
    ///
    /// # Errors
    /// Never returns an error, because the document is written to memory.
    pub fn page(index: &str) -> io::Result<(Vec<u8>, String)> {
        let mut document = Vec::new();
        page::start(&mut document, index, "", page::Source::Server)?;
        page::end(&mut document)?;
        Ok((document, page::policy(page::Source::Server)))
    }
}

/// Returns the transcript of a trial as JSON compressed with raw deflate. The events must be in order; the trial may
/// be unfinished.
///
/// # Errors
/// Returns an error if an event cannot be serialised.
pub fn transcript(events: &[Envelope]) -> io::Result<Vec<u8>> {
    let mut transcript = Transcript::default();
    let mut record = None;
    for envelope in events {
        match &envelope.event {
            Event::TrialFinished(finished) => record = Some(&**finished),
            _ => transcript.add(envelope)?,
        }
    }
    transcript.deflated(record)
}

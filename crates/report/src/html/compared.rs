//! Trials of a comparison, which its page contains so that they can be opened.

use std::io;
use std::path::Path;

use model::{Envelope, Event, TrialRecord};
use serde_json::{Value, json};

use super::index::Row;
use super::transcript::Transcript;

/// A trial of one side of a comparison.
pub struct ComparedTrial {
    /// Name of the side.
    side: String,
    run: String,
    record: TrialRecord,
    chunk: String,
}

impl ComparedTrial {
    /// Creates the trial from its events in a run; `None` if they do not contain its end.
    ///
    /// # Errors
    /// Returns an error if an event cannot be serialised.
    pub fn of(side: &str, run: &str, events: &[Envelope]) -> io::Result<Option<Self>> {
        let mut transcript = Transcript::default();
        let mut record = None;
        for envelope in events {
            match &envelope.event {
                Event::TrialFinished(finished) => record = Some(TrialRecord::clone(finished)),
                _ => transcript.add(envelope)?,
            }
        }
        let Some(record) = record else { return Ok(None) };
        let chunk = transcript.chunk(&record)?;
        Ok(Some(Self { side: side.to_owned(), run: run.to_owned(), record, chunk }))
    }

    /// Returns the id of the trial on the page. Trials of two runs may have the same id.
    pub(super) fn key(run: &str, trial: &str) -> String {
        format!("{run}/{trial}")
    }

    /// Returns `true` if it is that trial of that run.
    pub fn is(&self, run: &str, trial: &str) -> bool {
        self.run == run && *self.record.id == *trial
    }

    pub(super) fn chunk(&self) -> &str {
        &self.chunk
    }

    /// Returns the row of the index, in which the name of the side comes before the arm.
    fn row(&self, folder: &Path) -> serde_json::Result<Value> {
        let mut row = serde_json::to_value(Row::new(&self.record, folder))?;
        row["id"] = Self::key(&self.run, &self.record.id).into();
        row["arm"] = format!("{}: {}", self.side, self.record.arm).into();
        row["run"] = self.run.as_str().into();
        Ok(row)
    }
}

/// Returns the index of a page with these trials and without an overview of its own.
pub(super) fn index(trials: &[ComparedTrial], folder: &Path, record: Option<&str>) -> serde_json::Result<String> {
    let rows: Vec<Value> = trials.iter().map(|trial| trial.row(folder)).collect::<Result<_, _>>()?;
    serde_json::to_string(&json!({
        "fixed": true,
        "record": record,
        "run": { "id": "", "label": "Comparison", "planned": trials.len(), "agents": [], "skills": [], "settings": {} },
        "verdicts": [], "arms": [], "deltas": [], "trials": rows,
    }))
}

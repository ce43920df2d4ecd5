//! Reporter that updates the directory of a run that is graded again.

use std::io;
use std::sync::Arc;

use model::{DecisionRecord, Envelope, Event, RunInfo, TrialRecord};
use serde_json::Value;

use super::Tree;
use super::run::{self, Results, TrialResult};
use crate::Reporter;

/// Fields of `summary.json` about what happened during the run, which grading does not change.
const KEPT: [&str; 2] = ["duration_seconds", "hooks"];

/// The reporter. It writes nothing before the run is over, so that an interrupted one changes nothing.
pub(super) struct Regraded {
    tree: Arc<Tree>,
    records: Vec<TrialRecord>,
    results: Results,
}

impl Regraded {
    pub(super) fn new(tree: Arc<Tree>) -> Self {
        Self { tree, records: Vec::new(), results: Results::default() }
    }

    fn write(&self, info: &RunInfo) -> io::Result<()> {
        for record in &self.records {
            self.tree.write_regraded(record)?;
        }
        let old = std::fs::read(self.tree.root().join("summary.json")).ok();
        let old: Value = old.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        let mut summary = self.results.summary(info, true);
        for key in KEPT {
            summary[key] = old.get(key).cloned().unwrap_or_default();
        }
        self.tree.json("summary.json".as_ref(), &summary)?;
        self.tree.json("benchmark.json".as_ref(), &self.results.benchmark())?;
        // Last, because it names the run that the other files are about.
        self.tree.json("suite.json".as_ref(), &run::suite(info, &self.tree.trials, &self.tree.record))
    }
}

impl Reporter for Regraded {
    fn event(&mut self, envelope: &Envelope) -> io::Result<()> {
        match &envelope.event {
            Event::RunStarted(info) => {
                let _ = self.tree.info.set(RunInfo::clone(info));
                Ok(())
            }
            Event::TrialFinished(record) => {
                self.results.is_sequential |= record.auto_trials.is_some();
                self.results.trials.push(TrialResult::from_record(record));
                self.records.push(TrialRecord::clone(record));
                Ok(())
            }
            Event::Decided(decision) => {
                self.results.decisions.push(DecisionRecord::clone(decision));
                Ok(())
            }
            Event::RunFinished { signal: None, .. } => match self.tree.info.get() {
                Some(info) => self.write(info),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

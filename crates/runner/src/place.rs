//! Running trials elsewhere: by workers, which may be on other machines.
//!
//! The dispatcher is the same as for trials that run here. It hands each trial over to a [`Place`], and passes the
//! events that come back to the event bus. So the record, the statistics, the budgets and the decisions about further
//! trials do not depend on where a trial runs.

use model::{AttemptRecord, Event, RunInfo};
use sandbox::{BoxFuture, Breakage};
use tokio::sync::{mpsc, watch};

use crate::plan::PlannedTrial;

/// Place where the trials of a run are run.
pub trait Place: Send + Sync {
    /// Prepares for the run that `info` describes, before its first trial.
    fn begin<'a>(&'a self, info: &'a RunInfo) -> BoxFuture<'a, Result<(), Breakage>>;

    /// Returns the state of the place, which changes while workers come and go.
    fn state(&self) -> watch::Receiver<PlaceState>;

    /// Returns what a trial needs there and which limits it counts against, in any words. Trials with different words do
    /// not wait for each other.
    fn requirements(&self, trial: &PlannedTrial) -> Vec<String>;

    /// Hands a trial over, of which the attempts `earlier` were lost. Returns its progress.
    fn submit(&self, trial: &PlannedTrial, earlier: &[AttemptRecord]) -> mpsc::Receiver<Progress>;

    /// Takes back the trials that have not started, also those that are handed over later.
    fn withdraw(&self);

    /// Takes back trials like [`withdraw`](Self::withdraw), and asks those that run to stop; with `kill`, at once.
    fn stop(&self, kill: bool);

    /// Ends the run, after its last trial.
    fn end<'a>(&'a self) -> BoxFuture<'a, ()>;
}

/// State of a place.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlaceState {
    /// Number of trials that can run there at the same time.
    pub slots: usize,
    /// Limits of the run that were changed there.
    pub budget: ChangedBudget,
    /// Reason why the run is to stop, if somebody asked for it there.
    pub stopped_by: Option<String>,
}

/// Limits of a run that were changed while it runs; `None` for those that are as before.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ChangedBudget {
    /// Maximum cost in US dollars.
    pub max_run_cost: Option<f64>,
    /// Maximum number of tokens.
    pub max_run_tokens: Option<f64>,
}

/// Progress of a trial that runs elsewhere.
#[derive(Debug)]
pub enum Progress {
    /// Events, each with the number of its attempt. The last event of a trial is its outcome.
    Events(Vec<(u32, Event)>),
    /// The process that ran the trial no longer answers, with a description of that process. What it sends later does
    /// not count.
    Lost(String),
    /// The trial was taken back before it started, for a reason of its own if there is one.
    Withdrawn(Option<String>),
    /// The trial cannot be run there.
    Refused(Breakage),
}

//! The dispatcher's jobs: planned trials to run, and recorded trials to grade again.

use std::sync::Arc;

use model::{DecisionRecord, StopReason, TrialRecord};
use tokio::sync::watch;

use crate::control::StopLevel;
use crate::event_bus::{EventBus, EventSender};
use crate::plan::{PlannedTrial, TrialResult};
use crate::regrade::{self, Archive, RecordedTrial};
use crate::sequential::Sequential;
use crate::trial::{self, Shared};

/// Work that leads to the outcome of one trial.
#[derive(Clone)]
pub(crate) enum Job {
    /// A planned trial: an agent runs, and its result is graded.
    Trial(Arc<PlannedTrial>),
    /// A trial of an earlier run, whose recorded evidence is graded again.
    Regrade(Arc<RecordedTrial>, Arc<dyn Archive>),
}

impl Job {
    /// Returns the outcome of a trial that does not have to be run.
    pub(crate) fn not_run(&self, shared: &Shared) -> Option<TrialRecord> {
        match self {
            Self::Trial(planned) => trial::not_run(planned, shared),
            Self::Regrade(..) => None,
        }
    }

    /// Creates a sender for the first attempt at the trial.
    pub(crate) fn events(&self, bus: &Arc<EventBus>, shared: &Shared) -> EventSender {
        let (trial, mask) = match self {
            Self::Trial(planned) => ((&planned.id).into(), shared.mask_of(planned)),
            Self::Regrade(recorded, _) => (Arc::clone(&recorded.old.id), recorded.mask(shared)),
        };
        EventSender::new(Arc::clone(bus), trial, &mask)
    }

    /// Emits the start of the trial, which makes the counted trials always those that run. A regraded trial starts
    /// once its record has been read, and one that runs elsewhere once it starts there.
    pub(crate) fn begin(&self, events: &EventSender, shared: &Shared) {
        if let (Self::Trial(planned), None) = (self, &shared.elsewhere) {
            trial::begin(planned, events);
        }
    }

    /// Does the work, off the dispatcher's thread.
    pub(crate) async fn run(
        self,
        shared: Arc<Shared>,
        events: EventSender,
        stop_level: watch::Receiver<StopLevel>,
    ) -> TrialRecord {
        match self {
            Self::Trial(planned) => match shared.elsewhere.clone() {
                Some(elsewhere) => Box::pin(trial::run_elsewhere(planned, shared, elsewhere, events, stop_level)).await,
                None => trial::run(planned, shared, events, stop_level, Vec::new()).await,
            },
            Self::Regrade(recorded, archive) => {
                Box::pin(regrade::grade_again(&recorded, archive, &shared, &events, stop_level)).await
            }
        }
    }

    /// Returns the outcome of a job that panicked.
    pub(crate) fn panicked(&self) -> TrialRecord {
        match self {
            Self::Trial(planned) => trial::panicked(planned),
            Self::Regrade(recorded, _) => recorded.panicked(),
        }
    }

    /// Returns the outcome of a job that was not started, with the reason.
    pub(crate) fn cancelled(&self, reason: &str) -> TrialRecord {
        match self {
            Self::Trial(planned) => trial::cancelled(planned, reason),
            Self::Regrade(recorded, _) => recorded.cancelled(),
        }
    }
}

/// Jobs that have not started yet. Jobs that run in any case come first, in plan order, followed by those that run only
/// until their questions are answered. A job leaves the queue when it starts, which frees the memory of a large plan
/// during the run.
pub(crate) struct JobQueue {
    fixed: std::vec::IntoIter<Job>,
    sequential: Sequential,
    shared: Arc<Shared>,
}

impl JobQueue {
    pub(crate) fn new(fixed: Vec<Job>, sequential: Sequential, shared: Arc<Shared>) -> Self {
        Self { fixed: fixed.into_iter(), sequential, shared }
    }

    /// Returns `true` if the next job runs in any case.
    pub(crate) fn is_fixed(&self) -> bool {
        !self.fixed.as_slice().is_empty()
    }

    /// Takes the next job. Once the budget is used up, those that depend on open questions no longer start.
    pub(crate) fn take(&mut self) -> Option<Job> {
        match self.fixed.next() {
            None if self.shared.spending.ceased().is_none() => self.sequential.take().map(Job::Trial),
            fixed => fixed,
        }
    }

    /// Adds the result of a trial. Returns the questions that this result answered.
    pub(crate) fn finished(&mut self, result: &TrialResult) -> Vec<DecisionRecord> {
        self.sequential.finished(result)
    }

    /// Returns the questions that the earlier part of a resumed run answered.
    pub(crate) fn answered(&mut self) -> Vec<DecisionRecord> {
        self.sequential.answered()
    }

    /// Closes the questions that are still open, because the budget is used up or the run was stopped. Their trials no
    /// longer start.
    pub(crate) fn close(&mut self) -> Vec<DecisionRecord> {
        match self.shared.spending.ceased() {
            Some(reason) => self.sequential.close_all(StopReason::Budget, Some(reason)),
            None => self.sequential.close_all(StopReason::Stopped, None),
        }
    }
}

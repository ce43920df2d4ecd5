//! The dispatcher's jobs: planned trials to run, and recorded trials to grade again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::{DecisionRecord, StopReason, TrialRecord};
use tokio::sync::watch;

use crate::control::StopLevel;
use crate::event_bus::{EventBus, EventSender};
use crate::plan::{PlannedTrial, TrialResult};
use crate::regrade::{self, Archive, RecordedTrial};
use crate::sequential::Sequential;
use crate::trial::{self, Grading, Shared};

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
    /// once its record has been read.
    pub(crate) fn begin(&self, events: &EventSender) {
        if let Self::Trial(planned) = self {
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
            Self::Trial(planned) => trial::run(planned, shared, events, stop_level, Grading::Elsewhere).await,
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
    jobs: Mutex<Jobs>,
    shared: Arc<Shared>,
}

struct Jobs {
    fixed: std::vec::IntoIter<Job>,
    sequential: Sequential,
}

impl JobQueue {
    pub(crate) fn new(fixed: Vec<Job>, sequential: Sequential, shared: Arc<Shared>) -> Self {
        Self { jobs: Mutex::new(Jobs { fixed: fixed.into_iter(), sequential }), shared }
    }

    /// Takes the next job, if there is one and it is `wanted`.
    pub(crate) fn take(&self, wanted: impl FnOnce(&Job) -> bool) -> Option<Job> {
        let mut jobs = self.jobs();
        if let Some(job) = jobs.fixed.as_slice().first() {
            return if wanted(job) { jobs.fixed.next() } else { None };
        }
        let next = self.peek(&mut jobs)?;
        if wanted(&next) { jobs.sequential.take().map(Job::Trial) } else { None }
    }

    /// Returns `true` if no job can start.
    pub(crate) fn is_empty(&self) -> bool {
        let mut jobs = self.jobs();
        jobs.fixed.as_slice().is_empty() && self.peek(&mut jobs).is_none()
    }

    /// Returns the next job that depends on open questions. Once the budget is used up, there is none.
    fn peek(&self, jobs: &mut Jobs) -> Option<Job> {
        let next = jobs.sequential.peek().filter(|_| self.shared.spending.ceased().is_none())?;
        Some(Job::Trial(Arc::clone(next)))
    }

    /// Adds the result of a trial. Returns the questions that this result answered.
    pub(crate) fn finished(&self, result: &TrialResult) -> Vec<DecisionRecord> {
        self.jobs().sequential.finished(result)
    }

    /// Returns the questions that the earlier part of a resumed run answered.
    pub(crate) fn answered(&self) -> Vec<DecisionRecord> {
        self.jobs().sequential.answered()
    }

    /// Closes the questions that are still open, because the budget is used up or the run was stopped. Their trials no
    /// longer start.
    pub(crate) fn close(&self) -> Vec<DecisionRecord> {
        let mut jobs = self.jobs();
        match self.shared.spending.ceased() {
            Some(reason) => jobs.sequential.close_all(StopReason::Budget, Some(reason)),
            None => jobs.sequential.close_all(StopReason::Stopped, None),
        }
    }

    fn jobs(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

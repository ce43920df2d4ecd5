//! The dispatcher's jobs: planned trials to run, and recorded trials to grade again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::TrialRecord;
use tokio::sync::watch;

use crate::control::StopLevel;
use crate::event_bus::{EventBus, EventSender};
use crate::plan::PlannedTrial;
use crate::regrade::{self, Archive, RecordedTrial};
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
        EventSender::new(Arc::clone(bus), trial, mask)
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

/// Jobs that have not started yet, in order. A job leaves the queue when it starts, so the memory of a large plan is
/// freed during the run.
pub(crate) struct JobQueue(Mutex<std::vec::IntoIter<Job>>);

impl JobQueue {
    pub(crate) fn new(jobs: Vec<Job>) -> Self {
        Self(Mutex::new(jobs.into_iter()))
    }

    /// Takes the next job, if there is one and it is `wanted`.
    pub(crate) fn take(&self, wanted: impl FnOnce(&Job) -> bool) -> Option<Job> {
        let mut jobs = self.jobs();
        jobs.as_slice().first().filter(|job| wanted(job))?;
        jobs.next()
    }

    /// Returns `true` if no job is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.jobs().as_slice().is_empty()
    }

    fn jobs(&self) -> MutexGuard<'_, std::vec::IntoIter<Job>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

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
    Trial(PlannedTrial),
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
            Self::Trial(planned) => ((&planned.id()).into(), shared.mask_of(planned)),
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

/// Number of jobs of a lane that are handed over before anything can run them, so that it never runs out of work. Those
/// that follow take no memory for a task, and no place in a queue.
const WAITING: usize = 1000;

/// Jobs that have not started yet. Jobs that run in any case come first, in plan order, followed by those that run only
/// until their questions are answered. A job leaves the queue when it starts, which frees the memory of a large plan
/// during the run.
pub(crate) struct JobQueue {
    /// Jobs that run in any case. Those of different lanes do not wait for each other.
    lanes: Vec<Lane>,
    sequential: Sequential,
    shared: Arc<Shared>,
}

/// Jobs with the same requirements, each with its place in the plan.
#[derive(Default)]
struct Lane {
    jobs: std::vec::IntoIter<(usize, Job)>,
    /// Number of jobs that have left the queue and have no outcome yet.
    open: usize,
    /// True until the lane is full, and again once half of its jobs that can wait have left it. Jobs are handed over
    /// together because each hand-over takes a transaction.
    is_filling: bool,
}

impl Lane {
    /// Returns `true` if another job can be handed over to where `slots` of them run at once.
    fn has_room(&mut self, slots: usize) -> bool {
        let waiting = if self.is_filling { WAITING } else { WAITING / 2 };
        self.is_filling = self.open < slots.saturating_add(waiting);
        self.is_filling
    }

    fn next(&self) -> Option<usize> {
        self.jobs.as_slice().first().map(|(place, _)| *place)
    }
}

/// A job that has left the queue.
pub(crate) struct Taken {
    pub(crate) job: Job,
    /// Lane of a job that runs in any case.
    lane: Option<usize>,
}

impl JobQueue {
    /// Creates a queue. Jobs for which `lane_of` returns the same number are in the same lane.
    pub(crate) fn new(
        fixed: impl IntoIterator<Item = Job>,
        sequential: Sequential,
        shared: Arc<Shared>,
        mut lane_of: impl FnMut(&Job) -> usize,
    ) -> Self {
        let mut lanes: Vec<Vec<(usize, Job)>> = Vec::new();
        for (place, job) in fixed.into_iter().enumerate() {
            let lane = lane_of(&job);
            if lanes.len() <= lane {
                lanes.resize_with(lane + 1, Vec::new);
            }
            lanes[lane].push((place, job));
        }
        let lane = |jobs: Vec<(usize, Job)>| Lane { jobs: jobs.into_iter(), open: 0, is_filling: true };
        Self { lanes: lanes.into_iter().map(lane).collect(), sequential, shared }
    }

    /// Returns `true` if jobs remain that run in any case.
    pub(crate) fn has_fixed(&self) -> bool {
        self.lanes.iter().any(|lane| lane.next().is_some())
    }

    /// Takes the next job. Once the budget is used up, those that depend on open questions no longer start.
    pub(crate) fn take(&mut self) -> Option<Taken> {
        self.take_fixed(usize::MAX).or_else(|| self.take_sequential())
    }

    /// Takes the next job that runs in any case, of a lane with room where `slots` jobs run at once.
    pub(crate) fn take_fixed(&mut self, slots: usize) -> Option<Taken> {
        let places = self.lanes.iter_mut().enumerate().filter_map(|(at, lane)| {
            let place = lane.next()?;
            lane.has_room(slots).then_some((place, at))
        });
        let (_, at) = places.min()?;
        let lane = self.lanes.get_mut(at)?;
        let (_, job) = lane.jobs.next()?;
        lane.open += 1;
        Some(Taken { job, lane: Some(at) })
    }

    /// Takes the next job that depends on open questions.
    pub(crate) fn take_sequential(&mut self) -> Option<Taken> {
        let is_open = self.shared.spending.ceased().is_none();
        let trial = is_open.then(|| self.sequential.take()).flatten()?;
        Some(Taken { job: Job::Trial(trial), lane: None })
    }

    /// Notes that a job has its outcome.
    pub(crate) fn leave(&mut self, taken: &Taken) {
        if let Some(lane) = taken.lane.and_then(|at| self.lanes.get_mut(at)) {
            lane.open = lane.open.saturating_sub(1);
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

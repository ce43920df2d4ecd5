//! Workers: threads for trials that never wait. Such a trial consists of little more than its grading, so a separate
//! task, a grading thread and a message to the dispatcher would cost more than the trial itself. A worker runs one
//! trial after another, from beginning to end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use grade::Check;
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};

use crate::control::StopLevel;
use crate::event_bus::{EventBus, EventSender};
use crate::grader::STACK;
use crate::job::{Job, JobQueue};
use crate::plan::{PlannedTrial, TrialResult};
use crate::trial::{self, Grading, Shared};

/// Returns `true` if a job never waits, so that a worker can run it.
pub(crate) fn suits(job: &Job) -> bool {
    let Job::Trial(planned) = job else { return false };
    planned.agent.description().answers_at_once
        && !planned.checks.iter().any(Check::asks_judge)
        && planned.case.code.is_none()
        && !planned.needs_sandbox()
}

/// A thread that runs trials.
pub(crate) struct Worker {
    pub(crate) queue: Arc<JobQueue>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) bus: Arc<EventBus>,
    pub(crate) stop_level: watch::Receiver<StopLevel>,
    pub(crate) current: Arc<Current>,
}

/// Trial that a worker is running, in case the dispatcher has to give up on the worker.
#[derive(Default)]
pub(crate) struct Current(Mutex<Option<(Arc<PlannedTrial>, EventSender)>>);

impl Current {
    /// Returns the trial that was started last.
    pub(crate) fn trial(&self) -> Option<(Arc<PlannedTrial>, EventSender)> {
        self.slot().clone()
    }

    fn slot(&self) -> MutexGuard<'_, Option<(Arc<PlannedTrial>, EventSender)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Worker {
    /// Starts the thread inside the current runtime. The returned receiver ends when the thread does.
    pub(crate) fn start(self, number: usize) -> std::io::Result<oneshot::Receiver<()>> {
        let (end, ended) = oneshot::channel();
        let runtime = Handle::current();
        let thread = std::thread::Builder::new().name(format!("worker-{number}")).stack_size(STACK);
        thread.spawn(move || {
            let _entered = runtime.enter();
            self.run(&runtime);
            let _ = end.send(());
        })?;
        Ok(ended)
    }

    /// Runs trials as long as the next one suits a worker.
    fn run(self, runtime: &Handle) {
        while *self.stop_level.borrow() == StopLevel::No
            && let Some(Job::Trial(planned)) = self.queue.take(suits)
        {
            let events = EventSender::new(Arc::clone(&self.bus), &planned.id, &self.shared.mask_of(&planned));
            if let Some(record) = trial::not_run(&planned, &self.shared) {
                events.finish(record);
                continue;
            }
            *self.current.slot() = Some((Arc::clone(&planned), events.clone()));
            trial::begin(&planned, &events);
            // Pinned here, because `block_on` would move a future of several kilobytes more than once.
            let run = pin!(trial::run(
                Arc::clone(&planned),
                Arc::clone(&self.shared),
                events.clone(),
                self.stop_level.clone(),
                Grading::Here,
            ));
            let record = catch_unwind(AssertUnwindSafe(|| runtime.block_on(run)));
            let record = record.unwrap_or_else(|_| trial::panicked(&planned));
            let result = planned.auto.map(|_| TrialResult::from(&record));
            events.finish(record);
            let decisions = result.map_or_else(Vec::new, |result| self.queue.finished(&result));
            self.bus.emit_decisions(decisions);
        }
    }
}

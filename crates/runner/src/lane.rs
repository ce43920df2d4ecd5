//! Worker threads for trials that never wait. Such a trial takes as long as its grading, so handing it to a task, its
//! evidence to a grading thread and its outcome to the dispatcher would cost more than the trial. A worker thread runs
//! such trials one after the other from beginning to end. They use no agent that another trial could be
//! waiting for.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use grade::Check;
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};

use crate::grader::STACK;
use crate::job::{Job, JobQueue};
use crate::line::Line;
use crate::plan::PlannedTrial;
use crate::teller::Teller;
use crate::trial::{self, Grading, Halt, Shared};

/// True if a job waits for nothing, so that a lane can run it.
pub(crate) fn suits(job: &Job) -> bool {
    let Job::Trial(planned) = job else { return false };
    planned.agent.answers_at_once()
        && !planned.checks.iter().any(Check::asks_judge)
        && planned.case.code.is_none()
        && !trial::needs_sandbox(planned)
}

/// One worker thread.
pub(crate) struct Lane {
    pub(crate) queue: Arc<JobQueue>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) teller: Arc<Teller>,
    pub(crate) halt: watch::Receiver<Halt>,
    pub(crate) current: Arc<Current>,
}

/// The current trial of a worker thread, for callers that cannot wait for the thread.
#[derive(Default)]
pub(crate) struct Current(Mutex<Option<(Arc<PlannedTrial>, Line)>>);

impl Current {
    /// Returns the trial that was started last.
    pub(crate) fn trial(&self) -> Option<(Arc<PlannedTrial>, Line)> {
        self.slot().clone()
    }

    fn slot(&self) -> MutexGuard<'_, Option<(Arc<PlannedTrial>, Line)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lane {
    /// Starts the thread, inside the current runtime. The returned channel reports its end.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(crate) fn open(self, number: usize) -> std::io::Result<oneshot::Receiver<()>> {
        let (end, ended) = oneshot::channel();
        let runtime = Handle::current();
        let thread = std::thread::Builder::new().name(format!("lane-{number}")).stack_size(STACK);
        thread.spawn(move || {
            let _entered = runtime.enter();
            self.run(&runtime);
            let _ = end.send(());
        })?;
        Ok(ended)
    }

    /// Runs trials as long as the next one never waits.
    fn run(self, runtime: &Handle) {
        while *self.halt.borrow() == Halt::No
            && let Some(Job::Trial(planned)) = self.queue.take(suits)
        {
            if let Some(record) = trial::not_run(&planned, &self.shared) {
                self.teller.finish(&self.shared.mask_of(&planned), record);
                continue;
            }
            let line = Line::new(Arc::clone(&self.teller), &planned.id, self.shared.mask_of(&planned));
            *self.current.slot() = Some((Arc::clone(&planned), line.clone()));
            trial::begin(&planned, &line);
            // Pinned here: passing a future of some kilobytes by value moves it more than once.
            let run = pin!(trial::run(
                Arc::clone(&planned),
                Arc::clone(&self.shared),
                line.clone(),
                self.halt.clone(),
                Grading::Here,
            ));
            let record = catch_unwind(AssertUnwindSafe(|| runtime.block_on(run)));
            let record = record.unwrap_or_else(|_| trial::panicked(&planned));
            self.teller.end(&line, record);
        }
    }
}

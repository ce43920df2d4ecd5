//! The dispatcher: it starts trials, waits for their outcomes, and forwards stop requests to them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use agent::Configured;
use mask::Mask;
use model::{Event, HookKind, HookRecord, RunInfo, Summary, TrialRecord};
use sandbox::{Breakage, Host, Registry, Workshop};
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinError, JoinSet};

use crate::grader::Grader;
use crate::hook::{self, Hook};
use crate::job::{Job, JobQueue};
use crate::lane::{self, Current, Lane};
use crate::line::Line;
use crate::plan::{ModelChoice, Plan};
use crate::regrade::{Archive, Regrade};
use crate::spending::Spending;
use crate::teller::{Listener, Teller};
use crate::trial::{self, Halt, Shared};

/// Maximum number of worker threads for trials that never wait. Processors limit their speed, and there are not more
/// grading threads either.
const MOST_LANES: usize = 4;

/// Request to a run in progress, from the user or from the recorder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Control {
    /// Start nothing more and ask agents to stop, with the name of the signal or the reason. A second one kills them.
    Stop(String),
}

/// Result of a run.
#[derive(Debug, Clone)]
pub struct RunEnd {
    /// Summary of the outcomes.
    pub summary: Summary,
    /// Reason why the run was stopped early, if it was.
    pub stopped_by: Option<String>,
    /// Sandboxes that could not be removed, each with the reason.
    pub left_over: Vec<String>,
    /// The pre-run command that failed, so that no trial was started.
    pub refused: Option<HookRecord>,
}

/// Runs a plan. `listener` receives every event in order, from any thread; while it is behind, trials wait.
///
/// # Errors
/// If the run cannot begin: the gateway, the grading threads or the directory for sandboxes cannot be created.
pub async fn run(
    plan: Plan,
    host: Arc<Host>,
    info: RunInfo,
    controls: mpsc::UnboundedReceiver<Control>,
    listener: Arc<dyn Listener>,
) -> Result<RunEnd, Breakage> {
    let shared = share(&plan, host).await?;
    let jobs = plan.trials.into_iter().map(Job::Trial).collect();
    Ok(dispatch(jobs, shared, info, controls, listener).await)
}

/// Grades recorded trials again, as a run of its own, with the evidence in `archive`. `listener` receives the events as
/// for [`run`].
///
/// # Errors
/// When it cannot begin: the grading threads cannot be started.
pub async fn regrade(
    regrade: Regrade,
    host: Arc<Host>,
    info: RunInfo,
    controls: mpsc::UnboundedReceiver<Control>,
    listener: Arc<dyn Listener>,
    archive: Arc<dyn Archive>,
) -> Result<RunEnd, Breakage> {
    let Regrade { plan, trials, .. } = regrade;
    let shared = share(&plan, host).await?;
    let jobs = trials.into_iter().map(|recorded| Job::Regrade(Arc::new(recorded), Arc::clone(&archive))).collect();
    Ok(dispatch(jobs, shared, info, controls, listener).await)
}

/// Starts jobs and waits for them, until all have an outcome.
async fn dispatch(
    jobs: Vec<Job>,
    shared: Shared,
    info: RunInfo,
    mut controls: mpsc::UnboundedReceiver<Control>,
    listener: Arc<dyn Listener>,
) -> RunEnd {
    let mut dispatcher = Dispatcher {
        teller: Arc::new(Teller::new(&info.id, listener, Arc::clone(&shared.mask))),
        queue: Arc::new(JobQueue::new(jobs)),
        halt: watch::channel(Halt::No).0,
        tasks: JoinSet::new(),
        running: HashMap::new(),
        // A lane waits for nothing, and a command takes its time.
        lanes: shared.hook.as_ref().is_none_or(|hook| hook.commands(HookKind::PostGrade).is_empty()),
        shared: Arc::new(shared),
        stopped_by: None,
    };
    let began = Instant::now();
    dispatcher.teller.tell(Event::RunStarted(Box::new(info)));
    let refused = dispatcher.around(HookKind::PreRun, &mut controls).await;
    loop {
        if refused.is_none() {
            dispatcher.start_jobs();
        }
        if dispatcher.running.is_empty() {
            break;
        }
        tokio::select! {
            // Rare messages come first: trials that end all the time must not delay Ctrl-C.
            biased;
            Some(control) = controls.recv() => dispatcher.control(control),
            Some(ended) = dispatcher.tasks.join_next_with_id() => dispatcher.ended(ended),
        }
    }
    dispatcher.cancel_the_rest(match refused {
        Some(_) => "a pre-run command failed, so nothing was started",
        None => "the run was stopped before it started",
    });
    // Every trial has closed its own sandbox; this removes what killed trials could not close.
    let left_over = dispatcher.shared.registry.remove_all();
    dispatcher.around(HookKind::PostRun, &mut controls).await;
    let teller = Arc::clone(&dispatcher.teller);
    let (summary, stopped_by) = (teller.summary(), dispatcher.stopped_by.take());
    let duration_ms = model::millis(began.elapsed());
    teller.tell(Event::RunFinished { summary: summary.clone(), duration_ms, signal: stopped_by.clone() });
    let left_over = left_over.into_iter().map(|(path, error)| format!("{}: {error}", path.display())).collect();
    RunEnd { summary, stopped_by, left_over, refused }
}

async fn share(plan: &Plan, host: Arc<Host>) -> Result<Shared, Breakage> {
    let jobs = plan.settings.jobs.max(1);
    let needs_gateway = plan
        .trials
        .iter()
        .any(|trial| matches!(trial.model, ModelChoice::Scripted(_)) && trial.agent.description().wire.is_some());
    let gateway = if needs_gateway {
        let started = gateway::Gateway::start().await;
        Some(started.map_err(|error| Breakage::environment(format!("cannot listen on loopback: {error}")))?)
    } else {
        None
    };
    let registry = Registry::new();
    Ok(Shared {
        workshop: Workshop::open_with(&plan.settings.sandbox.kind, &host, &registry)?,
        registry,
        gateway,
        grader: Grader::start(jobs.min(4)).map_err(|error| Breakage::environment(error.to_string()))?,
        judging: Arc::clone(&plan.judging),
        spending: Spending::default(),
        mask: Arc::new(mask_of(plan, &host)),
        settings: plan.settings.clone(),
        hook: plan.hook.clone(),
        host,
    })
}

/// Returns the mask for the secrets of a run: those of the environment, of the configuration, and of each agent's
/// configuration with the environment filled in.
fn mask_of(plan: &Plan, host: &Host) -> Mask {
    let mut secrets = plan.settings.secrets.clone();
    let mut last: Option<&Arc<Configured>> = None;
    for trial in &plan.trials {
        let config = trial.config.as_ref().filter(|config| !last.is_some_and(|last| Arc::ptr_eq(last, config)));
        if let Some(config) = config {
            secrets = secrets.and(&config.node);
            last = Some(config);
        }
        if let Some(argument) = trial.argument.as_deref().filter(|argument| argument.contains('@')) {
            secrets = secrets.and_in_url(argument);
        }
    }
    Mask::of(&host.env).with_secrets(&secrets).with_fixture(&plan.settings.sandbox.lent)
}

struct Dispatcher {
    teller: Arc<Teller>,
    queue: Arc<JobQueue>,
    shared: Arc<Shared>,
    halt: watch::Sender<Halt>,
    /// Running tasks; the task of a worker thread returns no record.
    tasks: JoinSet<Option<TrialRecord>>,
    running: HashMap<tokio::task::Id, Running>,
    /// `true` if trials that never wait may run on worker threads.
    lanes: bool,
    stopped_by: Option<String>,
}

/// A task that runs.
enum Running {
    /// A job that has started and has no outcome.
    Job(Job, Line),
    /// A lane, the trial it is at, and what waits for its end.
    Lane(Arc<Current>, AbortHandle),
}

impl Dispatcher {
    /// Starts jobs while there is room.
    fn start_jobs(&mut self) {
        let jobs = self.shared.settings.jobs.max(1);
        while self.stopped_by.is_none() && self.running.len() < jobs {
            let lanes = self.lanes;
            let Some(job) = self.queue.take(|job| !lanes || !lane::suits(job)) else {
                // What is next is for a lane, unless there is nothing.
                if !self.open_lane() {
                    return;
                }
                continue;
            };
            if let Some(record) = job.not_run(&self.shared) {
                self.teller.finish(&job.mask(&self.shared), record);
                continue;
            }
            let line = job.line(&self.teller, &self.shared);
            job.begin(&line);
            let run = job.clone().run(Arc::clone(&self.shared), line.clone(), self.halt.subscribe());
            let task = self.tasks.spawn(async { Some(run.await) });
            self.running.insert(task.id(), Running::Job(job, line));
        }
    }

    /// Starts a worker thread if there are trials left and the limit is not reached. Returns `true` if the caller
    /// should continue.
    fn open_lane(&mut self) -> bool {
        let open = self.running.values().filter(|running| matches!(running, Running::Lane(..))).count();
        if open >= MOST_LANES || self.queue.is_empty() {
            return false;
        }
        let current = Arc::<Current>::default();
        let lane = Lane {
            queue: Arc::clone(&self.queue),
            shared: Arc::clone(&self.shared),
            teller: Arc::clone(&self.teller),
            halt: self.halt.subscribe(),
            current: Arc::clone(&current),
        };
        match lane.open(open) {
            Ok(ended) => {
                let task = self.tasks.spawn(async {
                    let _ = ended.await;
                    None
                });
                self.running.insert(task.id(), Running::Lane(current, task));
            }
            Err(_) => self.lanes = false,
        }
        true
    }

    /// Handles the end of a trial's task or of a worker thread.
    fn ended(&mut self, ended: Result<(tokio::task::Id, Option<TrialRecord>), JoinError>) {
        let (task, record) = match ended {
            Ok((task, record)) => (task, record),
            Err(error) => (error.id(), None),
        };
        let Some(Running::Job(job, line)) = self.running.remove(&task) else { return };
        let record = record.unwrap_or_else(|| job.panicked());
        self.teller.end(&line, record);
    }

    /// Runs the user's commands that belong to no trial. A pre-run command that fails prevents the run.
    async fn around(
        &mut self,
        moment: HookKind,
        controls: &mut mpsc::UnboundedReceiver<Control>,
    ) -> Option<HookRecord> {
        let hook: Arc<dyn Hook> = self.shared.hook.clone()?;
        if *self.halt.borrow() == Halt::Kill {
            return None;
        }
        let (shared, teller) = (Arc::clone(&self.shared), Arc::clone(&self.teller));
        let obey = |control| {
            self.control(control);
            *self.halt.borrow()
        };
        hook::around(&*hook, moment, &teller, &shared.mask, controls, obey).await.refused
    }

    fn control(&mut self, control: Control) {
        let Control::Stop(reason) = control;
        let next = if self.stopped_by.is_none() { Halt::Stop } else { Halt::Kill };
        self.stopped_by.get_or_insert(reason);
        self.halt.send_replace(next);
        if next == Halt::Kill {
            self.leave_lanes();
        }
    }

    /// Stops waiting for worker threads: grading cannot be interrupted, only abandoned.
    fn leave_lanes(&self) {
        for running in self.running.values() {
            let Running::Lane(current, task) = running else { continue };
            if let Some((planned, line)) = current.trial() {
                self.teller.end(&line, trial::stopped(&planned));
            }
            task.abort();
        }
    }

    /// Reports trials that were never started, so that reports contain the whole plan.
    fn cancel_the_rest(&mut self, because: &str) {
        while let Some(job) = self.queue.take(|_| true) {
            self.teller.finish(&job.mask(&self.shared), job.cancelled(because));
        }
    }
}

impl Drop for Dispatcher {
    /// Drops all later events, however the run ends.
    fn drop(&mut self) {
        self.teller.close();
    }
}

//! The dispatcher: starts jobs, waits for their outcomes, and passes requests to stop on to them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agent::Configured;
use cassette::Cassettes;
use mask::Mask;
use model::{Event, HookKind, HookRecord, RunInfo, Summary, TrialRecord};
use sandbox::{Breakage, Host, Registry, SandboxFactory};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinError, JoinSet};

use crate::control::{Control, StopLevel};
use crate::event_bus::{EventBus, EventSender, Listener};
use crate::grader::Grader;
use crate::hook::{self, Hook};
use crate::job::{Job, JobQueue, Taken};
use crate::place::{Place, PlaceState};
use crate::plan::{Earlier, ModelChoice, Plan, PlannedTrial, SandboxSettings, TrialResult};
use crate::regrade::{Archive, Regrade};
use crate::sequential::Sequential;
use crate::spending::Spending;
use crate::trial::{Elsewhere, Shared, Solutions};

/// Time between two looks at a listener that cannot store events.
const LATE: Duration = Duration::from_millis(100);

/// End of a run.
#[derive(Debug, Clone)]
pub struct RunEnd {
    /// Counts of its outcomes.
    pub summary: Summary,
    /// Signal or reason that stopped it.
    pub stopped_by: Option<String>,
    /// Sandboxes that could not be removed, each with the reason.
    pub left_over: Vec<String>,
    /// Hook that failed before the run, with the result that no trial was started.
    pub refused: Option<HookRecord>,
}

/// Runs a plan, or the rest of it if part of it was already run. `listener` receives every event in order, on the
/// thread that emits it; while it is behind, trials wait.
///
/// # Errors
/// Returns an error if the run cannot start: the gateway, the grading threads or the directory for sandboxes cannot be
/// created.
pub async fn run(
    plan: Plan,
    host: Arc<Host>,
    mut info: RunInfo,
    controls: mpsc::UnboundedReceiver<Control>,
    listener: Arc<dyn Listener>,
) -> Result<RunEnd, Breakage> {
    let shared = share(&plan, host).await?;
    let uses_sandbox = plan.trials.iter().any(|trial| trial.case.skip.is_none() && trial.needs_sandbox());
    let is_chosen = |isolation: &model::Isolation| isolation.sandbox == shared.settings.sandbox.kind;
    info.isolation = uses_sandbox.then(|| shared.factory.isolation()).filter(is_chosen);
    let place = plan.place;
    if let Some(place) = &place {
        info.jobs = 0;
        place.begin(&info).await?;
    }
    let state = plan.trials.first().map(|trial| Arc::clone(&trial.state));
    let (sequential, fixed): (Vec<_>, Vec<_>) = plan.trials.into_iter().partition(|trial| trial.auto.is_some());
    let sequential = Sequential::new(sequential, plan.decisions, &plan.earlier.results);
    let shared = Arc::new(shared);
    let lanes = place.as_deref().map(Lanes::new);
    let fixed = fixed.into_iter().map(Job::Trial);
    let queue = JobQueue::new(fixed, sequential, Arc::clone(&shared), Lanes::lane_of(lanes));
    let ended = dispatch(queue, shared, info, plan.earlier, controls, listener).await;
    if let Some(state) = state {
        state.close().await;
    }
    Ok(ended)
}

/// Grades recorded trials again, as a new run, with the evidence in `archive`. `listener` receives the events as in
/// [`run`].
///
/// # Errors
/// Returns an error if the grading threads cannot be started.
pub async fn regrade(
    regrade: Regrade,
    host: Arc<Host>,
    info: RunInfo,
    controls: mpsc::UnboundedReceiver<Control>,
    listener: Arc<dyn Listener>,
    archive: Arc<dyn Archive>,
) -> Result<RunEnd, Breakage> {
    let Regrade { plan, trials, .. } = regrade;
    let shared = Arc::new(share(&plan, host).await?);
    let sequential = Sequential::of_recorded(&trials.iter().map(|trial| &trial.old).collect::<Vec<_>>());
    let jobs = trials.into_iter().map(|recorded| Job::Regrade(Arc::new(recorded), Arc::clone(&archive)));
    let queue = JobQueue::new(jobs, sequential, Arc::clone(&shared), |_| 0);
    Ok(dispatch(queue, shared, info, plan.earlier, controls, listener).await)
}

/// Numbers of the lanes in which trials wait for a place.
struct Lanes<'a> {
    place: &'a dyn Place,
    /// Lane of each case under one arm, by its address.
    of_cases: HashMap<usize, usize>,
    /// Number of each lane, by what its trials require.
    numbers: HashMap<Vec<String>, usize>,
}

impl<'a> Lanes<'a> {
    fn new(place: &'a dyn Place) -> Self {
        Self { place, of_cases: HashMap::new(), numbers: HashMap::new() }
    }

    /// Returns the function that numbers the lane of a job. In this process, all jobs are in one.
    fn lane_of(mut lanes: Option<Self>) -> impl FnMut(&Job) -> usize {
        move |job| match (&mut lanes, job) {
            (Some(lanes), Job::Trial(trial)) => lanes.of_trial(trial),
            _ => 0,
        }
    }

    fn of_trial(&mut self, trial: &PlannedTrial) -> usize {
        *self.of_cases.entry(Arc::as_ptr(&trial.of).addr()).or_insert_with(|| {
            let next = self.numbers.len();
            *self.numbers.entry(self.place.requirements(trial)).or_insert(next)
        })
    }
}

/// Starts jobs and waits for them, until all have an outcome.
async fn dispatch(
    queue: JobQueue,
    shared: Arc<Shared>,
    info: RunInfo,
    earlier: Earlier,
    mut controls: mpsc::UnboundedReceiver<Control>,
    listener: Arc<dyn Listener>,
) -> RunEnd {
    // The bus drops the listener at the end. It also locks it while an event waits, when Ctrl-C must still work.
    let listening = Arc::downgrade(&listener);
    let mut dispatcher = Dispatcher {
        bus: Arc::new(
            EventBus::new(&info.id, listener, Arc::clone(&shared.mask)).after(earlier.last_seq, earlier.summary),
        ),
        queue,
        stop_level: watch::channel(StopLevel::No).0,
        tasks: JoinSet::new(),
        running: HashMap::new(),
        place: shared.elsewhere.as_ref().map(|elsewhere| elsewhere.place.state()),
        shared,
        stopped_by: None,
    };
    let began = Instant::now();
    // A run that cannot be recorded costs nothing: neither trials nor hooks begin.
    let can_begin = earlier.last_seq > 0 || dispatcher.bus.begin(info);
    if !can_begin {
        dispatcher.stopped_by = Some("recording failed".into());
    }
    dispatcher.bus.emit_decisions(dispatcher.queue.answered());
    let refused = if can_begin { dispatcher.around(HookKind::PreRun, &mut controls).await } else { None };
    loop {
        let is_running = refused.is_none() && dispatcher.stopped_by.is_none();
        let is_late = is_running && listening.upgrade().is_some_and(|listener| listener.is_late());
        if refused.is_none() && !is_late {
            dispatcher.start_jobs();
        }
        if dispatcher.running.is_empty() && !is_late {
            break;
        }
        tokio::select! {
            // Controls come first, so that trials that end frequently do not delay Ctrl-C.
            biased;
            Some(control) = controls.recv() => dispatcher.control(control),
            Some(ended) = dispatcher.tasks.join_next_with_id() => dispatcher.ended(ended),
            state = changed(&mut dispatcher.place) => dispatcher.place_changed(state),
            () = tokio::time::sleep(LATE), if is_late => {}
        }
    }
    dispatcher.bus.emit_decisions(dispatcher.queue.close());
    dispatcher.cancel_the_rest(match refused {
        Some(_) => "a pre-run command failed, so nothing was started",
        None => "the run was stopped",
    });
    // Every trial has closed its own sandbox, unless it was killed.
    let left_over = dispatcher.shared.registry.remove_all();
    if can_begin {
        dispatcher.around(HookKind::PostRun, &mut controls).await;
    }
    // Before the end is recorded: only a run that has not ended is resumed, and then leaves nothing at the place.
    if let Some(elsewhere) = &dispatcher.shared.elsewhere {
        elsewhere.place.end().await;
    }
    let bus = Arc::clone(&dispatcher.bus);
    let (summary, stopped_by) = (bus.summary(), dispatcher.stopped_by.take());
    let duration_ms = earlier.duration_ms + model::millis(began.elapsed());
    bus.emit(Event::RunFinished { summary: summary.clone(), duration_ms, signal: stopped_by.clone() });
    let left_over = left_over.into_iter().map(|(path, error)| format!("{}: {error}", path.display())).collect();
    RunEnd { summary, stopped_by, left_over, refused }
}

/// Creates what the trials of `plan` share.
///
/// # Errors
/// See [`run`].
pub(crate) async fn share(plan: &Plan, host: Arc<Host>) -> Result<Shared, Breakage> {
    let jobs = plan.settings.jobs.max(1);
    let cassettes = &plan.settings.cassettes;
    let observes = plan.settings.observes();
    let needs_gateway = plan.trials.iter().any(|trial| {
        let description = trial.agent.description();
        let is_served = matches!(trial.model, ModelChoice::Scripted(_)) || observes;
        (description.wire.is_some() && is_served) || (description.reads_model_variables && observes)
    });
    let gateway = if needs_gateway {
        let started = gateway::Gateway::start().await;
        Some(started.map_err(|error| Breakage::environment(format!("cannot listen on loopback: {error}")))?)
    } else {
        None
    };
    let registry = Registry::new();
    Ok(Shared {
        factory: match (open_factory(&plan.settings.sandbox, &host, &registry), &plan.place) {
            // The sandboxes are elsewhere, and this machine need not be able to create them.
            (Err(_), Some(_)) => SandboxFactory::open("local", &host)?,
            (factory, _) => factory?,
        },
        registry,
        gateway,
        upstream: Arc::new(upstream(plan, &host)),
        cassettes: Cassettes::new(cassettes.mode, cassettes.honours_delays),
        grader: Grader::start(jobs.min(4)).map_err(|error| Breakage::environment(error.to_string()))?,
        judging: Arc::clone(&plan.judging),
        spending: Spending::after(&plan.earlier),
        mask: Arc::new(mask_of(plan, &host)),
        settings: plan.settings.clone(),
        hook: plan.hook.clone(),
        cleaner: plan.cleaner.clone(),
        elsewhere: plan.place.clone().map(|place| Arc::new(Elsewhere::new(place))),
        solutions: Solutions::default(),
        parent_files: sandbox::parent_files(&host.temp),
        host,
    })
}

/// Returns the connection settings from the gateway to the model providers.
fn upstream(plan: &Plan, host: &Host) -> gateway::Upstream {
    let proxies = llm::Proxies::of(|name| host.env.get(name).map(String::as_str));
    gateway::Upstream::new(proxies, llm::Timeouts::default(), plan.settings.providers.clone())
}

/// Prepares to create sandboxes that give every guarantee that the project requires.
fn open_factory(settings: &SandboxSettings, host: &Host, registry: &Arc<Registry>) -> Result<SandboxFactory, Breakage> {
    let factory = SandboxFactory::open_isolated(&settings.kind, host, registry, &settings.isolation)?;
    let isolation = factory.isolation();
    let check = |who: &str, required: &[String]| {
        isolation.check(who, required).map_err(|missing| Breakage::environment(missing.to_string()).for_good())
    };
    check("the project", &settings.require)?;
    if settings.network.as_ref().is_some_and(|policy| !policy.is_open()) {
        check("the network policy of the run", &["network".to_owned()])?;
    }
    Ok(factory)
}

/// Returns the mask for a run's secrets: those in the environment, in the configuration, and in each agent's
/// configuration with its variables filled in.
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
            // After the agent's name is removed, `http://host` is parsed as an address again.
            secrets = secrets.and_in_url(&format!("{}:{argument}", trial.agent.name()));
        }
    }
    Mask::of(&host.env).with_secrets(&secrets).with_fixture(&plan.settings.sandbox.extra_env)
}

/// Waits for a new state of the place, and returns it.
async fn changed(place: &mut Option<watch::Receiver<PlaceState>>) -> PlaceState {
    if let Some(place) = place
        && place.changed().await.is_ok()
    {
        return place.borrow_and_update().clone();
    }
    std::future::pending().await
}

struct Dispatcher {
    bus: Arc<EventBus>,
    queue: JobQueue,
    shared: Arc<Shared>,
    stop_level: watch::Sender<StopLevel>,
    tasks: JoinSet<TrialRecord>,
    /// Jobs that have started but have no outcome yet.
    running: HashMap<tokio::task::Id, (Taken, EventSender)>,
    /// State of the place where the trials run, if it is not this process.
    place: Option<watch::Receiver<PlaceState>>,
    stopped_by: Option<String>,
}

impl Dispatcher {
    /// Starts jobs while there is room.
    fn start_jobs(&mut self) {
        while self.stopped_by.is_none()
            && let Some(taken) = self.next_job()
        {
            let job = &taken.job;
            let events = job.events(&self.bus, &self.shared);
            if let Some(record) = job.not_run(&self.shared) {
                events.finish(record);
                self.queue.leave(&taken);
                continue;
            }
            job.begin(&events, &self.shared);
            let run = job.clone().run(Arc::clone(&self.shared), events.clone(), self.stop_level.subscribe());
            let task = self.tasks.spawn(run);
            self.running.insert(task.id(), (taken, events));
        }
    }

    /// Takes the next job, if there is room for it. Elsewhere, trials that run in any case can wait. How many of the
    /// others are needed depends on the results, so no more of them start than can run.
    fn next_job(&mut self) -> Option<Taken> {
        let running = self.running.len();
        match &self.place {
            Some(place) => {
                let slots = place.borrow().slots;
                match self.queue.has_fixed() {
                    true => self.queue.take_fixed(slots),
                    false => (running < slots.max(1)).then(|| self.queue.take_sequential()).flatten(),
                }
            }
            None => (running < self.shared.settings.jobs.max(1)).then(|| self.queue.take()).flatten(),
        }
    }

    /// Stops the run if the place was asked to, and applies new limits. With more slots there, more jobs can start.
    fn place_changed(&mut self, state: PlaceState) {
        self.shared.spending.change(state.budget);
        if let Some(reason) = state.stopped_by.filter(|_| self.stopped_by.is_none()) {
            self.control(Control::Stop(reason));
        }
    }

    /// Emits the outcome of a job whose task has ended.
    fn ended(&mut self, ended: Result<(tokio::task::Id, TrialRecord), JoinError>) {
        let (task, record) = match ended {
            Ok((task, record)) => (task, Some(record)),
            Err(error) => (error.id(), None),
        };
        let Some((taken, events)) = self.running.remove(&task) else { return };
        self.queue.leave(&taken);
        let record = record.unwrap_or_else(|| taken.job.panicked());
        let result = TrialResult::from(&record);
        events.finish(record);
        self.bus.emit_decisions(self.queue.finished(&result));
        if let (Some(elsewhere), Some(_)) = (&self.shared.elsewhere, self.shared.spending.ceased()) {
            elsewhere.place.withdraw();
        }
    }

    /// Runs the hooks that belong to no trial. Returns the hook that failed before the run, in which case the run must
    /// not start.
    async fn around(
        &mut self,
        moment: HookKind,
        controls: &mut mpsc::UnboundedReceiver<Control>,
    ) -> Option<HookRecord> {
        let hook: Arc<dyn Hook> = self.shared.hook.clone()?;
        if *self.stop_level.borrow() == StopLevel::Kill {
            return None;
        }
        let (shared, bus) = (Arc::clone(&self.shared), Arc::clone(&self.bus));
        let apply = |control| {
            self.control(control);
            *self.stop_level.borrow()
        };
        hook::around(&*hook, moment, &bus, &shared.mask, controls, apply).await
    }

    fn control(&mut self, control: Control) {
        let Control::Stop(reason) = control;
        let next = if self.stopped_by.is_none() { StopLevel::Stop } else { StopLevel::Kill };
        self.stopped_by.get_or_insert(reason);
        self.stop_level.send_replace(next);
        if let Some(elsewhere) = &self.shared.elsewhere {
            elsewhere.place.stop(next == StopLevel::Kill);
        }
    }

    /// Gives every job that was never started an outcome, so that a report covers the whole plan.
    fn cancel_the_rest(&mut self, reason: &str) {
        while let Some(Taken { job, .. }) = self.queue.take() {
            job.events(&self.bus, &self.shared).finish(job.cancelled(reason));
        }
    }
}

impl Drop for Dispatcher {
    /// Drops later events, however the run ends.
    fn drop(&mut self) {
        self.bus.close();
    }
}

//! The place in which a run's trials wait for workers. It has a thread of its own, so that the run keeps its lease
//! however busy the trials are.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use model::{AttemptRecord, CassetteMode, Event, Isolation, RemoteMode, RunInfo, TrialId};
use runner::{ChangedBudget, Place, PlaceState, PlannedTrial, Progress};
use sandbox::{BoxFuture, Breakage, Host};
use session::{Planned, Session, TrialSpecs};
use store::postgres::Settings;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::sleep;

use crate::bundle::{Bundle, Collected};
use crate::chunk::unpack;
use crate::database::{Database, PROGRESS};
use crate::error::QueueError;
use crate::needs::{NeedsOfPlan, agent_without_version, caps, missing, most_common_version, needs, unchosen};
use crate::statements::coordinator::{NewRun, NewTrial};

/// Longest time between two looks at the queue. Notifications shorten it.
const LOOK: Duration = Duration::from_millis(500);

/// Time between two looks at leases and workers.
const CHECK: Duration = Duration::from_secs(2);

/// Time after which a run without workers is reported.
const NO_WORKER: Duration = Duration::from_secs(5);

/// Number of chunks of a trial that wait for the record.
const CHUNKS: usize = 16;

/// How the trials of a run are given to workers.
pub struct CoordinatorOptions {
    /// The database.
    pub settings: Settings,
    /// Number of trials that may run at once on all machines, by agent, model, or `AGENT/MODEL`.
    pub limits: Vec<(String, u64)>,
    /// Time that a trial waits for a worker that can run it.
    pub patience: Duration,
    /// True if all trials of an agent run with the same version of it.
    pub same_version: bool,
    /// Id of the run that is resumed, if it is not new.
    pub resumed: Option<String>,
    /// Receives messages for the user while the run is in progress.
    pub notice: Box<dyn Fn(String) + Send>,
}

/// The place in which a run's trials wait for workers.
pub struct Coordinator {
    commands: mpsc::UnboundedSender<Command>,
    state: watch::Receiver<PlaceState>,
    specs: TrialSpecs,
    /// Folder of the project.
    root: PathBuf,
    /// Files that workers get.
    sent: HashSet<PathBuf>,
    needs: NeedsOfPlan,
    /// True if a trial needs the version of its agent that the first ones have.
    same_version: bool,
    host: Arc<Host>,
    isolation: Mutex<Option<Isolation>>,
    left_out: Vec<String>,
}

/// What the run asks of the thread.
enum Command {
    Begin(String, oneshot::Sender<Result<(), QueueError>>),
    Submit(NewTrial, mpsc::Sender<Progress>),
    Withdraw,
    Stop { kill: bool },
    End(oneshot::Sender<()>),
}

impl Coordinator {
    /// Prepares a plan for workers, and connects to the queue.
    ///
    /// # Errors
    /// Returns an error if the run needs something that workers do not have, if a file cannot be sent to them, or if
    /// the queue cannot be used.
    pub fn new(session: &Session, planned: &Planned, options: CoordinatorOptions) -> Result<Self, QueueError> {
        check(planned)?;
        let Collected { bundle, left_out } = Bundle::collect(session, planned)?;
        let trials = &planned.plan.trials;
        let cases: HashSet<String> = trials.iter().map(|trial| format!("{}::{}", trial.suite, trial.case_id)).collect();
        let spec = planned.spec.limited_to(cases);
        let spec = session.spec_to_json(&spec).map_err(|error| QueueError::Refused(error.to_string()))?;
        let specs = session.trial_specs(planned);
        let root = session.project.root.clone();
        let sent = bundle.files.iter().map(|file| root.join(&file.path)).collect();
        let budget = &planned.plan.settings.limits;
        let (cost, tokens) = spent(&planned.plan.earlier.summary);
        let run = EnteredRun {
            spec,
            bundle,
            label: planned.spec.overrides().output.label.clone(),
            judge: planned.plan.judging.model().map(str::to_owned),
            caps: options
                .limits
                .iter()
                .map(|(name, most)| (name.clone(), i64::try_from(*most).unwrap_or(i64::MAX)))
                .collect(),
            max_cost: budget.max_run_cost,
            max_tokens: budget.max_run_tokens,
            spent: (cost, tokens),
        };
        let same_version = options.same_version;
        let (commands, received) = mpsc::unbounded_channel();
        let (changes, state) = watch::channel(PlaceState::default());
        let (ready, opened) = std::sync::mpsc::channel();
        let thread = std::thread::Builder::new().name("coordinator".into());
        let started = thread.spawn(move || {
            let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => {
                    let _ = ready.send(Err(QueueError::File("cannot start a thread".to_owned(), error)));
                    return;
                }
            };
            runtime.block_on(async {
                match open(&options).await {
                    Ok(database) => {
                        let _ = ready.send(Ok(()));
                        Actor::new(database, run, changes, options).run(received).await;
                    }
                    Err(error) => drop(ready.send(Err(error))),
                }
            });
        });
        started.map_err(|error| QueueError::File("cannot start a thread".to_owned(), error))?;
        opened.recv().unwrap_or_else(|_| Err(QueueError::Refused("the coordinator's thread ended".to_owned())))?;
        Ok(Self {
            commands,
            state,
            specs,
            root,
            sent,
            needs: NeedsOfPlan::of(&planned.plan),
            same_version,
            host: Arc::clone(&session.host),
            isolation: Mutex::default(),
            left_out: left_out.into_iter().map(|(file, reason)| format!("{file}: {reason}")).collect(),
        })
    }

    /// Returns the files that the plan names and that workers do not get, each with the reason.
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    fn needs_of(&self, trial: &PlannedTrial) -> Vec<String> {
        let isolation = self.isolation.lock().unwrap_or_else(PoisonError::into_inner);
        let mut needs = needs(trial, &self.needs, isolation.as_ref(), &self.host);
        // Only programs have versions that differ from machine to machine.
        if self.same_version && trial.config.is_none() && trial.agent.description().program.is_some() {
            needs.push(unchosen(trial.agent.name()));
        }
        needs
    }

    /// Returns the reason why no worker can run the trial, if one of its files is not sent. A file outside of the project
    /// may be the same on another machine.
    fn lacks(&self, trial: &TrialId) -> Option<String> {
        let is_left_out = |file: &&Path| file.starts_with(&self.root) && !self.sent.contains(*file);
        let file = session::shown(self.specs.files(trial).find(is_left_out)?, &self.root);
        Some(format!(
            "the trial may depend on {file}, which is not sent to workers: git ignores it, it is a link, or its name is \
             that of a file with keys"
        ))
    }

    fn send(&self, command: Command) {
        // Fails if the thread has ended, which the answers show.
        let _ = self.commands.send(command);
    }
}

/// Connects to the queue.
async fn open(options: &CoordinatorOptions) -> Result<Database, QueueError> {
    let database = Database::open(&options.settings, Some(PROGRESS)).await?;
    if let Some(run) = &options.resumed {
        database.check_free(run).await?;
    }
    Ok(database)
}

/// Checks that workers can do what the run asks.
fn check(planned: &Planned) -> Result<(), QueueError> {
    let settings = &planned.plan.settings;
    let refused = |reason: &str| Err(QueueError::Refused(reason.to_owned()));
    if matches!(settings.cassettes.mode, CassetteMode::Record | CassetteMode::Auto) {
        return refused("workers record no cassettes; record them without workers, and replay them");
    }
    if planned.spec.directory().is_none() {
        return refused("the current directory is outside of the project; start the run in the project's folder");
    }
    if planned.shard.is_some() {
        return refused(
            "a shard is a part of a run that is split in advance, and workers share it while it runs; use one of them",
        );
    }
    if !planned.spec.overrides().hooks.post_grade_commands.is_empty() {
        return refused("workers run no post-grade commands");
    }
    let is_real = |trial: &PlannedTrial| settings.sandbox.remote_of(&trial.case) == RemoteMode::Real;
    if settings.sandbox.source_repo.is_some() && planned.plan.trials.iter().any(is_real) {
        return refused("workers cannot push to the real source repository; use `remote: isolated`");
    }
    Ok(())
}

/// Returns the cost and the tokens of a part of a run.
fn spent(summary: &model::Summary) -> (f64, f64) {
    let asides = || [summary.judge, summary.user].into_iter().flatten();
    let cost = summary.cost_usd.into_iter().chain(asides().filter_map(|aside| aside.cost_usd)).sum();
    let tokens = asides().map(|aside| aside.tokens).chain([summary.tokens]);
    (cost, tokens.flatten().map(|tokens| tokens.total() as f64).sum())
}

impl Place for Coordinator {
    fn begin<'a>(&'a self, info: &'a RunInfo) -> BoxFuture<'a, Result<(), Breakage>> {
        *self.isolation.lock().unwrap_or_else(PoisonError::into_inner) = info.isolation.clone();
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            self.send(Command::Begin(info.id.clone(), answer));
            match answered.await {
                Ok(Ok(())) => Ok(()),
                Ok(Err(error)) => Err(Breakage::environment(error.to_string())),
                Err(_) => Err(Breakage::harness("the coordinator's thread ended")),
            }
        })
    }

    fn state(&self) -> watch::Receiver<PlaceState> {
        self.state.clone()
    }

    fn requirements(&self, trial: &PlannedTrial) -> Vec<String> {
        self.needs_of(trial).into_iter().chain(caps(trial)).collect()
    }

    fn submit(&self, trial: &PlannedTrial, earlier: &[AttemptRecord]) -> mpsc::Receiver<Progress> {
        let (progress, receiver) = mpsc::channel(CHUNKS);
        if let Some(reason) = self.lacks(&trial.id()) {
            let _ = progress.try_send(Progress::Refused(Breakage::environment(reason).for_good()));
            return receiver;
        }
        let spec = self.specs.get(&trial.id()).and_then(|spec| serde_json::to_string(&spec).ok());
        let (Some(spec), Ok(earlier)) = (spec, serde_json::to_string(earlier)) else {
            let _ = progress.try_send(Progress::Refused(Breakage::harness("the trial has no description")));
            return receiver;
        };
        let (needs, caps) = (self.needs_of(trial), caps(trial));
        let new = NewTrial { id: trial.id().to_string(), spec, needs, caps, earlier };
        self.send(Command::Submit(new, progress));
        receiver
    }

    fn withdraw(&self) {
        self.send(Command::Withdraw);
    }

    fn stop(&self, kill: bool) {
        self.send(Command::Stop { kill });
    }

    fn end<'a>(&'a self) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            self.send(Command::End(answer));
            // Fails if the thread has ended already.
            let _ = answered.await;
        })
    }
}

/// A run as it is entered into the queue.
struct EnteredRun {
    spec: String,
    bundle: Bundle,
    label: Option<String>,
    judge: Option<String>,
    caps: Vec<(String, i64)>,
    max_cost: Option<f64>,
    max_tokens: Option<f64>,
    spent: (f64, f64),
}

/// A trial whose progress is followed.
struct Followed {
    progress: mpsc::Sender<Progress>,
    /// Number of its lease; 0 while it waits.
    attempt: i32,
    /// Number of its next chunk of events.
    next: i32,
}

/// The state of the thread.
struct Actor {
    database: Database,
    entered: EnteredRun,
    state: watch::Sender<PlaceState>,
    patience: Duration,
    notice: Box<dyn Fn(String) + Send>,
    id: String,
    run: Option<String>,
    followed: HashMap<String, Followed>,
    /// True once trials that have not started are taken back.
    is_withdrawn: bool,
    /// Reason why nothing is run any more.
    failed: Option<String>,
    checked: Option<Instant>,
    /// Time since which trials with these needs have waited although no worker can run them.
    in_vain: HashMap<Vec<String>, Instant>,
    /// Needs for versions that were chosen, by the needs for which they stand.
    versions: HashMap<String, String>,
    /// Workers that cannot prepare the run, of which the user knows.
    refused: HashSet<String>,
    /// Time since which there has been no worker.
    alone: Option<Instant>,
    is_alone_reported: bool,
}

impl Actor {
    fn new(
        database: Database,
        entered: EnteredRun,
        state: watch::Sender<PlaceState>,
        CoordinatorOptions { patience, notice, .. }: CoordinatorOptions,
    ) -> Self {
        Self {
            database,
            entered,
            state,
            patience,
            notice,
            id: uuid::Uuid::new_v4().to_string(),
            run: None,
            followed: HashMap::new(),
            is_withdrawn: false,
            failed: None,
            checked: None,
            in_vain: HashMap::new(),
            versions: HashMap::new(),
            refused: HashSet::new(),
            alone: None,
            is_alone_reported: false,
        }
    }

    async fn run(mut self, mut commands: mpsc::UnboundedReceiver<Command>) {
        loop {
            let mut received = Vec::new();
            tokio::select! {
                count = commands.recv_many(&mut received, 1000) => if count == 0 {
                    return;
                },
                () = self.database.changed() => {}
                () = sleep(LOOK) => {}
            }
            let mut new = Vec::new();
            for command in received {
                match command {
                    Command::Begin(run, answer) => drop(answer.send(self.begin(run).await)),
                    Command::Submit(_, progress) if self.is_withdrawn => {
                        let _ = progress.try_send(Progress::Withdrawn(None));
                    }
                    Command::Submit(mut trial, progress) => {
                        for need in &mut trial.needs {
                            if let Some(version) = self.versions.get(need) {
                                need.clone_from(version);
                            }
                        }
                        self.followed.insert(trial.id.clone(), Followed { progress, attempt: 0, next: 0 });
                        new.push(trial);
                    }
                    Command::Withdraw => self.withdraw(&mut new).await,
                    Command::Stop { kill } => {
                        self.stop(kill).await;
                        self.withdraw(&mut new).await;
                    }
                    Command::End(answer) => {
                        self.end().await;
                        let _ = answer.send(());
                        return;
                    }
                }
            }
            if let (Some(run), None) = (self.run.clone(), &self.failed) {
                let stepped = async {
                    if !new.is_empty() {
                        self.database.submit(&run, &new).await?;
                    }
                    self.step(&run).await
                };
                if let Err(error) = stepped.await {
                    self.failed = Some(error.to_string());
                }
            }
            if let Some(reason) = &self.failed {
                for (_, trial) in self.followed.drain() {
                    let refused = Progress::Refused(Breakage::environment(reason.clone()));
                    // Events of the trial may still wait for the record.
                    tokio::spawn(async move { drop(trial.progress.send(refused).await) });
                }
            }
        }
    }

    async fn begin(&mut self, run: String) -> Result<(), QueueError> {
        let entered = &self.entered;
        let new = NewRun {
            id: &run,
            label: entered.label.as_deref(),
            spec: &entered.spec,
            program: PROGRAM,
            judge: entered.judge.as_deref(),
            caps: &entered.caps,
            max_cost: entered.max_cost,
            max_tokens: entered.max_tokens,
            spent_cost: entered.spent.0,
            spent_tokens: entered.spent.1,
            coordinator: &self.id,
        };
        self.database.enter_run(&new, &entered.bundle).await?;
        self.run = Some(run);
        Ok(())
    }

    /// Takes back the trials that wait, including those in `new`, which are not submitted yet.
    async fn withdraw(&mut self, new: &mut Vec<NewTrial>) {
        self.is_withdrawn = true;
        let mut ids: Vec<String> = new.drain(..).map(|trial| trial.id).collect();
        if let Some(run) = &self.run {
            match self.database.withdraw(run, true).await {
                Ok(withdrawn) => ids.extend(withdrawn),
                Err(error) => self.failed = Some(error.to_string()),
            }
        }
        self.give_back(&ids, None);
    }

    fn give_back(&mut self, trials: &[String], reason: Option<&str>) {
        for trial in trials.iter().filter_map(|trial| self.followed.remove(trial)) {
            let _ = trial.progress.try_send(Progress::Withdrawn(reason.map(str::to_owned)));
        }
    }

    async fn stop(&mut self, kill: bool) {
        let Some(run) = &self.run else { return };
        let state = if kill { "killing" } else { "stopping" };
        if let Err(error) = self.database.set_state(run, &["running", "paused", "stopping", "killing"], state).await {
            self.failed = Some(error.to_string());
        }
    }

    async fn end(&mut self) {
        if let Some(run) = self.run.take()
            && let Err(error) = self.database.end_run(&run).await
        {
            (self.notice)(format!("warning: the queue still contains the run: {error}\n"));
        }
    }

    /// Looks at the queue, and passes on what has changed.
    async fn step(&mut self, run: &str) -> Result<(), QueueError> {
        if self.checked.is_none_or(|checked| checked.elapsed() >= CHECK) {
            self.checked = Some(Instant::now());
            self.check(run).await?;
        }
        let active = self.database.active(run).await?;
        let mut wanted: Vec<(String, i32, i32)> = Vec::new();
        for trial in active {
            let Some(followed) = self.followed.get_mut(&trial.trial) else { continue };
            if followed.attempt != trial.attempt {
                (followed.attempt, followed.next) = (trial.attempt, 0);
            }
            // The record is behind.
            if followed.progress.capacity() > 0 {
                wanted.push((trial.trial, followed.attempt, followed.next));
            }
        }
        if wanted.is_empty() {
            return Ok(());
        }
        let mut taken = Vec::new();
        for chunk in self.database.chunks(run, &wanted).await? {
            let Some(followed) = self.followed.get_mut(&chunk.trial) else { continue };
            let Ok(room) = followed.progress.clone().try_reserve_owned() else { continue };
            if chunk.number != followed.next {
                continue;
            }
            let events = unpack(&chunk.body)?;
            followed.next += 1;
            let is_last = matches!(events.last(), Some((_, Event::TrialFinished(_))));
            room.send(Progress::Events(events));
            if is_last {
                self.followed.remove(&chunk.trial);
                taken.push(chunk.trial);
            }
        }
        if !taken.is_empty() {
            self.database.take(run, &taken).await?;
        }
        Ok(())
    }

    /// Renews the lease of the run, and looks after lost workers, cancelled trials and trials that nobody can run.
    async fn check(&mut self, run: &str) -> Result<(), QueueError> {
        let situation = self.database.coordinate(run, &self.id, PROGRAM).await?;
        let Some(state) = situation.state else {
            return Err(QueueError::Refused("another process has taken this run over".to_owned()));
        };
        let is_stopped = matches!(state.as_str(), "stopping" | "killing");
        self.state.send_if_modified(|known| {
            let stopped_by = is_stopped.then(|| "trialrun cancel".to_owned());
            let budget = ChangedBudget { max_run_cost: situation.max_cost, max_run_tokens: situation.max_tokens };
            let new = PlaceState { slots: situation.slots, budget, stopped_by };
            let is_new = *known != new;
            *known = new;
            is_new
        });
        for lost in self.database.sweep(run).await? {
            let followed = self.followed.get(&lost.trial);
            // If the record is behind, the trial is still lost at the next look.
            if followed.is_some_and(|followed| followed.progress.try_send(Progress::Lost(lost.reason)).is_ok()) {
                self.followed.remove(&lost.trial);
            }
        }
        let cancelled = self.database.withdraw(run, false).await?;
        self.give_back(&cancelled, Some("it was cancelled"));
        self.check_needs(run).await
    }

    /// Reports trials that no worker can run, and gives up on those that have waited long enough.
    async fn check_needs(&mut self, run: &str) -> Result<(), QueueError> {
        let waiting = self.database.waiting(run).await?;
        let all = if waiting.is_empty() { Vec::new() } else { self.database.workers().await? };
        let (mut ours, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|worker| worker.program == PROGRAM);
        let refusals = self.database.refusals(run).await?;
        for (worker, host, reason) in &refusals {
            ours.retain(|able| able.id != *worker);
            if self.refused.insert(worker.clone()) {
                (self.notice)(format!("warning: the worker on {host} cannot run trials of this run: {reason}\n"));
            }
        }
        let is_alone = ours.is_empty() && !waiting.is_empty();
        self.alone = if is_alone { self.alone.or_else(|| Some(Instant::now())) } else { None };
        let other_version = match others.as_slice() {
            [] => String::new(),
            [other, ..] => format!(" with this version of trialrun ({} has {})", other.host, other.program),
        };
        if self.alone.is_some_and(|since| since.elapsed() >= NO_WORKER) && !self.is_alone_reported {
            self.is_alone_reported = true;
            (self.notice)(format!("note: waiting for a worker{other_version}; `trialrun work` starts one\n"));
        }
        self.is_alone_reported &= is_alone;
        for need in waiting.iter().flat_map(|(needs, ..)| needs) {
            let Some(agent) = agent_without_version(need).filter(|_| !self.versions.contains_key(need)) else {
                continue;
            };
            if let Some(version) = most_common_version(agent, &ours) {
                self.database.choose_version(run, need, &version).await?;
                self.versions.insert(need.clone(), version);
            }
        }
        let mut in_vain = HashMap::new();
        for (needs, trial, count) in waiting {
            let lacks = match missing(&needs, ours.iter().map(|worker| worker.has.as_slice())) {
                Some(lacks) => lacks,
                None if is_alone => format!("a worker{other_version}"),
                None => continue,
            };
            let known = self.in_vain.get(&needs).copied();
            let since = known.or(self.alone).unwrap_or_else(Instant::now);
            if known.is_none() && !is_alone {
                let more = if count > 1 { format!(" and {} more", count - 1) } else { String::new() };
                (self.notice)(format!("warning: no worker can run {trial}{more}; missing: {lacks}\n"));
            }
            if since.elapsed() < self.patience {
                in_vain.insert(needs, since);
                continue;
            }
            let reason = format!("no worker could run it within {} s; missing: {lacks}", self.patience.as_secs());
            for trial in self.database.withdraw_needing(run, &needs).await? {
                if let Some(followed) = self.followed.remove(&trial) {
                    let refused = Progress::Refused(Breakage::environment(reason.clone()).for_good());
                    let _ = followed.progress.try_send(refused);
                }
            }
        }
        self.in_vain = in_vain;
        Ok(())
    }
}

/// Version that all processes of a run have. The same version plans the same trials, and reads the same events.
pub(crate) const PROGRAM: &str = env!("CARGO_PKG_VERSION");

//! A worker: claims trials, runs them with the agents, keys and sandboxes of its machine, and sends their events.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use agent::Agent;
use mask::Mask;
use model::{AttemptRecord, Envelope, Event, Outcome, TrialRecord};
use runner::{Listener, PlannedTrial, Pool, StopLevel};
use sandbox::Host;
use session::{Place, Planned, RunSpec, Session, TrialSpec, TrialSpecs};
use store::postgres::Settings;
use tokio::sync::{OnceCell, watch};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::sleep;

use crate::chunk::pack;
use crate::coordinator::PROGRAM;
use crate::database::{Database, WORK};
use crate::error::QueueError;
use crate::needs::offer;
use crate::statements::Announcement;
use crate::statements::worker::{Claim, Order};

/// Time between two heartbeats.
const HEARTBEAT: Duration = Duration::from_secs(3);

/// Time for which events are collected before they are sent.
const COLLECT: Duration = Duration::from_millis(250);

/// Number of events that wait to be sent, before their trial waits too.
const MAX_EVENTS: usize = 256;

/// What a worker does.
pub struct WorkerOptions {
    /// The database.
    pub settings: Settings,
    /// The machine.
    pub host: Arc<Host>,
    /// Agents of the program, in addition to the built-in ones.
    pub agents: Vec<&'static dyn Agent>,
    /// Labels of the worker.
    pub labels: Vec<String>,
    /// Number of trials that run at once.
    pub jobs: usize,
    /// When the worker ends.
    pub until: Until,
    /// Folder for the files of projects.
    pub cache: PathBuf,
    /// Receives messages for the user.
    pub notice: Arc<dyn Fn(String) + Send + Sync>,
}

/// When a worker ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// Never.
    Stopped,
    /// After one trial.
    One,
    /// When no run is in progress.
    Drained,
    /// When it had nothing to do for this time.
    Idle(Duration),
}

/// Runs trials until the worker ends. After the first request to stop it finishes what it runs; after the second, it
/// gives its trials back. Returns the number of finished trials.
///
/// # Errors
/// Returns an error if the queue cannot be used.
pub async fn work(options: WorkerOptions, mut stop_level: watch::Receiver<StopLevel>) -> Result<usize, QueueError> {
    let control = Database::open(&options.settings, Some(WORK)).await?;
    let has = offer(&options.host, &options.agents, &options.labels).await;
    let mut announcement = Announcement {
        id: uuid::Uuid::new_v4().to_string(),
        host: sandbox::host_name(),
        pid: i32::try_from(std::process::id()).unwrap_or_default(),
        program: PROGRAM.to_owned(),
        has,
        slots: i64::try_from(options.jobs).unwrap_or(i64::MAX),
    };
    let context = Arc::new(Context {
        events: Database::open(&options.settings, None).await?,
        worker: announcement.id.clone(),
        runs: Mutex::default(),
        host: Arc::clone(&options.host),
        agents: options.agents.clone(),
        jobs: options.jobs,
        cache: options.cache.clone(),
    });
    (options.notice)(format!("waiting for trials in {}, up to {} at once\n", options.settings, options.jobs));
    let mut running: HashMap<Key, Running> = HashMap::new();
    let mut tasks: JoinSet<Ended> = JoinSet::new();
    let (mut unprepared, mut finished, mut claimed): (Vec<String>, usize, usize) = (Vec::new(), 0, 0);
    let mut heard: Option<Instant> = None;
    let mut shared: Option<Instant> = None;
    let mut idle = Instant::now();
    let mut has_work = true;
    let ended = loop {
        let level = *stop_level.borrow_and_update();
        let is_ending = level != StopLevel::No || (options.until == Until::One && claimed > 0);
        if is_ending {
            announcement.slots = 0;
        }
        if level == StopLevel::Kill {
            running.values().for_each(Running::give_up);
        }
        if has_work || heard.is_none_or(|heard| heard.elapsed() >= HEARTBEAT) {
            heard = Some(Instant::now());
            let held = match control.heartbeat(&announcement).await {
                Ok(held) => held,
                Err(error) => break Err(error),
            };
            let leases: HashMap<Key, Order> =
                held.into_iter().map(|held| ((held.run, held.trial, held.attempt), held.order)).collect();
            for (key, running) in &running {
                running.order(leases.get(key).copied().unwrap_or(Order::Kill));
            }
            for (run, trial, attempt) in leases.into_keys().filter(|key| !running.contains_key(key)) {
                // The connection was lost when the trial was claimed or finished.
                let claim = Claim { run, trial, ..Claim::of(attempt) };
                if let Err(error) = control.release(&claim, &announcement.id, "the connection was lost").await {
                    tracing::warn!(%error, "cannot give a trial back");
                }
            }
        }
        if shared.is_none_or(|shared| shared.elapsed() >= HEARTBEAT) {
            shared = Some(Instant::now());
            if let Err(error) = context.share_pauses(&control).await {
                tracing::warn!(%error, "cannot share pauses of providers");
            }
        }
        let mut is_empty = false;
        while !is_ending && !is_empty && running.len() < options.jobs {
            match control.claim(&announcement, &unprepared).await {
                Ok(Some(claim)) => {
                    claimed += 1;
                    (options.notice)(format!("running {}\n", claim.trial));
                    let (stop, stops) = watch::channel(StopLevel::No);
                    let given_up = Arc::new(AtomicBool::new(false));
                    let key = claim.key();
                    running.insert(key, Running { stop, given_up: Arc::clone(&given_up) });
                    tasks.spawn(Arc::clone(&context).run_trial(claim, stops, given_up));
                    is_empty = options.until == Until::One;
                }
                Ok(None) => is_empty = true,
                Err(error) => {
                    tracing::warn!(%error, "cannot claim a trial");
                    is_empty = true;
                }
            }
        }
        if running.is_empty() {
            if is_ending {
                break Ok(());
            }
            let is_open = match control.has_open_runs().await {
                Ok(is_open) => is_open,
                Err(error) => break Err(error),
            };
            if !is_open {
                context.close().await;
            }
            match options.until {
                Until::Drained if !is_open => break Ok(()),
                Until::Idle(most) if idle.elapsed() >= most => break Ok(()),
                _ => {}
            }
        } else {
            idle = Instant::now();
        }
        has_work = false;
        tokio::select! {
            Some(ended) = tasks.join_next() => {
                if let Ok(Ended { key, end }) = ended {
                    running.remove(&key);
                    let (run, trial, _) = key;
                    match end {
                        End::Finished(outcome) => {
                            finished += 1;
                            (options.notice)(format!("{} {trial}\n", outcome.name()));
                        }
                        End::Late => (options.notice)(format!(
                            "{trial} does not count: this worker did not answer for too long\n"
                        )),
                        End::GivenBack(reason) => (options.notice)(format!("gave back {trial}: {reason}\n")),
                        End::Unprepared(reason) => {
                            (options.notice)(format!("cannot run trials of the run {run}: {reason}\n"));
                            unprepared.push(run);
                        }
                    }
                }
            }
            () = control.changed() => has_work = true,
            _ = stop_level.changed() => has_work = true,
            () = sleep(HEARTBEAT) => {}
        }
    };
    tasks.shutdown().await;
    context.close().await;
    match ended {
        Ok(()) => control.leave(&announcement.id).await.map(|()| finished),
        Err(error) => Err(error),
    }
}

/// Id of the run, id of the trial, and number of the lease.
type Key = (String, String, i32);

/// A trial that runs.
struct Running {
    stop: watch::Sender<StopLevel>,
    given_up: Arc<AtomicBool>,
}

impl Running {
    fn order(&self, order: Order) {
        let level = match order {
            Order::Continue => return,
            Order::Stop => StopLevel::Stop,
            Order::Kill => StopLevel::Kill,
        };
        self.stop.send_if_modified(|known| {
            let is_new = level > *known;
            *known = level.max(*known);
            is_new
        });
    }

    fn give_up(&self) {
        self.given_up.store(true, Ordering::Relaxed);
        self.order(Order::Kill);
    }
}

/// A trial that has ended.
struct Ended {
    key: Key,
    end: End,
}

/// How a trial ended.
enum End {
    /// It has an outcome that counts.
    Finished(Outcome),
    /// Its lease had expired.
    Late,
    /// Another worker runs it.
    GivenBack(String),
    /// This worker cannot run trials of the run.
    Unprepared(String),
}

/// What the trials of a worker share.
struct Context {
    events: Database,
    worker: String,
    runs: Mutex<Runs>,
    host: Arc<Host>,
    agents: Vec<&'static dyn Agent>,
    jobs: usize,
    cache: PathBuf,
}

/// Runs by their ids, each prepared once.
type Runs = HashMap<String, Arc<OnceCell<Result<Arc<Prepared>, String>>>>;

/// A run, planned on this machine.
struct Prepared {
    pool: Pool,
    specs: TrialSpecs,
}

impl Context {
    async fn run_trial(
        self: Arc<Self>,
        claim: Claim,
        stop_level: watch::Receiver<StopLevel>,
        given_up: Arc<AtomicBool>,
    ) -> Ended {
        let end = match self.prepared(&claim.run).await {
            Err(reason) => match self.events.refuse(&claim, &self.worker, &reason).await {
                Ok(()) => End::Unprepared(reason),
                Err(error) => End::Unprepared(error.to_string()),
            },
            Ok(prepared) => match self.run_prepared(&claim, &prepared, stop_level, &given_up).await {
                Ok(end) => end,
                Err(error) => End::GivenBack(error.to_string()),
            },
        };
        Ended { key: claim.key(), end }
    }

    async fn run_prepared(
        &self,
        claim: &Claim,
        prepared: &Arc<Prepared>,
        stop_level: watch::Receiver<StopLevel>,
        given_up: &AtomicBool,
    ) -> Result<End, QueueError> {
        let (planned, earlier) = match trial_of(claim, prepared) {
            Ok(found) => found,
            Err(reason) => {
                self.release(claim, &reason).await?;
                return Ok(End::GivenBack(reason));
            }
        };
        let upload = Arc::new(Upload::of(&planned));
        let mut task = {
            let (prepared, run, listener) = (Arc::clone(prepared), claim.run.clone(), Arc::clone(&upload));
            tokio::spawn(async move { prepared.pool.run(&run, &planned, earlier, stop_level, listener).await })
        };
        let mut number = 0;
        loop {
            tokio::select! {
                biased;
                _ = &mut task => break,
                () = sleep(COLLECT) => {}
            }
            let events = upload.take_ready();
            if !events.is_empty() {
                self.events.append(claim, number, &pack(&events)?).await?;
                number += 1;
            }
        }
        let mut events = upload.take();
        let is_given_up = given_up.load(Ordering::Relaxed);
        if is_given_up {
            // The coordinator may read the events before the trial is given back, and would count its outcome.
            events.retain(|(_, event)| !matches!(event, Event::TrialFinished(_)));
        }
        let Some(record) = outcome_of(&events) else {
            let reason = if is_given_up { "the worker was stopped" } else { "its task panicked" }.to_owned();
            self.events.append(claim, number, &pack(&events)?).await?;
            self.release(claim, &reason).await?;
            return Ok(End::GivenBack(reason));
        };
        let counts = self.events.finish(claim, &self.worker, (number, &pack(&events)?), spent(record)).await?;
        Ok(if counts { End::Finished(record.outcome) } else { End::Late })
    }

    async fn release(&self, claim: &Claim, reason: &str) -> Result<(), QueueError> {
        self.events.release(claim, &self.worker, reason).await
    }

    /// Returns the run as it is planned on this machine. It is planned once.
    async fn prepared(&self, run: &str) -> Result<Arc<Prepared>, String> {
        let cell = Arc::clone(self.runs().entry(run.to_owned()).or_default());
        cell.get_or_init(|| self.prepare(run)).await.clone()
    }

    async fn prepare(&self, run: &str) -> Result<Arc<Prepared>, String> {
        let entry = self.events.run_entry(run).await.map_err(|error| error.to_string())?;
        let Some(entry) = entry else { return Err("it is not in the queue any more".to_owned()) };
        let folder = self.cache.join("bundles").join(&entry.bundle);
        if !folder.is_dir() {
            let bundle = self.events.bundle(&entry.bundle).await.map_err(|error| error.to_string())?;
            let folder = folder.clone();
            let unpacked = spawn_blocking(move || bundle.unpack(&folder)).await;
            unpacked.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        }
        let (state, host, agents) = (self.cache.join("state"), Arc::clone(&self.host), self.agents.clone());
        let planning = spawn_blocking(move || plan(&entry.spec, &folder, state, host, agents));
        let (mut planned, specs) = planning.await.map_err(|error| error.to_string())??;
        let judge = planned.plan.judging.model();
        if judge != entry.judge.as_deref() {
            let [here, there] = [judge, entry.judge.as_deref()].map(|judge| judge.unwrap_or("none"));
            return Err(format!("its judge is {there}, and with the keys of this machine it would be {here}"));
        }
        planned.plan.settings.jobs = self.jobs;
        let pool = Pool::open(planned.plan, Arc::clone(&self.host)).await.map_err(|error| error.to_string())?;
        Ok(Arc::new(Prepared { pool, specs }))
    }

    /// Tells other workers which pauses providers ask for, and keeps those for which they asked other workers.
    async fn share_pauses(&self, control: &Database) -> Result<(), QueueError> {
        let runs: Vec<_> = self.runs().values().cloned().collect();
        let prepared: Vec<&Arc<Prepared>> = runs.iter().filter_map(|run| run.get()?.as_ref().ok()).collect();
        if prepared.is_empty() {
            return Ok(());
        }
        let in_ms = |left: Duration| i64::try_from(left.as_millis()).unwrap_or(i64::MAX);
        let own = prepared.iter().flat_map(|prepared| prepared.pool.providers().pauses());
        let own: Vec<(String, i64)> = own.map(|(account, left)| (account, in_ms(left))).collect();
        for (account, left) in control.share_pauses(&own).await? {
            let left = Duration::from_millis(u64::try_from(left).unwrap_or_default());
            prepared.iter().for_each(|prepared| prepared.pool.providers().pause(&account, left));
        }
        Ok(())
    }

    /// Forgets all runs, and removes what their killed trials left behind.
    async fn close(&self) {
        let runs = std::mem::take(&mut *self.runs());
        for run in runs.into_values() {
            if let Some(Ok(prepared)) = run.get() {
                for path in prepared.pool.close().await {
                    tracing::warn!(path, "a sandbox could not be removed");
                }
            }
        }
    }

    fn runs(&self) -> MutexGuard<'_, Runs> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Plans a run in the folder of its bundle.
fn plan(
    spec: &str,
    folder: &Path,
    state: PathBuf,
    host: Arc<Host>,
    agents: Vec<&'static dyn Agent>,
) -> Result<(Planned, TrialSpecs), String> {
    let spec: RunSpec = serde_json::from_str(spec).map_err(|error| error.to_string())?;
    let directory = folder.join(spec.directory().unwrap_or(Path::new("")));
    let planned = || {
        let place = Place { directory: directory.clone(), state: Some(state), agents, host };
        let session = Session::open(place, &spec.overrides().places(&directory)?)?;
        let (mut planned, specs) = session.plan_again(&spec)?;
        session.lend_sign_in(&mut planned)?;
        Ok((planned, specs))
    };
    std::fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
    planned().map_err(|error: session::Error| error.to_string())
}

/// Returns the planned trial, with its attempts that were lost.
fn trial_of(claim: &Claim, prepared: &Prepared) -> Result<(PlannedTrial, Vec<AttemptRecord>), String> {
    let spec: TrialSpec = serde_json::from_str(&claim.spec).map_err(|error| error.to_string())?;
    spec.agrees_with(prepared.specs.get(&spec.id).as_ref()).map_err(|error| error.to_string())?;
    let earlier = serde_json::from_str(&claim.earlier).map_err(|error| error.to_string())?;
    let planned = prepared.pool.get(&spec.id).ok_or_else(|| "it is not planned".to_owned())?;
    Ok((planned, earlier))
}

fn outcome_of(events: &[(u32, Event)]) -> Option<&TrialRecord> {
    match events.last() {
        Some((_, Event::TrialFinished(record))) => Some(record),
        _ => None,
    }
}

/// Returns the cost and the tokens of a trial, as far as they are known.
fn spent(record: &TrialRecord) -> (f64, f64) {
    let asides = || [record.judge, record.user].into_iter().flatten().map(|aside| aside.usage());
    let attempts = || record.attempts.iter();
    let costs = attempts().filter_map(|attempt| attempt.cost_usd).chain(asides().filter_map(|aside| aside.cost_usd));
    let tokens = attempts().filter_map(|attempt| attempt.usage).chain(asides().filter_map(|aside| aside.tokens));
    (costs.sum(), tokens.map(|tokens| tokens.total() as f64).sum())
}

/// Events of a trial that are not sent yet.
struct Upload {
    events: Mutex<Vec<(u32, Event)>>,
    room: Condvar,
    /// True if all events wait for the end of the trial: it may learn secrets, which earlier events may contain.
    is_held: bool,
}

impl Upload {
    fn of(planned: &PlannedTrial) -> Self {
        let is_held = planned.config.is_some() || planned.case.code.is_some();
        Self { events: Mutex::default(), room: Condvar::new(), is_held }
    }

    /// Takes all events.
    fn take(&self) -> Vec<(u32, Event)> {
        std::mem::take(&mut *self.lock())
    }

    /// Takes the events that can be sent before the trial ends. Its outcome is sent when its lease is given up.
    fn take_ready(&self) -> Vec<(u32, Event)> {
        let mut events = self.lock();
        if self.is_held || outcome_of(&events).is_some() {
            return Vec::new();
        }
        self.room.notify_all();
        std::mem::take(&mut *events)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(u32, Event)>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_full(&self, events: &[(u32, Event)]) -> bool {
        !self.is_held && events.len() >= MAX_EVENTS
    }
}

impl Listener for Upload {
    fn offer(&self, envelope: Envelope) -> Option<Envelope> {
        let mut events = self.lock();
        if self.is_full(&events) {
            return Some(envelope);
        }
        events.push((envelope.attempt.unwrap_or(1), envelope.event));
        None
    }

    fn on_event(&self, envelope: Envelope) {
        let mut events = self.lock();
        while self.is_full(&events) {
            events = self.room.wait(events).unwrap_or_else(PoisonError::into_inner);
        }
        events.push((envelope.attempt.unwrap_or(1), envelope.event));
    }

    fn on_learned(&self, _: &Arc<str>, mask: &Arc<Mask>) {
        for (_, event) in self.lock().iter_mut() {
            mask.event(event);
        }
    }
}

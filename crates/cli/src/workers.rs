//! Workers of a run: the options of the coordinator, and the database of the queue.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use queue::{
    Coordinator, CoordinatorOptions, HeldTrial, Queue, QueueError, QueuedRun, Until, WaitingTrials, WorkerOptions,
    WorkerState, work,
};
use report::{QueueView, QueuedRunView, WaitingView, WorkerView};
use runner::StopLevel;
use sandbox::Host;
use serde_json::{Value, json};
use session::overrides::{parse_duration, parse_jobs};
use session::{Layer, Planned, Session};
use store::Location;
use store::postgres::{Settings, Surroundings};
use suite::Workers;
use tokio::sync::watch;

use crate::error::CliError;
use crate::terminal::Terminal;

/// Options of a run whose trials workers run.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Workers")]
pub struct WorkersArgs {
    /// Let workers run the trials; URL is the database of their queue [default: that of the record]
    #[arg(long, value_name = "URL", num_args = 0..=1, require_equals = true)]
    pub workers: Option<Option<String>>,
    /// Run the trials in this process, although the configuration has `workers`
    #[arg(long, conflicts_with = "workers")]
    pub no_workers: bool,
    /// Maximum number of trials that run at once on all machines, by agent, model or AGENT/MODEL
    #[arg(long = "limit", value_name = "NAME=N", conflicts_with = "no_workers", value_parser = parse_limit)]
    pub limits: Vec<(String, u64)>,
    /// Time that a trial waits for a worker that can run it [default: 10m]
    #[arg(long, value_name = "DURATION", conflicts_with = "no_workers", value_parser = parse_duration)]
    pub worker_timeout: Option<u64>,
}

/// Time in milliseconds that a trial waits for a worker that can run it, unless it is set.
const TIMEOUT: u64 = 600_000;

impl WorkersArgs {
    /// Returns the arguments with which this process runs the trials.
    pub fn none() -> Self {
        Self { no_workers: true, ..Self::default() }
    }

    /// Returns `true` if workers run the trials.
    ///
    /// # Errors
    /// Returns an error for options that have an effect only with workers.
    pub fn are_used(&self, session: &Session) -> Result<bool, CliError> {
        let are_used = !self.no_workers && (self.workers.is_some() || session.project.workers.is_some());
        if !are_used && (!self.limits.is_empty() || self.worker_timeout.is_some()) {
            return Err(CliError::usage("`--limit` and `--worker-timeout` have an effect only with `--workers`"));
        }
        Ok(are_used)
    }
}

fn parse_limit(written: &str) -> Result<(String, u64), String> {
    let parsed = written.rsplit_once('=').and_then(|(name, most)| Some((name, most.parse::<u64>().ok()?)));
    let parsed = parsed.filter(|(name, most)| !name.is_empty() && *most > 0);
    parsed
        .map(|(name, most)| (name.to_owned(), most))
        .ok_or_else(|| "write `codex=4`, with a number above 0".to_owned())
}

/// Parses the number of trials that a run executes in its own process: 0 if only workers run trials.
pub fn parse_own_jobs(written: &str) -> Result<usize, String> {
    if written == "0" { Ok(0) } else { parse_jobs(written) }
}

/// Returns the place in which the trials of the plan wait for workers, if the run has some. `resumed` is the id of a run
/// that is not new.
pub fn coordinator(
    args: &WorkersArgs,
    session: &Session,
    planned: &Planned,
    resumed: Option<String>,
    terminal: &Terminal,
) -> Result<Option<(Arc<Coordinator>, Settings)>, CliError> {
    if !args.are_used(session)? {
        return Ok(None);
    }
    let configured = session.project.workers.clone().unwrap_or_default();
    let url = args.workers.as_ref().and_then(Option::as_deref);
    let url = match url {
        Some(url) => Some(url),
        None => queue_of(&configured)?,
    };
    let settings = settings(url, session).map_err(|error| match url {
        None => error.hint("`--workers=URL` names the database for a run whose record is elsewhere"),
        Some(_) => error,
    })?;
    let misspelt = args.limits.iter().filter_map(|(name, _)| session::misspelt_limit(name, &session.project));
    terminal.diagnostics(&misspelt.collect::<Vec<_>>());
    let limits = configured.limits.into_iter().map(|(name, most)| (name, most.value));
    let limits = limits.filter(|(name, _)| args.limits.iter().all(|(typed, _)| typed != name));
    let to_user = terminal.clone();
    let options = CoordinatorOptions {
        settings: settings.clone(),
        limits: args.limits.iter().cloned().chain(limits).collect(),
        patience: Duration::from_millis(args.worker_timeout.or(configured.timeout_ms).unwrap_or(TIMEOUT)),
        same_version: configured.same_version,
        resumed,
        notice: Box::new(move |message| to_user.err(&message)),
    };
    if !is_found_by_others(&settings, session) {
        terminal.err(&format!(
            "note: `status` and `serve` do not show what its trials wait for; `trialrun workers --state {settings}` does\n"
        ));
    }
    let coordinator =
        Coordinator::new(session, planned, options).map_err(|error| CliError::usage(error.to_string()))?;
    for file in coordinator.left_out() {
        terminal.err(&format!("note: not sent to workers: {file}\n"));
    }
    Ok(Some((Arc::new(coordinator), settings)))
}

/// Returns `true` if other commands use the queue in this database, too.
fn is_found_by_others(queue: &Settings, session: &Session) -> bool {
    settings(None, session).is_ok_and(|found| found.to_string() == queue.to_string())
}

/// Returns the database of the queue: `url`, that of the configuration unless `--state` or its variable names another
/// one, or that of the record.
pub fn settings(url: Option<&str>, session: &Session) -> Result<Settings, CliError> {
    let url = match (url, configured_queue(session)) {
        (None, Some(workers)) => queue_of(workers)?,
        (url, _) => url,
    };
    let Some(url) = url else {
        return match &session.state.record {
            Location::Postgres(settings) => Ok((**settings).clone()),
            _ => Err(CliError::usage("workers need a PostgreSQL database, and none is named")
                .hint("write `--state postgres://USER@HOST/NAME`, or set `state` in the configuration")),
        };
    };
    let host = &session.host;
    let surroundings = Surroundings { variable: &|name| host.env.get(name).cloned(), home: host.home.as_deref() };
    let settings = Settings::from_url(url).and_then(|mut settings| settings.complete(&surroundings).map(|()| settings));
    settings.map_err(|error| CliError::usage(error.to_string()))
}

/// Returns `true` if the record or the configuration names a database for a queue.
pub fn has_queue(session: &Session) -> bool {
    configured_queue(session).is_some() || matches!(session.state.record, Location::Postgres(_))
}

/// Returns the workers of the configuration if they name the database of their queue, unless another record was typed.
fn configured_queue(session: &Session) -> Option<&Workers> {
    let configured = session.project.workers.as_ref().filter(|workers| workers.queue.is_some());
    let is_typed = matches!(session.state.from, Layer::CommandLine | Layer::Environment(_));
    configured.filter(|_| !is_typed)
}

/// Returns the URL of the database that the configuration names.
fn queue_of(workers: &Workers) -> Result<Option<&str>, CliError> {
    match workers.missing.first() {
        Some(problem) => Err(CliError::of(problem)),
        None => Ok(workers.queue.as_ref().map(|queue| queue.value.as_str())),
    }
}

/// Returns the workers with what they do, and the runs with what their trials wait for.
///
/// # Errors
/// Returns an error if the queue cannot be read.
pub fn view(queue: &Queue) -> Result<QueueView, QueueError> {
    let held = queue.held()?;
    let worker = |state: WorkerState| {
        let is_own = |trial: &&HeldTrial| trial.host == state.host && trial.pid == state.pid;
        let running = held.iter().filter(is_own).map(|held| (held.run.clone(), held.trial.clone())).collect();
        let WorkerState { host, pid, program, has, slots } = state;
        WorkerView { host, pid, version: program, has, slots, running }
    };
    let run =
        |run: QueuedRun| {
            let waiting = queue.waiting(&run)?.into_iter().map(|WaitingTrials { count, trial, waits_for }| {
                WaitingView { count: usize::try_from(count).unwrap_or(usize::MAX), trial, waits_for }
            });
            let waiting = waiting.collect();
            let QueuedRun { id, label, state, is_coordinated, running, lost, .. } = run;
            Ok(QueuedRunView { id, label, state, is_coordinated, waiting, running, lost })
        };
    let workers = queue.workers()?.into_iter().map(worker).collect();
    Ok(QueueView { workers, runs: queue.runs()?.into_iter().map(run).collect::<Result<_, QueueError>>()? })
}

/// Returns the workers and the runs in the queue as JSON.
pub fn queue_json(view: &QueueView) -> Value {
    let workers = view.workers.iter().map(|worker| {
        let WorkerView { host, pid, version, has, slots, running } = worker;
        let running = running.iter().map(|(run, trial)| json!({"run": run, "trial": trial}));
        let running: Vec<Value> = running.collect();
        json!({"host": host, "pid": pid, "version": version, "has": has, "slots": slots, "running": running})
    });
    let runs = view.runs.iter().map(|run| {
        let running = run.running.iter().map(|(trial, host)| json!({"trial": trial, "host": host}));
        let waiting: usize = run.waiting.iter().map(|waiting| waiting.count).sum();
        let waits = run
            .waiting
            .iter()
            .map(|waiting| json!({"trials": waiting.count, "first": waiting.trial, "for": waiting.waits_for}));
        json!({
            "run": run.id, "label": run.label, "state": run.state, "coordinated": run.is_coordinated,
            "waiting": waiting, "waits": waits.collect::<Vec<_>>(), "running": running.collect::<Vec<_>>(),
            "lost_attempts": run.lost,
        })
    });
    let (workers, runs): (Vec<_>, Vec<_>) = (workers.collect(), runs.collect());
    json!({"schema": "trialrun.workers/1", "workers": workers, "runs": runs})
}

/// Returns the folder in which workers keep the files of projects.
pub fn cache(host: &Host) -> PathBuf {
    let of_user = host.var("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = of_user.or_else(|| Some(host.home.as_ref()?.join(".cache")));
    cache.unwrap_or_else(|| host.temp.clone()).join("trialrun")
}

/// A worker in the process of the coordinator. It ends when it is dropped, after the trials that it runs.
pub struct LocalWorker {
    stop_level: watch::Sender<StopLevel>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl LocalWorker {
    /// Starts a worker that runs `jobs` trials at once.
    pub fn start(settings: Settings, session: &Session, jobs: usize, terminal: &Terminal) -> Result<Self, CliError> {
        let options = WorkerOptions {
            settings,
            host: Arc::clone(&session.host),
            agents: session.agents.clone(),
            labels: Vec::new(),
            jobs,
            until: Until::Stopped,
            cache: cache(&session.host),
            // The run itself reports its trials.
            notice: Arc::new(|_| {}),
        };
        let (stop_level, stops) = watch::channel(StopLevel::No);
        let runtime = runtime(jobs)?;
        let terminal = terminal.clone();
        let thread = std::thread::Builder::new().name("local worker".into());
        let started = thread.spawn(move || {
            if let Err(error) = runtime.block_on(work(options, stops)) {
                terminal.err(&format!("warning: this process runs no more trials: {error}\n"));
            }
        });
        let thread = started.map_err(|error| CliError::environment(format!("cannot start a thread: {error}")))?;
        Ok(Self { stop_level, thread: Some(thread) })
    }
}

impl Drop for LocalWorker {
    fn drop(&mut self) {
        self.stop_level.send_replace(StopLevel::Stop);
        if let Some(thread) = self.thread.take() {
            // A panic was already reported.
            let _ = thread.join();
        }
    }
}

/// Returns the threads of a worker.
pub fn runtime(jobs: usize) -> Result<tokio::runtime::Runtime, CliError> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(jobs.clamp(2, 4))
        .enable_all()
        .build()
        .map_err(|error| CliError::environment(format!("cannot start threads: {error}")))
}

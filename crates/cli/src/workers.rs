//! Workers of a run: the options of the coordinator, and the database of the queue.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use queue::{Coordinator, CoordinatorOptions, Until, WorkerOptions, work};
use runner::StopLevel;
use sandbox::Host;
use session::overrides::{parse_duration, parse_jobs};
use session::{Planned, Session};
use store::Location;
use store::postgres::{Settings, Surroundings};
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
    /// Maximum number of trials that run at once on all machines, by agent, model or AGENT/MODEL
    #[arg(long = "limit", value_name = "NAME=N", requires = "workers", value_parser = parse_limit)]
    pub limits: Vec<(String, u64)>,
    /// Time that a trial waits for a worker that can run it
    #[arg(
        long,
        value_name = "DURATION",
        requires = "workers",
        default_value = "10m",
        value_parser = parse_duration
    )]
    pub worker_timeout: u64,
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

/// Returns the place in which the trials of the plan wait for workers, if the run has some.
pub fn coordinator(
    args: &WorkersArgs,
    session: &Session,
    planned: &Planned,
    terminal: &Terminal,
) -> Result<Option<(Arc<Coordinator>, Settings)>, CliError> {
    let Some(url) = &args.workers else { return Ok(None) };
    let settings = settings(url.as_deref(), session)?;
    let to_user = terminal.clone();
    let options = CoordinatorOptions {
        settings: settings.clone(),
        limits: args.limits.clone(),
        patience: Duration::from_millis(args.worker_timeout),
        notice: Box::new(move |message| to_user.err(&message)),
    };
    let coordinator =
        Coordinator::new(session, planned, options).map_err(|error| CliError::usage(error.to_string()))?;
    for file in coordinator.left_out() {
        terminal.err(&format!("note: not sent to workers: {file}\n"));
    }
    Ok(Some((Arc::new(coordinator), settings)))
}

/// Returns the database of the queue: `url`, or that of the record.
pub fn settings(url: Option<&str>, session: &Session) -> Result<Settings, CliError> {
    let Some(url) = url else {
        return match &session.state.record {
            Location::Postgres(settings) => Ok((**settings).clone()),
            _ => Err(CliError::usage("workers need a PostgreSQL database, and none is named").hint(
                "write `--state postgres://USER@HOST/NAME`, or `--workers=URL` for a run whose record is elsewhere",
            )),
        };
    };
    let host = &session.host;
    let surroundings = Surroundings { variable: &|name| host.env.get(name).cloned(), home: host.home.as_deref() };
    let settings = Settings::from_url(url).and_then(|mut settings| settings.complete(&surroundings).map(|()| settings));
    settings.map_err(|error| CliError::usage(error.to_string()))
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

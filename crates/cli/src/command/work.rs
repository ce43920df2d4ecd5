//! `trialrun work`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use queue::{Until, WorkerOptions, work};
use report::counted;
use runner::{Control, StopLevel};
use session::overrides::{parse_duration, parse_jobs};
use tokio::sync::{mpsc, watch};

use crate::error::CliError;
use crate::global::Global;
use crate::terminal::Terminal;
use crate::workers::{cache, runtime, settings};
use crate::{limits, place, signals};

/// Arguments of `work`.
#[derive(Debug, clap::Args)]
pub struct WorkArgs {
    /// Number of trials to run in parallel [default: number of cores]
    #[arg(long, short, value_name = "N", value_parser = parse_jobs)]
    jobs: Option<usize>,
    /// Label of this worker; a case with the tag `worker:LABEL` runs only on workers with that label
    #[arg(long = "label", value_name = "LABEL")]
    labels: Vec<String>,
    /// End after one trial
    #[arg(long, conflicts_with_all = ["drain", "idle"])]
    once: bool,
    /// End as soon as no run is in progress
    #[arg(long, conflicts_with = "idle")]
    drain: bool,
    /// End after this time without a trial to run
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    idle: Option<u64>,
    /// Folder for the files of projects [default: `trialrun` in the user's cache folder]
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
}

/// Runs trials of other machines' runs.
pub fn run(global: &Global, args: &WorkArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    limits::raise_open_files();
    let session = place::open(global, &[])?;
    let host = Arc::clone(&session.host);
    let jobs = args.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)).max(1);
    let to_user = terminal.clone();
    let options = WorkerOptions {
        settings: settings(None, &session)?,
        host: Arc::clone(&host),
        agents: Vec::new(),
        labels: args.labels.clone(),
        jobs,
        until: match (args.once, args.drain, args.idle) {
            (true, ..) => Until::One,
            (_, true, _) => Until::Drained,
            (.., Some(idle)) => Until::Idle(Duration::from_millis(idle)),
            _ => Until::Stopped,
        },
        cache: std::path::absolute(args.cache.clone().unwrap_or_else(|| cache(&host)))
            .map_err(|error| CliError::usage(format!("cannot use the cache folder: {error}")))?,
        notice: Arc::new(move |message| to_user.out(&message)),
    };
    let finished = runtime(jobs)?.block_on(async {
        let (sender, mut controls) = mpsc::unbounded_channel();
        let (level, stop_level) = watch::channel(StopLevel::No);
        signals::forward(&sender)
            .map_err(|error| CliError::environment(format!("cannot listen to signals: {error}")))?;
        tokio::spawn(async move {
            while let Some(Control::Stop(_)) = controls.recv().await {
                level.send_modify(|level| {
                    *level = if *level == StopLevel::No { StopLevel::Stop } else { StopLevel::Kill };
                });
            }
        });
        work(options, stop_level).await.map_err(|error| CliError::environment(error.to_string()))
    })?;
    terminal.out(&format!("ran {}\n", counted(finished, "trial")));
    Ok(ExitCode::SUCCESS)
}

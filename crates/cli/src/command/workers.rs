//! `trialrun workers`.

use std::process::ExitCode;

use queue::{Queue, QueuedRun, WorkerState};
use report::counted;
use serde_json::json;

use super::pause::failed;
use crate::error::CliError;
use crate::global::Global;
use crate::place;
use crate::terminal::Terminal;
use crate::workers::settings;

/// Arguments of `workers`.
#[derive(Debug, clap::Args)]
pub struct WorkersArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Shows the workers, and the runs in the queue.
pub fn run(global: &Global, args: &WorkersArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let queue = Queue::open(&settings(None, &place::open(global, &[])?)?).map_err(|error| failed(&error))?;
    let (workers, runs) =
        (queue.workers().map_err(|error| failed(&error))?, queue.runs().map_err(|error| failed(&error))?);
    if args.json {
        let workers = workers.iter().map(|worker| {
            let WorkerState { host, pid, program, has, slots } = worker;
            json!({"host": host, "pid": pid, "version": program, "has": has, "slots": slots})
        });
        let runs = runs.iter().map(|run| {
            let running = run.running.iter().map(|(trial, host)| json!({"trial": trial, "host": host}));
            json!({
                "run": run.id, "label": run.label, "state": run.state, "coordinated": run.is_coordinated,
                "waiting": run.waiting, "running": running.collect::<Vec<_>>(), "lost_attempts": run.lost,
            })
        });
        let (workers, runs): (Vec<_>, Vec<_>) = (workers.collect(), runs.collect());
        terminal.json(&json!({"schema": "trialrun.workers/1", "workers": workers, "runs": runs}));
        return Ok(ExitCode::SUCCESS);
    }
    let slots: u64 = workers.iter().map(|worker| worker.slots).sum();
    terminal.out(&format!("{}, {} slots\n", counted(workers.len(), "worker"), slots));
    for worker in &workers {
        terminal.out(&describe(worker));
    }
    for run in &runs {
        terminal.out(&progress(run));
    }
    Ok(ExitCode::SUCCESS)
}

fn describe(worker: &WorkerState) -> String {
    let of = |kind: &str| {
        let names = worker.has.iter().filter_map(|has| has.strip_prefix(kind));
        names.collect::<Vec<_>>().join(", ")
    };
    let WorkerState { host, pid, program, slots, .. } = worker;
    let labels = Some(of("label:")).filter(|labels| !labels.is_empty());
    let labels = labels.map(|labels| format!("; labels: {labels}")).unwrap_or_default();
    let (agents, sandboxes) = (of("agent:"), of("sandbox:"));
    format!("  {host} (process {pid}, trialrun {program}, {slots} slots): {agents}; sandboxes: {sandboxes}{labels}\n")
}

fn progress(run: &QueuedRun) -> String {
    let name = run.label.as_deref().unwrap_or(&run.id);
    let coordinator = if run.is_coordinated { "" } else { ", its coordinator does not answer" };
    let lost = match run.lost {
        0 => String::new(),
        lost => format!(", {lost} lost attempts"),
    };
    let (state, waiting) = (&run.state, run.waiting);
    let mut text = format!("{name}: {state}{coordinator}, {waiting} waiting, {} running{lost}\n", run.running.len());
    for (trial, host) in &run.running {
        text.push_str(&format!("  {trial} on {host}\n"));
    }
    text
}

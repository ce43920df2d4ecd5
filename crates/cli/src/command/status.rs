//! `trialrun status`.

use std::process::ExitCode;

use report::StatusView;
use serde_json::json;
use store::{Store, TrialFilter};

use crate::error::CliError;
use crate::global::Global;
use crate::machine;
use crate::project::Workplace;
use crate::terminal::Terminal;

/// Arguments of `status`.
#[derive(Debug, clap::Args)]
pub struct StatusArgs {
    /// The front of a run's id, a label, `latest` or `previous`
    #[arg(value_name = "RUN", default_value = "latest")]
    run: String,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Shows what happened in a run, or what each of its trials waits for.
pub fn run(global: &Global, args: &StatusArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let store = Workplace::find(global, &[])?.read_store()?;
    let run = store.select(&args.run)?;
    let trials = store.trials(&TrialFilter::of_run(&run.id))?;
    let live = store.live(&run.id)?;
    let alive = run.finished_at.is_none() && run.owner_pid.is_some_and(machine::is_alive);
    if args.json {
        terminal
            .json(&json!({"schema": "trialrun.status/1", "run": run, "alive": alive, "live": live, "trials": trials}));
    } else {
        let now = jiff::Timestamp::now();
        let view = StatusView { run: &run, trials: &trials, live: &live, alive, now };
        terminal.out(&report::status(&view, &terminal.out_style));
    }
    Ok(ExitCode::SUCCESS)
}

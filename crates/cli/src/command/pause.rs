//! `trialrun pause`, `trialrun continue` and `trialrun cancel`: control of runs whose trials workers run.

use std::process::ExitCode;

use queue::{Queue, QueuedRun};
use session::overrides::parse_positive;

use crate::error::CliError;
use crate::global::Global;
use crate::place;
use crate::terminal::Terminal;
use crate::workers::settings;

/// Arguments of `pause`.
#[derive(Debug, clap::Args)]
pub struct PauseArgs {
    /// Run in the queue: prefix of its id, or label [default: the only one in progress]
    #[arg(value_name = "RUN")]
    run: Option<String>,
}

/// Arguments of `continue`.
#[derive(Debug, clap::Args)]
pub struct ContinueArgs {
    /// Run in the queue: prefix of its id, or label [default: the only one in progress]
    #[arg(value_name = "RUN")]
    run: Option<String>,
    /// New limit of the run in US dollars, which must not be used up yet
    #[arg(long, value_name = "USD", value_parser = parse_positive)]
    max_run_cost: Option<f64>,
    /// New limit of the run in tokens, which must not be used up yet
    #[arg(long, value_name = "N", value_parser = parse_positive)]
    max_run_tokens: Option<f64>,
}

/// Arguments of `cancel`.
#[derive(Debug, clap::Args)]
pub struct CancelArgs {
    /// Trial to cancel, such as `suite::case@agent#1` [default: all trials of the run]
    #[arg(value_name = "TRIAL")]
    trial: Option<String>,
    /// Run in the queue: prefix of its id, or label [default: the only one in progress]
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
}

/// Lets workers start no more trials of a run.
pub fn pause(global: &Global, args: &PauseArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let (queue, run) = find(global, args.run.as_deref())?;
    let line = match queue.pause(&run.id).map_err(|error| failed(&error))? {
        true => format!("paused {}; trials that run already end as usual\n", run.id),
        false => format!("{} is {}, so nothing has changed\n", run.id, run.state),
    };
    terminal.out(&line);
    Ok(ExitCode::SUCCESS)
}

/// Lets workers start trials of a paused run again, and changes the limits of a run.
pub fn resume(global: &Global, args: &ContinueArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let (queue, run) = find(global, args.run.as_deref())?;
    let (cost, tokens) = (args.max_run_cost, args.max_run_tokens);
    if (cost.is_some() || tokens.is_some())
        && queue.set_budget(&run.id, cost, tokens).map_err(|error| failed(&error))?
    {
        terminal.out(&format!("changed the budget of {}\n", run.id));
        if run.state != "paused" {
            return Ok(ExitCode::SUCCESS);
        }
    }
    let line = match queue.resume(&run.id).map_err(|error| failed(&error))? {
        true => format!("continued {}\n", run.id),
        false => format!("{} is {}, so nothing has changed\n", run.id, run.state),
    };
    terminal.out(&line);
    Ok(ExitCode::SUCCESS)
}

/// Stops a run, or one of its trials.
pub fn cancel(global: &Global, args: &CancelArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let (queue, run) = find(global, args.run.as_deref())?;
    let line = match &args.trial {
        Some(trial) => format!("cancelled {}\n", cancel_trial(&queue, &run, trial)?),
        None if queue.cancel(&run.id).map_err(|error| failed(&error))? => format!("cancelled {}\n", run.id),
        None => format!("{} is {}, so nothing has changed\n", run.id, run.state),
    };
    terminal.out(&line);
    Ok(ExitCode::SUCCESS)
}

/// Stops the trial of the run with that name, which may lack its arm. Returns its full name.
///
/// # Errors
/// Returns an error if no trial or several trials in the queue have the name.
pub fn cancel_trial(queue: &Queue, run: &QueuedRun, trial: &str) -> Result<String, CliError> {
    let mut named = queue.cancel_trial(&run.id, trial).map_err(|error| failed(&error))?;
    match named.len() {
        1 => Ok(named.swap_remove(0)),
        0 => Err(CliError::usage(format!("no trial {trial} of the run {} is in the queue", run.id))
            .hint("`trialrun workers` lists the trials that run; of a large run, only the next ones are in the queue")),
        count => Err(CliError::usage(format!("{count} trials are called {trial}, so name the arm, too"))
            .hint(format!("trials: {}", named.join(", ")))),
    }
}

/// Returns the queue, and the run in it.
fn find(global: &Global, wanted: Option<&str>) -> Result<(Queue, QueuedRun), CliError> {
    let queue = Queue::open(&settings(None, &place::open(global, &[])?)?).map_err(|error| failed(&error))?;
    let run = choose(queue.runs().map_err(|error| failed(&error))?, wanted)?;
    Ok((queue, run))
}

/// Returns the run in the queue to which `wanted` refers, or the only one.
///
/// # Errors
/// Returns an error if there is no such run, or if there are several.
pub fn choose(mut runs: Vec<QueuedRun>, wanted: Option<&str>) -> Result<QueuedRun, CliError> {
    if let Some(wanted) = wanted {
        runs.retain(|run| run.id.starts_with(wanted) || run.label.as_deref() == Some(wanted));
    }
    match runs.len() {
        1 => Ok(runs.swap_remove(0)),
        0 => Err(CliError::nothing(match wanted {
            Some(wanted) => format!("no run in the queue is called `{wanted}`"),
            None => "no run is in the queue".to_owned(),
        })),
        count => {
            let names: Vec<&str> = runs.iter().map(|run| run.id.as_str()).collect();
            Err(CliError::usage(format!("{count} runs are in the queue, so name one of them"))
                .hint(format!("runs: {}", names.join(", "))))
        }
    }
}

/// Returns an error of the queue as that of a command.
pub fn failed(error: &queue::QueueError) -> CliError {
    CliError::environment(error.to_string())
}

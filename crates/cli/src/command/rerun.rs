//! `trialrun rerun`.

use std::path::Path;
use std::process::ExitCode;

use model::TrialRow;
use store::{Store, TrialFilter, select_trial};

use crate::command::run::{Origin, run_planned};
use crate::error::CliError;
use crate::global::Global;
use crate::recorded_arguments::repeats_trial;
use crate::recorded_trial::{Changes, RecordedTrial};
use crate::terminal::Terminal;
use crate::workers::WorkersArgs;
use crate::{limits, machine, place};

/// Arguments of `rerun`.
#[derive(Debug, clap::Args)]
pub struct RerunArgs {
    /// Id or case of a recorded trial, or a prefix of either; `RUN/TRIAL` selects a run
    #[arg(value_name = "TRIAL")]
    trial: String,
    /// Number of the agent's request to its model, from 1, from which the model is asked. The answers to earlier requests
    /// are replayed
    #[arg(long, value_name = "STEP", value_parser = clap::value_parser!(u64).range(1..))]
    from: u64,
    /// Model that answers from then on
    #[arg(long, short, value_name = "MODEL")]
    model: Option<String>,
    /// System prompt in place of that of the case; `@FILE` reads it from a file
    #[arg(long, value_name = "TEXT|@FILE")]
    system: Option<String>,
    /// Number of times to go on from there
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    times: u64,
}

/// Replays a recorded trial up to a step, and continues from there with the model.
pub fn run(global: &Global, args: &RerunArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    limits::raise_open_files();
    let system_prompt = args.system.as_deref().map(text).transpose()?;
    let here = place::open(global, &[])?;
    let store = here.read_store()?;
    let row = trial_of(&*store, &args.trial)?;
    let trial = RecordedTrial::find(&here, &*store, row)?;
    let turns = trial.turns();
    let from = usize::try_from(args.from).unwrap_or(usize::MAX);
    // Without a request to ask about, the trial would only be replayed.
    if from > turns {
        let known = report::counted(turns, "request");
        return Err(CliError::usage(format!("the trial {} has no step {from}: its agent sent {known}", trial.row.id))
            .maybe_hint((turns > 0).then(|| format!("`--from {turns}` replaces only its last answer"))));
    }
    let label = format!("rerun of {} from step {from}", trial.row.id);
    let changes = Changes { times: args.times, model: args.model.clone(), system_prompt, label, arm: None };
    let arguments = trial.arguments(from - 1, &changes);
    let (session, planned) = trial.plan(&here, &arguments, &changes)?;
    terminal.err(&format!(
        "repeating {} of {}, then asking the model\n",
        report::counted(from - 1, "answer"),
        trial.row.id
    ));
    let (origin, workers) = (Origin::Command(machine::arguments()), WorkersArgs::default());
    run_planned(&arguments, &session, planned, origin, &workers, terminal)
}

/// Returns the trial to which `wanted` refers. Unless it names a run, runs that repeated a trial themselves are passed
/// over, because they cannot be repeated.
fn trial_of(store: &dyn Store, wanted: &str) -> Result<TrialRow, CliError> {
    let newest = store.select_trial(wanted)?;
    if wanted.split_once('/').is_some_and(|(run, _)| store.select(run).is_ok_and(|run| run.id == newest.run)) {
        return Ok(newest);
    }
    let named = TrialFilter { named: Some(wanted.to_owned()), ..TrialFilter::default() };
    let mut runs: Vec<String> = store.trials(&named)?.into_iter().map(|row| row.run).collect();
    runs.dedup();
    for run in runs {
        if repeats_trial(&store.info(&run)?) {
            continue;
        }
        let mut trials = store.trials(&TrialFilter::of_run(&run))?;
        if let Ok(found) = select_trial(&trials, wanted) {
            return Ok(trials.swap_remove(found));
        }
    }
    Ok(newest)
}

/// Maximum size of a file with a system prompt, in bytes.
const MAX_PROMPT_BYTES: u64 = 16 << 20;

/// Returns the text, or the content of the file if it is written as `@FILE`.
fn text(written: &str) -> Result<String, CliError> {
    match written.strip_prefix('@') {
        Some(file) => files::read_named_text(Path::new(file), MAX_PROMPT_BYTES)
            .map_err(|error| CliError::usage(format!("cannot read the system prompt {file}: {error}"))),
        None => Ok(written.to_owned()),
    }
}

//! `trialrun show`.

use std::process::ExitCode;

use model::TrialRow;
use store::{Store, TrialFilter};

use crate::error::CliError;
use crate::global::Global;
use crate::project::ProjectContext;
use crate::terminal::Terminal;

/// Arguments of `show`.
#[derive(Debug, clap::Args)]
pub struct ShowArgs {
    /// Id or case of a trial, or a prefix of either; `RUN/TRIAL` selects a run. If a case has several trials, a failed
    /// one is shown first
    #[arg(value_name = "TRIAL")]
    trial: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Shows one trial.
pub fn run(global: &Global, args: &ShowArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let store = ProjectContext::find(global, &[])?.read_store()?;
    let row = store.select_trial(&args.trial)?;
    let record = store.trial(&row.run, &row.id)?;
    let events: Vec<_> =
        store.trial_events(&row.run, &row.id)?.into_iter().filter_map(store::StoredEvent::known).collect();
    if args.json {
        terminal.json(&report::show_json(&record, &events, &row.run));
    } else {
        terminal.out(&report::show(&record, &events, &row.run, &terminal.out_style));
        terminal.out(&others(&*store, &row, &args.trial)?);
    }
    Ok(ExitCode::SUCCESS)
}

/// Lists the other trials of the same case, unless this one was named by its id.
fn others(store: &dyn Store, shown: &TrialRow, wanted: &str) -> Result<String, CliError> {
    let of_case = TrialFilter {
        suite: Some(shown.suite.clone()),
        case: Some(shown.case.clone()),
        ..TrialFilter::of_run(&shown.run)
    };
    let mut trials = store.trials(&of_case)?;
    trials.retain(|trial| trial.id != shown.id);
    if trials.is_empty() || wanted.ends_with(&shown.id) {
        return Ok(String::new());
    }
    trials.sort_by(|a, b| a.id.cmp(&b.id));
    let lines = trials.iter().map(|trial| format!("  {:9}  {}\n", trial.outcome.name(), trial.id));
    Ok(std::iter::once("\nother trials of this case\n".to_owned()).chain(lines).collect())
}

//! `trialrun show`.

use std::process::ExitCode;

use store::Store;

use crate::error::CliError;
use crate::global::Global;
use crate::project::Workplace;
use crate::terminal::Terminal;

/// Arguments of `show`.
#[derive(Debug, clap::Args)]
pub struct ShowArgs {
    /// A trial's id, its case, or the front of either; `RUN/TRIAL` for one of a certain run
    #[arg(value_name = "TRIAL")]
    trial: String,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Shows one trial.
pub fn run(global: &Global, args: &ShowArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let store = Workplace::find(global, &[])?.read_store()?;
    let row = store.select_trial(&args.trial)?;
    let record = store.trial(&row.run, &row.id)?;
    let events: Vec<_> =
        store.trial_events(&row.run, &row.id)?.into_iter().filter_map(store::StoredEvent::known).collect();
    if args.json {
        terminal.json(&report::show_json(&record, &events, &row.run));
    } else {
        terminal.out(&report::show(&record, &events, &row.run, &terminal.out_style));
    }
    Ok(ExitCode::SUCCESS)
}

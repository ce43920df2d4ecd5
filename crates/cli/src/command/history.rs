//! `trialrun history`.

use std::process::ExitCode;

use store::{Store, TrialFilter};

use crate::error::CliError;
use crate::global::Global;
use crate::project::Workplace;
use crate::terminal::Terminal;

/// Arguments of `history`.
#[derive(Debug, clap::Args)]
pub struct HistoryArgs {
    /// Only trials of this suite or skill
    #[arg(value_name = "SUITE")]
    suite: Option<String>,
    /// Only trials of this case
    #[arg(long = "case", alias = "scenario", value_name = "ID")]
    case: Option<String>,
    /// How many
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    last: u32,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Lists recorded trials, newest first.
pub fn run(global: &Global, args: &HistoryArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let workplace = Workplace::find(global, &[])?;
    let filter = TrialFilter {
        suite: args.suite.clone(),
        case: args.case.clone(),
        last: usize::try_from(args.last).ok(),
        ..TrialFilter::default()
    };
    // Where nothing was ever run, the history is empty; that is no error.
    let trials = workplace.find_store()?.map_or_else(|| Ok(Vec::new()), |store| store.trials(&filter))?;
    if args.json {
        terminal.json(&report::history_json(&trials));
    } else {
        terminal.out(&report::history(&trials, &terminal.out_style));
    }
    Ok(ExitCode::SUCCESS)
}

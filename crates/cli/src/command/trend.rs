//! `trialrun trend`.

use std::process::ExitCode;

use serde_json::json;
use store::TrialFilter;

use crate::error::CliError;
use crate::global::Global;
use crate::project::ProjectContext;
use crate::terminal::Terminal;

/// Arguments of `trend`.
#[derive(Debug, clap::Args)]
pub struct TrendArgs {
    /// Show only trials of this suite or skill
    #[arg(value_name = "SUITE")]
    suite: Option<String>,
    /// Show only trials of this case
    #[arg(long = "case", alias = "scenario", value_name = "ID")]
    case: Option<String>,
    /// Number of trials to include
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..))]
    last: u32,
    /// Print the trials behind the figures as JSON
    #[arg(long)]
    json: bool,
}

/// Shows pass rate, tokens, cost and time over runs.
pub fn run(global: &Global, args: &TrendArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let store = ProjectContext::find(global, &[])?.read_store()?;
    let trials = store.trials(&TrialFilter {
        suite: args.suite.clone(),
        case: args.case.clone(),
        last: usize::try_from(args.last).ok(),
        ..TrialFilter::default()
    })?;
    if trials.is_empty() {
        super::history::named(&*store, args.suite.as_deref(), args.case.as_deref())?;
    }
    if args.json {
        terminal.json(&json!({"schema": "trialrun.trend/1", "trials": trials}));
    } else {
        terminal.out(&report::trend(&trials, &terminal.out_style));
    }
    Ok(ExitCode::SUCCESS)
}

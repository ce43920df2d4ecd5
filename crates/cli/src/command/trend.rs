//! `trialrun trend`.

use std::process::ExitCode;

use report::TrendOf;
use store::ResultFilter;

use crate::error::CliError;
use crate::global::Global;
use crate::place;
use crate::terminal::Terminal;

/// Number of runs that are searched for flaky cases.
const SEARCHED: usize = 50;

/// Arguments of `trend`.
#[derive(Debug, clap::Args)]
pub struct TrendArgs {
    /// Count only trials of this suite or skill
    #[arg(value_name = "SUITE")]
    suite: Option<String>,
    /// Count only trials of this case
    #[arg(long = "case", alias = "scenario", value_name = "ID")]
    case: Option<String>,
    /// Number of runs to show
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    last: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Shows the pass rate, tokens, cost and time of each run, and the flaky cases.
pub fn run(global: &Global, args: &TrendArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let store = place::open(global, &[])?.read_store()?;
    let last = usize::try_from(args.last).ok();
    let (suite, case) = super::history::selected(Some(&*store), args.suite.as_deref(), args.case.as_deref())?;
    let runs = store.results(&ResultFilter { suite: suite.clone(), case: case.clone(), last, with_cases: SEARCHED })?;
    if runs.is_empty() {
        super::history::named(&*store, suite.as_deref(), case.as_deref())?;
    }
    let of = match (&suite, &case) {
        (_, Some(_)) => TrendOf::Cases,
        (Some(_), None) => TrendOf::Suite,
        (None, None) => TrendOf::Runs,
    };
    if args.json {
        terminal.json(&report::trend_json(&runs, of));
    } else {
        terminal.out(&report::trend(&runs, of, &terminal.out_style));
    }
    Ok(ExitCode::SUCCESS)
}

//! `trialrun compare`.

use std::process::ExitCode;

use report::Comparison;
use serde_json::json;
use store::{Store, TrialFilter};

use crate::error::CliError;
use crate::exit;
use crate::global::Global;
use crate::project::Workplace;
use crate::run_args::parse_share;
use crate::terminal::Terminal;

/// Arguments of `compare`.
#[derive(Debug, clap::Args)]
pub struct CompareArgs {
    /// The run before: the front of its id, a label, `latest` or `previous` [default: previous]
    #[arg(value_name = "A")]
    a: Option<String>,
    /// The run after [default: latest]
    #[arg(value_name = "B")]
    b: Option<String>,
    /// The run before, as an option
    #[arg(long, value_name = "A", conflicts_with = "a")]
    before: Option<String>,
    /// The run after, as an option
    #[arg(long, value_name = "B", conflicts_with = "b")]
    after: Option<String>,
    /// By how much a mean score may fall, from 0 to 1 [default: the project's, else 0.05]
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    threshold: Option<f64>,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Shows two runs side by side; exits with 1 on a regression.
pub fn run(global: &Global, args: &CompareArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let wanted = |given: &Option<String>, option: &Option<String>, default: &str| {
        given.clone().or_else(|| option.clone()).unwrap_or_else(|| default.to_owned())
    };
    let workplace = Workplace::find(global, &[])?;
    let configured = workplace.project.regression_threshold.as_ref().map(|set| set.value);
    let threshold = args.threshold.or(configured).unwrap_or(report::THRESHOLD);
    let store = workplace.read_store()?;
    let before = store.select(&wanted(&args.a, &args.before, "previous"))?;
    let after = store.select(&wanted(&args.b, &args.after, "latest"))?;
    let trials = |run: &str| store.trials(&TrialFilter::of_run(run));
    let comparison = Comparison::of(&trials(&before.id)?, &trials(&after.id)?, threshold);
    if args.json {
        terminal.json(&json!({
            "schema": "trialrun.compare/1",
            "before": before,
            "after": after,
            "threshold": threshold,
            "cases": comparison.to_json(),
        }));
    } else {
        terminal.out(&comparison.draw(&before, &after, &terminal.out_style));
    }
    Ok(ExitCode::from(if comparison.has_regressions() { exit::FAILED } else { exit::PASSED }))
}

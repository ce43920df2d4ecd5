//! `trialrun compare`.

use std::process::ExitCode;

use clap::ValueEnum;
use model::TrialRow;
use report::Comparison;
use serde_json::json;
use store::TrialFilter;

use crate::error::CliError;
use crate::exit;
use crate::global::Global;
use crate::project::ProjectContext;
use crate::run_args::parse_share;
use crate::terminal::Terminal;
use crate::workspace::WorkspaceArgs;

/// Arguments of `compare`.
#[derive(Debug, clap::Args)]
pub struct CompareArgs {
    /// Run before: prefix of its id, label, `latest` or `previous` [default: previous]
    #[arg(value_name = "A")]
    a: Option<String>,
    /// Run after [default: latest]
    #[arg(value_name = "B")]
    b: Option<String>,
    /// Run before, as an option
    #[arg(long, value_name = "A", conflicts_with = "a")]
    before: Option<String>,
    /// Run after, as an option
    #[arg(long, value_name = "B", conflicts_with = "b")]
    after: Option<String>,
    #[command(flatten)]
    place: WorkspaceArgs,
    /// Maximum drop of a mean score, from 0 to 1, that does not count as a regression [default: the project's, else 0.05]
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    threshold: Option<f64>,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "terminal")]
    format: Format,
    /// Print JSON, the same as `--format json`
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    #[value(alias = "table")]
    Terminal,
    /// One JSON document.
    Json,
}

/// Maximum number of trials for which arms are shown: each of their trials must be read completely.
const READ_WHOLE: usize = 2_000;

/// Compares two runs; exits with 1 on a regression.
pub fn run(global: &Global, args: &CompareArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let wanted = |given: &Option<String>, option: &Option<String>, default: &str| {
        args.place.find(global, given.as_deref().or(option.as_deref()), default)
    };
    let context = ProjectContext::find(global, &[])?;
    let configured = context.project.regression_threshold.as_ref().map(|set| set.value);
    let threshold = args.threshold.or(configured).unwrap_or(report::THRESHOLD);
    let (old, before) = wanted(&args.a, &args.before, "previous")?;
    let (new, after) = wanted(&args.b, &args.after, "latest")?;
    let (was, is) = (old.trials(&TrialFilter::of_run(&before.id))?, new.trials(&TrialFilter::of_run(&after.id))?);
    let (had, has) = (old.info(&before.id)?.skills, new.info(&after.id)?.skills);
    let mut comparison = Comparison::of(&was, &is, threshold).with_skills(&had, &has);
    if [&was, &is].into_iter().any(|trials| has_arms(trials)) && was.len().max(is.len()) <= READ_WHOLE {
        let (was, is) = (super::status::details(&*old, &before)?, super::status::details(&*new, &after)?);
        comparison = comparison.with_arms(&was.figures, &is.figures, &is.agents);
    }
    if args.json || args.format == Format::Json {
        terminal.json(&json!({
            "schema": "trialrun.compare/1",
            "before": before,
            "after": after,
            "threshold": threshold,
            "cases": comparison.to_json(),
            "arms": comparison.arms_to_json(),
            "skills": comparison.skills_to_json(),
        }));
    } else {
        terminal.out(&comparison.draw(&before, &after, &terminal.out_style));
    }
    Ok(ExitCode::from(if comparison.has_regressions() { exit::FAILED } else { exit::PASSED }))
}

/// Returns `true` if a run has several arms, or one with a variant.
fn has_arms(trials: &[TrialRow]) -> bool {
    trials.iter().any(|trial| trial.variant.is_some() || trial.arm != trials[0].arm)
}

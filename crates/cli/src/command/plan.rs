//! `trialrun plan`: shows what the trials of a run can prove, and estimates the time and the cost.

mod forecast;
pub(crate) mod history;
mod text;

use std::process::ExitCode;

use runner::Plan;
use serde_json::{Value, json};
use session::Session;

use crate::error::CliError;
use crate::exit;
use crate::global::Global;
use crate::place;
use crate::reports::refuse_on_stdout;
use crate::terminal::Terminal;
use session::overrides::Overrides;

use self::forecast::Forecast;
use self::history::History;

/// Arguments of `plan`.
#[derive(Debug, clap::Args)]
pub struct PlanArgs {
    /// Print JSON
    // Placed before the groups of `run`, because otherwise it would appear under their last heading.
    #[arg(long)]
    json: bool,
    /// Files, directories and options of the run
    #[command(flatten)]
    run: Overrides,
}

/// Prints what a run can show, before it spends anything.
pub fn run(global: &Global, args: &PlanArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    refuse_on_stdout(&args.run.output.report, "plan")?;
    let (session, prepared) = place::plan(global, &args.run)?;
    let plan = &prepared.plan;
    // A run would continue without these files, but the figures would not be those of the user's tests.
    let unloaded = plan.trials.iter().flat_map(|trial| &trial.case.broken);
    let mut problems = prepared.diagnostics.clone();
    for problem in unloaded {
        if !problems.contains(problem) {
            problems.push(problem.clone());
        }
    }
    terminal.diagnostics(&problems);
    terminal.notes(prepared.spec.notes());
    if problems.iter().any(|problem| args.run.gates.strict || problem.is_error()) {
        return Ok(ExitCode::from(exit::INVALID));
    }
    if plan.trials.is_empty() {
        return Err(prepared.nothing_selected());
    }
    let (text, json) = forecast(&session, plan)?;
    if args.json {
        terminal.json(&json);
    } else {
        terminal.out(&text);
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns what a run can show, as text and as JSON.
///
/// # Errors
/// Returns an error if the record cannot be read.
pub fn forecast(session: &Session, plan: &Plan) -> Result<(String, Value), CliError> {
    let history = match session.find_store()? {
        Some(store) => History::read(&*store, plan)?,
        None => History::default(),
    };
    let forecast = Forecast::of(plan, &history, plan.settings.jobs);
    let max_run_cost = plan.settings.limits.max_run_cost;
    let json = json!({ "schema": "trialrun.plan/1", "plan": forecast, "max_run_cost_usd": max_run_cost });
    Ok((text::text(&forecast, max_run_cost), json))
}

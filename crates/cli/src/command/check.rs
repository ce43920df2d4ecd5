//! `trialrun check`.

use std::process::ExitCode;

use clap::ValueEnum;
use model::Diagnostic;
use serde_json::json;

use super::run::nothing_selected;
use crate::error::CliError;
use crate::exit;
use crate::global::Global;
use crate::preparation;
use crate::run_args::RunArgs;
use crate::terminal::Terminal;

/// Arguments of `check`.
#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    /// Files, directories or skills; without one, every skill of the project and its folders `scenarios` and `tests`
    #[arg(value_name = "PATH|SKILL")]
    targets: Vec<String>,
    /// A suite of a skill, as if it were given by itself
    #[arg(long, value_name = "FILE")]
    evals: Vec<String>,
    /// The skill that suites of skills are about
    #[arg(long, value_name = "DIR")]
    skill: Option<String>,
    /// Only trials of cases with this id; everything that is read is checked all the same
    #[arg(long = "case", aliases = ["scenario", "eval-id"], value_name = "ID")]
    cases: Vec<String>,
    /// Warnings count as errors, and what suites of skills leave open is told
    #[arg(long)]
    strict: bool,
    /// For people or for programs
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Format,
    /// Check as if this agent were to run the cases
    #[arg(long, value_name = "NAME")]
    agent: Vec<String>,
    /// Check as if with this model
    #[arg(long, value_name = "[AGENT=]MODEL")]
    model: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Drawn with the lines they are about.
    Text,
    /// One JSON document.
    Json,
}

/// Reads and compiles everything, and reports every problem.
pub fn run(global: &Global, args: &CheckArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let run_args = RunArgs {
        targets: args.targets.clone(),
        evals: args.evals.clone(),
        skill: args.skill.clone(),
        cases: args.cases.clone(),
        agent: args.agent.clone(),
        model: args.model.clone(),
        ..RunArgs::default()
    };
    check(global, &run_args, args.strict, args.format == Format::Json, terminal)
}

/// Checks what `run` would run with the same arguments.
pub fn check(
    global: &Global,
    args: &RunArgs,
    strict: bool,
    as_json: bool,
    terminal: &Terminal,
) -> Result<ExitCode, CliError> {
    let prepared = preparation::prepare(global, args)?;
    let preparation::Prepared { plan, mut diagnostics, design, nearest_case, .. } = prepared;
    diagnostics.extend(design.into_iter().filter(|_| strict));
    // A run goes on without them.
    for problem in plan.trials.iter().flat_map(|trial| &trial.case.broken) {
        if !diagnostics.contains(problem) {
            diagnostics.push(problem.clone());
        }
    }
    let errors = diagnostics.iter().filter(|problem| problem.is_error()).count();
    let warnings = diagnostics.len() - errors;
    let invalid = errors > 0 || (strict && warnings > 0);
    let is_misnamed = plan.trials.is_empty() && !args.cases.is_empty() && errors == 0;
    if is_misnamed && !as_json {
        terminal.diagnostics(&diagnostics);
        return Err(nothing_selected(args, &plan, nearest_case.as_deref()));
    }
    if as_json {
        terminal.json(&json!({
            "schema": "trialrun.check/1",
            "valid": !invalid,
            "cases": plan.cases_loaded,
            "trials": plan.trials.len(),
            "errors": errors,
            "warnings": warnings,
            "problems": diagnostics,
        }));
    } else {
        terminal.diagnostics(&diagnostics);
        if !invalid {
            let mut cases: Vec<(&str, &str)> =
                plan.trials.iter().map(|trial| (trial.id.suite.as_str(), trial.id.case.as_str())).collect();
            cases.dedup();
            terminal.out(&format!(
                "{} and {} are fine{}; nothing was run\n",
                count(cases.len(), "case"),
                count(plan.trials.len(), "trial"),
                if warnings > 0 { format!(", with {}", count(warnings, "warning")) } else { String::new() }
            ));
        }
    }
    let nothing = plan.trials.is_empty() && diagnostics.iter().all(|problem: &Diagnostic| !problem.is_error());
    // The program ends here. Giving a plan of ten thousand cases back piece by piece takes a fifth of its time.
    std::mem::forget(plan);
    Ok(ExitCode::from(if invalid {
        exit::INVALID
    } else if nothing {
        exit::NOTHING
    } else {
        exit::PASSED
    }))
}

/// `1 case`, `2 cases`.
pub fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

//! `trialrun check`.

use std::collections::{BTreeMap, HashSet};
use std::process::ExitCode;

use clap::ValueEnum;
use model::{CassetteMode, Diagnostic, Excerpt, WITHOUT_SKILL};
use report::{columns, counted};
use runner::{CassetteSettings, Plan};
use serde::Serialize;
use serde_json::{Value, json};

use crate::ci::folder_in_repository;
use session::Planned;
use suite::{Coverage, Treatment};

use crate::error::CliError;
use crate::exit;
use crate::global::Global;
use crate::place;
use crate::reports::{self, requested};
use crate::terminal::Terminal;
use session::overrides::{ArmArgs, CassetteArgs, Overrides, SelectionArgs};

/// Arguments of `check`.
#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    /// Files, directories or skills to check [default: all skills of the project, `scenarios` and `tests`]
    #[arg(value_name = "PATH|SKILL")]
    targets: Vec<String>,
    /// Skill evaluation to read, same as PATH
    #[arg(long, value_name = "FILE")]
    evals: Vec<String>,
    /// Skill to evaluate
    #[arg(long, value_name = "DIR")]
    skill: Option<String>,
    /// Count only trials of cases with this id; all files are still checked
    #[arg(long = "case", aliases = ["scenario", "eval-id"], value_name = "ID")]
    cases: Vec<String>,
    /// Treat warnings as errors, and report weaknesses of skill evaluations
    #[arg(long)]
    strict: bool,
    /// For each claim, show the assertions that it compiles to, or that a judge decides it
    #[arg(long, short)]
    verbose: bool,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Format,
    /// Check as if this agent ran the cases
    #[arg(long, value_name = "NAME")]
    agent: Vec<String>,
    /// Check as if this model were used
    #[arg(long, value_name = "[AGENT=]MODEL")]
    model: Vec<String>,
    /// Recorded answers of models to check the cases with, same as for `run`
    #[command(flatten)]
    cassettes: CassetteArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Text with the lines that contain the problems.
    Text,
    /// A JSON document.
    Json,
    /// A SARIF document, for code scanning.
    Sarif,
}

/// Reads and compiles everything, and reports every problem.
pub fn run(global: &Global, args: &CheckArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let run_args = Overrides {
        targets: args.targets.clone(),
        selection: SelectionArgs {
            evals: args.evals.clone(),
            skill: args.skill.clone(),
            cases: args.cases.clone(),
            ..SelectionArgs::default()
        },
        arms: ArmArgs { agent: args.agent.clone(), model: args.model.clone(), ..ArmArgs::default() },
        cassettes: args.cassettes.clone(),
        ..Overrides::default()
    };
    let output = match (args.format, args.verbose) {
        (Format::Json, _) => Output::Json,
        (Format::Sarif, _) => Output::Sarif,
        (Format::Text, true) => Output::Verbose,
        (Format::Text, false) => Output::Brief,
    };
    check_as(global, &run_args, args.strict, output, terminal)
}

/// Output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Output {
    /// Problems, and a short summary of the files read.
    Brief,
    /// The same, with the cases that would run.
    Listed,
    /// The same as `Brief`, with the decision for each claim.
    Verbose,
    /// Everything as JSON.
    Json,
    /// The problems as SARIF.
    Sarif,
}

/// Checks what `run` would run with the same arguments.
pub fn check(global: &Global, args: &Overrides, terminal: &Terminal) -> Result<ExitCode, CliError> {
    reports::check_files(&requested(&args.output.report)?)?;
    check_as(global, args, args.gates.strict, Output::Listed, terminal)
}

fn check_as(
    global: &Global,
    args: &Overrides,
    strict: bool,
    output: Output,
    terminal: &Terminal,
) -> Result<ExitCode, CliError> {
    let is_text = matches!(output, Output::Brief | Output::Listed | Output::Verbose);
    let (session, mut planned) = place::plan(global, args)?;
    terminal.notes(planned.spec.notes());
    let mut diagnostics = problems(&planned, strict);
    if output == Output::Listed && !diagnostics.iter().any(Diagnostic::is_error) {
        diagnostics.extend(session.check(&mut planned)?);
    }
    let plan = &planned.plan;
    let errors = diagnostics.iter().filter(|problem| problem.is_error()).count();
    let warnings = diagnostics.len() - errors;
    let invalid = errors > 0 || (strict && warnings > 0);
    let is_unknown = plan.cases_loaded > 0 && plan.cases_matched == 0 && errors == 0;
    if is_unknown && is_text {
        terminal.diagnostics(&diagnostics);
        return Err(planned.nothing_selected());
    }
    if output == Output::Sarif {
        terminal.json(&report::sarif(&diagnostics, &folder_in_repository(), env!("CARGO_PKG_VERSION")));
    } else if output == Output::Json {
        terminal.json(&document(&planned, strict));
    } else {
        terminal.diagnostics(&diagnostics);
        let claims = claims(plan);
        if output == Output::Verbose {
            terminal.out(&table(&claims));
        }
        if output == Output::Listed && !invalid && !plan.trials.is_empty() {
            terminal.out(&(super::list::cases(plan) + "\n"));
        }
        if !invalid {
            let mut cases: Vec<(&str, &str)> =
                plan.trials.iter().map(|trial| (&*trial.suite, &*trial.case_id)).collect();
            cases.sort_unstable();
            cases.dedup();
            let most = if plan.decisions.is_empty() { "" } else { "at most " };
            terminal.out(&format!(
                "checked {} and {}: {}; nothing was run\n",
                counted(cases.len(), "case"),
                most.to_owned() + &counted(plan.trials.len(), "trial"),
                if warnings > 0 { counted(warnings, "warning") } else { "no problems".to_owned() }
            ));
            terminal.out(&claim_counts(&claims, output));
            terminal.out(&turn_warnings(plan));
        }
        terminal.out(&coverage(&planned.coverage));
    }
    let nothing = plan.trials.is_empty() && diagnostics.iter().all(|problem: &Diagnostic| !problem.is_error());
    // The program ends here. Freeing a plan of ten thousand cases takes a fifth of its running time.
    std::mem::forget(planned);
    Ok(ExitCode::from(if invalid {
        exit::INVALID
    } else if nothing {
        exit::NOTHING
    } else {
        exit::PASSED
    }))
}

/// Returns everything that `check` reports about a plan.
fn problems(planned: &Planned, strict: bool) -> Vec<Diagnostic> {
    let Planned { plan, design, .. } = planned;
    let mut diagnostics = planned.all_diagnostics();
    diagnostics.extend(design.iter().filter(|_| strict).cloned());
    diagnostics.extend(unrecorded(plan, &plan.settings.cassettes));
    diagnostics
}

/// Returns the result of a check as JSON.
pub fn document(planned: &Planned, strict: bool) -> Value {
    let (plan, problems) = (&planned.plan, problems(planned, strict));
    let errors = problems.iter().filter(|problem| problem.is_error()).count();
    let warnings = problems.len() - errors;
    json!({
        "schema": "trialrun.check/1",
        "valid": errors == 0 && (!strict || warnings == 0),
        "cases": plan.cases_loaded,
        "trials": plan.trials.len(),
        "errors": errors,
        "warnings": warnings,
        "claims": claims(plan),
        "coverage": planned.coverage,
        "problems": problems,
    })
}

/// Describes the keys of suites that were written for other tools. Files whose keys are all honoured are only counted.
fn coverage(files: &[Coverage]) -> String {
    let mut text = String::new();
    let mut full: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for file in files {
        if file.is_full() {
            let (files, keys) = full.entry(file.format).or_default();
            (*files, *keys) = (*files + 1, *keys + file.keys.len());
            continue;
        }
        let of = |treatment: Treatment| file.count(treatment);
        let honoured = of(Treatment::Honoured);
        let counts = [(of(Treatment::Ignored), "ignored"), (of(Treatment::Refused), "not supported")];
        let counts = counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!(", {count} {what}"));
        let counts: String = counts.collect();
        text.push_str(&format!("{} ({}): {} honoured{counts}\n", file.file, file.format, counted(honoured, "key")));
        for key in file.keys.iter().filter(|key| key.consequence.is_some()) {
            let times = if key.count > 1 { format!(", {} times", key.count) } else { String::new() };
            let consequence = key.consequence.as_deref().unwrap_or_default();
            // A suite may have its tasks in files of their own.
            let elsewhere = (*key.source.file != *file.file).then(|| format!("{}:", key.source.file));
            let line = key.source.line;
            let place = format!("{}{line}", elsewhere.unwrap_or_default());
            text.push_str(&format!("  {place}: `{}`{times}: {consequence}\n", key.key));
        }
    }
    // A skill evaluation is also a format of our own.
    for (format, (files, keys)) in full.iter().filter(|(format, _)| **format != "evals") {
        text.push_str(&format!("{} of {format}: all {} honoured\n", counted(*files, "file"), counted(*keys, "key")));
    }
    text
}

/// Returns a warning about the trials that cannot replay recorded answers because none are recorded.
fn unrecorded(plan: &Plan, cassettes: &CassetteSettings) -> Option<Diagnostic> {
    if cassettes.mode != CassetteMode::Replay {
        return None;
    }
    let runs = plan.trials.iter().filter(|trial| trial.case.skip.is_none() && trial.case.broken.is_empty());
    let replayed = runs.filter(|trial| runner::is_recorded(trial, &plan.judging));
    let missing: Vec<_> = replayed.filter(|trial| !runner::cassette_file(trial, cassettes).is_file()).collect();
    let first = missing.first()?;
    let message = match missing.len() {
        1 => "no answers are recorded for this trial, so it would be stale".to_owned(),
        count => format!("no answers are recorded for {count} trials, so they would be stale; this is the first"),
    };
    let problem = Diagnostic::warning(message).at(first.case.source.clone());
    Some(problem.help("`--cassette record` records them; `trialrun cassettes` lists the files"))
}

/// Reports the number of trials that get a warning if they exceed the default number of turns of their format.
fn turn_warnings(plan: &Plan) -> String {
    let warned: Vec<u64> = plan.trials.iter().filter_map(|trial| trial.limits.warn_turns()).collect();
    match warned.first() {
        Some(most) => {
            format!(
                "{} without `max_turns`: a trial of more than {most} turns produces a warning\n",
                counted(warned.len(), "trial")
            )
        }
        None => String::new(),
    }
}

/// How a claim, an assertion in natural language, is decided.
#[derive(Debug, Serialize)]
struct Claim<'a> {
    suite: &'a str,
    case: &'a str,
    /// Id of the assertion.
    id: &'a str,
    /// Text of the claim.
    text: &'a str,
    /// `judge`, or the types of assertions into which it was compiled.
    method: String,
    /// Assertions into which it was compiled; `None` if a model judges it.
    compiled_as: Option<Vec<String>>,
    /// `true` if a model judges it.
    judged: bool,
    source: Excerpt,
}

/// Returns the claims of the planned cases without duplicates.
fn claims(plan: &Plan) -> Vec<Claim<'_>> {
    let mut known = HashSet::new();
    let trials = plan.trials.iter().filter(|trial| trial.arm.variant.as_deref() != Some(WITHOUT_SKILL));
    let mut cases: Vec<_> = trials.filter(|trial| known.insert((&trial.suite, &trial.case_id))).collect();
    // Cases appear in the order in which they are written, regardless of the order of their trials.
    cases.sort_by_key(|trial| trial.position);
    let checks = cases.into_iter().flat_map(|trial| trial.checks.iter().map(move |check| (trial, check)));
    checks
        .filter(|(_, check)| check.is_claim())
        .map(|(trial, check)| Claim {
            suite: &trial.suite,
            case: &trial.case_id,
            id: check.id(),
            text: check.title().unwrap_or(check.id()),
            method: check.method(),
            compiled_as: check.compiled_as(),
            judged: check.asks_judge(),
            source: check.source(),
        })
        .collect()
}

/// Maximum width of a claim's assertions; if they are wider, the text goes on a separate line.
const MAX_ASSERTIONS_WIDTH: usize = 44;

/// Formats the claims case by case. The assertions into which a claim was compiled come first.
fn table(claims: &[Claim<'_>]) -> String {
    let became = |claim: &Claim<'_>| match &claim.compiled_as {
        Some(parts) => parts.join(" and "),
        None => "a model judges".to_owned(),
    };
    let widths =
        claims.iter().map(|claim| columns::width(&became(claim))).filter(|width| *width <= MAX_ASSERTIONS_WIDTH);
    let width = widths.max().unwrap_or(0);
    let mut text = String::new();
    let mut last = None;
    for claim in claims {
        let case = (claim.suite, claim.case);
        if last.replace(case) != Some(case) {
            text.push_str(&format!("{}::{}\n", claim.suite, claim.case));
        }
        let became = became(claim);
        let text_of_claim = claim.text.replace('\n', " ");
        text.push_str(&match columns::width(&became) > width {
            true => format!("  {became}\n  {:width$}  {text_of_claim}\n", ""),
            false => format!("  {}  {text_of_claim}\n", columns::padded(&became, width)),
        });
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

/// Returns the number of claims that code checks, and of those that need a judge.
fn claim_counts(claims: &[Claim<'_>], output: Output) -> String {
    let judged = claims.iter().filter(|claim| claim.judged).count();
    let decided = claims.len() - judged;
    if claims.is_empty() {
        return String::new();
    }
    let what = match (decided, judged) {
        (_, 0) => {
            format!("{}: code decides {}", counted(decided, "claim"), if decided == 1 { "it" } else { "them all" })
        }
        (0, _) => {
            format!("{}: a model judges {}", counted(judged, "claim"), if judged == 1 { "it" } else { "them all" })
        }
        _ => format!("{}: code decides {decided}, a model judges {judged}", counted(claims.len(), "claim")),
    };
    let more = if output == Output::Verbose { "" } else { "; `check --verbose` shows which" };
    format!("{what}{more}\n")
}

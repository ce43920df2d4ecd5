//! `trialrun run`: the main command.

use std::process::ExitCode;
use std::sync::Arc;

use model::{Case, Diagnostic, HookRecord, RemoteMode};
use report::{Reporter, RunHash};
use runner::{Plan, PlannedTrial, RunEnd};
use session::overrides::{GateArgs, ReportArgs};
use session::{Launch, Overrides, Planned, Recorded, Session, Started, none_failed, settings};

use super::cleanup::AfterTrial;
use crate::error::CliError;
use crate::global::Global;
use crate::otlp::Warnings;
use crate::reports::{self, requested};
use crate::terminal::Terminal;
use crate::workers::{self, LocalWorker, WorkersArgs};
use crate::{exit, first_run, limits, machine, place};

/// Arguments of `run`.
#[derive(Debug, clap::Args)]
pub struct RunCommandArgs {
    /// Tests to run, and how.
    #[command(flatten)]
    pub run: Overrides,
    /// Continue an interrupted run as it was started [default: the newest one]
    #[arg(
        long,
        value_name = "RUN",
        help_heading = "Selection",
        conflicts_with_all = [
            "targets", "SelectionArgs", "ArmArgs", "ScheduleArgs", "BudgetArgs", "JudgeArgs", "CassetteArgs", "GateArgs",
            "SandboxArgs", "HookArgs", "OutputArgs",
        ]
    )]
    pub resume: Option<Option<String>>,
    /// Check everything and run nothing
    #[arg(long, help_heading = "Output", conflicts_with = "resume")]
    pub dry_run: bool,
    /// Rerun the affected tests after each file change, until Ctrl-C
    #[arg(long, help_heading = "Output", conflicts_with_all = ["dry_run", "resume"])]
    pub watch: bool,
    #[command(flatten)]
    pub workers: WorkersArgs,
    /// No effect: runs are always recorded
    #[arg(long, hide = true)]
    pub save: bool,
}

/// Runs tests.
pub fn run(
    global: &Global,
    args: &Overrides,
    workers: &WorkersArgs,
    terminal: &Terminal,
) -> Result<ExitCode, CliError> {
    limits::raise_open_files();
    // Done before anything is read, so that an unknown report is reported immediately.
    reports::check_files(&requested(&args.output.report)?)?;
    let (session, planned) = place::plan(global, args)?;
    run_planned(args, &session, planned, Origin::Command(machine::arguments()), workers, terminal)
}

/// How a run comes about.
pub enum Origin {
    /// A command with these arguments, which can be resumed.
    Command(Option<Vec<String>>),
    /// `--watch`, which has a different selection than its command line.
    Watch,
    /// An interrupted run.
    Resumed(Box<Started>),
}

/// Runs the plan, unless it has problems.
pub fn run_planned(
    args: &Overrides,
    session: &Session,
    mut planned: Planned,
    origin: Origin,
    workers: &WorkersArgs,
    terminal: &Terminal,
) -> Result<ExitCode, CliError> {
    let reports = ReportArgs { reports: settings::reports(args, session), ..args.output.report.clone() };
    let (reports, artifacts) = reports::with_directory(requested(&reports)?, &args.output)?;
    if let Some(line) = broken_files(&planned.plan) {
        terminal.err(&line);
    }
    if !is_accepted(&planned, &args.gates, terminal) {
        return Ok(ExitCode::from(exit::INVALID));
    }
    if planned.plan.trials.is_empty() && !matches!(origin, Origin::Resumed(_)) {
        if let (Some(run), true) = (args.selection.failures_of(), planned.plan.cases_matched > 0) {
            terminal.err(&format!("nothing to run: {}\n", none_failed(run)));
            return Ok(ExitCode::SUCCESS);
        }
        // With small suites, some shards are empty. They are recorded too, so that no shard is missing when all are
        // merged.
        match planned.shard.filter(|_| planned.plan.cases_matched > 0) {
            Some((index, of)) => terminal.err(&format!("note: shard {index}/{of} has no cases\n")),
            None => return Err(planned.nothing_selected()),
        }
    }
    if let Some(warning) = args.schedule.timeout.and_then(|timeout| timeout.warning(&session.project)) {
        terminal.err(&format!("warning: {warning}\n"));
    }
    if let Some(note) = untested_rates(&planned.plan) {
        terminal.err(&note);
    }
    terminal.notes(planned.spec.notes());
    if matches!(origin, Origin::Command(_)) && !first_run::confirm(args, &planned.plan, session, terminal)? {
        terminal.err("nothing was run\n");
        return Ok(ExitCode::from(exit::NOTHING));
    }
    let warnings = session.check(&mut planned)?;
    terminal.diagnostics(&warnings);
    if args.gates.strict && !warnings.is_empty() {
        return Ok(ExitCode::from(exit::INVALID));
    }
    let real_remotes = warn_of_real_remotes(&planned.plan, terminal);
    session.lend_sign_in(&mut planned)?;
    let cleaner = Arc::new(AfterTrial::default());
    if real_remotes > 0 && !planned.plan.settings.sandbox.keep {
        planned.plan.cleaner = Some(Arc::<AfterTrial>::clone(&cleaner));
    }
    let jobs = planned.plan.settings.jobs;
    if jobs == 0 && !workers.are_used(session)? {
        return Err(CliError::usage("`--jobs 0` runs nothing, unless `--workers` lets workers run the trials"));
    }
    let resumed = match &origin {
        Origin::Resumed(resumed) => Some(resumed.info.id.clone()),
        Origin::Command(_) | Origin::Watch => None,
    };
    let queue = workers::coordinator(workers, session, &planned, resumed, terminal)?;
    let started = match origin {
        Origin::Resumed(resumed) => *resumed,
        Origin::Command(arguments) => session.start(&planned, arguments)?,
        Origin::Watch => session.start(&planned, None)?,
    };
    let id = started.info.id.clone();
    let github = planned.spec.overrides().output.github.then(|| reports::for_github(&reports, terminal)).flatten();
    let warnings = Warnings::default();
    let otlp = reports::for_otlp(&reports, terminal, &warnings);
    let hash = RunHash::default();
    let unprinted = reports::when_all_are_files(&reports, artifacts.as_deref(), terminal);
    let mut reporters = reports
        .into_iter()
        .map(|report| report.open(terminal, &args.output.report, &warnings, &hash))
        .collect::<Result<Vec<Box<dyn Reporter>>, CliError>>()?;
    let (last_line, written) = unprinted.unzip();
    reporters.extend(last_line);
    reporters.extend(github);
    reporters.extend(otlp);
    let (judgements, providers) = (planned.plan.settings.judge.store.clone(), planned.plan.settings.providers.clone());
    let launch = Launch { reporters, hash, artifacts, signals: place::SIGNALS, controls: None };
    let local = match queue {
        Some((coordinator, settings)) => {
            planned.plan.place = Some(coordinator);
            (jobs > 0).then(|| LocalWorker::start(settings, session, jobs, terminal)).transpose()?
        }
        None => None,
    };
    let ended = session.run(planned, started, launch);
    drop(local);
    let ended = ended?;
    cleaner.report(terminal);
    let cache_problem = judgements.and_then(|store| store.problem());
    for warning in warnings.take().into_iter().chain(cache_problem) {
        terminal.err(&format!("warning: {warning}\n"));
    }
    if let Some(note) = session::price_note(&providers) {
        terminal.err(&format!("note: {note}\n"));
    }
    for path in written.into_iter().flatten() {
        terminal.out(&format!("wrote {}\n", path.display()));
    }
    let concluded = conclude(&args.gates, &ended, terminal);
    if !args.hooks.cleanup {
        return concluded;
    }
    let cleaned = super::cleanup::after_run(session, &id, terminal)?;
    // Side effects left on a remote must be visible in the exit code, but say nothing about the agent.
    concluded.map(|code| if code == ExitCode::SUCCESS { cleaned } else { code })
}

/// Prints the problems of a plan. Returns `false` if they refuse the run.
pub fn is_accepted(planned: &Planned, gates: &GateArgs, terminal: &Terminal) -> bool {
    // A module that does not load breaks its trials, but the run continues.
    let unloaded = planned.plan.trials.iter().flat_map(|trial| &trial.case.broken);
    let problems: Vec<Diagnostic> = planned.diagnostics.iter().chain(unloaded).cloned().collect();
    terminal.diagnostics(&problems);
    match gates {
        GateArgs { strict: true, .. } => problems.is_empty(),
        GateArgs { strict_files: true, .. } => !problems.iter().any(Diagnostic::is_error),
        _ => !planned.diagnostics.iter().any(Diagnostic::is_error),
    }
}

/// Prints the messages at the end of a run, and returns the exit code.
pub fn conclude(
    gates: &GateArgs,
    (ended, recorded): &(RunEnd, Recorded),
    terminal: &Terminal,
) -> Result<ExitCode, CliError> {
    if recorded.error.is_none() {
        for path in &ended.left_over {
            terminal.err(&format!("warning: a sandbox could not be removed: {path}\n"));
        }
        for error in &recorded.report_errors {
            terminal.error(&CliError::environment(format!("a report is incomplete: {error}")));
        }
    }
    code_of(gates, ended, recorded).map(ExitCode::from)
}

/// Returns the exit code for a run that has ended.
///
/// # Errors
/// Returns an error if the run was not recorded, or if a hook prevented it.
pub fn code_of(gates: &GateArgs, ended: &RunEnd, recorded: &Recorded) -> Result<u8, CliError> {
    if let Some(error) = &recorded.error {
        return Err(CliError::environment(format!("recording failed, so the run was stopped: {error}")));
    }
    if let Some(reason) = &ended.stopped_by {
        return Ok(exit::of_stop(reason));
    }
    if let Some(hook) = &ended.refused {
        return Err(refused(hook));
    }
    let code = gates.gate().exit_code(&ended.summary);
    // A missing report must be visible in the exit code.
    let is_incomplete = code == exit::PASSED && !recorded.report_errors.is_empty();
    Ok(if is_incomplete { exit::INCOMPLETE } else { code })
}

/// Returns the error for a run that a pre-run command prevented.
fn refused(record: &HookRecord) -> CliError {
    let error = CliError::environment(format!(
        "nothing was run: the pre-run command `{}` failed ({})",
        record.command,
        record.describe()
    ));
    let lines = record.last_lines(10);
    if lines.is_empty() {
        return error;
    }
    error.hint(format!("its last output:\n    {}", lines.join("\n    ")))
}

/// Returns a line that names the files whose errors break their trials, while the others run.
fn broken_files(plan: &Plan) -> Option<String> {
    let is_broken = |trial: &&PlannedTrial| !trial.case.broken.is_empty() && trial.case.skip.is_none();
    let broken: Vec<&PlannedTrial> = plan.trials.iter().filter(is_broken).collect();
    let mut files: Vec<&str> = Vec::new();
    for trial in &broken {
        // A mistake of a suite may break cases that are in other files.
        let place = trial.case.broken.iter().find(|problem| problem.is_error()).and_then(|error| error.source.as_ref());
        let file = &*place.unwrap_or(&trial.case.source).file;
        if !files.contains(&file) {
            files.push(file);
        }
    }
    let listed = files.iter().take(MAX_BROKEN_FILES).copied().collect::<Vec<_>>().join(", ");
    let more = match files.len().saturating_sub(MAX_BROKEN_FILES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!files.is_empty()).then(|| {
        let (broken, all) = (broken.len(), report::counted(plan.trials.len(), "trial"));
        format!("errors break {broken} of {all}, in {}: {listed}{more}\n\n", report::counted(files.len(), "test file"))
    })
}

/// Maximum number of broken files that are named in the first line.
const MAX_BROKEN_FILES: usize = 20;

/// Warns if agents can push to the real source repository, and returns the number of trials in which they can.
pub fn warn_of_real_remotes(plan: &Plan, terminal: &Terminal) -> usize {
    let settings = &plan.settings.sandbox;
    let Some(source) = &settings.source_repo else { return 0 };
    let is_real = |case: &Case| settings.remote_of(case) == RemoteMode::Real;
    let count = plan.trials.iter().filter(|trial| is_real(&trial.case)).count();
    if count > 0 {
        let end = match settings.keep {
            true => "nothing is removed there, because of `--keep-sandbox`",
            false => "the branches and review requests that a trial creates there are removed at its end",
        };
        terminal.err(&format!(
            "warning: `remote` is `real`: the agents of {} can push to {}; {end}\n",
            report::counted(count, "trial"),
            sandbox::without_sign_in(source)
        ));
    }
    count
}

/// Returns a note about required pass rates that have no effect, because the number of trials is fixed.
fn untested_rates(plan: &Plan) -> Option<String> {
    let is_first = |trial: &&PlannedTrial| trial.repetition == 1 && !trial.is_baseline();
    let is_untested = |trial: &&PlannedTrial| trial.case.pass_rate.is_some() && trial.auto.is_none();
    let is_run = |trial: &&PlannedTrial| trial.case.skip.is_none() && trial.case.broken.is_empty();
    let untested = plan.trials.iter().filter(is_first).filter(is_untested).filter(is_run).count();
    (untested > 0).then(|| {
        format!(
            "note: the `pass_rate` of {} is not tested, because the number of trials is fixed; `--trials auto` tests it\n",
            report::counted(untested, "case")
        )
    })
}

//! `trialrun run`: the main command.

use std::process::ExitCode;
use std::sync::Arc;

use model::{Case, Diagnostic, RemoteMode, RunInfo, Shard};
use report::{Reporter, RunHash};
use runner::{Plan, PlannedTrial};
use serde_json::json;
use store::Store;

use super::cleanup::AfterTrial;
use crate::error::CliError;
use crate::execution::{conclude, execute};
use crate::first_run;
use crate::global::Global;
use crate::invocation::invocation;
use crate::otlp::Warnings;
use crate::preparation::{Prepared, none_failed, nothing_selected, prepare};
use crate::project::ProjectContext;
use crate::reports::{self, requested};
use crate::run_args::{ReportArgs, RunArgs};
use crate::run_lock::RunLock;
use crate::settings::{self, Resolved};
use crate::terminal::Terminal;
use crate::{exit, git_sign_in, hooks, limits, machine, parent_files, prices, sandbox_fallback};

/// Arguments of `run`.
#[derive(Debug, clap::Args)]
pub struct RunCommandArgs {
    /// Tests to run, and how.
    #[command(flatten)]
    pub run: RunArgs,
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
}

/// Runs tests.
pub fn run(global: &Global, args: &RunArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    if args.output.dry_run {
        return super::check::check(global, args, terminal);
    }
    limits::raise_open_files();
    // Done before anything is read, so that an unknown report is reported immediately.
    reports::check_directories(&requested(&args.output.report)?)?;
    run_prepared(args, prepare(global, args)?, None, terminal)
}

/// A run with its record.
pub struct Started {
    /// The record.
    pub store: Box<dyn Store>,
    /// The run.
    pub info: RunInfo,
    /// Its lock; absent if the file system has no locks.
    pub lock: Option<RunLock>,
}

/// Runs the prepared plan, unless it has problems: a new run, or the rest of the run `resumed`.
pub fn run_prepared(
    args: &RunArgs,
    prepared: Prepared,
    resumed: Option<Started>,
    terminal: &Terminal,
) -> Result<ExitCode, CliError> {
    let Prepared { context, resolved, mut plan, diagnostics, notes, nearest, case_ids, .. } = prepared;
    let reports = ReportArgs { reports: settings::reports(args, &context), ..args.output.report.clone() };
    let (reports, directory) = reports::with_directory(requested(&reports)?, &args.output)?;
    // A module that does not load breaks its trials, but the run continues.
    let unloaded = plan.trials.iter().flat_map(|trial| &trial.case.broken);
    let problems: Vec<Diagnostic> = diagnostics.iter().chain(unloaded).cloned().collect();
    if let Some(line) = broken_files(&plan) {
        terminal.err(&line);
    }
    terminal.diagnostics(&problems);
    let is_refused =
        if args.gates.strict { !problems.is_empty() } else { diagnostics.iter().any(Diagnostic::is_error) };
    if is_refused {
        return Ok(ExitCode::from(exit::INVALID));
    }
    if plan.trials.is_empty() && resumed.is_none() {
        if let (Some(run), true) = (args.selection.failures_of(), plan.cases_matched > 0) {
            terminal.err(&format!("nothing to run: {}\n", none_failed(run)));
            return Ok(ExitCode::SUCCESS);
        }
        // With small suites, some shards are empty. They are recorded too, so that no shard is missing when all are
        // merged.
        match args.selection.shard.filter(|_| plan.cases_matched > 0) {
            Some((index, of)) => terminal.err(&format!("note: shard {index}/{of} has no cases\n")),
            None => return Err(nothing_selected(args, &plan, nearest.as_deref(), &case_ids)),
        }
    }
    if let Some(warning) = args.schedule.timeout.and_then(|timeout| timeout.warning(&context.project)) {
        terminal.err(&format!("warning: {warning}\n"));
    }
    if let Some(note) = untested_rates(&plan) {
        terminal.err(&note);
    }
    for note in &notes {
        terminal.err(&format!("note: {note}\n"));
    }
    let is_new = resumed.is_none() && !args.output.watch;
    if is_new && !first_run::confirm(args, &plan, &resolved, &context, terminal)? {
        terminal.err("nothing was run\n");
        return Ok(ExitCode::from(exit::NOTHING));
    }
    if let Some(warning) = sandbox_fallback::try_out(&mut plan, &context)? {
        terminal.diagnostics(std::slice::from_ref(&warning));
        if args.gates.strict {
            return Ok(ExitCode::from(exit::INVALID));
        }
    }
    let warnings = parent_files::warnings(&plan)?;
    terminal.diagnostics(&warnings);
    if args.gates.strict && !warnings.is_empty() {
        return Ok(ExitCode::from(exit::INVALID));
    }
    let real_remotes = warn_of_real_remotes(&plan, terminal);
    if args.sandboxes.lend_git_sign_in {
        if real_remotes == 0 {
            return Err(CliError::usage("`--lend-git-sign-in` needs `--remote real`")
                .hint("the agents of this run push to copies of the source repository, which need no sign-in"));
        }
        plan.settings.sandbox.extra_env = git_sign_in::variables(args.sandboxes.source_repo.as_deref())?;
    }
    let cleaner = Arc::new(AfterTrial::default());
    if real_remotes > 0 && !plan.settings.sandbox.keep {
        plan.cleaner = Some(Arc::<AfterTrial>::clone(&cleaner));
    }
    let is_resumed = resumed.is_some();
    let Started { mut store, info, lock } = match resumed {
        Some(resumed) => resumed,
        None => {
            let (store, info) = (context.open_store()?, info(args, &resolved, &plan, &context));
            // Without a lock, the run could be resumed while it is still in progress, but it can run.
            let lock = RunLock::acquire(&context.database, &info.id).ok();
            Started { store, info, lock }
        }
    };
    let host = Arc::new(machine::host()?);
    let id = info.id.clone();
    let hook_timeout_ms = resolved.args.hooks.hook_timeout.unwrap_or(hooks::TIMEOUT_MS);
    let github = resolved.args.output.github.then(|| reports::for_github(&reports, terminal)).flatten();
    let warnings = Warnings::default();
    let otlp = reports::for_otlp(&reports, terminal, &warnings);
    let hash = RunHash::default();
    let unprinted = reports::when_all_are_files(&reports, directory.as_deref(), terminal);
    let mut reporters = reports
        .into_iter()
        .map(|report| report.open(terminal, &args.output.report, &warnings, &hash))
        .collect::<Result<Vec<Box<dyn Reporter>>, CliError>>()?;
    let (last_line, written) = unprinted.unzip();
    reporters.extend(last_line);
    reporters.extend(github);
    reporters.extend(otlp);
    reporters.extend(hooks::set_up(args, hook_timeout_ms, &context, &mut plan, &info, &host, directory)?);
    if is_resumed {
        store.reopen(&id)?;
        // Reports show the whole run, including the part before the interruption. Output errors are reported at the
        // end.
        store.replay(&id, &mut |event| reporters.iter_mut().for_each(|reporter| drop(reporter.event(event))))?;
    }
    let jobs = resolved.run.jobs.min(plan.trials.len()).max(1);
    let ended = execute(jobs, store, (reporters, hash), |controls, listener| {
        runner::run(plan, host, info, controls, listener)
    })?;
    drop(lock);
    cleaner.report(terminal);
    let cache_problem = resolved.run.judge.store.as_ref().and_then(|store| store.problem());
    for warning in warnings.take().into_iter().chain(cache_problem) {
        terminal.err(&format!("warning: {warning}\n"));
    }
    if let Some(note) = prices::note(&resolved.run.providers) {
        terminal.err(&format!("note: {note}\n"));
    }
    for path in written.into_iter().flatten() {
        terminal.out(&format!("wrote {}\n", path.display()));
    }
    let concluded = conclude(&args.gates, ended, terminal);
    if !args.hooks.cleanup {
        return concluded;
    }
    let cleaned = super::cleanup::after_run(&context, &id, terminal)?;
    // Side effects left on a remote must be visible in the exit code, but say nothing about the agent.
    concluded.map(|code| if code == ExitCode::SUCCESS { cleaned } else { code })
}

/// Returns a line that names the files whose errors break their trials, while the others run.
fn broken_files(plan: &Plan) -> Option<String> {
    let is_broken = |trial: &&Arc<PlannedTrial>| !trial.case.broken.is_empty() && trial.case.skip.is_none();
    let broken: Vec<&Arc<PlannedTrial>> = plan.trials.iter().filter(is_broken).collect();
    let mut files: Vec<&str> = Vec::new();
    for trial in &broken {
        let file = &*trial.case.source.file;
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
        format!("errors in {} break {broken} of {all}: {listed}{more}\n\n", report::counted(files.len(), "test file"))
    })
}

/// Maximum number of broken files that are named in the first line.
const MAX_BROKEN_FILES: usize = 20;

/// Warns if agents can push to the real source repository, and returns the number of trials in which they can.
fn warn_of_real_remotes(plan: &Plan, terminal: &Terminal) -> usize {
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
    let is_first = |trial: &&Arc<PlannedTrial>| trial.id.repetition == 1 && !trial.id.is_baseline();
    let is_untested = |trial: &&Arc<PlannedTrial>| trial.case.pass_rate.is_some() && trial.auto.is_none();
    let is_run = |trial: &&Arc<PlannedTrial>| trial.case.skip.is_none() && trial.case.broken.is_empty();
    let untested = plan.trials.iter().filter(is_first).filter(is_untested).filter(is_run).count();
    (untested > 0).then(|| {
        format!(
            "note: the `pass_rate` of {} is not tested, because the number of trials is fixed; `--trials auto` tests it\n",
            report::counted(untested, "case")
        )
    })
}

/// Returns the description of a new run.
pub fn info(args: &RunArgs, resolved: &Resolved, plan: &Plan, context: &ProjectContext) -> RunInfo {
    // A run started by `--watch` has a different selection than its command line.
    let invocation = if args.output.watch { None } else { invocation(plan, context) };
    let shard = args.selection.shard.map(|(index, of)| Shard {
        index,
        of,
        positions: plan.trials.iter().map(|trial| trial.position).collect(),
    });
    let mut settings = resolved.to_map(context);
    args.gates.record(&mut settings);
    // Differs from the chosen one if no such sandbox could be created.
    settings.insert("sandbox".to_owned(), json!(plan.settings.sandbox.kind));
    RunInfo {
        id: uuid::Uuid::now_v7().to_string(),
        label: args.output.label.clone(),
        regrade_of: None,
        started_at: jiff::Timestamp::now(),
        trialrun_version: env!("CARGO_PKG_VERSION").to_owned(),
        settings,
        agents: plan.agents.clone(),
        skills: plan.skills.clone(),
        trials: plan.trials.iter().map(|trial| trial.id.clone()).collect(),
        decisions: plan.decisions.len(),
        jobs: resolved.run.jobs.min(plan.trials.len()).max(1),
        invocation,
        shard,
        missing_shards: None,
        isolation: None,
    }
}

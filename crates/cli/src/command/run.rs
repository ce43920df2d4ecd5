//! `trialrun run`: the main command.

use std::process::ExitCode;
use std::sync::Arc;

use model::{Diagnostic, RunInfo};
use report::Reporter;
use runner::{Control, Listener, Plan, RunEnd};
use sandbox::Breakage;
use tokio::sync::mpsc;

use crate::error::CliError;
use crate::global::Global;
use crate::outlet::{self, open_reports};
use crate::preparation::{Prepared, listed_ids, prepare};
use crate::recording::Recording;
use crate::run_args::{GateArgs, ReportArgs, RunArgs};
use crate::settings::Resolved;
use crate::terminal::Terminal;
use crate::{exit, git_sign_in, hooks, limits, machine, prices, signals};

/// Runs tests.
pub fn run(global: &Global, args: &RunArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    if args.output.dry_run {
        return super::check::check(global, args, args.gates.strict, false, terminal);
    }
    limits::raise_open_files();
    if args.output.watch {
        return crate::watch::watch(global, args, terminal);
    }
    // Comes before anything is read, so that an unknown report is reported at once.
    open_reports(&args.output.report)?;
    run_prepared(args, prepare(global, args)?, terminal)
}

/// Runs the prepared plan, unless it has problems.
pub fn run_prepared(args: &RunArgs, prepared: Prepared, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let Prepared { workplace, resolved, mut plan, diagnostics, nearest, case_ids, .. } = prepared;
    let reports = ReportArgs { reports: outlet::wanted(args, &workplace), ..args.output.report.clone() };
    let (reports, directory) = outlet::with_directory(open_reports(&reports)?, &args.output)?;
    // Modules that do not load make their trials broken; the run continues.
    let unloaded = plan.trials.iter().flat_map(|trial| &trial.case.broken);
    let problems: Vec<Diagnostic> = diagnostics.iter().chain(unloaded).cloned().collect();
    terminal.diagnostics(&problems);
    let is_refused =
        if args.gates.strict { !problems.is_empty() } else { diagnostics.iter().any(Diagnostic::is_error) };
    if is_refused {
        return Ok(ExitCode::from(exit::INVALID));
    }
    if plan.trials.is_empty() {
        return Err(nothing_selected(args, &plan, nearest.as_deref(), &case_ids));
    }
    if let Some(warning) = args.schedule.timeout.and_then(|timeout| timeout.warning(&workplace.project)) {
        terminal.err(&format!("warning: {warning}\n"));
    }
    if args.sandboxes.lend_git_sign_in {
        plan.settings.sandbox.lent = git_sign_in::lent(args.sandboxes.source_repo.as_deref())?;
    }
    let store = workplace.open_store()?;
    let host = Arc::new(machine::host()?);
    let info = info(args, &resolved, &plan);
    let id = info.id.clone();
    let hook_timeout_ms = resolved.args.hooks.hook_timeout.unwrap_or(hooks::TIMEOUT_MS);
    let mut reporters = reports
        .into_iter()
        .map(|chosen| chosen.open(terminal, &args.output.report))
        .collect::<Result<Vec<Box<dyn Reporter>>, CliError>>()?;
    reporters.extend(hooks::set_up(args, hook_timeout_ms, &workplace, &mut plan, &info, &host, directory)?);
    let jobs = info.jobs;
    let ended = carry_out(jobs, store, reporters, |wishes, listener| runner::run(plan, host, info, wishes, listener))?;
    if let Some(note) = prices::note(&resolved.run.providers) {
        terminal.err(&format!("note: {note}\n"));
    }
    let concluded = conclude(&args.gates, ended, terminal);
    if !args.hooks.cleanup {
        return concluded;
    }
    let cleaned = super::cleanup::after_run(&workplace, &id, terminal)?;
    // Leftovers on a remote must be visible, but say nothing about the agent.
    concluded.map(|code| if code == ExitCode::SUCCESS { cleaned } else { code })
}

/// Prints the messages at the end of a run, and returns the exit code.
pub(super) fn conclude(gates: &GateArgs, ended: Ended, terminal: &Terminal) -> Result<ExitCode, CliError> {
    if let Some(trouble) = &ended.trouble {
        return Err(CliError::environment(format!("recording failed, so the run was stopped: {trouble}")));
    }
    for left in &ended.left_over {
        terminal.err(&format!("warning: a sandbox could not be removed: {left}\n"));
    }
    for trouble in &ended.report_trouble {
        terminal.err(&format!("error: a report is incomplete: {trouble}\n"));
    }
    if let Some(reason) = ended.stopped_by {
        return Ok(exit::of_stop(&reason));
    }
    if let Some(hook) = &ended.refused {
        return Err(hooks::refused(hook));
    }
    let code = gate(gates, &ended.summary);
    if code != ended.summary.exit_code() {
        let why = if gates.no_fail_on_assertions { "--no-fail-on-assertions" } else { "--min-pass-rate" };
        terminal.err(&format!("note: the failures do not fail this run ({why}); it exits with {code}\n"));
    }
    // A missing report must be visible in the exit code.
    Ok(ExitCode::from(if code == exit::PASSED && !ended.report_trouble.is_empty() { exit::INCOMPLETE } else { code }))
}

/// Time that remaining tasks have to end.
const FAREWELL: std::time::Duration = std::time::Duration::from_millis(200);

/// Result of a run and of its recording.
pub(super) struct Ended {
    summary: model::Summary,
    stopped_by: Option<String>,
    left_over: Vec<String>,
    trouble: Option<String>,
    report_trouble: Vec<String>,
    refused: Option<model::HookRecord>,
}

/// Runs the future of `drive`, which gets the controls and the listener, and records its events.
pub(super) fn carry_out<F: Future<Output = Result<RunEnd, Breakage>>>(
    jobs: usize,
    store: Box<dyn store::Store>,
    reporters: Vec<Box<dyn Reporter>>,
    drive: impl FnOnce(mpsc::UnboundedReceiver<Control>, Arc<dyn Listener>) -> F,
) -> Result<Ended, CliError> {
    let threads = jobs.clamp(1, 4);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()
        .map_err(|error| CliError::environment(format!("cannot start threads: {error}")))?;
    let (controls, wishes) = mpsc::unbounded_channel::<Control>();
    let recording = Recording::start(store, reporters, controls.clone())
        .map_err(|error| CliError::environment(format!("cannot start recording: {error}")))?;
    let ended = runtime.block_on(async {
        signals::forward(&controls)
            .map_err(|error| CliError::environment(format!("cannot listen to signals: {error}")))?;
        drive(wishes, recording.listener()).await.map_err(|breakage| CliError::environment(breakage.to_string()))
    });
    // The threads of the runtime end while the record is closed, which waits for the disk.
    let mut runtime = Some(runtime);
    let recorded = std::thread::scope(|scope| {
        let end = || {
            if let Some(runtime) = runtime.take() {
                runtime.shutdown_timeout(FAREWELL);
            }
        };
        // If no thread can be started, the runtime is shut down below.
        let _ = std::thread::Builder::new().name("end".into()).spawn_scoped(scope, end);
        recording.finish()
    });
    if let Some(runtime) = runtime {
        runtime.shutdown_timeout(FAREWELL);
    }
    let ended = ended?;
    Ok(Ended {
        summary: ended.summary,
        stopped_by: ended.stopped_by,
        left_over: ended.left_over,
        trouble: recorded.trouble,
        report_trouble: recorded.report_trouble,
        refused: ended.refused,
    })
}

fn info(args: &RunArgs, resolved: &Resolved, plan: &Plan) -> RunInfo {
    RunInfo {
        id: uuid::Uuid::now_v7().to_string(),
        label: args.output.label.clone(),
        regrade_of: None,
        started_at: jiff::Timestamp::now(),
        trialrun_version: env!("CARGO_PKG_VERSION").to_owned(),
        settings: super::regrade::with_targets(args, resolved.to_map()),
        agents: plan.agents.clone(),
        skills: plan.skills.clone(),
        trials: plan.trials.iter().map(|trial| trial.id.clone()).collect(),
        jobs: resolved.run.jobs.min(plan.trials.len()).max(1),
    }
}

fn gate(gates: &GateArgs, summary: &model::Summary) -> u8 {
    let code = summary.exit_code();
    if code != exit::FAILED {
        return code;
    }
    let unsure = if summary.is_incomplete() { exit::INCOMPLETE } else { exit::PASSED };
    // The pass rates of fully decided trials and by decided findings must both be high enough, so that undecided ones
    // never help.
    let rates = [summary.pass_rate, summary.by_decided.rate()];
    let is_enough = |least: f64| rates.iter().any(Option::is_some) && rates.iter().flatten().all(|rate| *rate >= least);
    let enough = gates.min_pass_rate.is_some_and(is_enough);
    if enough || gates.no_fail_on_assertions { unsure } else { code }
}

/// Returns the error for an empty selection.
pub(super) fn nothing_selected(args: &RunArgs, plan: &Plan, nearest: Option<&str>, case_ids: &[String]) -> CliError {
    if plan.cases_loaded == 0 {
        return CliError::nothing("no case was found")
            .hint("`trialrun list` shows what is found; `trialrun init` makes a first test");
    }
    let by = &args.selection;
    let by_name = !by.cases.is_empty() || by.filter.is_some() || !by.tags.is_empty() || by.test.is_some();
    if let (Some(run), false) = (&by.failed_in, by_name) {
        return CliError::nothing(format!("no case of these failed in the run `{run}`"));
    }
    CliError::nothing(format!("none of {} was selected", super::check::count(plan.cases_loaded, "case")))
        .maybe_hint(nearest.map(|near| format!("did you mean `{near}`?")))
        .maybe_hint((!by.cases.is_empty()).then(|| listed_ids(case_ids)))
        .hint("`trialrun list` shows every case with its tags")
}

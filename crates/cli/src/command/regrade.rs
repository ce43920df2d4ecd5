//! `trialrun regrade`.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use model::{Event, RunInfo, RunRow, TrialRecord};
use report::telemetry::TRACEPARENT;
use report::{Reporter, RunHash, counted};
use runner::{Archive, RecordedEvidence, Regrade};
use serde_json::Value;
use store::{Store, StoredEvent, TrialFilter};

use crate::command::run::conclude;
use crate::error::CliError;
use crate::global::Global;
use crate::otlp::Warnings;
use crate::reports::{check_files, for_otlp, requested};
use crate::terminal::Terminal;
use crate::workspace::WorkspaceArgs;
use crate::{exit, limits, place};
use session::overrides::{GateArgs, JudgeArgs, Overrides, ReportArgs, parse_jobs, parse_label};
use session::settings::{SKILL, TARGETS};
use session::{PlannedRegrade, RunSpec, Session, record};

/// Arguments of `regrade`.
#[derive(Debug, clap::Args)]
pub struct RegradeArgs {
    /// Run: prefix of its id, label, `latest`, `previous` or `latest~N` [default: latest]
    #[arg(value_name = "RUN")]
    run: Option<String>,
    #[command(flatten)]
    place: WorkspaceArgs,
    /// No effect: figures are always computed again, also in a workspace
    #[arg(long, hide = true)]
    recompute_benchmark: bool,
    /// Files, directories or skills with the current tests [default: those of that run]
    #[arg(value_name = "PATH|SKILL")]
    targets: Vec<String>,
    /// Skill evaluation to read, same as PATH
    #[arg(long, value_name = "FILE")]
    evals: Vec<String>,
    /// Skill to evaluate
    #[arg(long, value_name = "DIR")]
    skill: Option<String>,
    /// Number of trials to grade in parallel [default: the number of cores]
    #[arg(long, short, value_name = "N", value_parser = parse_jobs)]
    jobs: Option<usize>,
    #[command(flatten)]
    judging: JudgeArgs,
    #[command(flatten)]
    gates: GateArgs,
    #[command(flatten)]
    report: ReportArgs,
    /// Label of the new run
    #[arg(long, value_name = "TEXT", help_heading = "Output", value_parser = parse_label)]
    label: Option<String>,
}

impl RegradeArgs {
    /// Returns `true` if the command names suites, which replace those of the record.
    fn names_suites(&self) -> bool {
        !(self.targets.is_empty() && self.evals.is_empty() && self.skill.is_none())
    }
}

/// Grades the evidence of a run again, and records the result as a new run.
pub fn run(global: &Global, args: &RegradeArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    limits::raise_open_files();
    let found = args.place.find(global, args.run.as_deref(), "latest");
    // The first argument is the run.
    let file = args.run.as_deref().filter(|run| std::path::Path::new(run).exists());
    let (store, run) = found.map_err(|error| match file {
        Some(file) => error.hint(format!("write `trialrun regrade latest {file}` to use the tests in `{file}`")),
        None => error,
    })?;
    if let Some(lease) = run.lease.as_ref().filter(|_| session::is_active(&run)) {
        return Err(CliError::usage(format!("the run {} is still in progress ({})", run.short, lease.owner)));
    }
    let then = store.info(&run.id)?;
    let records = records(&*store, &run, &then)?;
    if records.is_empty() {
        return Err(CliError::nothing(format!("the run {} has no finished trial", run.short)));
    }
    let run_args = run_args(args, &*store, &then, &records)?;
    check_files(&requested(&args.report)?)?;
    let (session, planned) = plan(global, run_args, &then, records, !args.names_suites())?;
    let PlannedRegrade { spec, regrade, diagnostics } = planned;
    terminal.diagnostics(&diagnostics);
    if diagnostics.iter().any(|problem| args.gates.strict || problem.is_error()) {
        return Ok(ExitCode::from(exit::INVALID));
    }
    // The run was killed, or grades one that was killed.
    let lacks_trials = run.finished < run.needed();
    let unfinished = if lacks_trials { then.trials.len().saturating_sub(regrade.trials()) } else { 0 };
    if unfinished > 0 {
        terminal.err(&format!(
            "note: {} of the run did not finish and {} skipped\n",
            counted(unfinished, "trial"),
            if unfinished == 1 { "is" } else { "are" }
        ));
    }
    terminal.notes(&regrade.notes);
    let (judgements, providers) = (regrade.settings().judge.store.clone(), regrade.settings().providers.clone());
    let info = info(args, &spec, &regrade, &then, lacks_trials);
    let (recorder, host) = (session.open_store()?, Arc::clone(&session.host));
    let (reports, warnings) = (requested(&args.report)?, Warnings::default());
    let otlp = for_otlp(&reports, terminal, &warnings);
    let hash = RunHash::default();
    let mut reporters = reports
        .into_iter()
        .map(|report| report.open(terminal, &args.report, &warnings, &hash))
        .collect::<Result<Vec<Box<dyn Reporter>>, CliError>>()?;
    reporters.extend(otlp);
    if let Some(directory) = args.place.directory(args.run.as_deref())? {
        let updated = report::open_regraded(&directory, &then.trials, &session.state.record.to_string());
        reporters.push(updated.map_err(|error| CliError::usage(error.to_string()))?);
    }
    let archive: Arc<dyn Archive> = Arc::new(Recorded { store: Mutex::new(store), run: run.id });
    let ended = record(info.jobs, recorder, (reporters, hash), place::SIGNALS, |controls, listener| {
        runner::regrade(regrade, host, info, controls, listener, archive)
    })?;
    let cache_problem = judgements.and_then(|store| store.problem());
    for warning in warnings.take().into_iter().chain(cache_problem) {
        terminal.err(&format!("warning: {warning}\n"));
    }
    if let Some(note) = session::price_note(&providers) {
        terminal.err(&format!("note: {note}\n"));
    }
    let code = conclude(&args.gates, &ended, terminal)?;
    let is_partial = lacks_trials || then.missing_shards.is_some();
    let is_incomplete = is_partial && code == ExitCode::from(exit::PASSED);
    Ok(if is_incomplete { ExitCode::from(exit::INCOMPLETE) } else { code })
}

/// Returns the recorded trials of the run, in the order of the plan.
fn records(store: &dyn Store, run: &RunRow, info: &RunInfo) -> Result<Vec<TrialRecord>, CliError> {
    let rows = store.trials(&TrialFilter::of_run(&run.id))?;
    let finished: BTreeSet<&str> = rows.iter().map(|row| row.id.as_str()).collect();
    let planned = info.trials.iter().map(ToString::to_string).filter(|id| finished.contains(id.as_str()));
    planned.map(|id| Ok(store.trial(&run.id, &id)?)).collect()
}

/// Returns the arguments of `run` that load the current version of that run's suites.
fn run_args(
    args: &RegradeArgs,
    store: &dyn Store,
    then: &RunInfo,
    records: &[TrialRecord],
) -> Result<Overrides, CliError> {
    let (targets, skill) = match then.settings.get(TARGETS).and_then(Value::as_array) {
        _ if args.names_suites() => (args.targets.clone(), args.skill.clone()),
        Some(targets) => {
            let targets = targets.iter().filter_map(Value::as_str).map(str::to_owned).collect();
            (targets, then.settings.get(SKILL).and_then(Value::as_str).map(str::to_owned))
        }
        None => (files(store, &then.id, records)?, None),
    };
    let mut run =
        Overrides { targets, judging: args.judging.clone(), gates: args.gates.clone(), ..Overrides::default() };
    (run.selection.skill, run.selection.evals) = (skill, args.evals.clone());
    run.schedule.jobs = args.jobs;
    // Recorded evidence is graded without cassettes.
    run.cassettes.cassette = Some(model::CassetteMode::Off);
    run.output.report = args.report.clone();
    run.output.label.clone_from(&args.label);
    Ok(run)
}

/// Returns the files of the cases, as recorded with the trials of an older run.
fn files(store: &dyn Store, run: &str, records: &[TrialRecord]) -> Result<Vec<String>, CliError> {
    let mut files: BTreeSet<String> = BTreeSet::new();
    for record in records {
        files.extend(store.trial_events(run, &record.id)?.into_iter().find_map(|event| match event.known()?.event {
            Event::TrialStarted { file, .. } => (!file.is_empty()).then(|| file.to_string()),
            _ => None,
        }));
    }
    Ok(files.into_iter().collect())
}

/// Loads and plans. If the targets `are_recorded`, they are relative to the project's folder.
fn plan(
    global: &Global,
    mut args: Overrides,
    then: &RunInfo,
    records: Vec<TrialRecord>,
    are_recorded: bool,
) -> Result<(Session, PlannedRegrade), CliError> {
    let here = place::open(global, &[])?;
    let directory = if are_recorded { &here.project.root } else { &here.cwd };
    let session = place::open_from(&here, directory, &args.places(directory)?);
    let mut spec = session.resolve(&args)?;
    if judges_then(&mut args, &spec, then) {
        spec = session.resolve(&args)?;
    }
    let planned = session.plan_regrade(spec, records, &then.trials)?;
    Ok((session, planned))
}

/// Uses the judge of that run, unless another one is given. Returns `true` if it differs from the judge that would
/// otherwise be used.
fn judges_then(args: &mut Overrides, spec: &RunSpec, then: &RunInfo) -> bool {
    let text = |name: &str| then.settings.get(name).and_then(Value::as_str).map(str::to_owned);
    let value = |name: &str| spec.rows().iter().find(|row| row.name == name).map(|row| &row.value);
    let now = |name: &str| value(name).and_then(Value::as_str);
    let judging = &mut args.judging;
    if judging.judge.is_some() {
        return false;
    }
    let (judge, address) = (text("judge"), text("judge_base_url"));
    let is_other = judge.is_some() && judge.as_deref() != now("judge");
    let is_elsewhere =
        judge.is_some() && address.as_deref() != now("judge_base_url") && judging.judge_base_url.is_none();
    if is_other || is_elsewhere {
        judging.judge = judge;
        judging.judge_base_url = judging.judge_base_url.take().or(address);
    }
    let judges = then.settings.get("judges").and_then(Value::as_u64);
    let is_more = judging.judges.is_none()
        && judges.is_some_and(|judges| value("judges").and_then(Value::as_u64) != Some(judges));
    if is_more {
        judging.judges = judges;
    }
    is_other || is_elsewhere || is_more
}

fn info(args: &RegradeArgs, spec: &RunSpec, regrade: &Regrade, then: &RunInfo, lacks_trials: bool) -> RunInfo {
    let mut settings = then.settings.clone();
    let own = [
        "judge",
        "judge_base_url",
        "judges",
        "judge_sample",
        "judge_batch",
        "judge_cache",
        "judge_calibration",
        "judge_min_kappa",
        TRACEPARENT,
    ];
    for row in spec.rows().iter().filter(|row| own.contains(&row.name.as_str())) {
        settings.insert(row.name.clone(), row.value.clone());
    }
    args.gates.record(&mut settings);
    RunInfo {
        id: uuid::Uuid::now_v7().to_string(),
        // With a workspace, the new run takes the place of the old one as an iteration.
        label: args.label.clone().or_else(|| then.label.clone().filter(|_| args.place.is_used())),
        regrade_of: Some(then.id.clone()),
        started_at: jiff::Timestamp::now(),
        trialrun_version: env!("CARGO_PKG_VERSION").to_owned(),
        settings,
        // Those that have no outcome stay without one.
        trials: if lacks_trials { then.trials.clone() } else { regrade.ids() },
        jobs: regrade.settings().jobs.min(regrade.trials()).max(1),
        invocation: None,
        shard: None,
        isolation: None,
        ..then.clone()
    }
}

/// The trials of one run.
struct Recorded {
    store: Mutex<Box<dyn Store>>,
    run: String,
}

impl Archive for Recorded {
    fn read(&self, trial: &str) -> Result<RecordedEvidence, String> {
        let store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        let events = store.trial_events(&self.run, trial).map_err(|error| error.to_string())?;
        Ok(last_attempt(events))
    }
}

/// Returns the evidence in the events of the last attempt.
pub(crate) fn last_attempt(events: Vec<StoredEvent>) -> RecordedEvidence {
    let mut evidence = RecordedEvidence::default();
    for event in events {
        match event {
            StoredEvent::Unknown(_) => evidence.unknown += 1,
            StoredEvent::Known(envelope) => match envelope.event {
                Event::TrialStarted { .. } => {
                    evidence = RecordedEvidence { started: Some(envelope.event), ..RecordedEvidence::default() };
                }
                Event::Step(step) => evidence.steps.push(step),
                Event::Collected(collected) => evidence.collected = Some(collected),
                _ => {}
            },
        }
    }
    evidence
}

//! `run --resume`: continues an interrupted run with its original arguments, plan and settings.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use model::{Event, Outcome, RunInfo, RunRow, TrialId};
use report::counted;
use report::telemetry::TRACEPARENT;
use runner::{Earlier, Plan, TrialResult};
use serde_json::Value;
use session::dependencies::SHARED;
use session::overrides::{OutputArgs, ReportArgs, SelectionArgs};
use session::{LockError, Planned, Resumed, Session, Started, hash_of, invocation, is_active};
use store::{RunFilter, Store};

use crate::command::run::{Origin, run_planned};
use crate::error::CliError;
use crate::global::Global;
use crate::named_run::named_run;
use crate::recorded_arguments::{recorded_arguments, recorded_workers, repeats_trial};
use crate::terminal::Terminal;
use crate::workers::WorkersArgs;
use crate::{limits, place};

/// Maximum number of names in a message.
const NAMES: usize = 5;

/// Continues the run `wanted`, or else the newest interrupted run, with the given reports, if any.
pub fn resume(
    global: &Global,
    wanted: Option<&str>,
    report: &ReportArgs,
    workers: &WorkersArgs,
    terminal: &Terminal,
) -> Result<ExitCode, CliError> {
    limits::raise_open_files();
    let here = place::open(global, &[])?;
    let found = find(&*here.read_store()?, wanted, terminal)?;
    let lock = here.state.lock(&found.id).map_err(|error| match error {
        LockError::Held(_) => CliError::usage(format!("the run {} is still in progress: {error}", found.short)),
        LockError::Io(_) => CliError::environment(format!("cannot resume the run {}: {error}", found.short)),
    })?;
    let store = here.open_store()?;
    // Another process may have finished it before the lock was acquired.
    let run = store.select(&found.id)?;
    if !run.is_interrupted() {
        return Err(CliError::nothing(format!("the run {} is complete; there is nothing to resume", run.short)));
    }
    // The lock only excludes processes on this machine.
    if let Some(lease) = run.lease.as_ref().filter(|_| is_active(&run)) {
        return Err(CliError::usage(format!("the run {} is still in progress: {} writes it", run.short, lease.owner))
            .hint("if that process has ended, the run can be resumed a minute after it last wrote"));
    }
    let info = store.info(&run.id)?;
    let (mut args, directory) = recorded_arguments(&run, &info)?;
    let recorded = recorded_workers(&info);
    let workers = if workers.workers.is_some() || workers.no_workers { workers } else { &recorded };
    let finished = Finished::load(&*store, &run, &info)?;
    let open: HashSet<Arc<str>> =
        info.trials.iter().map(Arc::from).filter(|trial| !finished.trials.contains(trial)).collect();
    // A question may be about all cases together, so their finished trials are needed too.
    let is_wanted = |trial: &&TrialId| info.decisions > 0 || open.contains(&Arc::from(*trial));
    let cases = info.trials.iter().filter(is_wanted);
    let only = cases.map(|trial| format!("{}::{}", trial.suite, trial.case)).collect();
    let SelectionArgs { files, evals, skill, .. } = args.selection;
    args.selection = SelectionArgs { files, evals, skill, only: Some(only), ..SelectionArgs::default() };
    let (session, mut planned) = place::plan_from(&here, &directory, &args)?;
    // Paths on that run's command line are relative to its directory.
    below(&directory, &mut args.output);
    if !report.reports.is_empty() {
        args.output.report = report.clone();
    }
    planned.plan.trials.retain(|trial| open.contains(&Arc::from(&trial.id())));
    refuse_two_versions(&session, &planned, &info, &finished.files, &run)?;
    planned.plan.earlier = finished.earlier;

    terminal.err(&format!(
        "resuming run {}: {} of {} finished, {}{} to go\n",
        run.label.as_deref().unwrap_or(&run.short),
        finished.trials.len(),
        counted(info.trials.len(), "trial"),
        if info.decisions > 0 { "at most " } else { "" },
        planned.plan.trials.len(),
    ));
    for change in changes(&session, &planned, &info) {
        terminal.err(&format!("note: {change}\n"));
    }
    let lost = open.len() - planned.plan.trials.len();
    if lost > 0 {
        let planned: HashSet<Arc<str>> = planned.plan.trials.iter().map(|trial| Arc::from(&trial.id())).collect();
        let mut names: Vec<&str> = open.iter().filter(|id| !planned.contains(*id)).map(|id| &**id).collect();
        names.sort_unstable();
        names.truncate(NAMES);
        terminal.err(&format!(
            "warning: {} can no longer be run, because the tests or their arms have changed: {}{}\n",
            counted(lost, "planned trial"),
            names.join(", "),
            if lost > NAMES { ", …" } else { "" }
        ));
    }
    let firsts = first_trials(&planned.plan);
    let resumed = Started { store, info, lock: Some(lock), resumed: Some(Resumed { former: run.lease.clone() }) };
    let code = run_planned(&args, &session, planned, Origin::Resumed(Box::new(resumed)), workers, terminal)?;
    let store = here.read_store()?;
    for (agent, trial) in firsts {
        let (before, now) = (finished.versions.get(&agent), store.trial(&run.id, &trial).ok());
        if let (Some(before), Some(now)) = (before, now.and_then(|record| record.agent_version))
            && *before != now
        {
            terminal.err(&format!("note: the version of {agent} changed during the run: {before}, then {now}\n"));
        }
    }
    Ok(code)
}

/// Makes the paths of outputs, which are relative to `directory`, absolute.
fn below(directory: &Path, output: &mut OutputArgs) {
    let paths = [&mut output.artifacts, &mut output.workspace, &mut output.report.file];
    paths.into_iter().flatten().for_each(|path| *path = directory.join(&*path));
    for report in &mut output.report.reports {
        if let Some((name, path)) = report.split_once('=').filter(|(_, path)| *path != "-" && !path.contains("://")) {
            *report = format!("{name}={}", directory.join(path).display());
        }
    }
}

/// Returns the run to resume.
fn find(store: &dyn Store, wanted: Option<&str>, terminal: &Terminal) -> Result<RunRow, CliError> {
    if let Some(wanted) = wanted {
        let run = named_run(store, wanted, terminal)?;
        return match run.is_interrupted() {
            true => Ok(run),
            false => Err(CliError::nothing(format!("the run {} is complete; there is nothing to resume", run.short))),
        };
    }
    let interrupted = store.runs(&RunFilter { interrupted: true, ..RunFilter::default() })?;
    let mut runs: Vec<RunRow> = Vec::new();
    for run in interrupted.into_iter().filter(|run| run.regrade_of.is_none()) {
        if !repeats_trial(&store.info(&run.id)?) {
            runs.push(run);
        }
    }
    // If all of them are in progress, the newest is named.
    let newest = runs.iter().position(|run| !is_active(run)).unwrap_or_default();
    match runs.is_empty() {
        true => Err(CliError::nothing("no run was interrupted; there is nothing to resume")),
        false => Ok(runs.swap_remove(newest)),
    }
}

/// The finished part of a run.
struct Finished {
    /// Ids of its trials.
    trials: HashSet<Arc<str>>,
    /// Files in which their cases are written.
    files: HashSet<Arc<str>>,
    earlier: Earlier,
    /// Versions of the agents, by agent name.
    versions: BTreeMap<String, String>,
}

impl Finished {
    fn load(store: &dyn Store, run: &RunRow, info: &RunInfo) -> Result<Self, CliError> {
        let mut finished = Self {
            trials: HashSet::new(),
            files: HashSet::new(),
            earlier: Earlier::default(),
            versions: BTreeMap::new(),
        };
        let mut last = info.started_at;
        store.replay(&run.id, &mut |envelope| {
            (finished.earlier.last_seq, last) = (envelope.seq, envelope.at);
            if let Event::TrialFinished(record) = &envelope.event
                && record.outcome != Outcome::Cancelled
            {
                finished.earlier.summary.add(record);
                finished.trials.insert(Arc::clone(&record.id));
                finished.files.extend(record.file.clone());
                finished.earlier.results.extend(record.auto_trials.map(|_| TrialResult::from(&**record)));
                if let Some(version) = &record.agent_version {
                    finished.versions.insert(record.agent.clone(), version.clone());
                }
            }
        })?;
        let elapsed = u64::try_from(last.duration_since(info.started_at).as_millis()).unwrap_or(0);
        finished.earlier.duration_ms = run.duration_ms.unwrap_or(elapsed);
        Ok(finished)
    }
}

/// Refuses to run the rest of a test that has changed, because the results of one run would be those of two versions.
/// `finished` are the files of finished trials.
fn refuse_two_versions(
    session: &Session,
    planned: &Planned,
    then: &RunInfo,
    finished: &HashSet<Arc<str>>,
    run: &RunRow,
) -> Result<(), CliError> {
    let Some(recorded) = &then.invocation else { return Ok(()) };
    let written = planned.plan.trials.iter().map(|trial| &trial.case.source.file);
    let begun: BTreeSet<&str> = written.filter(|file| finished.contains(*file)).map(|file| &**file).collect();
    let depends_on = begun.iter().filter_map(|file| recorded.dependencies.get(*file)).flatten();
    let begun: BTreeSet<&str> = depends_on.map(String::as_str).chain(begun.iter().copied()).collect();
    let is_changed = |file: &&str| {
        let hash = recorded.suites.get(*file);
        hash.is_some_and(|hash| hash_of(&session.cwd.join(file)).as_ref() != Some(hash))
    };
    // A nearer file with shared blocks replaces those of the same names.
    let now = invocation(Vec::new(), &planned.plan, session).map(|now| now.dependencies).unwrap_or_default();
    let of_begun = now.iter().filter(|(file, _)| begun.contains(file.as_str())).flat_map(|(_, names)| names);
    let is_added = |file: &&str| {
        Path::new(file).file_name().is_some_and(|name| name == SHARED) && !recorded.suites.contains_key(*file)
    };
    let added: BTreeSet<&str> = of_begun.map(String::as_str).filter(is_added).collect();
    let changed: Vec<&str> = begun.into_iter().filter(is_changed).chain(added).take(NAMES).collect();
    if changed.is_empty() {
        return Ok(());
    }
    let message =
        format!("cannot resume the run {}: {} changed after some of its trials", run.short, changed.join(", "));
    Err(CliError::usage(message)
        .hint("its results would come from two versions of a test; restore the file, or start a new run"))
}

/// Returns what has changed since the run was started, one line per change.
fn changes(session: &Session, planned: &Planned, then: &RunInfo) -> Vec<String> {
    let mut changes = Vec::new();
    let suites = then.invocation.as_ref().map(|invocation| &invocation.suites);
    for (file, hash) in suites.into_iter().flatten() {
        match hash_of(&session.cwd.join(file)) {
            Some(now) if now == *hash => {}
            Some(_) => changes.push(format!("{file} has changed since the run was started")),
            None => changes.push(format!("{file} can no longer be read")),
        }
    }
    let mut now = Event::RunStarted(Box::new(session.info(planned, None)));
    session.mask().event(&mut now);
    let Event::RunStarted(now) = now else { return changes };
    for skill in &now.skills {
        let before = then.skills.iter().find(|before| before.name == skill.name);
        if before.is_some_and(|before| before.content_hash != skill.content_hash) {
            changes.push(format!("the `{}` skill has changed since the run was started", skill.name));
        }
    }
    // A run stays part of the trace in which it was started.
    for (name, value) in now.settings.iter().filter(|(name, _)| *name != TRACEPARENT) {
        let before = then.settings.get(name).unwrap_or(&Value::Null);
        if before != value {
            changes.push(format!("the `{name}` setting was {before} when the run was started, and is {value} now"));
        }
    }
    if now.trialrun_version != then.trialrun_version {
        changes
            .push(format!("trialrun {} started the run, and this is {}", then.trialrun_version, now.trialrun_version));
    }
    changes
}

/// Returns the first trial of each agent.
fn first_trials(plan: &Plan) -> BTreeMap<String, String> {
    let trials = plan.trials.iter().rev();
    trials.map(|trial| (trial.arm.agent.clone(), trial.id().to_string())).collect()
}

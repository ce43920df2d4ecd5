//! `trialrun cassettes`.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use cassette::{Cassette, Recording};
use jiff::Timestamp;
use model::{CassetteMode, Outcome, TrialRow};
use report::{columns, counted};
use runner::PlannedTrial;
use serde_json::{Value, json};
use store::{RunFilter, Store, TrialFilter};

use crate::command;
use session::{Planned, Session};

use crate::error::CliError;
use crate::exit;
use crate::global::Global;
use crate::place;
use crate::terminal::Terminal;
use crate::units::{age, bytes};
use crate::workers::WorkersArgs;
use session::overrides::Overrides;

/// Number of recent runs that are searched for the last replay result.
const RUNS: usize = 20;

/// Cassettes to record again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Refresh {
    /// Those that are not current: stale, changed, incomplete, missing or damaged.
    Stale,
    /// All of them.
    All,
}

/// Arguments of `cassettes`.
#[derive(Debug, clap::Args)]
pub struct CassettesArgs {
    /// Print JSON
    // Placed before the groups of `run`, because otherwise it would appear under their last heading.
    #[arg(long)]
    json: bool,
    /// Run the tests whose cassettes are not current, or all, and record them again
    #[arg(long, value_name = "WHICH")]
    refresh: Option<Refresh>,
    /// Files, directories and options of `run` that select the tests
    #[command(flatten)]
    run: Overrides,
}

impl CassettesArgs {
    /// Returns the arguments of a run that records the tests.
    pub fn recording(&self) -> Overrides {
        let mut run = self.run.clone();
        run.cassettes.cassette = Some(CassetteMode::Record);
        run
    }
}

/// Cassette of one case in one arm.
struct Row {
    case: String,
    arm: String,
    file: PathBuf,
    /// Number of planned trials.
    planned: usize,
    /// True if the results decide how many of them run.
    is_auto: bool,
    cassette: Cassette,
    size: u64,
    state: State,
}

/// State of a cassette. Listing does not run anything, so drift is known only from earlier replays.
#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// No problem is known.
    Current,
    /// The last replay did not match. The text says why.
    Stale(String),
    /// The case, its skill or its settings have changed since.
    Changed,
    /// Some trials are not recorded.
    Incomplete,
    /// Nothing is recorded.
    Missing,
    /// The cassette cannot be read. The text says why.
    Damaged(String),
}

impl State {
    fn name(&self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Stale(_) => "stale",
            Self::Changed => "changed",
            Self::Incomplete => "incomplete",
            Self::Missing => "missing",
            Self::Damaged(_) => "damaged",
        }
    }

    fn reason(&self) -> Option<&str> {
        match self {
            Self::Stale(reason) | Self::Damaged(reason) => Some(reason),
            Self::Current | Self::Changed | Self::Incomplete | Self::Missing => None,
        }
    }
}

/// Lists the cassettes of the selected tests, or records them again.
pub fn run(global: &Global, args: &CassettesArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    // Listing does not record, so it must also work in CI, where recording is an error.
    let mut run = args.run.clone();
    run.cassettes.cassette = Some(CassetteMode::Off);
    let (session, prepared) = place::plan(global, &run)?;
    if args.refresh.is_none() || prepared.plan.trials.is_empty() {
        terminal.diagnostics(&prepared.diagnostics);
        terminal.notes(prepared.spec.notes());
    }
    if prepared.plan.trials.is_empty() {
        if prepared.diagnostics.iter().any(model::Diagnostic::is_error) {
            return Ok(ExitCode::from(exit::INVALID));
        }
        return Err(prepared.nothing_selected());
    }
    let rows = rows(&session, &prepared)?;
    if let Some(refresh) = args.refresh {
        return record(global, args, &rows, refresh, terminal);
    }
    let unused = unused(&session, &prepared, &args.run, &rows);
    if args.json {
        let rows: Vec<Value> = rows.iter().map(Row::json).collect();
        terminal.json(&json!({ "cassettes": rows, "unused": unused }));
    } else {
        terminal.out(&table(&rows, &unused, &session.cwd));
    }
    let has_error = prepared.diagnostics.iter().any(model::Diagnostic::is_error);
    Ok(ExitCode::from(if has_error { exit::INVALID } else { exit::PASSED }))
}

/// Runs the tests of the selected cassettes, and records their traffic again.
fn record(
    global: &Global,
    args: &CassettesArgs,
    rows: &[Row],
    refresh: Refresh,
    terminal: &Terminal,
) -> Result<ExitCode, CliError> {
    let is_wanted = |row: &&Row| refresh == Refresh::All || row.state != State::Current;
    let only: HashSet<String> = rows.iter().filter(is_wanted).map(|row| row.case.clone()).collect();
    if only.is_empty() {
        terminal.err("all cassettes are current\n");
        return Ok(ExitCode::SUCCESS);
    }
    let mut run = args.recording();
    run.selection.only = Some(only);
    command::run::run(global, &run, &WorkersArgs::none(), terminal)
}

/// Returns the cassettes of all planned trials, in case order.
fn rows(session: &Session, prepared: &Planned) -> Result<Vec<Row>, CliError> {
    let settings = &prepared.plan.settings.cassettes;
    let mut of_files: BTreeMap<(usize, PathBuf), Vec<&PlannedTrial>> = BTreeMap::new();
    let is_recorded =
        |trial: &&PlannedTrial| trial.case.skip.is_none() && runner::is_recorded(trial, &prepared.plan.judging);
    for trial in prepared.plan.trials.iter().filter(is_recorded) {
        let file = runner::cassette_file(trial, settings);
        of_files.entry((trial.position, file)).or_default().push(trial);
    }
    let results = last_results(session)?;
    let row = |((_, file), trials): ((usize, PathBuf), Vec<&PlannedTrial>)| {
        let first = trials.first()?;
        let (cassette, damage) = match Cassette::read(&file) {
            Ok(cassette) => (cassette, None),
            Err(error) => (Cassette::default(), Some(State::Damaged(error.to_string()))),
        };
        let size = std::fs::metadata(&file).map_or(0, |metadata| metadata.len());
        let state = damage.unwrap_or_else(|| state(&cassette, &trials, &results));
        let case = format!("{}::{}", first.suite, first.case_id);
        let (arm, planned, is_auto) = (first.arm_name.to_string(), trials.len(), first.auto.is_some());
        Some(Row { case, arm, file, planned, is_auto, cassette, size, state })
    };
    Ok(of_files.into_iter().filter_map(row).collect())
}

fn state(cassette: &Cassette, trials: &[&PlannedTrial], results: &HashMap<String, TrialRow>) -> State {
    if cassette.recordings.is_empty() {
        return State::Missing;
    }
    let mut state = State::Current;
    let last = cassette.recordings.iter().map(|recording| recording.about.repetition).max();
    for trial in trials {
        let Some(recording) = cassette.recording(trial.repetition) else {
            // If the results decide how many trials run, those after the last recorded one were not needed.
            if trial.auto.is_none() || last.is_some_and(|last| trial.repetition < last) {
                state = State::Incomplete;
            }
            continue;
        };
        let last = results.get(&trial.id().to_string()).filter(|row| row.started_at > recording.about.recorded_at);
        if let Some(row) = last.filter(|row| row.outcome == Outcome::Stale) {
            return State::Stale(row.reason.clone().unwrap_or_default());
        }
        if recording.about.inputs != runner::inputs(trial) {
            return State::Changed;
        }
    }
    state
}

/// Returns the last result of each trial, by trial id.
fn last_results(session: &Session) -> Result<HashMap<String, TrialRow>, CliError> {
    let mut results = HashMap::new();
    let Ok(store) = session.read_store() else { return Ok(results) };
    let newest = RunFilter { last: Some(RUNS), ..RunFilter::default() };
    for run in Store::runs(&*store, &newest)? {
        let mode = store.info(&run.id)?.settings.get("cassette").cloned();
        if !matches!(mode.as_ref().and_then(Value::as_str), Some("replay" | "auto")) {
            continue;
        }
        for row in store.trials(&TrialFilter::of_run(&run.id))? {
            results.entry(row.id.clone()).or_insert(row);
        }
    }
    Ok(results)
}

/// Returns cassettes that no test uses, from the folders of `rows`, and from those beside them if every suite there was
/// loaded. If only some tests were selected, the list is empty, because the other tests may use these files.
fn unused(session: &Session, prepared: &Planned, args: &Overrides, rows: &[Row]) -> Vec<PathBuf> {
    let settings = &prepared.plan.settings.cassettes;
    // Other projects may also use an explicitly set folder.
    if settings.directory.is_some() || prepared.plan.cases_matched < prepared.plan.cases_loaded {
        return Vec::new();
    }
    let files: HashSet<PathBuf> =
        prepared.plan.trials.iter().map(|trial| runner::cassette_file(trial, settings)).collect();
    let mut folders: BTreeSet<PathBuf> = rows.iter().filter_map(|row| row.file.parent()).map(Path::to_owned).collect();
    if has_all_suites(session, prepared, args) {
        let beside: HashSet<&Path> = files.iter().filter_map(|file| file.parent()?.parent()).collect();
        folders.extend(beside.into_iter().flat_map(entries));
    }
    let of_folders = folders.iter().flat_map(|folder| entries(folder));
    let mut unused: Vec<PathBuf> =
        of_folders.filter(|path| path.to_string_lossy().ends_with(cassette::ENDING) && !files.contains(path)).collect();
    unused.sort();
    unused
}

/// Returns `true` if all suites were loaded from the directories in which any was.
fn has_all_suites(session: &Session, prepared: &Planned, args: &Overrides) -> bool {
    let chosen = &args.selection;
    chosen.skill.is_none()
        && args.named().iter().all(|target| session.cwd.join(target).is_dir())
        && !prepared.diagnostics.iter().any(model::Diagnostic::is_error)
}

/// Returns the paths in a folder; none if it cannot be read.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

impl Row {
    fn newest(&self) -> Option<&Recording> {
        self.cassette.recordings.iter().max_by_key(|recording| recording.about.recorded_at).map(|newest| &**newest)
    }

    fn requests(&self) -> usize {
        self.cassette.recordings.iter().map(|recording| recording.exchanges.len()).sum()
    }

    fn json(&self) -> Value {
        let newest = self.newest().map(|recording| &recording.about);
        json!({
            "case": self.case,
            "arm": self.arm,
            "file": self.file,
            "state": self.state.name(),
            "because": self.state.reason(),
            "trials_recorded": self.cassette.recordings.len(),
            "trials_planned": self.planned,
            "requests": self.requests(),
            "recorded_at": newest.map(|about| about.recorded_at),
            "model": newest.and_then(|about| about.model.as_deref()),
            "agent_version": newest.and_then(|about| about.agent_version.as_deref()),
            "trialrun_version": newest.map(|about| about.trialrun.as_str()),
            "size_bytes": self.size,
        })
    }
}

fn table(rows: &[Row], unused: &[PathBuf], cwd: &Path) -> String {
    let now = Timestamp::now();
    let mut lines: Vec<[String; 7]> =
        vec![["STATE", "CASE", "ARM", "TRIALS", "AGE", "VERSION", "SIZE"].map(str::to_owned)];
    for row in rows {
        let newest = row.newest().map(|recording| &recording.about);
        let seconds = newest.map(|about| now.duration_since(about.recorded_at).as_secs().max(0).unsigned_abs());
        let none = || "-".to_owned();
        lines.push([
            row.state.name().to_owned(),
            row.case.clone(),
            row.arm.clone(),
            match row.is_auto {
                true => format!("{} (up to {})", row.cassette.recordings.len(), row.planned),
                false => format!("{}/{}", row.cassette.recordings.len(), row.planned),
            },
            seconds.map_or_else(none, |seconds| age(Duration::from_secs(seconds))),
            newest.and_then(|about| about.agent_version.clone()).unwrap_or_else(none),
            if row.size == 0 { none() } else { bytes(row.size) },
        ]);
    }
    let mut widths = [0; 7];
    for (at, width) in widths.iter_mut().enumerate() {
        *width = columns::widest(lines.iter().map(|line| &line[at]));
    }
    let mut text = String::new();
    for line in &lines {
        let cells: Vec<String> = line.iter().zip(widths).map(|(cell, width)| columns::padded(cell, width)).collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    for row in rows {
        if let Some(reason) = row.state.reason() {
            text.push_str(&format!("\n{} ({}): {}: {reason}", row.case, row.arm, row.state.name()));
        }
    }
    let stale = rows.iter().filter(|row| row.state != State::Current).count();
    if stale > 0 {
        let total: u64 = rows.iter().map(|row| row.size).sum();
        text.push_str(&format!(
            "\nnot current: {stale} of {} ({} in all); `--refresh stale` records them again\n",
            counted(rows.len(), "cassette"),
            bytes(total)
        ));
    }
    for path in unused {
        let path = path.strip_prefix(cwd).unwrap_or(path);
        text.push_str(&format!("\nnot used by these tests and arms: {}", path.display()));
    }
    if !unused.is_empty() {
        text.push('\n');
    }
    report::clean(&text)
}

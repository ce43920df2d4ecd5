//! `trialrun show`.

use std::process::ExitCode;

use model::{Envelope, RunRow, TrialRecord, TrialRow, WITHOUT_SKILL};
use report::{StatusView, Style, counted};
use serde_json::Value;
use store::{SelectError, Store, StoreError, TrialFilter};

use crate::error::CliError;
use crate::global::Global;
use crate::place;
use crate::terminal::Terminal;

/// Arguments of `show`.
#[derive(Debug, clap::Args)]
pub struct ShowArgs {
    /// Id or case of a trial, or a prefix of either; `RUN/TRIAL` selects a run. If a case has several trials, a failed
    /// one is shown first. A run alone, such as `latest`, lists its trials
    #[arg(value_name = "TRIAL")]
    trial: String,
    /// Second trial, to show both side by side
    #[arg(value_name = "OTHER", conflicts_with_all = ["step", "diff", "json"])]
    other: Option<String>,
    /// Show only this step of the conversation, in full
    #[arg(long, value_name = "N", conflicts_with_all = ["diff", "json"])]
    step: Option<usize>,
    /// Show only the changes to files, as a patch
    #[arg(long, conflicts_with = "json")]
    diff: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Maximum number of trials that are listed for a run.
const LISTED: usize = 20;

/// A recorded trial with its events.
struct Shown {
    row: TrialRow,
    record: TrialRecord,
    events: Vec<Envelope>,
}

impl Shown {
    fn read(store: &dyn Store, wanted: &str) -> Result<Self, CliError> {
        let row = store.select_trial(wanted)?;
        let mut record = store.trial(&row.run, &row.id)?;
        let cleaned = store.cleaned(&row.run)?;
        record.side_effects = record.side_effects.iter().filter_map(|left| left.without(&cleaned)).collect();
        let events = store.trial_events(&row.run, &row.id)?.into_iter().filter_map(store::StoredEvent::known).collect();
        Ok(Self { row, record, events })
    }

    fn json(&self, store: &dyn Store) -> Result<Value, CliError> {
        let mut json = report::show_json(&self.record, &self.events, &self.row.run);
        if let Some(fields) = json.as_object_mut() {
            fields.insert("run_hash".to_owned(), store.select(&self.row.run)?.hash.into());
        }
        Ok(json)
    }

    fn parts(&self) -> (&TrialRecord, &[Envelope], &str) {
        (&self.record, &self.events, &self.row.run)
    }
}

/// Returns a trial as text and as JSON.
///
/// # Errors
/// Returns an error if there is no such trial, or if `wanted` is a run.
pub fn trial(store: &dyn Store, wanted: &str) -> Result<(String, Value), CliError> {
    if named_run(store, wanted)?.is_some() {
        return Err(run_instead_of_trial(wanted));
    }
    let shown = Shown::read(store, wanted)?;
    let (record, events, run) = shown.parts();
    Ok((report::show(record, events, run, &Style::plain()), shown.json(store)?))
}

/// Shows one trial, a part of it, or two trials side by side.
pub fn run(global: &Global, args: &ShowArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let store = place::open(global, &[])?.read_store()?;
    let style = &terminal.out_style;
    if let Some(run) = named_run(&*store, &args.trial)? {
        if args.other.is_some() || args.step.is_some() || args.diff || args.json {
            return Err(run_instead_of_trial(&args.trial));
        }
        terminal.out(&trials(&*store, &run, style)?);
        return Ok(ExitCode::SUCCESS);
    }
    let shown = Shown::read(&*store, &args.trial)?;
    let (record, events, run) = shown.parts();
    let wrong = |why: String| CliError::usage(format!("{}: {why}", record.id));
    if let Some(other) = &args.other {
        let named = other;
        let other = Shown::read(&*store, named)?;
        if (&shown.row.run, &shown.row.id) == (&other.row.run, &other.row.id) {
            let same = format!("`{}` and `{named}` both name the trial {}", args.trial, record.id);
            return Err(CliError::usage(same).hint("`trialrun show CASE` lists the trials of a case"));
        }
        terminal.out(&report::show_two([shown.parts(), other.parts()], style));
    } else if let Some(step) = args.step {
        let text = report::show_step(record, events, step, style).map_err(|steps| {
            wrong(format!("there is no step {step}; the number of steps is {steps}"))
                .hint("`trialrun show TRIAL` shows the steps with their numbers")
        })?;
        terminal.out(&text);
    } else if args.diff {
        terminal.out(&report::show_diff(record, events, style));
    } else if args.json {
        terminal.json(&shown.json(&*store)?);
    } else {
        terminal.out(&report::show(record, events, run, style));
        if let Some(hash) = store.select(run)?.hash {
            terminal.out(&format!("\nhash of the run  {hash}\n"));
        }
        terminal.out(&others(&*store, &shown.row, &args.trial)?);
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the run with that name, unless it is the name of a trial.
fn named_run(store: &dyn Store, wanted: &str) -> Result<Option<RunRow>, CliError> {
    match store.select_trial(wanted) {
        Err(StoreError::Select(SelectError::UnknownTrial { .. })) => {}
        Err(error) => return Err(error.into()),
        Ok(_) => return Ok(None),
    }
    match store.select(wanted) {
        Ok(run) => Ok(Some(run)),
        Err(error @ StoreError::Select(SelectError::AmbiguousRun { .. })) => Err(error.into()),
        Err(_) => Ok(None),
    }
}

fn run_instead_of_trial(wanted: &str) -> CliError {
    CliError::usage(format!("`{wanted}` is a run, and not a trial"))
        .hint(format!("`trialrun show {wanted}` lists its trials"))
}

/// Lists the trials of a run below its verdict, those that did not pass first, each with the command that shows it.
fn trials(store: &dyn Store, run: &RunRow, style: &Style) -> Result<String, CliError> {
    let mut trials = store.trials(&TrialFilter::of_run(&run.id))?;
    let key = |trial: &TrialRow| {
        (trial.outcome.rank(), trial.suite.clone(), trial.case.clone(), trial.arm.clone(), trial.repetition)
    };
    trials.sort_by_cached_key(key);
    let verdict = verdict_on(store, run, &trials, style)?;
    let label = run.label.as_ref().map_or_else(String::new, |label| format!(" ({label})"));
    let mut text = format!("run {}{label}: {}\n", run.short, counted(trials.len(), "finished trial"));
    for trial in trials.iter().take(LISTED) {
        // A comment of the shell, so that the line can still be copied.
        let note = match (trial.quarantined, trial.variant.as_deref()) {
            (true, _) => "  # quarantined",
            (false, Some(WITHOUT_SKILL)) => "  # baseline",
            (false, _) => "",
        };
        text.push_str(&format!("  {:9}  trialrun show '{}/{}'{note}\n", trial.outcome.name(), run.short, trial.id));
    }
    if trials.len() > LISTED {
        text.push_str(&format!("  and {} more: trialrun status {} --all\n", trials.len() - LISTED, run.short));
    }
    Ok(verdict + &report::clean(&text))
}

/// Returns the verdict on a run, of which `trials` are the finished trials.
pub fn verdict_on(store: &dyn Store, run: &RunRow, trials: &[TrialRow], style: &Style) -> Result<String, CliError> {
    let details = super::status::details_of(store, run, false)?;
    let (live, alive, now) = (&[], session::is_active(run), jiff::Timestamp::now());
    Ok(report::status_verdict(&StatusView { run, trials, live, alive, now, all: false, details: &details }, style))
}

/// Lists the other trials of the same case, unless this one was selected by its id.
fn others(store: &dyn Store, shown: &TrialRow, wanted: &str) -> Result<String, CliError> {
    let of_case = TrialFilter {
        suite: Some(shown.suite.clone()),
        case: Some(shown.case.clone()),
        ..TrialFilter::of_run(&shown.run)
    };
    let mut trials = store.trials(&of_case)?;
    trials.retain(|trial| trial.id != shown.id);
    if trials.is_empty() || wanted.ends_with(&shown.id) {
        return Ok(String::new());
    }
    trials.sort_by(|a, b| a.id.cmp(&b.id));
    let lines = trials.iter().map(|trial| format!("  {:9}  {}\n", trial.outcome.name(), trial.id));
    Ok(std::iter::once("\nother trials of this case\n".to_owned()).chain(lines).collect())
}

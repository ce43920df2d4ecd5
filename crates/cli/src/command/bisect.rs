//! `trialrun bisect`.

use std::process::ExitCode;

use model::statistics::Counted;
use model::{Outcome, TrialRecord, TrialRow};
use report::counted;
use serde_json::json;
use session::{Launch, Session};
use store::{Store, TrialFilter};

use crate::error::CliError;
use crate::global::Global;
use crate::named_run::named_run;
use crate::recorded_trial::{Changes, RecordedTrial};
use crate::terminal::Terminal;
use crate::{limits, machine, place};

/// Maximum length of a text in the result, in characters.
const LONGEST: usize = 160;

/// Arguments of `bisect`.
#[derive(Debug, clap::Args)]
pub struct BisectArgs {
    /// One run
    #[arg(value_name = "RUN_A")]
    one: String,
    /// Another run
    #[arg(value_name = "RUN_B")]
    other: String,
    /// Case that passed in one run and failed in the other
    #[arg(value_name = "CASE")]
    case: String,
    /// Number of trials for each step that is tried; the majority decides
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=99))]
    times: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A tried step: the arm that passed continued after the first `turns` answers of the failed trial.
struct Tried {
    turns: usize,
    run: String,
    counted: Counted,
}

/// Finds the answer after which the arm that passed can no longer save the failed trial.
pub fn run(global: &Global, args: &BisectArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    limits::raise_open_files();
    let here = place::open(global, &[])?;
    let store = here.read_store()?;
    let [one, other] = [&args.one, &args.other].map(|run| trial_of(&*store, run, &args.case, terminal));
    let (good, bad) = in_order(one?, other?)?;
    let failed = RecordedTrial::find(&here, &*store, bad.clone())?;
    let changes = Changes {
        times: args.times,
        arm: Some(good.clone()),
        label: format!("bisect of {}", bad.id),
        ..Changes::default()
    };
    let turns = failed.turns();
    if turns < 2 {
        let known = counted(turns, "request");
        return Err(CliError::usage(format!("nothing to bisect: {} sent only {known}", bad.id)));
    }
    if good.arm == bad.arm {
        terminal
            .err("warning: both trials have the same arm and run with the current tests, so the result may be due to chance\n");
    }
    let (mut saved, mut lost) = (0, turns);
    let mut tried: Vec<Tried> = Vec::new();
    while lost - saved > 1 {
        let middle = saved + (lost - saved) / 2;
        terminal.err(&format!("{} of {turns} replayed, then {}: ", counted(middle, "answer"), good.arm));
        let attempt = attempt(&here, &failed, &changes, middle, terminal)?;
        let Counted { passed, unknown, .. } = attempt.counted;
        let (most, trials) = (passed + unknown, attempt.counted.trials());
        let range = if unknown > 0 { format!("{passed} to {most}") } else { passed.to_string() };
        terminal.err(&format!("{range} of {trials} passed\n"));
        if passed * 2 > trials {
            saved = middle;
        } else if most * 2 <= trials && trials > 0 {
            lost = middle;
        } else {
            let unknown = "trials without a result decide whether most of them pass";
            return Err(CliError::nothing(format!("{unknown}; `trialrun status {}` says why", attempt.run)));
        }
        tried.push(attempt);
    }
    let record = store.trial(&bad.run, &bad.id)?;
    let calls = failed.calls(lost - 1);
    let alternative = tried.iter().find(|attempt| attempt.turns == saved);
    let alternative = match alternative {
        Some(attempt) => trial_that_passed(&*here.read_store()?, &attempt.run)?,
        None => Some((good.run.clone(), store.trial(&good.run, &good.id)?)),
    };
    if args.json {
        terminal.json(&json!({
            "step": lost,
            "steps": turns,
            "failed": {"run": bad.run, "trial": bad.id, "did": did(&record, calls)},
            "passed": alternative.as_ref().map(|(run, record)| {
                json!({"run": run, "trial": record.id, "did": did(record, calls)})
            }),
            "tried": tried.iter().map(|attempt| {
                json!({"replayed": attempt.turns, "run": attempt.run, "passed": attempt.counted.passed,
                       "unknown": attempt.counted.unknown, "of": attempt.counted.trials()})
            }).collect::<Vec<_>>(),
        }));
        return Ok(ExitCode::SUCCESS);
    }
    let begins = match saved {
        0 => "from the start".to_owned(),
        _ => format!("when it takes over after step {saved}"),
    };
    let mut text = format!("\nstep {lost} of {turns} is decisive: {} still passes {begins}\n", good.arm);
    text.push_str(&format!(
        "\n  failed  {}/{}\n          {}\n",
        store.select(&bad.run)?.short,
        bad.id,
        did(&record, calls)
    ));
    if let Some((run, record)) = alternative {
        text.push_str(&format!(
            "\n  passed  {}/{}\n          {}\n",
            here.read_store()?.select(&run)?.short,
            record.id,
            did(&record, calls)
        ));
    }
    text.push_str("\n`trialrun show TRIAL OTHER` shows both side by side\n");
    terminal.out(&report::clean(&text));
    Ok(ExitCode::SUCCESS)
}

/// Returns the trial of a case in a run. If there are several, a failed one is preferred.
fn trial_of(store: &dyn Store, run: &str, case: &str, terminal: &Terminal) -> Result<TrialRow, CliError> {
    let run = named_run(store, run, terminal)?;
    Ok(store.select_trial(&format!("{}/{case}", run.id))?)
}

/// Returns the two trials in order: the one that passed, then the one that failed.
fn in_order(one: TrialRow, other: TrialRow) -> Result<(TrialRow, TrialRow), CliError> {
    match (one.outcome, other.outcome) {
        (Outcome::Passed, Outcome::Failed) => Ok((one, other)),
        (Outcome::Failed, Outcome::Passed) => Ok((other, one)),
        (first, second) => Err(CliError::usage(format!(
            "one trial must have passed and the other failed: {} {}, {} {}",
            one.id,
            first.name(),
            other.id,
            second.name()
        ))),
    }
}

/// Replays the first `turns` answers of the failed trial, and lets the arm that passed continue.
fn attempt(
    here: &Session,
    failed: &RecordedTrial,
    changes: &Changes,
    turns: usize,
    terminal: &Terminal,
) -> Result<Tried, CliError> {
    let arguments = failed.arguments(turns, changes);
    let (session, mut planned) = failed.plan(here, &arguments, changes)?;
    if let Some(problem) = planned.first_error() {
        return Err(CliError::usage(problem.to_string()));
    }
    terminal.diagnostics(&session.check(&mut planned)?);
    let started = session.start(&planned, machine::arguments())?;
    let id = started.info.id.clone();
    let launch = Launch { signals: place::SIGNALS, ..Launch::default() };
    let (ended, recorded) = session.run(planned, started, launch)?;
    if let Some(error) = recorded.error {
        return Err(CliError::environment(format!("recording failed: {error}")));
    }
    if let Some(reason) = ended.stopped_by {
        return Err(CliError::stopped(format!("stopped by {reason}")));
    }
    Ok(Tried { turns, run: id, counted: ended.summary.counted() })
}

fn trial_that_passed(store: &dyn Store, run: &str) -> Result<Option<(String, TrialRecord)>, CliError> {
    let rows = store.trials(&TrialFilter::of_run(run))?;
    let passed = rows.into_iter().find(|row| row.outcome == Outcome::Passed);
    Ok(match passed {
        Some(row) => Some((row.run.clone(), store.trial(&row.run, &row.id)?)),
        None => None,
    })
}

/// Describes what an agent did after its first `calls` tool calls: its next call, or its answer to the user.
fn did(record: &TrialRecord, calls: usize) -> String {
    let mut own = record.tool_calls.iter().filter(|call| call.parent.is_none());
    let text = match own.nth(calls) {
        Some(call) => format!("{} {}", call.name, call.input),
        None => format!("answered: {}", record.answer.as_deref().unwrap_or("nothing")),
    };
    let text = text.replace('\n', " ");
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

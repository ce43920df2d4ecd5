//! The first lines about runs in which something is missing. Readers who know no statistics must draw the right
//! conclusion from them, and all formats must agree.

use model::*;
use report::{Details, StatusView};
use serde_json::{Value, json};

use crate::run_builder::{RUN, RunBuilder, broken, failed, id, passed, row, run_row};
use crate::{Paper, expect, plain, reported};

const JUDGE: &str = "the judge openai:gpt-4o-mini did not return a verdict: HTTP 401";
const CLOSED: &str = "could not reach the agent: POST http://127.0.0.1:3107/: connection refused; is the bot running?";

/// Returns a trial of a case with this outcome and the reason for it.
fn trial(case: &str, outcome: Outcome, reason: &str) -> TrialRecord {
    let name = id(case, "fake", 1);
    let mut record = match outcome {
        Outcome::Failed => failed(&name),
        Outcome::Broken => broken(&name),
        _ => passed(&name),
    };
    record.outcome = outcome;
    match outcome {
        Outcome::Passed | Outcome::Failed => {}
        Outcome::Undecided => {
            (record.findings[1].status, record.findings[1].reason) = (Status::Undecided, reason.to_owned());
            record.reason = Some(format!("passed except for 1 undecided assertion: {reason}"));
        }
        _ => record.reason = Some(reason.to_owned()),
    }
    if matches!(outcome, Outcome::Skipped | Outcome::Cancelled) {
        (record.ending, record.usage, record.cost_usd) = (None, None, None);
        record.findings.clear();
        record.attempts.clear();
    }
    record
}

/// Returns trials of different cases with these outcomes. `+` passed, `x` failed, `?` undecided, `!` broken, `~` stale,
/// `-` skipped, `/` cancelled; the last four have `reason`.
fn trials(outcomes: &str, reason: &str) -> Vec<TrialRecord> {
    let outcome = |letter: char| match letter {
        '+' => Outcome::Passed,
        'x' => Outcome::Failed,
        '?' => Outcome::Undecided,
        '!' => Outcome::Broken,
        '~' => Outcome::Stale,
        '-' => Outcome::Skipped,
        _ => Outcome::Cancelled,
    };
    outcomes.chars().enumerate().map(|(at, letter)| trial(&format!("case-{at}"), outcome(letter), reason)).collect()
}

/// Returns the trials after a change of those with this outcome.
fn changed(mut trials: Vec<TrialRecord>, of: Outcome, change: fn(&mut TrialRecord)) -> Vec<TrialRecord> {
    trials.iter_mut().filter(|record| record.outcome == of).for_each(change);
    trials
}

/// A run: its name, its settings, its trials, the number of planned trials that have no outcome, and the signal that
/// stopped it.
type Run = (&'static str, Value, Vec<TrialRecord>, usize, Option<&'static str>);

fn runs() -> Vec<Run> {
    let plain = |name, trials| (name, json!({}), trials, 0, None);
    let gate = json!({ "min_pass_rate": 0.8 });
    let quarantine = |record: &mut TrialRecord| {
        record.quarantine = Some(Quarantine { reason: Some("flaky backend".into()), since: None });
    };
    let leave_unjudged = |record: &mut TrialRecord| {
        record.findings[1].judged = true;
        record.set_sampled(Some(false));
    };
    let two_reasons = [trials("++!", "HTTP 529"), vec![trial("more", Outcome::Undecided, JUDGE)]].concat();
    vec![
        plain("everything passed", trials("+++", "")),
        plain("the judge does not answer", trials("++??", JUDGE)),
        plain("the judge does not answer, and a trial failed", trials("++??x", JUDGE)),
        plain("no agent reports its tokens", trials("??", "the agent did not report its tokens")),
        plain("the provider is down for a trial", trials("++!", "no complete answer from the model: HTTP 529")),
        plain("the bot is not running", trials("!!!", CLOSED)),
        plain("one trial failed, another is broken", trials("+x!", "no complete answer from the model: HTTP 529")),
        plain("trials have no result for different reasons", two_reasons),
        plain("the shard is empty", Vec::new()),
        plain("a quarantined case failed", changed(trials("+x", ""), Outcome::Failed, quarantine)),
        plain("every case is quarantined", changed(trials("x", ""), Outcome::Failed, quarantine)),
        plain("every case is quarantined or skipped", changed(trials("x-", "later"), Outcome::Failed, quarantine)),
        plain("the judge's sample is empty", changed(trials("??", JUDGE), Outcome::Undecided, leave_unjudged)),
        plain("a case is skipped", trials("+-", "not built yet")),
        plain("every case is skipped", trials("--", "not built yet")),
        plain("a case has `only`", trials("+---", "another case has `only: true`")),
        plain(
            "a failed trial was run again",
            changed(trials("++", ""), Outcome::Passed, |record| {
                record.flaky = *record.case == *"case-1";
            }),
        ),
        plain("no case has assertions", trials("??", "it has no assertions, so nothing was checked")),
        ("the required pass rate is met", gate.clone(), trials("++++x", ""), 0, None),
        ("the required pass rate is not met", gate.clone(), trials("+++xx", ""), 0, None),
        ("the required pass rate is unknown", gate, trials("+++!", "HTTP 529"), 0, None),
        ("failures do not matter", json!({ "no_fail_on_assertions": true }), trials("+x", ""), 0, None),
        plain("a limit stopped the run", trials("++//", "the run used 400 tokens, which is over its limit of 300")),
        ("the run was interrupted", json!({}), trials("+//", "the run was stopped"), 0, Some("SIGINT")),
        ("the program was killed", json!({}), trials("++", ""), 3, None),
        plain("cassettes lack a request", trials("+~~", "request 2 is not in the cassette")),
    ]
}

fn story((_, settings, trials, unfinished, signal): &Run) -> RunBuilder {
    let mut planned: Vec<TrialId> = trials.iter().map(|record| id(&record.case, "fake", 1)).collect();
    planned.extend((0..*unfinished).map(|number| id(&format!("unfinished-{number}"), "fake", 1)));
    let mut story = RunBuilder::new(planned, 2);
    if let Event::RunStarted(info) = &mut story.events[0].event {
        info.settings = settings.as_object().unwrap().clone();
    }
    for record in trials {
        story.ends(record.clone());
    }
    let summary = story.summary.clone();
    story.tell(Event::RunFinished { summary, duration_ms: 1000, signal: signal.map(str::to_owned) });
    story
}

fn status(run: &Run, summary: &Summary) -> String {
    let (_, settings, trials, unfinished, signal) = run;
    let mut details = Details { gate: Gate::from_settings(settings.as_object().unwrap()), ..Details::default() };
    trials.iter().for_each(|record| details.add(record));
    let rows: Vec<TrialRow> = trials.iter().map(|record| row(record, RUN)).collect();
    let run = RunRow {
        planned: trials.len() + unfinished,
        finished: trials.len(),
        summary: Some(summary.clone()),
        signal: signal.map(str::to_owned),
        ..run_row(RUN)
    };
    let now = run.started_at;
    let view = StatusView { run: &run, trials: &rows, live: &[], alive: false, now, all: false, details: &details };
    report::status(&view, &plain())
}

#[test]
fn the_first_lines_lead_to_the_right_conclusion_in_every_format() {
    let mut all = String::new();
    for run in runs() {
        let story = story(&run);
        let terminal = reported("terminal", &story.events, |_| {});
        let (_, summary) = terminal.split_once("──\n").unwrap();
        let (folded, counts) = summary.split_once("\n  trials ").unwrap();
        let second = counts.lines().nth(1).unwrap();
        all.push_str(&format!("{}\n{folded}\n{second}\n\n", run.0));

        assert!(status(&run, &story.summary).starts_with(&format!("{folded}\nrun ")), "{}", run.0);
        let paper = Paper::default();
        let mut alone = report::last_line(report::ReporterOptions::new(paper.writer(), plain()));
        story.events.iter().for_each(|event| alone.event(event).unwrap());
        alone.finish().unwrap();
        assert_eq!(paper.text(), format!("{folded}\n"));

        let verdict = folded.replace("\n  ", " ");
        let (word, sentence) = verdict.split_once("  ").unwrap();
        let markdown = reported("markdown", &story.events, |_| {}).lines().next().unwrap().replace('\\', "");
        assert_eq!(markdown, format!("## {word}: {sentence}"));
        let html = reported("html", &story.events, |_| {});
        for (key, value) in [("result", word), ("because", sentence)] {
            assert!(html.contains(&format!("\"{key}\":{}", json!(value))), "{key}: {value}");
        }
    }
    expect("first-lines.txt", &all);
}

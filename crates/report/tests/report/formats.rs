//! Reports in the formats of other tools, all for one run that contains every outcome.

use std::path::PathBuf;

use jiff::SignedDuration;
use model::*;
use quick_junit::{NonSuccessKind, TestCaseStatus};
use serde_json::Value;

use crate::documents::agree;
use crate::run_builder::{RUN, RunBuilder, begin, broken, failed, id, met, passed};
use crate::{Paper, expect, reported};

const FORMATS: [(&str, &str); 7] = [
    ("junit", "junit.xml"),
    ("junit:gitlab", "junit-gitlab.xml"),
    ("junit:jenkins", "junit-jenkins.xml"),
    ("tap", "tap"),
    ("ctrf", "ctrf.json"),
    ("github", "github.txt"),
    ("gitlab", "gitlab.json"),
];

/// Text that every format has to escape.
pub const HOSTILE: &str = "a\u{0}\u{1b}[31m<b> & \"q\" ]]> %\u{ffff}\r\n::error::x # SKIP \\ \u{202e}\u{2028}é👍";

fn attempt(outcome: Outcome, reason: Option<&str>, duration_ms: u64) -> AttemptRecord {
    let reason = reason.map(str::to_owned);
    AttemptRecord { outcome, reason, duration_ms, ..AttemptRecord::default() }
}

/// A run with every outcome, several arms and repetitions.
pub fn every_outcome() -> RunBuilder {
    let (haiku, sonnet) = ("claude-code:haiku", "claude-code:sonnet");
    let trials = [
        id("splits-in-two", haiku, 1),
        id("splits-in-two", haiku, 2),
        id("splits-in-two", sonnet, 1),
        id("asks-before-push", haiku, 1),
        id("asks-before-push", haiku, 2),
        id("asks-before-push", "claude-code:haiku+without_skill", 1),
        id("provider-down", sonnet, 1),
        id("hard-to-tell", sonnet, 1),
        id("later", sonnet, 1),
        id("stopped", sonnet, 1),
        id("unreliable", sonnet, 1),
        id("unreliable", sonnet, 2),
        TrialId { suite: "odd <suite>".into(), ..id(HOSTILE, sonnet, 1) },
    ];
    let mut records = vec![passed(&trials[0])];

    let mut rerun = failed(&trials[1]);
    rerun.attempts.insert(0, attempt(Outcome::Failed, Some("1 of 2 assertions does not hold"), 1200));
    records.push(rerun);

    let mut flaky = passed(&trials[2]);
    flaky.flaky = true;
    flaky.attempts.insert(0, attempt(Outcome::Failed, Some("1 of 2 assertions does not hold"), 1100));
    flaky.attempts.insert(0, attempt(Outcome::Broken, Some("the model provider answered 529"), 900));
    records.push(flaky);

    records.extend(trials[3..5].iter().map(failed));

    let mut baseline = failed(&trials[5]);
    baseline.variant = Some(WITHOUT_SKILL.into());
    records.push(baseline);

    records.push(broken(&trials[6]));

    let mut undecided = passed(&trials[7]);
    undecided.outcome = Outcome::Undecided;
    undecided.reason = Some("the judge `gpt-5` did not answer".into());
    undecided.findings[0] = Finding::undecided("is-polite", "llm_judge", 1.0, None, "the judge `gpt-5` did not answer");
    records.push(undecided);

    for (trial, outcome, reason) in [
        (&trials[8], Outcome::Skipped, "another case has `only: true`"),
        (&trials[9], Outcome::Cancelled, "the run was stopped"),
    ] {
        let mut record = passed(trial);
        (record.outcome, record.reason, record.ending) = (outcome, Some(reason.into()), None);
        (record.findings, record.attempts) = (Vec::new(), Vec::new());
        (record.score, record.max_score, record.usage, record.cost_usd, record.duration_ms) =
            (None, None, None, None, 0);
        records.push(record);
    }

    let quarantine = Quarantine { reason: Some("the service is slow".into()), since: "2026-11-01".parse().ok() };
    for record in [failed(&trials[10]), passed(&trials[11])] {
        records.push(TrialRecord { quarantine: Some(quarantine.clone()), ..record });
    }

    let mut hostile = failed(&trials[12]);
    hostile.findings = vec![Finding {
        status: Status::Unmet,
        failed_critical: vec!["output".into()],
        source: Some(Excerpt {
            file: "../odd, dir:1/a.yaml".into(),
            line: 7,
            column: 1,
            length: 1,
            text: HOSTILE.into(),
            skipped: 0,
        }),
        ..met(HOSTILE, "contains", HOSTILE)
    }];
    records.push(hostile);

    let mut story = RunBuilder::new(trials.to_vec(), 2);
    // They finish in a different order than planned.
    for (index, record) in records.into_iter().enumerate().rev() {
        let started_at = begin() + SignedDuration::from_secs(i64::try_from(index).unwrap());
        story.after(500).ends(TrialRecord { started_at, ..record });
    }
    story.over();
    story
}

fn document(kind: &str) -> Value {
    serde_json::from_str(&reported(kind, &every_outcome().events, |_| {})).unwrap()
}

#[test]
fn every_format_reports_every_outcome() {
    let events = every_outcome().events;
    for (kind, file) in FORMATS {
        let text = reported(kind, &events, |options| options.folder = PathBuf::from("bots"));
        assert!(!text.contains(['\u{0}', '\u{1b}', '\u{ffff}', '\u{202e}', '\u{2028}', '\r']), "{kind}: {text:?}");
        expect(&format!("formats.{file}"), &text);
    }
}

/// Returns the element of each test case in the order of the file, with its name.
fn junit_elements(kind: &str) -> Vec<(String, String)> {
    let text = reported(kind, &every_outcome().events, |_| {});
    let report = quick_junit::Report::deserialize_from_str(&text).unwrap();
    let cases = report.test_suites.iter().flat_map(|suite| &suite.test_cases);
    cases
        .map(|case| {
            let element = match &case.status {
                TestCaseStatus::Success { flaky_runs } if flaky_runs.is_empty() => "-".to_owned(),
                TestCaseStatus::Success { flaky_runs } => format!("{} flaky", flaky_runs.len()),
                TestCaseStatus::NonSuccess { kind, reruns, .. } => {
                    let name = if *kind == NonSuccessKind::Failure { "failure" } else { "error" };
                    if reruns.runs.is_empty() { name.into() } else { format!("{name}, {} rerun", reruns.runs.len()) }
                }
                TestCaseStatus::Skipped { .. } => "skipped".to_owned(),
            };
            (case.name.to_string(), element)
        })
        .collect()
}

#[test]
fn all_formats_agree_on_the_outcome_of_each_trial() {
    let tap = reported("tap", &every_outcome().events, |_| {});
    let points: Vec<&str> = tap.lines().filter(|line| line.starts_with("ok ") || line.starts_with("not ok ")).collect();
    let (generic, jenkins) = (junit_elements("junit"), junit_elements("junit:jenkins"));
    let (ctrf, issues) = (document("ctrf"), document("gitlab"));
    let annotations = reported("github", &every_outcome().events, |_| {});
    // Spans are written when a trial finishes, which here is the reverse of the planned order.
    let mut spans = crate::otlp::trials(&every_outcome().events);
    spans.reverse();
    let mut table = String::from("outcome | junit | jenkins | tap | ctrf | otlp | github | gitlab | trial\n");
    let tests = ctrf["results"]["tests"].as_array().unwrap();
    assert_eq!([points.len(), generic.len(), jenkins.len(), spans.len()], [tests.len(); 4]);
    for (index, test) in tests.iter().enumerate() {
        let (name, case) = (&generic[index].0, test["testId"].as_str().unwrap().split('@').next().unwrap());
        assert_eq!([name, &jenkins[index].0], [test["name"].as_str().unwrap(); 2]);
        let directive = points[index].split_once(" # ").map_or("", |(_, rest)| &rest[..4]);
        let tap = format!("{} {directive}", points[index].split_once(" - ").unwrap().0);
        // Trials are named below the message.
        let named = test["testId"].as_str().unwrap().replace('%', "%25");
        let github = annotations.lines().find(|line| line.contains(&named));
        let github = github.map_or("-", |line| line[2..].split_once(' ').unwrap().0);
        let arm = test["parameters"]["arm"].as_str().unwrap();
        let about = format!("{case}@{arm}: ");
        let is_about = |issue: &&Value| issue["description"].as_str().unwrap().starts_with(&about);
        // An issue covers all repetitions.
        let issue = issues.as_array().unwrap().iter().find(is_about).filter(|_| test["rawStatus"] != "passed");
        let gitlab = issue.map_or("-", |issue| issue["severity"].as_str().unwrap());
        table.push_str(&format!(
            "{} | {} | {} | {} | {} | {} | {github} | {gitlab} | {}\n",
            test["rawStatus"].as_str().unwrap(),
            generic[index].1,
            jenkins[index].1,
            tap.trim_end(),
            test["status"].as_str().unwrap(),
            spans[index],
            name,
        ));
    }
    expect("formats.outcomes.txt", &table);
}

#[test]
fn names_are_unique_in_each_suite() {
    let mut names: Vec<String> = junit_elements("junit:gitlab").into_iter().map(|(name, _)| name).collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
}

/// The elements and attributes that `junit-10.xsd` of Jenkins' xUnit plugin allows. The plugin rejects files that
/// contain others.
const JENKINS: [(&str, &[&str]); 11] = [
    ("testsuites", &["name", "time", "tests", "failures", "errors"]),
    ("testsuite", &["name", "tests", "failures", "errors", "group", "time", "skipped", "timestamp", "hostname", "id"]),
    ("testcase", &["name", "time", "classname", "group"]),
    ("failure", &["type", "message"]),
    ("error", &["type", "message"]),
    ("skipped", &["type", "message"]),
    ("rerunFailure", &["type", "message"]),
    ("rerunError", &["type", "message"]),
    ("flakyFailure", &["type", "message"]),
    ("flakyError", &["type", "message"]),
    ("system-out", &[]),
];

#[test]
fn junit_for_jenkins_follows_its_schema() {
    let text = reported("junit:jenkins", &every_outcome().events, |_| {});
    let tags = text.split('<').skip(2).filter(|tag| !tag.starts_with('/'));
    for tag in tags.map(|tag| tag.split('>').next().unwrap()) {
        let name = tag.split([' ', '/']).next().unwrap();
        let (_, allowed) = JENKINS.iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("{tag}"));
        // Every second part is a value.
        let parts: Vec<&str> = tag[name.len()..].split('"').step_by(2).collect();
        let attributes = parts.iter().filter_map(|part| part.trim().strip_suffix('='));
        attributes.for_each(|attribute| assert!(allowed.contains(&attribute), "{attribute} in {tag}"));
    }
    for kind in ["junit", "junit:gitlab"] {
        let text = reported(kind, &every_outcome().events, |_| {});
        let root = text.split('>').nth(1).unwrap();
        assert!(root.contains("<testsuites ") && !root.contains("skipped"), "{root}");
    }
}

#[test]
fn ctrf_follows_its_schema() {
    let schema: Value = serde_json::from_str(include_str!("../expected/ctrf.schema.json")).unwrap();
    let document = document("ctrf");
    agree(&document, &schema, &schema, "ctrf");
    assert_eq!(document["reportId"], RUN);
    let summary = &document["results"]["summary"];
    let sum: u64 = ["passed", "failed", "skipped", "other"].iter().map(|name| summary[name].as_u64().unwrap()).sum();
    assert_eq!(summary["tests"], sum);
}

#[test]
fn the_step_summary_is_the_markdown_report() {
    let events = every_outcome().events;
    let summary = Paper::default();
    reported("github", &events, |options| options.step_summary = Some(summary.writer()));
    assert_eq!(summary.text(), reported("markdown", &events, |_| {}));
}

#[test]
fn github_gets_ten_annotations_and_a_count_of_the_rest() {
    let trials: Vec<TrialId> = (1..=14).map(|number| id(&format!("case-{number}"), "claude-code", 1)).collect();
    let mut story = RunBuilder::new(trials.clone(), 1);
    trials.iter().for_each(|trial| {
        story.ends(broken(trial));
    });
    let text = reported("github", &story.events, |_| {});
    assert_eq!(text.lines().count(), 11);
    assert!(text.contains("title=commit%3A%3Acase-10 is broken (provider)::"), "{text}");
    assert!(text.ends_with("::notice title=trialrun::4 more trials did not pass; the summary lists them\n"), "{text}");
}

/// A run of three trials that was stopped after the first.
fn stopped() -> RunBuilder {
    let trials = ["a", "b", "c"].map(|case| id(case, "claude-code", 1));
    let mut story = RunBuilder::new(trials.to_vec(), 1);
    story.ends(passed(&trials[0]));
    let summary = story.summary.clone();
    story.tell(Event::RunFinished { summary, duration_ms: 1, signal: Some("SIGINT".into()) });
    story
}

#[test]
fn tap_ends_with_a_bail_out_if_the_run_is_stopped() {
    let tap = reported("tap", &stopped().events, |_| {});
    assert!(
        tap.starts_with("TAP version 14\n1..2\nok 1 - ") && tap.ends_with("Bail out! stopped by SIGINT\n"),
        "{tap}"
    );
}

#[test]
fn trials_that_a_run_lacks_are_an_error_in_the_formats_of_other_tools() {
    let reason = "the run is incomplete: 2 planned trials not finished";
    for (format, entry) in [
        ("junit", r#"<testcase name="all trials finished" classname="run""#),
        ("github", "::error title=the run is incomplete::"),
        ("tap", "not ok 2 - run::all trials finished"),
        ("ctrf", r#""name": "all trials finished""#),
    ] {
        let report = reported(format, &stopped().events, |_| {});
        assert!(report.contains(entry) && report.contains(reason), "{report}");
    }
}

#[test]
fn a_run_of_one_shard_says_so() {
    let mut events = stopped().events;
    if let Event::RunStarted(info) = &mut events[0].event {
        info.shard = Some(Shard { index: 1, of: 2, positions: vec![0, 1, 2], cases_hash: None });
    }
    let markdown = reported("markdown", &events, |_| {});
    assert!(markdown.contains("- Trials: 1 of 3 planned, only shard 1/2\n"), "{markdown}");
    let json: Value = serde_json::from_str(&reported("json", &events, |_| {})).unwrap();
    assert_eq!(json["run"]["shard"], serde_json::json!({ "index": 1, "of": 2 }));
}

#[test]
fn ctrf_counts_the_unfinished_trials_of_a_stopped_run() {
    let ctrf: Value = serde_json::from_str(&reported("ctrf", &stopped().events, |_| {})).unwrap();
    assert_eq!(ctrf["results"]["summary"]["extra"]["unfinished"], 2);
}

#[test]
fn only_failures_are_shown_on_request() {
    let events = every_outcome().events;
    let text = reported("junit", &events, |options| options.failures_only = true);
    assert!(!text.contains("splits-in-two@claude-code:haiku#1") && text.contains("splits-in-two@claude-code:haiku#2"));
}

use jiff::SignedDuration;
use model::{
    AgentInfo, CaseResults, DecisionRecord, Gate, LiveTrial, OutcomeCounts, RunResults, RunRow, Step, Summary,
    ToolCall, TrialRecord,
};
use report::{Details, ListedRun, StatusView, TrendOf};
use serde_json::{Value, json};

use crate::run_builder::{RUN, begin, broken, failed, id, one_job, passed, row, run_row};
use crate::{expect, plain};

const OLD: &str = "0192ffff-0000-7d3e-9b5a-3f0c6a1e2b44";

#[test]
fn history_lists_trials_under_their_runs_with_totals() {
    let mut over = row(&failed(&id("asks", "fake", 1)), RUN);
    over.token_budget = Some(1000.0);
    over.errors = 2;
    let mut older = row(&passed(&id("splits-in-two", "fake", 1)), OLD);
    older.label = Some("nightly".into());
    older.flaky = true;
    let rows = [over, row(&broken(&id("provider-down", "fake", 1)), RUN), older];
    expect("history.txt", &report::history(&rows, &plain()));

    let json: Value = rows.iter().map(report::history_json).collect();
    let first = &json[0];
    assert_eq!(first["skill"], "commit");
    assert_eq!(first["tokens"], json!({ "input": 214, "output": 56, "cacheCreation": 0, "cacheRead": 1020 }));
    assert_eq!(first["finishedAt"], "2026-11-21T21:48:03.4Z");
    assert_eq!((&first["budgetExceeded"], &first["tokenBudget"]), (&json!(true), &json!(1000.0)));
    assert_eq!((&json[1]["tokensTotal"], &json[1]["usdEstimate"]), (&json!(null), &json!(null)), "unknown is not 0");
}

#[test]
fn runs_are_listed_with_their_results_and_their_state() {
    let summary = Summary {
        by_outcome: OutcomeCounts { passed: 2, failed: 1, ..OutcomeCounts::default() },
        cost_usd: Some(0.25),
        flaky: 1,
        ..Summary::default()
    };
    let agent = |name: &str, model: Option<&str>| AgentInfo {
        name: name.into(),
        version: None,
        model: model.map(str::to_owned),
        reasoning_effort: None,
        base_url: None,
    };
    let agents = vec![agent("claude-code", Some("sonnet")), agent("fake", None)];
    let cut =
        RunRow { finished_at: None, duration_ms: None, finished: 0, agents: agents[1..].to_vec(), ..run_row(OLD) };
    let stopped = RunRow { signal: Some("SIGINT".into()), finished: 4, label: Some("nightly".into()), ..run_row(OLD) };
    let listed = |run: RunRow, summary: &Summary, alive| ListedRun {
        run,
        summary: summary.clone(),
        gate: Gate::default(),
        alive,
    };
    let passed = |passed: usize, cancelled: usize| Summary {
        by_outcome: OutcomeCounts { passed, cancelled, ..OutcomeCounts::default() },
        ..Summary::default()
    };
    let runs = [
        listed(RunRow { agents, finished: 3, ..run_row(RUN) }, &summary, false),
        listed(RunRow { finished: 4, ..run_row(RUN) }, &passed(4, 0), false),
        listed(cut.clone(), &Summary::default(), true),
        listed(cut, &Summary::default(), false),
        listed(stopped, &passed(3, 1), false),
    ];
    expect("runs.txt", &report::runs(&runs, begin() + SignedDuration::from_secs(5), &plain()));
    let states: Vec<Value> = runs.iter().map(|run| report::run_json(run)["state"].clone()).collect();
    assert_eq!(states, ["finished", "finished", "running", "interrupted", "interrupted"]);
    let least = Gate { min_pass_rate: Some(0.9), no_fail_on_assertions: false };
    let [missed, ..] = runs;
    let missed = ListedRun { gate: least, run: RunRow { finished: 4, ..missed.run }, ..missed };
    let shown = report::runs(&[missed], begin(), &plain());
    assert!(shown.contains("2 passed, 1 failed, 1 flaky, needs 90% passed"), "{shown}");
    assert_eq!(report::runs(&[], begin(), &plain()), "no runs are recorded yet\n");
}

#[test]
fn show_displays_a_whole_trial() {
    let trial = id("splits-in-two", "claude-code:sonnet", 1);
    let events: Vec<_> =
        one_job().events.into_iter().filter(|event| event.trial.as_deref() == Some(&*trial.to_string())).collect();
    let record = passed(&trial);
    expect("show.txt", &report::show(&record, &events, RUN, &plain()));
    expect("show.record.txt", &report::show(&failed(&trial), &[], RUN, &plain()));

    let json = report::show_json(&record, &events, RUN);
    assert_eq!((&json["run"], &json["usage"]["total"]), (&json!(RUN), &json!(1290)));
    assert_eq!(json["steps"][0]["step"]["kind"], "session");
}

#[test]
fn show_displays_the_complete_input_of_a_tool() {
    let trial = id("a", "fake", 1);
    let mut story = crate::run_builder::RunBuilder::new(vec![trial.clone()], 1);
    let long = "x".repeat(500);
    let script = (1..=60).map(|line| format!("echo {line}")).collect::<Vec<_>>().join("\n");
    story
        .about(&trial)
        .calls("1", "Bash", json!({ "command": "ls" }))
        .calls("2", "Bash", json!({ "command": long }))
        .calls("3", "Bash", json!({ "command": script }))
        .calls("4", "Write", json!({ "file_path": "a", "content": "b" }))
        .calls("5", "TodoWrite", json!({ "todos": [] }))
        .calls("6", "Look", json!({}));
    let text = report::show(&passed(&trial), &story.events[1..], RUN, &plain());
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    let after = |call: &str| -> Vec<&str> {
        let index = lines.iter().position(|line| line.contains(call)).unwrap();
        lines[index + 1..].iter().take_while(|line| line.starts_with('│')).map(|line| line[3..].trim_start()).collect()
    };
    let none: [&str; 0] = [];
    assert_eq!(after("▸ Bash \"ls\""), none, "it is all there already");
    assert_eq!(after("▸ Bash \"xxx"), [long.as_str()]);
    assert_eq!(after("▸ Bash \"echo 1 ").join("\n"), script);
    assert_eq!(after("▸ Write"), ["{", "\"file_path\": \"a\",", "\"content\": \"b\"", "}"]);
    assert_eq!(after("▸ TodoWrite"), ["{", "\"todos\": []", "}"]);
    assert_eq!(after("▸ Look"), none);
}

#[test]
fn show_displays_the_last_attempt() {
    let trial = id("a", "fake", 1);
    let mut events = Vec::new();
    for (attempt, output) in [(1, "first try"), (2, "second try")] {
        let mut story = crate::run_builder::RunBuilder::new(vec![trial.clone()], 1);
        story.about(&trial).says(output);
        events.push(model::Envelope { attempt: Some(attempt), ..story.events[1].clone() });
    }
    let text = report::show(&passed(&trial), &events, RUN, &plain());
    assert!(text.contains("second try") && !text.contains("first try"), "{text}");
}

#[test]
fn status_shows_what_each_trial_is_waiting_for() {
    let live = [
        LiveTrial {
            id: id("slow", "fake", 1).to_string(),
            attempt: 2,
            since: begin(),
            waiting_on: Some("agent".into()),
            waiting_since: Some(begin() + SignedDuration::from_secs(1)),
            last_step: Some(Step::ToolCall(ToolCall::new("c", "Bash", json!({ "command": "npm test" }), "m"))),
            last_step_at: Some(begin() + SignedDuration::from_secs(51)),
        },
        LiveTrial {
            id: id("new", "fake", 1).to_string(),
            attempt: 1,
            since: begin() + SignedDuration::from_secs(62),
            waiting_on: None,
            waiting_since: None,
            last_step: None,
            last_step_at: None,
        },
    ];
    let trials = ["a", "b", "c"].map(|case| id(case, "fake", 1));
    let trials = [row(&passed(&trials[0]), RUN), row(&failed(&trials[1]), RUN), row(&broken(&trials[2]), RUN)];
    let mut run = run_row(RUN);
    let now = begin() + SignedDuration::from_secs(63);
    let finished = StatusView {
        run: &run,
        trials: &trials,
        live: &[],
        alive: false,
        now,
        all: false,
        details: &Details::default(),
    };
    let mut text = report::status(&finished, &plain());
    run.finished_at = None;
    run.duration_ms = None;
    for alive in [true, false] {
        let view = StatusView {
            run: &run,
            trials: &trials,
            live: &live,
            alive,
            now,
            all: false,
            details: &Details::default(),
        };
        text.push_str("================\n");
        text.push_str(&report::status(&view, &plain()));
    }
    expect("status.txt", &text);
}

#[test]
fn status_shows_the_verdict_and_omits_failed_trials_of_cases_that_met_their_pass_rate() {
    let trials = ["bad", "good"].map(|case| id(case, "fake", 1));
    let records = trials.each_ref().map(failed);
    let decision = |record: &TrialRecord, answer: &str| -> DecisionRecord {
        serde_json::from_value(json!({
            "question": { "type": "pass_rate", "at_least": 0.9, "tolerance": 0.1 }, "suite": record.suite,
            "case": record.case, "arm": record.arm, "answer": answer, "stopped_by": "decided", "trials": 30,
            "max_trials": 40, "cases": 1, "passed": 29, "failed": 1, "undecided": 0, "estimate": 0.95,
            "confidence_sequence": [0.8, 1.0], "confidence": 0.95, "spared": 0,
        }))
        .unwrap()
    };
    let details = Details {
        decisions: vec![decision(&records[1], "met"), decision(&records[0], "not_met")],
        ..Details::default()
    };
    let mut summary = Summary::default();
    details.decisions.iter().for_each(|decision| summary.decide(decision));
    let run = RunRow { planned: 2, finished: 2, sequential: true, summary: Some(summary), ..run_row(RUN) };
    let rows = records.each_ref().map(|record| row(record, RUN));
    let view =
        StatusView { run: &run, trials: &rows, live: &[], alive: false, now: begin(), all: false, details: &details };
    let text = report::status(&view, &plain());
    assert!(text.starts_with("FAIL  1 of 2 pass rates too low, "), "{text}");
    let (_, noted) = text.split_once("did not pass\n").unwrap();
    assert!(noted.contains("bad@fake#1") && !noted.contains("good@fake#1"), "{text}");
    assert!(noted.contains("\n1 trial of cases with a high enough pass rate did not pass\n"), "{text}");
}

fn results(case: &str, passed: u64, failed: u64) -> CaseResults {
    CaseResults {
        suite: "commit".into(),
        case: case.into(),
        arm: "fake".into(),
        settings: Some("0011".into()),
        by_outcome: OutcomeCounts { passed: passed as usize, failed: failed as usize, ..OutcomeCounts::default() },
        tokens: Some((passed + failed) * 1000),
        trials_with_tokens: passed + failed,
        trials_with_time: passed + failed,
        cost_usd: Some((passed + failed) as f64 * 0.01),
        trials_with_cost: passed + failed,
        agent_ms: Some((passed + failed) * 500),
        ..CaseResults::default()
    }
}

#[test]
fn an_answer_that_is_graded_again_is_not_another_result_and_costs_nothing() {
    let open = |case: CaseResults| CaseResults {
        by_outcome: OutcomeCounts { undecided: 1, ..case.by_outcome },
        arm: "recorded:answers.jsonl".into(),
        ..case
    };
    let recorded = || open(results("told", 1, 1));
    let asks = |settings: &str| CaseResults { settings: Some(settings.into()), ..results("asks", 1, 1) };
    let mut runs = runs_of(&[&[asks("new"), recorded()], &[recorded()], &[asks("old"), recorded()]]);
    runs[0].run.regrade_of = Some(runs[2].run.id.clone());
    let json = report::trend_json(&runs, TrendOf::Suite);
    let flaky: Vec<(&str, u64, u64, u64)> = json["flaky"]
        .as_array()
        .unwrap()
        .iter()
        .map(|flaky| {
            let count = |field: &str| flaky[field].as_u64().unwrap();
            (flaky["case"].as_str().unwrap(), count("passed"), count("failed"), count("unknown"))
        })
        .collect();
    assert_eq!(flaky, [("asks", 1, 1, 0), ("told", 1, 1, 1)]);
    let costs: Vec<&Value> = json["runs"].as_array().unwrap().iter().map(|run| &run["cost_usd"]).collect();
    assert_eq!(costs, [&json!(0.04), &json!(0.02), &Value::Null]);
    let text = report::trend(&runs, TrendOf::Suite, &plain());
    assert!(text.contains("1 to 2/3") && text.contains("regraded"), "{text}");
    runs.remove(2);
    let alone = report::trend_json(&runs, TrendOf::Suite);
    assert_eq!(alone["flaky"].as_array().map(Vec::len), Some(2), "the graded run is not in the list");
}

/// Returns runs of the cases, newest first; consecutive runs are a day apart.
fn runs_of(cases: &[&[CaseResults]]) -> Vec<RunResults> {
    let run = |(age, cases): (usize, &&[CaseResults])| {
        let id = format!("019{:x}0000-0000-7d3e-9b5a-3f0c6a1e2b44", 15 - age);
        let finished = cases.iter().map(|case| case.trials()).sum();
        let started_at = begin() - SignedDuration::from_hours(24 * age as i64);
        RunResults { run: RunRow { started_at, finished, planned: finished, ..run_row(&id) }, cases: cases.to_vec() }
    };
    cases.iter().enumerate().map(run).collect()
}

#[test]
fn trend_shows_a_line_per_run_and_the_flaky_cases() {
    let open = OutcomeCounts { passed: 1, undecided: 2, stale: 1, ..OutcomeCounts::default() };
    let undecided = CaseResults { by_outcome: open, ..results("asks", 1, 0) };
    let cut = OutcomeCounts { cancelled: 3, ..OutcomeCounts::default() };
    let baseline = CaseResults { variant: Some("without_skill".into()), ..results("asks", 0, 4) };
    let rerun = CaseResults { flaky: 1, ..results("retried", 3, 0) };
    let mut runs = runs_of(&[
        &[results("asks", 10, 10), results("splits", 0, 10), rerun, baseline],
        &[results("asks", 20, 0), results("splits", 10, 0), results("retried", 3, 0)],
        &[undecided, results("splits", 9, 1)],
        &[CaseResults { by_outcome: cut, tokens: None, cost_usd: None, agent_ms: None, ..results("asks", 0, 0) }],
    ]);
    runs[3].run.planned = 8;
    runs[3].run.signal = Some("SIGINT".into());
    runs[1].run.label = Some("a label that is far too long for a column of a table".into());
    let mut text = report::trend(&runs, TrendOf::Runs, &plain());
    text.push_str("================ one case\n");
    let mut asks: Vec<RunResults> = runs.clone();
    asks.iter_mut().for_each(|run| run.cases.retain(|case| case.case == "asks"));
    text.push_str(&report::trend(&asks, TrendOf::Cases, &plain()));
    text.push_str("================ without Unicode\n");
    let ascii = report::Style { unicode: false, width: 60, ..plain() };
    text.push_str(&report::trend(&runs, TrendOf::Suite, &ascii));
    expect("trend.txt", &text);

    let json = report::trend_json(&runs, TrendOf::Suite);
    assert_eq!((&json["runs"][3]["passed"], &json["runs"][0]["pass_rate"]), (&json!(12), &json!(null)));
    let open = &json["runs"][1];
    assert_eq!((&open["ungraded"], &open["undecided"], &open["cases"][0]["stale"]), (&json!(1), &json!(2), &json!(1)));
    assert_eq!((&json["flaky"][0]["case"], &json["flaky"][0]["failed"]), (&json!("splits"), &json!(11)));
    assert_eq!(report::trend(&[], TrendOf::Runs, &plain()), "no trials are recorded yet\n");
}

#[test]
fn a_case_is_flaky_only_under_equal_settings_and_worse_only_beyond_chance() {
    let with = |settings: Option<&str>, passed, failed| CaseResults {
        settings: settings.map(str::to_owned),
        ..results("a", passed, failed)
    };
    let flaky = |settings: [Option<&str>; 3], results: [(u64, u64); 3]| {
        let cases = [0, 1, 2].map(|run| [with(settings[run], results[run].0, results[run].1)]);
        let json = report::trend_json(&runs_of(&[&cases[0], &cases[1], &cases[2]]), TrendOf::Suite);
        json["flaky"].as_array().map(Vec::len)
    };
    let equal = [Some("1"); 3];
    assert_eq!(flaky(equal, [(1, 0), (0, 1), (1, 0)]), Some(1), "back and forth");
    assert_eq!(flaky([Some("1"), Some("2"), Some("1")], [(1, 0), (0, 1), (1, 0)]), Some(0), "other settings");
    assert_eq!(flaky([None; 3], [(1, 0), (0, 1), (1, 0)]), Some(0), "unknown settings");
    assert_eq!(flaky([None; 3], [(1, 1), (0, 1), (0, 1)]), Some(1), "one run has equal settings");
    assert_eq!(flaky(equal, [(5, 0), (0, 1), (0, 1)]), Some(0), "a fixed bug");
    assert_eq!(flaky(equal, [(0, 2), (2, 0), (2, 0)]), Some(0), "a new bug");

    let edited = |newest: Option<&str>| {
        let [stable, mixed] = [with(newest, 3, 0), with(Some("1"), 1, 1)];
        report::trend(&runs_of(&[&[stable], &[mixed]]), TrendOf::Suite, &plain())
    };
    assert!(edited(Some("2")).contains("changed since"), "{}", edited(Some("2")));
    assert!(!edited(None).contains("changed since"));

    let drawn = |newest: CaseResults, oldest: CaseResults| {
        report::trend(&runs_of(&[&[newest], &[oldest]]), TrendOf::Runs, &plain())
    };
    assert!(drawn(results("a", 0, 8), results("a", 8, 0)).contains("worse"));
    assert!(!drawn(results("a", 0, 1), results("a", 1, 0)).contains("worse"), "one trial is no evidence");
    assert!(!drawn(results("b", 0, 8), results("a", 8, 0)).contains("worse"), "other cases");
}

#[test]
fn show_displays_one_step_in_full() {
    let trial = id("a", "fake", 1);
    let mut story = crate::run_builder::RunBuilder::new(vec![trial.clone()], 1);
    let long = (1..=90).map(|line| format!("line {line}")).collect::<Vec<_>>().join("\n");
    story.about(&trial).calls("1", "Bash", json!({ "command": "ls", "timeout": 5 })).answers("1", &long, false);
    let record = passed(&trial);
    let whole = report::show(&record, &story.events[1..], RUN, &plain());
    assert!(whole.contains("  2   0ms ◂ ok Bash") && !whole.contains("line 90"), "{whole}");
    let step = |number| report::show_step(&record, &story.events[1..], number, &plain());
    assert!(step(1).unwrap().contains("\"timeout\": 5"));
    assert!(step(2).unwrap().ends_with("line 90\n"));
    assert_eq!((step(0), step(3)), (Err(2), Err(2)), "the number of steps");
}

#[test]
fn show_displays_changes_to_files() {
    let trial = id("a", "fake", 1);
    let edit = |name: &str, input: Value| model::CallRecord {
        name: name.into(),
        input,
        ..passed(&trial).tool_calls[0].clone()
    };
    let mut record = passed(&trial);
    record.tool_calls = vec![
        edit("Write", json!({ "file_path": "new.md", "content": "one\ntwo" })),
        edit("Edit", json!({ "file_path": "a.md", "old_string": "x\ny", "new_string": "x\nz" })),
    ];
    let text = report::show_diff(&record, &[], &plain());
    assert_eq!(text, "  ~ notes.md\nedits by tool calls\n\nnew.md\n+one\n+two\n\na.md\n x\n-y\n+z\n");
    let mut story = crate::run_builder::RunBuilder::new(vec![trial.clone()], 1);
    let patch = "diff --git a/a b/a\n@@ -1 +1 @@\n-old\n+new\n";
    let collected = model::Collected { patch: Some(patch.into()), ..model::Collected::default() };
    story.about(&trial).tell(model::Event::Collected(collected));
    assert_eq!(report::show_diff(&record, &story.events, &plain()), patch);
    (record.tool_calls, record.files_changed) = (Vec::new(), Vec::new());
    assert!(report::show_diff(&record, &[], &plain()).ends_with("its changes to them are not known\n"));
}

#[test]
fn show_displays_two_trials_side_by_side() {
    let events = |commands: &[&str], arm: &str| {
        let trial = id("a", arm, 1);
        let mut story = crate::run_builder::RunBuilder::new(vec![trial.clone()], 1);
        story.about(&trial).step(Step::UserMessage { index: 1, of: 1, text: "/commit".into() });
        for (index, command) in commands.iter().enumerate() {
            let call = index.to_string();
            story.calls(&call, "Bash", json!({ "command": command })).answers(&call, "done", false);
        }
        story.says("Committed.");
        story.events.split_off(1)
    };
    let (one, other) = (events(&["git status", "git commit"], "x"), events(&["git status", "git push", "ls"], "y"));
    let (left, mut right) = (passed(&id("a", "x", 1)), failed(&id("a", "y", 1)));
    right.answer = Some("Pushed.".into());
    let text = report::show_two([(&left, &one, OLD), (&right, &other, RUN)], &plain());
    expect("show.two.txt", &text);
    let same = report::show_two([(&left, &one, OLD), (&left, &one, OLD)], &plain());
    assert!(same.contains("steps: the same 4 steps in both") && !same.contains("first difference"), "{same}");
}

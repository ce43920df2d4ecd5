//! Tests of `run --resume`: a resumed run has the same result as an uninterrupted one.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use testkit::{Live, Project};

/// Pseudo-random numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap()
    }
}

const RUN: [&str; 9] = ["run", "good.yaml", "bad.yaml", "--jobs", "2", "--label", "long", "--report", "jsonl"];

/// Creates a project with two cases, one of which fails, each with `trials` trials.
fn project(trials: usize) -> Project {
    let project = Project::new(env!("CARGO_BIN_EXE_trialrun"));
    let scenario = |id: &str, expected: &str| {
        format!(
            "scenario: {id}\ntrials: {trials}\nsystem_prompt: Say hello.\nagent: fake\nuser_prompt: |\n  hello\n  \
             !sleep 2ms\nassertions:\n- {{id: said, type: output_contains, pattern: {expected}}}\n"
        )
    };
    project.write("good.yaml", &scenario("good", "hello")).write("bad.yaml", &scenario("bad", "goodbye"));
    project
}

/// Returns the report of the last run without the parts that differ between runs.
fn report(project: &Project) -> Value {
    let mut report = project.run(&["report", "--format", "json"]).exits(0).json();
    without_times(&mut report);
    report
}

fn without_times(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| {
                let is_time = name.ends_with("_at") || name.ends_with("_ms") || name.ends_with("_s");
                !(is_time || name == "id" || name == "hash" || name == "phases" || name == "session_id")
            });
            fields.values_mut().for_each(without_times);
        }
        Value::Array(values) => values.iter_mut().for_each(without_times),
        _ => {}
    }
}

/// Returns the ids of the trials that the lines of a report announce as finished.
fn finished(lines: &[String]) -> Vec<String> {
    let events = lines.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let ended =
        events.filter(|event| event["event"]["type"] == "trial_finished" && event["event"]["outcome"] != "cancelled");
    ended.map(|event| event["trial"].as_str().unwrap().to_owned()).collect()
}

/// Reads until `count` trials have finished, kills the run, and returns all its lines.
fn killed_after(mut live: Live, count: usize) -> Vec<String> {
    let mut lines = Vec::new();
    while finished(&lines).len() < count
        && let Some(line) = live.line()
    {
        lines.push(line);
    }
    live.signal(Signal::SIGKILL);
    lines.extend(std::iter::from_fn(|| live.line()));
    live.end();
    lines
}

#[test]
fn a_run_killed_at_any_moment_can_be_completed_with_the_same_result() {
    let undisturbed = project(20);
    undisturbed.run(&RUN).exits(1);
    let mut dice = Dice(0x5eed);
    for round in 0..4 {
        let project = project(20);
        let mut trials = finished(&killed_after(project.start(&RUN), dice.below(40)));
        // If a run is killed so early that nothing is recorded, there is nothing to resume.
        while let Some(row) = project.run(&["history", "--json"]).json().get(0)
            && row["state"] != "finished"
        {
            assert_eq!(row["state"], "interrupted", "{row}");
            let lines = killed_after(
                project.start(&["run", "--resume", "--report", "jsonl"]),
                trials.len() + 1 + dice.below(20),
            );
            let again = finished(&lines);
            assert_eq!(again.iter().collect::<BTreeSet<_>>().len(), again.len(), "round {round}: a trial ran twice");
            assert!(trials.iter().all(|trial| again.contains(trial)), "round {round}: a trial is lost");
            trials = again;
        }
        if !trials.is_empty() {
            assert_eq!(report(&project), report(&undisturbed), "round {round}");
            project.run(&["verify"]).exits(0);
            let rows = project.run(&["history", "--cases", "--last", "1000", "--json"]).exits(0).json();
            assert_eq!(rows.as_array().unwrap().len(), 40);
            let listed = project.run(&["history", "--json"]).exits(0).json();
            assert_eq!((listed.as_array().unwrap().len(), &listed[0]["finished"]), (1, &json!(40)));
        }
    }
}

/// Returns a project with a trial that waits until its file exists, and one that finishes immediately.
fn waiting() -> Project {
    let project = Project::new(env!("CARGO_BIN_EXE_trialrun"));
    project.write(
        "agent.sh",
        "while read -r line; do echo here >&2; [ -e \"$GO\" ] || exec sleep 1000; echo '{\"text\":\"ok\"}'; done\n",
    );
    let assertions = "assertions: [{id: said, type: output_contains, pattern: '[a-z]'}]";
    project.write(
        "first.yaml",
        &format!("scenario: first\nagent: fake\nsystem_prompt: x\nuser_prompt: hello\n{assertions}\n"),
    );
    let go = project.dir().join("go");
    project.write(
        "waits.yaml",
        &format!(
            "scenario: waits\nagent: 'subprocess:sh agent.sh'\nsystem_prompt: x\nuser_prompt: go\n\
             fixtures: {{ env: {{ GO: {} }} }}\n{assertions}\n",
            go.display()
        ),
    );
    project
}

fn waits(project: &Project) -> Live {
    let mut live = project.start(&["run", "first.yaml", "waits.yaml", "--jobs", "1", "--report", "jsonl"]);
    live.line_with("\"here\"");
    live
}

#[test]
fn live_and_replayed_reports_of_a_resumed_run_are_the_same() {
    let project = waiting();
    let live = waits(&project);
    live.signal(Signal::SIGKILL);
    live.end();
    project.write("go", "");
    let live = project.run(&["run", "--resume", "--report", "json"]).exits(0).json();
    assert_eq!(project.run(&["report", "--format", "json"]).exits(0).json(), live);
    assert_eq!(live["summary"]["trials"], 2);
}

#[test]
fn a_killed_run_is_incomplete_in_comparisons_and_when_it_is_graded_again() {
    let project = waiting();
    project.write("go", "").run(&["run", "first.yaml", "waits.yaml", "--label", "whole"]).exits(0);
    std::fs::remove_file(project.dir().join("go")).unwrap();
    let live = waits(&project);
    live.signal(Signal::SIGKILL);
    live.end();
    let ran = project.run(&["compare", "whole", "latest"]).exits(3);
    let sentence = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(sentence.contains("case waits::waits has no result in the second run (1 cancelled)"), "{}", ran.output());
    let ran = project.run(&["regrade", "latest"]).exits(3);
    assert!(ran.out.contains("INCOMPLETE  1 planned trial not finished, 1 passed"), "{}", ran.output());
    assert!(!ran.err.contains("not in the run"), "{}", ran.err);
    // What grades it again lacks the same trial.
    project.run(&["compare", "whole", "latest"]).exits(3);
    project.run(&["regrade", "latest"]).exits(3);
}

#[test]
fn cancelled_trials_run_again_and_changes_are_reported() {
    let project = waiting();
    let live = waits(&project);
    live.signal(Signal::SIGINT);
    live.end().exits(130);
    project.write("go", "");
    let suite = project.read("waits.yaml");
    project.write("waits.yaml", &format!("{suite}\n# changed\n"));
    let ran = project.run(&["run", "--resume", "latest"]).exits(0);
    assert!(ran.err.contains("1 of 2 trials finished, 1 to go\n"), "{}", ran.err);
    assert!(ran.err.contains("note: waits.yaml has changed since the run was started\n"), "{}", ran.err);
    let rows = project.run(&["history", "--cases", "--json"]).exits(0).json();
    let outcomes: Vec<&Value> = rows.as_array().unwrap().iter().map(|row| &row["outcome"]).collect();
    assert_eq!(outcomes, ["passed", "passed"]);
    let listed = project.run(&["history", "--json"]).exits(0).json();
    assert_eq!((&listed[0]["state"], &listed[0]["signal"]), (&json!("finished"), &Value::Null));

    for arguments in [&["run", "--resume"][..], &["run", "--resume", "latest"]] {
        let ran = project.run(arguments).exits(4);
        assert!(ran.err.contains("there is nothing to resume"), "{}", ran.err);
    }
    project.run(&["run", "--resume", "latest", "--jobs", "1"]).exits(2);
    project.run(&["run", "first.yaml", "--resume"]).exits(2);
}

#[test]
fn a_test_that_has_changed_after_some_of_its_trials_is_not_continued() {
    let project = waiting();
    let suite = project.read("waits.yaml").replace("user_prompt: go", "user_prompt: '{{ says }}'\ncases: rows.csv");
    let go = project.dir().join("go");
    let suite = suite.replace(&format!("GO: {}", go.display()), "GO: '{{ go }}'");
    let rows = format!("name,says,go\nfirst,go,/\nsecond,go,{}\n", go.display());
    project.write("rows.csv", &rows).write("rows.yaml", &suite);
    let mut live = project.start(&["run", "rows.yaml", "--jobs", "1", "--report", "jsonl", "--artifacts", "out"]);
    live.line_with("trial_finished");
    live.line_with("\"here\"");
    live.signal(Signal::SIGKILL);
    live.end();
    project.write("go", "").write("rows.csv", &rows.replace("second,go", "second,stop"));
    let refused = project.run(&["run", "--resume"]).exits(2).err;
    assert!(refused.contains("rows.csv changed after some of its trials"), "{refused}");
    project.write("rows.csv", &rows).write("_fixtures.yaml", "shared: {git_init: true}\n");
    let refused = project.run(&["run", "--resume"]).exits(2).err;
    assert!(refused.contains("_fixtures.yaml changed after some of its trials"), "{refused}");
    std::fs::remove_file(project.dir().join("_fixtures.yaml")).unwrap();
    let resumed = project.run(&["run", "--resume"]).exits(0);
    assert!(!resumed.err.contains(" setting was "), "{}", resumed.err);
    project.write("rows.csv", &rows.replace("second,go", "second,stop"));
    project.run(&["run", "rows.yaml"]).exits(0);
    let compared = project.run(&["compare", "previous", "latest"]);
    assert!(compared.out.contains("test file changed") && compared.out.contains("rows.csv"), "{}", compared.output());
}

#[test]
fn only_one_process_at_a_time_can_resume_a_run() {
    let project = waiting();
    let mut live = waits(&project);
    let refused = |holder: &Live| {
        for arguments in [&["run", "--resume"][..], &["run", "--resume", "latest"]] {
            let ran = project.run(arguments).exits(2);
            let expected = format!("is still in progress: process {} is running it", holder.id());
            assert!(ran.err.contains(&expected), "{}", ran.err);
        }
    };
    refused(&live);
    live.signal(Signal::SIGKILL);
    live.end();
    live = project.start(&["run", "--resume", "--report", "jsonl"]);
    live.line_with("\"here\"");
    refused(&live);
    live.signal(Signal::SIGKILL);
    live.end();
    project.write("go", "");
    project.run(&["run", "--resume"]).exits(0);
}

#[test]
fn trials_that_no_longer_exist_are_reported_and_skipped() {
    let project = waiting();
    let live = waits(&project);
    live.signal(Signal::SIGKILL);
    live.end();
    let suite = project.read("waits.yaml").replace("scenario: waits", "scenario: other");
    project.write("waits.yaml", &suite);
    let ran = project.run(&["run", "--resume", "--report", "terminal"]).exits(0);
    assert!(ran.err.contains("warning: 1 planned trial can no longer be run"), "{}", ran.err);
    assert!(ran.out.contains("1 of 2 planned"), "{}", ran.output());
}

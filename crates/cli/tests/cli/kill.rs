//! Tests of `kill -9` in the middle of a run: reported trials are recorded, no started process survives, and `prune`
//! finds what could not be removed.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;
use testkit::{Live, ProcessPipe, Project, pause};

fn project() -> Project {
    Project::new(env!("CARGO_BIN_EXE_trialrun"))
}

/// Pseudo-random numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Writes 199 quick trials, and one that never ends, so that the run cannot finish before it is killed.
fn write_suites(project: &Project, fixtures: &str) {
    let scenario = |id: &str, trials: u32, acts: &str| {
        format!(
            "scenario: {id}\ntrials: {trials}\nsystem_prompt: Say hello.\nagent: fake\n{fixtures}\
             user_prompt: |\n  hello\n  {acts}\n\
             assertions:\n- {{id: said, type: output_contains, pattern: hello}}\n"
        )
    };
    project.write("quick.yaml", &scenario("quick", 199, "!call Bash {\"command\": \"ls\"}\n  !sleep 4ms"));
    project.write("slow.yaml", &scenario("slow", 1, "!sleep 1h"));
}

/// Returns the number of the trial in a line that reports its end.
fn finished(line: &str) -> Option<u64> {
    let mut words = line.split_whitespace().skip(1);
    let passed = words.next()? == "passed";
    let (name, number) = words.nth(1)?.rsplit_once('#')?;
    (passed && name == "quick::quick").then(|| number.parse().ok()).flatten()
}

/// Reads until `count` trials have finished, and returns their numbers.
fn read_until_finished(live: &mut Live, count: usize) -> BTreeSet<u64> {
    let mut numbers = BTreeSet::new();
    while numbers.len() < count {
        let line = live.line().unwrap();
        numbers.extend(finished(&line));
    }
    numbers
}

/// Checks everything that must hold after a run was killed that had reported the trials in `reported`.
fn nothing_is_lost(project: &Project, reported: &BTreeSet<u64>) {
    let history = project.run(&["history", "--cases", "--last", "1000", "--json"]).exits(0).json();
    let rows = history.as_array().unwrap();
    let recorded: BTreeSet<u64> = rows.iter().map(|row| row["repetition"].as_u64().unwrap()).collect();
    assert_eq!(recorded.len(), rows.len(), "a trial is recorded twice");
    let missing: Vec<_> = reported.difference(&recorded).collect();
    assert!(missing.is_empty(), "reported, but not recorded: {missing:?}");
    assert!(rows.iter().all(|row| row["outcome"] == "passed"), "{history}");

    let status = project.run(&["status", "--json"]).exits(0).json();
    assert_eq!((&status["alive"], &status["run"]["finished_at"]), (&Value::Bool(false), &Value::Null));
    assert_eq!(status["run"]["finished"], rows.len());
    let live: BTreeSet<&str> =
        status["live"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert!(live.len() <= 2, "{live:?}");
    assert!(!rows.iter().any(|row| live.contains(row["trial"].as_str().unwrap())), "finished and live: {live:?}");
    let screen = project.run(&["status"]).exits(0);
    assert!(screen.out.contains("interrupted"), "{}", screen.output());

    // The last reported trial is complete, not just listed.
    if let Some(last) = reported.last() {
        let shown = project.run(&["show", &format!("quick::quick@fake#{last}"), "--json"]).exits(0).json();
        assert_eq!(shown["answer"], "hello", "{shown}");
    }
}

fn leftovers_are_found_and_removed(project: &Project) {
    let left = project.left_over();
    let survey = project.run(&["prune", "--min-age", "0"]).exits(0);
    for name in &left {
        assert!(survey.out.contains(name.as_str()), "prune does not see {name}: {}", survey.output());
    }
    let removed = project.run(&["prune", "--min-age", "0", "--yes"]).exits(0);
    assert_eq!(project.left_over(), [""; 0], "{}", removed.output());
}

/// Each of twelve runs is killed after a number of finished trials: none, one, all but one, and then random numbers.
#[test]
fn everything_reported_before_a_kill_is_recorded_once_and_every_leftover_is_found() {
    let fixtures = "fixtures:\n  git_init: true\n  files_committed: [{path: a.txt, content: one}]\n";
    let mut dice = Dice(0xd1ce);
    let mut sandboxes = 0;
    for round in 0..12 {
        let project = project();
        write_suites(&project, fixtures);
        let count = [0, 1, 198].get(round).copied().unwrap_or_else(|| dice.below(60) as usize);
        let mut live = project.start(&["run", "quick.yaml", "slow.yaml", "--jobs", "2"]);
        let mut reported = read_until_finished(&mut live, count);
        pause(Duration::from_micros(dice.below(6000)));
        live.signal(Signal::SIGKILL);
        while let Some(line) = live.line() {
            reported.extend(finished(&line));
        }
        assert_eq!(live.end().code, -1, "round {round}: it was not killed");
        project.no_process_is_left();
        if count > 0 {
            nothing_is_lost(&project, &reported);
        }
        sandboxes += project.left_over().len();
        leftovers_are_found_and_removed(&project);
    }
    assert!(sandboxes > 0, "no run left a sandbox");
}

#[test]
fn two_processes_record_into_one_record_at_the_same_time() {
    let project = project();
    write_suites(&project, "");
    let start = |label: &str| project.start(&["run", "quick.yaml", "--jobs", "2", "--label", label]);
    let mut both = ["one", "other"].map(start);
    // Each is in progress at the same time as the other.
    both.iter_mut().for_each(|live| assert!(!read_until_finished(live, 10).is_empty()));
    for live in both {
        live.end().exits(0);
    }
    let runs = project.run(&["history", "--json"]).exits(0).json();
    let mut labels: Vec<&str> = runs.as_array().unwrap().iter().map(|run| run["label"].as_str().unwrap()).collect();
    labels.sort_unstable();
    assert_eq!(labels, ["one", "other"]);
    for label in labels {
        let report = project.run(&["report", label, "--format", "json"]).exits(0).json();
        let trials = report["trials"].as_array().unwrap();
        let repetitions: BTreeSet<u64> = trials.iter().map(|trial| trial["repetition"].as_u64().unwrap()).collect();
        assert!(trials.len() == 199 && repetitions.len() == 199, "{label}: {}", trials.len());
        assert_eq!((&report["run"]["label"], &report["summary"]["passed"]), (&label.into(), &199.into()));
    }
}

/// Returns a command for a process that leaves its parent, ignores signals, and keeps the pipe open.
fn orphan(pipe: &ProcessPipe) -> String {
    let path = pipe.path().display();
    format!("setsid sh -c 'trap \"\" TERM HUP INT; exec 9>{path}; echo here >&9; while :; do sleep 1000; done' &")
}

/// Returns projects with both ways of supervising processes.
fn projects() -> [Project; 2] {
    [project(), project().env("TRIALRUN_NO_NAMESPACE", "1")]
}

#[test]
fn agents_and_their_descendants_end_with_a_killed_run() {
    for project in projects() {
        let pipe = project.process_pipe("tether");
        let project = project.claude(&format!("{}\ntrap '' TERM INT HUP; while :; do sleep 1000; done", orphan(&pipe)));
        project.write("s.yaml", "scenario: s\nsystem_prompt: Say hello.\nagent: claude-code\nuser_prompt: go\n");
        let live = project.start(&["run", "s.yaml", "--trials", "4", "--jobs", "2"]);
        pipe.wait_for_line("here");
        pipe.wait_for_line("here");
        assert!(project.processes().len() > 4, "{:?}", project.processes());
        live.signal(Signal::SIGKILL);
        assert_eq!(live.end().code, -1);
        pipe.wait_until_closed();
        project.no_process_is_left();
        leftovers_are_found_and_removed(&project);
    }
}

#[test]
fn processes_of_setup_commands_end_with_the_killed_run() {
    for project in projects() {
        let pipe = project.process_pipe("tether");
        let command = orphan(&pipe);
        project.write(
            "s.yaml",
            &format!(
                "scenario: s\nsystem_prompt: Say hello.\nagent: fake\nfixtures:\n  setup_commands:\n  - |\n    {command}\n    sleep 1000\n"
            ),
        );
        let live = project.start(&["run", "s.yaml", "--trials", "2", "--jobs", "2"]);
        pipe.wait_for_line("here");
        pipe.wait_for_line("here");
        assert!(!project.processes().is_empty());
        live.signal(Signal::SIGKILL);
        assert_eq!(live.end().code, -1);
        pipe.wait_until_closed();
        project.no_process_is_left();
        leftovers_are_found_and_removed(&project);
    }
}

#[test]
fn pruning_does_not_affect_a_running_run() {
    let project = project();
    let scenario =
        "scenario: s\nsystem_prompt: Say hello.\nagent: fake\nfixtures: {git_init: true}\nuser_prompt: '!sleep 1h'\n";
    project.write("s.yaml", scenario);
    let ready = |live: &mut Live| live.line_with("\"sandbox_ready\"");
    let run = ["run", "s.yaml", "--report", "jsonl"];
    let mut killed = project.start(&run);
    ready(&mut killed);
    killed.signal(Signal::SIGKILL);
    killed.end();
    let dead = project.left_over();
    assert_eq!(dead.len(), 2, "a sandbox and its template: {dead:?}");

    let mut living = project.start(&run);
    ready(&mut living);
    let pruned = project.run(&["prune", "--min-age", "0", "--yes"]).exits(0);
    assert!(pruned.out.contains("2 sandboxes in use, not removed"), "{}", pruned.output());
    let left = project.left_over();
    assert_eq!(left.len(), 2, "{}", pruned.output());
    assert!(left.iter().all(|name| !dead.contains(name) && name.contains(&format!("-{}-", living.id()))), "{left:?}");
    let status = project.run(&["status", "--json"]).exits(0).json();
    assert_eq!((&status["alive"], &status["live"][0]["id"]), (&true.into(), &"s::s@fake#1".into()));

    living.signal(Signal::SIGINT);
    living.end().exits(130);
    assert_eq!(project.left_over(), [""; 0]);
}

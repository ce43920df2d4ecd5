//! Tests of runs whose trials workers run, with real processes and a real database.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::process::Command;

use nix::sys::signal::Signal;
use serde_json::Value;
use testkit::real::{CLAUDE_CODE, requests_were_expected};
use testkit::{Live, PostgresServer, Project, until};

/// Returns a project with a case that passes and one that fails. Each trial takes a moment.
fn project() -> Project {
    let project = Project::new(env!("CARGO_BIN_EXE_trialrun"));
    let scenario = |id: &str, expected: &str| {
        format!(
            "scenario: {id}\ntrials: 10\nsystem_prompt: Say hello.\nagent: fake\nuser_prompt: |\n  hello\n  \
             !sleep 200ms\n  !cost 0.01\nassertions:\n- {{id: said, type: output_contains, pattern: {expected}}}\n"
        )
    };
    project.write("good.yaml", &scenario("good", "hello")).write("bad.yaml", &scenario("bad", "goodbye"));
    project
}

/// Returns a scenario whose trials do not end by themselves.
fn long_scenario(id: &str, more: &str) -> String {
    format!(
        "scenario: {id}\nagent: fake\nsystem_prompt: x\nuser_prompt: |\n  hello\n  !sleep 1h\n{more}\
         assertions: [{{id: said, type: output_contains, pattern: hello}}]\n"
    )
}

/// Executes SQL in the schema of the queue, and returns the result as text.
fn sql(url: &str, statement: &str) -> String {
    let server = PostgresServer::shared();
    let schema = url.rsplit_once("schema=").unwrap().1;
    let mut psql = Command::new("psql");
    psql.args(["-qAt", "-U", "ann", "-d", "postgres", "-h"])
        .arg(server.folder())
        .arg("-p")
        .arg(server.port().to_string());
    let done = psql.args(["-c", &format!("SET search_path = {schema}_queue; {statement}")]).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).trim().to_owned()
}

fn work(project: &Project, url: &str, more: &[&str]) -> Live {
    project.start(&[&["work", "--state", url, "--jobs", "2"], more].concat())
}

/// Returns the report of the last run, without what differs between runs and machines.
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
                !(is_time || ["id", "hash", "phases", "session_id", "jobs"].contains(&name.as_str()))
            });
            fields.values_mut().for_each(without_times);
        }
        Value::Array(values) => {
            values.retain(|value| !is_lost(value));
            values.iter_mut().for_each(without_times);
        }
        _ => {}
    }
}

/// Returns `true` for the record of an attempt that lost its worker.
fn is_lost(value: &Value) -> bool {
    let reason = value.get("because").and_then(Value::as_str).unwrap_or_default();
    value.get("outcome").is_some_and(|outcome| outcome == "broken") && reason.contains("no longer answers")
}

fn count_lost(value: &Value) -> usize {
    match value {
        Value::Object(fields) => fields.values().map(count_lost).sum(),
        Value::Array(values) => values.iter().map(|value| usize::from(is_lost(value)) + count_lost(value)).sum(),
        _ => 0,
    }
}

#[test]
fn a_run_that_loses_workers_has_the_record_of_one_machine() {
    let alone = project();
    alone.run(&["run", "good.yaml", "bad.yaml", "--jobs", "4"]).exits(1);
    let (shared, url) = (project(), PostgresServer::shared().url());
    let workers = format!("--workers={url}");
    let run = shared.start(&["run", "good.yaml", "bad.yaml", "--jobs", "0", &workers]);
    let [mut killed, mut stopped] = [work(&shared, &url, &[]), work(&shared, &url, &[])];
    killed.line_with("running");
    killed.signal(Signal::SIGKILL);
    stopped.line_with("running");
    stopped.signal(Signal::SIGSTOP);
    sql(&url, "UPDATE queue_trials SET lease_until = now() - interval '1 second' WHERE state = 'leased'");
    assert!(until(|| sql(&url, "SELECT count(*) FROM queue_attempts WHERE state = 'running'") == "0"));
    let mut last = work(&shared, &url, &["--drain"]);
    last.line_with("running");
    // It finishes what it had begun, which does not count, and then takes part again.
    stopped.signal(Signal::SIGCONT);
    stopped.line_with("does not count");
    let ended = run.end();
    assert_eq!(ended.code, 1, "{}", ended.output());
    assert!(last.end().out.ends_with("trials\n"));
    stopped.signal(Signal::SIGTERM);
    stopped.end();
    killed.end();

    let whole = shared.run(&["report", "--format", "json"]).exits(0).json();
    assert!(count_lost(&whole) >= 2, "the lost attempts are recorded");
    assert_eq!(report(&shared), report(&alone));
    let summary = &whole["summary"];
    assert_eq!((&summary["passed"], &summary["failed"]), (&10.into(), &10.into()));
    shared.run(&["verify"]).exits(0);
    shared.no_process_is_left();
}

/// One file for each kind of test, and for each kind of ending.
const MIXED: [(&str, &str); 12] = [
    ("trialrun.yaml", "tests: tests\nagent: fake\ndefaults: {retries: 1}\n"),
    (
        "tests/passes.yaml",
        "scenario: passes\nsystem_prompt: Work.\ntrials: 2\nuser_prompt: |\n  hello\n  !write b.txt two\n  !tokens 100 20 5\n  \
         !cost 0.01\nfixtures: {files_committed: [{path: a.txt, content: one}]}\n\
         assertions: [{id: made, type: file_contains, path: b.txt, pattern: two}]\n",
    ),
    (
        "tests/breaks.yaml",
        "scenario: breaks\nsystem_prompt: Work.\nuser_prompt: |\n  hello\n  !abort it died\nassertions: [{contains: hello}]\n",
    ),
    (
        "tests/known.yaml",
        "scenario: known\nsystem_prompt: Work.\nquarantine: {reason: flaky, since: 2026-01-31}\nuser_prompt: hello\n\
         assertions: [{contains: goodbye}]\n",
    ),
    (
        "tests/rate.yaml",
        "scenario: rate\nsystem_prompt: Work.\ntrials: auto:30\npass_rate: 0.9\nuser_prompt: hello\n\
         assertions: [{contains: goodbye}]\n",
    ),
    (
        "tests/mocked.yaml",
        "scenario: mocked\nsystem_prompt: Work.\nuser_prompt: go\nagent: chat\nmodel: scripted:models/mocked.yaml\n\
         mcp_servers: {issues: {tools: {close: {expect: {id: 7}, answer: {closed: '{{input.id}}'}}}}}\n\
         assertions: [{id: closes, type: mcp_called, server: issues, tool: close}]\n",
    ),
    ("tests/models/mocked.yaml", "steps:\n- tools: [{name: mcp__issues__close, input: {id: 7}}]\n- text: Closed.\n"),
    (
        "tests/talk.yaml",
        "name: talk\nturns:\n- says: What is the policy?\n  expect: [{contains: policy}]\n- says: |\n    order\n    !call look {}\n  \
         expect: [{tool_called: look}]\nassertions: [{not_contains: fault}]\n",
    ),
    ("tests/unread.yaml", "name: unread\nturns:\n- says: hi\n  expekt: [{contains: hi}]\n"),
    (
        "tests/hello.fixture.yaml",
        "message: 'Hello {{name}}'\n---\n- {title: greets, input: {name: Ann}, output: Hello Ann}\n\
         - {title: differs, input: {name: Bo}, output: Bye}\n",
    ),
    (
        "tests/code.test.ts",
        "import { scenario, assert, score } from 'trialrun';\nexport default scenario('code', {}, async ({ agent }) => {\n  \
         assert.contains(await agent.send('hello'), 'hello');\n  score('politeness', 0.7);\n});\n",
    ),
    ("skills/notes/SKILL.md", "---\nname: notes\ndescription: Writes notes.\n---\nWrite notes.\n"),
];

#[test]
fn tests_of_every_kind_have_the_report_of_one_machine() {
    let mixed = || {
        let project = Project::new(env!("CARGO_BIN_EXE_trialrun"));
        for (file, text) in MIXED {
            project.write(file, text);
        }
        project.write(
            "skills/notes/evals/evals.json",
            r#"{"skill_name": "notes", "evals": [{"id": "writes", "prompt": "go\n!with-skill !write NOTES.md yes",
                "expected_output": "notes", "assertions": ["The file `NOTES.md` exists"]}]}"#,
        );
        project
    };
    let (alone, shared, url) = (mixed(), mixed(), PostgresServer::shared().url());
    // How many trials of a rate start depends on how many run at once.
    alone.run(&["run", "--jobs", "1"]).exits(1);
    let worker = shared.start(&["work", "--state", &url, "--jobs", "1"]);
    let ran = shared.run(&["run", "--jobs", "0", &format!("--workers={url}")]).exits(1);
    worker.signal(Signal::SIGTERM);
    worker.end();
    let outcomes: BTreeSet<String> =
        report(&alone)["trials"].as_array().unwrap().iter().map(|trial| trial["outcome"].to_string()).collect();
    assert_eq!(outcomes.into_iter().collect::<String>(), "\"broken\"\"failed\"\"passed\"");
    assert_eq!(report(&shared), report(&alone), "{}", ran.output());
}

#[test]
fn a_dead_coordinator_is_replaced_while_workers_finish_what_they_have() {
    let alone = project();
    alone.run(&["run", "good.yaml", "bad.yaml", "--jobs", "4"]).exits(1);
    let (shared, url) = (project(), PostgresServer::shared().url());
    let workers = format!("--workers={url}");
    let run = shared.start(&["run", "good.yaml", "bad.yaml", "--jobs", "0", &workers]);
    let mut worker = work(&shared, &url, &[]);
    worker.line_with("passed");
    run.signal(Signal::SIGKILL);
    run.end();
    worker.line_with("running");
    let second = shared.run(&["run", "--resume"]).exits(2);
    assert!(second.err.contains("another process coordinates this run"), "{}", second.output());
    assert_eq!(second.out, "", "nothing is reported before that");
    sql(&url, "UPDATE queue_runs SET coordinator_until = now() - interval '1 second'");
    let resumed = shared.run(&["run", "--resume"]).exits(1);
    assert_eq!(report(&shared), report(&alone), "{}", resumed.output());
    worker.signal(Signal::SIGTERM);
    assert!(worker.end().out.ends_with("ran 20 trials\n"), "no trial ran twice");
}

#[test]
fn a_trial_of_a_worker_that_was_stopped_twice_is_repeated() {
    let (project, url) = (Project::new(env!("CARGO_BIN_EXE_trialrun")), PostgresServer::shared().url());
    project.write("long.yaml", &long_scenario("long", ""));
    let run = project.start(&["run", "long.yaml", "--jobs", "0", &format!("--workers={url}")]);
    let mut worker = project.start(&["work", "--state", &url]);
    worker.line_with("running long::long@fake#1");
    [Signal::SIGTERM, Signal::SIGINT].into_iter().for_each(|signal| worker.signal(signal));
    worker.line_with("gave back long::long@fake#1");
    assert_eq!(worker.end().code, 0);
    let mut other = project.start(&["work", "--state", &url]);
    other.line_with("running long::long@fake#1");
    run.signal(Signal::SIGINT);
    assert_eq!(run.end().code, 130);
    other.signal(Signal::SIGTERM);
    other.end();
    project.no_process_is_left();
}

#[test]
fn a_run_is_controlled_from_another_terminal() {
    let (project, url) = (Project::new(env!("CARGO_BIN_EXE_trialrun")), PostgresServer::shared().url());
    project.write("long.yaml", &long_scenario("long", "trials: 3\n"));
    project.write("gpu.yaml", &long_scenario("gpu", "tags: ['worker:gpu']\n"));
    let (workers, state) = (format!("--workers={url}"), ["--state", &url]);
    let control = |arguments: &[&str]| project.run(&[arguments, &state].concat());
    let arguments = ["run", "long.yaml", "gpu.yaml", "--jobs", "0", &workers, "--worker-timeout", "1s"];
    let mut run = project.start(&[&arguments[..], &["--report", "jsonl"]].concat());
    let mut worker = project.start(&["work", "--state", &url, "--jobs", "1"]);
    worker.line_with("running long::long@fake#1");
    run.line_with("trial_started");
    let [paused, again] = [(); 2].map(|()| control(&["pause"]).exits(0).out);
    assert!(paused.starts_with("paused ") && again.contains("is paused, so nothing has changed"), "{paused}{again}");
    assert_eq!(control(&["cancel", "long::long#1"]).exits(0).out, "cancelled long::long@fake#1\n");
    worker.line_with("cancelled long::long@fake#1");
    let listed = control(&["workers", "--json"]).exits(0).json();
    assert_eq!((&listed["runs"][0]["state"], &listed["workers"][0]["slots"]), (&"paused".into(), &1.into()));
    control(&["continue"]).exits(0);
    worker.line_with("running long::long@fake#2");
    run.line_with("no worker could run it within 1 s; missing: the label `gpu`");
    run.signal(Signal::SIGINT);
    worker.line_with("cancelled long::long@fake#2");
    let ended = run.end();
    assert_eq!(ended.code, 130, "{}", ended.output());
    assert!(ended.err.contains("no worker can run gpu::gpu@fake#1; missing: the label `gpu`"), "{}", ended.output());
    control(&["cancel"]).exits(4);
    worker.signal(Signal::SIGTERM);
    assert_eq!(worker.end().code, 0);
    project.no_process_is_left();
}

/// Scenarios with real agents, each with the tool that runs a command and the name of its argument.
const REAL: [(&str, &str, &str); 3] =
    [("claude-code", "Bash", "command"), ("codex", "exec_command", "cmd"), ("opencode", "bash", "command")];

#[test]
#[cfg_attr(
    not(all(has = "agents", has = "isolation")),
    ignore = "needs the agent CLIs and a kernel that isolates processes; run scripts/test"
)]
fn real_agents_of_a_worker_run_in_isolated_sandboxes_with_one_version_each() {
    let url = PostgresServer::shared().url();
    let project = CLAUDE_CODE.project(env!("CARGO_BIN_EXE_trialrun"), env!("CARGO_TARGET_TMPDIR"));
    project.write("trialrun.yaml", &format!("workers: {{queue: '{url}', same_version: true}}\n"));
    for (agent, tool, argument) in REAL {
        project.write(
            &format!("tests/models/{agent}.yaml"),
            &format!(
                "steps:\n- tools: [{{name: {tool}, input: {{{argument}: echo made > out.txt}}}}]\n- text: Done.\n"
            ),
        );
        project.write(
            &format!("tests/{agent}.yaml"),
            &format!(
                "scenario: {agent}\nagent: {agent}\nmodel: scripted:models/{agent}.yaml\nsystem_prompt: Work.\n\
                 user_prompt: go\nassertions:\n- {{id: made, type: file_contains, path: out.txt, pattern: made}}\n"
            ),
        );
    }
    let mut run = project.start(&["run", "--jobs", "0", "--sandbox", "isolated", "--report", "jsonl"]);
    run.line_with("run_started");
    let worked = project.run(&["work", "--jobs", "3", "--drain"]).exits(0);
    let ended = run.end();
    assert_eq!(ended.code, 0, "{}\n{}", ended.output(), worked.output());
    let report = project.run(&["report", "--format", "json"]).exits(0).json();
    let trials = report["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 3);
    for trial in trials {
        requests_were_expected(trial);
        assert!(trial["agent_version"].is_string() && trial["warnings"].as_array().unwrap().is_empty(), "{trial:#}");
    }
    project.no_process_is_left();
}

#[test]
fn workers_of_the_configuration_are_used_unless_the_command_line_refuses_them() {
    let (project, url) = (project(), PostgresServer::shared().url());
    project.write("trialrun.yaml", &format!("workers:\n  queue: '{url}'\n  limits: {{fake: 1}}\n  timeout: 1s\n"));
    let alone = project.run(&["run", "good.yaml", "--trials", "1", "--no-workers"]).exits(0);
    assert!(!alone.out.contains("run by workers"), "{}", alone.output());
    let refused = project.run(&["run", "good.yaml", "--no-workers", "--limit", "fake=2"]).exits(2);
    assert!(refused.err.contains("--no-workers"), "{}", refused.output());
    let lonely = project.run(&["run", "good.yaml", "--trials", "1", "--jobs", "0"]).exits(3);
    assert!(lonely.out.contains("no worker could run it within 1 s; missing: a worker"), "{}", lonely.output());
    let mut run = project.start(&["run", "good.yaml", "--trials", "3", "--jobs", "2", "--worker-timeout", "1m"]);
    run.line_with("run by workers");
    let ended = run.end();
    assert_eq!(ended.code, 0, "{}", ended.output());
    project.write("trialrun.yaml", "workers: true\n");
    let unnamed = project.run(&["run", "good.yaml", "--jobs", "0"]).exits(2);
    assert!(unnamed.err.contains("workers need a PostgreSQL database"), "{}", unnamed.output());
}

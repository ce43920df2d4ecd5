//! Masking hides secrets in all output and changes no verdict. Failure to write output is an error.

#![allow(clippy::unwrap_used)]

use std::fs::{self, File};
use std::io::pipe;
use std::process::Stdio;

use serde_json::{Value, json};
use testkit::Project;

const PROGRAM: &str = env!("CARGO_BIN_EXE_trialrun");

/// A secret that the test uses in its texts.
const SECRET: &str = "canary-in-production";

fn scenario(assertions: &str) -> String {
    format!(
        "name: stage\nagent: fake\nfixtures: {{ env: {{ STAGE_TOKEN: {SECRET} }} }}\nturns: [it runs in {SECRET}]\n\
         assertions:\n{assertions}"
    )
}

const BOTH: &str = "  - contains: canary-in\n  - not_contains: staging\n  - turn_count_at_most: 1\n";

fn project(assertions: &str) -> Project {
    let project = Project::new(PROGRAM);
    project.write("scenarios/stage.yaml", &scenario(assertions));
    project
}

/// Returns the status of each finding of the only trial.
fn statuses(report: &Value) -> Vec<String> {
    let findings = report["trials"][0]["findings"].as_array().unwrap().iter();
    let own = findings.filter(|finding| finding["implicit"] != json!(true));
    own.map(|finding| finding["status"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn assertions_see_the_unmasked_text_and_no_output_contains_the_secret() {
    let project = project(BOTH);
    let report = project.report(&[], 0);
    assert_eq!(statuses(&report), ["met", "met", "met"]);
    assert!(report.to_string().contains("it runs in [masked]"), "{report}");
    for arguments in [&["show", "stage"][..], &["show", "stage", "--json"], &["report", "--format", "jsonl"]] {
        let output = project.run(arguments).exits(0).output();
        assert!(output.contains("[masked]") && !output.contains(SECRET), "{output}");
    }
    project.write("scenarios/stage.yaml", &scenario("  - not_contains: canary-in\n"));
    let report = project.report(&[], 1);
    assert_eq!(statuses(&report), ["unmet"]);
    assert!(!report.to_string().contains(SECRET), "{report}");
}

#[test]
fn a_secret_that_becomes_known_during_a_trial_is_masked_in_its_earlier_events() {
    let project = Project::new(PROGRAM);
    let text = "import { scenario, assert, secret } from 'trialrun';
export default scenario('login', async ({ agent }) => {
  const token = ['plain', 'words', 'only'].join('-');
  await agent.send(`say ${token}`);
  const reply = await agent.send(`say ${secret(token)} again`);
  assert.contains(reply, token);
});
";
    project.write("tests/login.test.ts", text);
    project.run(&["run", "--agent", "fake", "tests"]).exits(0);
    for arguments in [&["report", "--format", "jsonl"][..], &["show", "login", "--json"], &["verify"]] {
        let output = project.run(arguments).exits(0).output();
        assert!(!output.contains("plain-words-only"), "{output}");
    }
    let events = project.run(&["report", "--format", "jsonl"]).exits(0).out;
    assert!(events.contains("say [masked]\""), "{events}");
}

#[test]
fn regrading_keeps_verdicts_on_unmasked_text_and_leaves_the_rest_undecided() {
    let project = project(BOTH);
    project.report(&[], 0);
    let again = project.run(&["regrade", "--report", "json"]).exits(0).json();
    assert_eq!(statuses(&again), ["met", "met", "met"]);
    project.write("scenarios/stage.yaml", &scenario("  - contains: canary-in\n  - not_contains: production\n"));
    let again = project.run(&["regrade", "--report", "json"]).exits(3).json();
    assert_eq!(statuses(&again), ["met", "undecided"]);
    assert!(again["trials"][0]["findings"][1]["because"].as_str().unwrap().contains("[masked]"), "{again}");
    assert!(again["trials"][0]["warnings"].to_string().contains("new or changed since the run"), "{again}");
}

#[test]
fn a_mask_written_by_the_agent_itself_does_not_prevent_regrading() {
    let project = Project::new(PROGRAM);
    let scenario = |assertion: &str| {
        let text = format!("name: s\nagent: fake\nturns: ['it is [masked]']\nassertions:\n  - {assertion}\n");
        project.write("scenarios/s.yaml", &text);
    };
    scenario("contains: masked");
    project.run(&["run"]).exits(0);
    scenario("not_contains: staging");
    let again = project.run(&["regrade", "--report", "json"]).exits(0).json();
    assert_eq!(statuses(&again), ["met"]);
}

#[test]
fn a_header_is_secret_only_if_its_name_suggests_it() {
    let bot = testkit::Loopback::answering(200, r#"{"text": "it runs in production with key-of-the-bot"}"#);
    let project = Project::new(PROGRAM);
    project.write(
        "trialrun.yaml",
        &format!(
            "agents:\n  bot:\n    type: http\n    url: {}\n    headers: {{ X-Env: production, X-Api-Key: key-of-the-bot }}\n",
            bot.url()
        ),
    );
    project.write(
        "scenarios/stage.yaml",
        "name: stage\nturns: [hi]\nassertions:\n  - contains: in production with key-of\n",
    );
    let report = project.report(&["--agent", "bot"], 0);
    let answer = report["trials"][0]["answer"].as_str().unwrap();
    assert_eq!(answer, "it runs in production with [masked]");
}

#[test]
fn a_configuration_line_that_sets_a_secret_is_not_shown() {
    let project = Project::new(PROGRAM);
    project.write(
        "trialrun.yaml",
        "agents:\n  bot: { type: http, url: 'http://x', apiKey: canary-literal, oops }\n  : x:\n",
    );
    project.write("scenarios/stage.yaml", "name: stage\nagent: fake\nturns: [hi]\nassertions:\n  - contains: hi\n");
    let ran = project.run(&["check"]).exits(2);
    assert!(!ran.output().contains("canary"), "{}", ran.output());
}

#[test]
fn a_record_that_is_removed_while_it_is_written_stops_the_run_with_an_error() {
    let project = Project::new(PROGRAM);
    project.write(
        "scenarios/s.yaml",
        "name: s\nagent: fake\nturns: [\"!sleep 300ms\"]\nassertions:\n  - turn_count_at_most: 9\n",
    );
    project.run(&["run", "--pre-run-command", "rm -f .trialrun/runs.db*"]).exits(3);
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    let project = Project::new(PROGRAM);
    project.write("scenarios/s.yaml", "name: s\nagent: fake\nturns: [hi]\nassertions:\n  - contains: hi\n");
    let ran = project.run(&["run", "--report", "json=/dev/full"]).exits(3);
    assert!(ran.err.contains("a report is incomplete"), "{}", ran.output());
    for arguments in [&["history"][..], &["history", "--cases", "--json"], &["show", "s"], &["--help"]] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let ran = project.command(arguments).stdout(Stdio::from(full)).stderr(Stdio::piped()).output().unwrap();
        let error = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(3), "{arguments:?}");
        assert!(error.contains("cannot write to standard output"), "{arguments:?}: {error}");
    }
}

#[test]
fn a_command_without_a_reader_still_exits_with_its_result() {
    let project = Project::new(PROGRAM);
    project.write("scenarios/s.yaml", "name: s\nagent: fake\nturns: [hi]\nassertions:\n  - contains: hi\n");
    project.run(&["run"]).exits(0);
    let other = "0".repeat(64);
    for (arguments, code) in [(&["docs"][..], 0), (&["verify", "--expect", &other], 1)] {
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let ran = project.command(arguments).stdout(writer).stderr(Stdio::piped()).output().unwrap();
        assert_eq!((ran.status.code(), &*String::from_utf8_lossy(&ran.stderr)), (Some(code), ""), "{arguments:?}");
    }
}

#[test]
fn a_history_of_any_length_is_a_json_array() {
    let project = Project::new(PROGRAM);
    assert_eq!(project.run(&["history", "--cases", "--json"]).exits(0).out, "[]\n");
    project.write("scenarios/s.yaml", "name: s\nagent: fake\nturns: [hi]\nassertions:\n  - contains: hi\n");
    project.run(&["run", "--runs", "3"]).exits(0);
    let listed = project.run(&["history", "--cases", "--json"]).exits(0);
    assert_eq!(listed.json().as_array().unwrap().len(), 3);
    assert_eq!(listed.out, serde_json::to_string_pretty(&listed.json()).unwrap() + "\n");
}

#[test]
fn a_read_only_record_can_be_read() {
    let project = Project::new(PROGRAM);
    project.write("scenarios/s.yaml", "name: s\nagent: fake\nturns: [hi]\nassertions:\n  - contains: hi\n");
    project.run(&["run"]).exits(0);
    let record = project.dir().join(".trialrun/runs.db");
    let mut permissions = fs::metadata(&record).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&record, permissions).unwrap();
    assert_eq!(project.run(&["history", "--cases", "--json"]).exits(0).json().as_array().unwrap().len(), 1);
}

#[test]
fn a_secret_in_an_agent_argument_does_not_appear_in_any_name() {
    let project = Project::new(PROGRAM);
    project.write("scenarios/a.yaml", "name: a\nturns: [hi]\nassertions: [{contains: x}]\n");
    for (agent, secret) in [
        ("http:http://bob:Pa55w0rdzzq@127.0.0.1:9", "Pa55w0rdzzq"),
        ("http://bob:Pa55w0rdzzq@127.0.0.1:9", "Pa55w0rdzzq"),
        ("http:http://127.0.0.1:9/x?api_key=QUUX", "QUUX"),
    ] {
        let run = project.run(&["run", "--agent", agent, "--artifacts", "out", "--retries", "0"]).exits(3).output();
        let others = ["show", "report --format json", "report --format markdown", "history", "list", "config"];
        let mut outputs = vec![run];
        for other in others {
            let words =
                other.split(' ').chain(["--agent", agent].into_iter().filter(|_| other.starts_with(['l', 'c'])));
            outputs.push(project.run(&words.collect::<Vec<_>>()).output());
        }
        let folders = files_below(&project.dir().join("out"));
        for text in outputs.iter().chain(&folders) {
            assert!(!text.contains(secret), "{agent}: {text}");
        }
        assert!(
            outputs[2].contains("@http:[masked]@127.0.0.1:9#1") || outputs[2].contains("api_key=[masked]#1"),
            "{}",
            outputs[2]
        );
        fs::remove_dir_all(project.dir().join("out")).unwrap();
    }
}

/// Returns the paths and contents of all files below `folder`.
fn files_below(folder: &std::path::Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| match path.is_dir() {
            true => files_below(&path),
            false => vec![path.display().to_string(), String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned()],
        })
        .collect()
}

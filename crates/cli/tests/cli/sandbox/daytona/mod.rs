//! The contract for remote sandboxes, tested with a stand-in for the service, and tests that only they need.

#![allow(clippy::unwrap_used)]

pub mod stand_in;

use std::sync::Arc;

use sandbox::{DaytonaOptions, SandboxOptions};
use serde_json::{Value, json};
use testkit::Project;

use self::stand_in::{Fault, KEY, StandIn};
use super::kind::Kind;
use super::processes::process_tests;

fn kind() -> Kind {
    let service = StandIn::open(Fault::Nothing);
    let daytona =
        DaytonaOptions { api_key: Some(KEY.to_owned()), api_url: Some(service.url()), ..DaytonaOptions::default() };
    let options = SandboxOptions { daytona, ..SandboxOptions::default() };
    Kind { options, elsewhere: Some(Arc::new(service)), ..Kind::of("daytona") }
}

process_tests!(kind);

/// Returns a project whose agent answers `Hi`, prints a file, and creates another one.
fn project(service: &StandIn) -> Project {
    let project = Project::new(env!("CARGO_BIN_EXE_trialrun"));
    let project = project.env("DAYTONA_API_URL", &service.url()).env("DAYTONA_API_KEY", KEY);
    let agent =
        "agents:\n  bot: {type: subprocess, mode: oneshot, input: argument, command: [sh, bot.sh, '{message}']}\n";
    let sandbox = "sandbox: {provider: daytona, network: none, daytona: {snapshot: small, target: eu}}\n";
    project.write("trialrun.yaml", &format!("{agent}{sandbox}"));
    project.write("bot.sh", "echo \"$1\"; cat given; echo made > made; sleep 1000 > /dev/null 2>&1 & exit 0\n");
    let scenario = "scenario: s\nsystem_prompt: p\nuser_prompt: Hi\nagent: bot\n\
                    fixtures: {files_unstaged: [{path: given, content: from the fixture}]}\nassertions:\n\
                    - {id: says, type: output_contains, pattern: from the fixture}\n\
                    - {id: makes, type: file_exists, path: made}\n\
                    - {id: runs, type: command_succeeds, run: grep -q made made}\n";
    project.write("scenarios/s.yaml", scenario);
    project
}

/// Returns the reason why the only trial is broken.
fn because(project: &Project) -> String {
    let report = project.report(&["--retries", "2"], 3);
    let trial = &report["trials"][0];
    assert_eq!((&trial["outcome"], &trial["fault"]), (&json!("broken"), &json!("environment")), "{trial:#}");
    assert!(!report.to_string().contains(KEY));
    trial["because"].as_str().unwrap().to_owned()
}

/// Returns the number of requests that created a sandbox.
fn creations(service: &StandIn) -> usize {
    service.seen().iter().filter(|(line, _)| line == "POST /api/sandbox").count()
}

#[test]
fn an_agent_works_in_a_remote_sandbox_and_leaves_nothing_there() {
    let service = StandIn::open(Fault::Nothing);
    let project = project(&service);
    let report = project.report(&[], 0);
    assert_eq!(report["trials"][0]["outcome"], "passed", "{report:#}");
    assert_eq!(service.sandboxes(), [] as [Value; 0]);
    let created: Vec<Value> = service
        .seen()
        .iter()
        .filter(|(line, _)| line == "POST /api/sandbox")
        .map(|(_, body)| serde_json::from_slice(body).unwrap())
        .collect();
    assert_eq!(created.len(), 2, "one for the agent, one for the commands of assertions");
    for wanted in &created {
        assert_eq!((&wanted["snapshot"], &wanted["target"]), (&json!("small"), &json!("eu")));
        assert_eq!((&wanted["networkBlockAll"], &wanted["autoDeleteInterval"]), (&json!(true), &json!(0)));
    }
    assert_ne!(created[0]["name"], created[1]["name"]);
    let doctor = project.run(&["doctor"]).output();
    assert!(doctor.contains("✓ sandbox   daytona") && !doctor.contains(KEY), "{doctor}");
    let doctor = project.env("DAYTONA_API_URL", "http://127.0.0.1:9/api").run(&["doctor"]).output();
    assert!(doctor.contains("✗ sandbox   daytona") && doctor.contains("no answer from"), "{doctor}");
}

#[test]
fn a_program_keeps_its_stream_in_a_remote_sandbox() {
    let service = StandIn::open(Fault::Nothing);
    let project = project(&service);
    project.write("trialrun.yaml", "agents: {bot: {type: subprocess, command: [sh, lines.sh]}}\nsandbox: daytona\n");
    // It knows the first message when it answers the second one, and writes something after its stdin was closed.
    project.write(
        "lines.sh",
        "while read -r line; do seen=\"$seen $line\"; echo \"{\\\"text\\\": \\\"$(echo \"$seen\" | tr -d '\"')\\\"}\"; done\n\
         echo made > made\n",
    );
    let long = "x".repeat(70_000);
    let scenario = format!(
        "scenario: s\nsystem_prompt: p\nuser_prompts: [Hello, {long}, Bye]\nagent: bot\nassertions:\n\
         - {{id: says, type: output_contains, pattern: 'Hello.*xxxxxxxx.*Bye'}}\n- {{id: makes, type: file_exists, path: made}}\n"
    );
    project.write("scenarios/s.yaml", &scenario);
    let ran = project.run(&["run"]).exits(0);
    assert!(ran.out.contains("sandbox daytona, network none"), "{}", ran.output());
    assert_eq!(service.sandboxes(), [] as [Value; 0]);
}

#[test]
fn a_quota_error_is_reported_at_once_and_not_retried() {
    let service = StandIn::open(Fault::Quota);
    let because = because(&project(&service));
    assert!(because.contains("the quota of the account is used up: Total CPU quota exceeded"), "{because}");
    assert_eq!(creations(&service), 1);
}

#[test]
fn local_sandboxes_replace_those_that_cannot_be_created_if_the_project_allows_it() {
    let service = StandIn::open(Fault::Quota);
    let project = project(&service);
    let sandbox = "network: none, daytona: {snapshot: small, target: eu}";
    project.write("trialrun.yaml", &project.read("trialrun.yaml").replace(sandbox, "fallback: local"));
    let ran = project.run(&["run"]).exits(0);
    assert!(
        ran.err.contains("quota") && ran.err.contains("`local` sandboxes instead of `daytona`"),
        "{}",
        ran.output()
    );
    assert!(ran.out.contains("sandbox local, not isolated"), "{}", ran.output());
    assert_eq!(creations(&service), 1, "one attempt before the run");
    let settings = project.report(&[], 0)["run"]["settings"].clone();
    assert_eq!(settings["sandbox"], "local", "{settings:#}");
    project.run(&["run", "--strict"]).exits(2);
}

#[test]
fn an_unusable_sandbox_is_reported_before_a_model_writes_tests() {
    let service = StandIn::open(Fault::Quota);
    let project = project(&service).env("OPENAI_API_KEY", "unused").env("OPENAI_BASE_URL", "http://127.0.0.1:9/v1");
    let gen_tests = ["gen", "--agent", "bot", "--description", "a shop", "--model", "openai:gpt-5.5"];
    let failed = project.run(&gen_tests).exits(3);
    assert!(
        failed.err.contains("the agent `bot` cannot be run") && failed.err.contains("quota"),
        "{}",
        failed.output()
    );
    assert!(!failed.err.contains("127.0.0.1:9"), "{}", failed.output());
}

#[test]
fn a_sandbox_whose_creation_was_not_answered_is_found_by_its_name() {
    let service = StandIn::open(Fault::Cut);
    let report = project(&service).report(&[], 0);
    assert_eq!(report["trials"][0]["outcome"], "passed", "{report:#}");
    assert_eq!((creations(&service), service.sandboxes().len()), (2, 0), "none is created twice, none is left");
}

#[test]
fn a_sandbox_that_does_not_start_is_removed_and_the_state_is_named() {
    for (fault, text) in [(Fault::NeverStarted, "its state is `creating`"), (Fault::Failed, "no runner")] {
        let service = StandIn::open(fault);
        let project = project(&service).env("TRIALRUN_SETUP_TIMEOUT", "1s");
        let because = because(&project);
        assert!(because.contains(text), "{because}");
        assert_eq!(service.sandboxes(), [] as [Value; 0]);
    }
}

#[test]
fn a_wrong_key_is_reported_without_showing_it() {
    let service = StandIn::open(Fault::Nothing);
    let project = project(&service).env("DAYTONA_API_KEY", "wrong-key-77aa");
    let because = because(&project);
    assert!(because.contains("the service rejected the API key") && !because.contains("77aa"), "{because}");
    assert_eq!(creations(&service), 1);
    let project = self::project(&service).env("DAYTONA_API_KEY", "");
    let ran = project.run(&["run"]).exits(3);
    assert!(ran.err.contains("`DAYTONA_API_KEY` is not set"), "{}", ran.output());
    project.write("trialrun.yaml", &project.read("trialrun.yaml").replace("network: none, ", ""));
    assert!(self::because(&project).contains("`DAYTONA_API_KEY` is not set"));
}

#[test]
fn only_sandboxes_of_ended_processes_of_this_machine_are_pruned() {
    let service = StandIn::open(Fault::Nothing);
    let project = project(&service);
    project.report(&[], 0);
    let (_, body) = service.seen().into_iter().find(|(line, _)| line == "POST /api/sandbox").unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    let ended = body["labels"]["trialrun.owner"].as_str().unwrap();
    service.add("orphan", &json!({"trialrun.owner": ended}));
    service.add("elsewhere", &json!({"trialrun.owner": "1:1:another-machine"}));
    service.add("foreign", &json!({}));
    let listed = project.run(&["prune"]).exits(0);
    assert!(listed.out.contains("orphan") && !listed.out.contains("elsewhere"), "{}", listed.output());
    project.run(&["prune", "--yes"]).exits(0);
    let names: Vec<Value> = service.sandboxes().iter().map(|sandbox| sandbox["name"].clone()).collect();
    assert_eq!(names, ["elsewhere", "foreign"]);
}

#[test]
fn canaries_are_planted_and_found_in_remote_sandboxes() {
    let service = StandIn::open(Fault::Nothing);
    let project = project(&service);
    project.write("bot.sh", "cat .env; echo \"$DEPLOY_TOKEN\" | wc -c; cat given; echo made > made\n");
    project.write("scenarios/s.yaml", &format!("canaries: true\n{}", project.read("scenarios/s.yaml")));
    let report = project.report(&[], 0);
    let trial = &report["trials"][0];
    let answer = trial["answer"].as_str().unwrap();
    assert!(answer.contains("STRIPE_SECRET_KEY=[masked") && answer.contains("41"), "{trial:#}");
    assert!(trial["integrity"].to_string().contains("canary"), "{trial:#}");
    assert_eq!(trial["files_changed"], json!([{"path": "made", "change": "added"}]));
}

#[test]
fn agents_that_need_this_machine_are_refused_before_anything_runs() {
    let service = StandIn::open(Fault::Nothing);
    let project = project(&service);
    let checked = project.run(&["check", "--agent", "claude-code"]).exits(2);
    assert!(checked.err.contains("cannot work in `daytona` sandboxes"), "{}", checked.output());
    assert!(checked.err.contains("`isolated`"), "{}", checked.output());
    assert_eq!(service.seen().len(), 0);
}

//! Compares the table of endings in `docs/explanation/verdicts.md` with what becomes of a trial: with the embedded agent, and
//! with the real programs of vendors where they are installed. Their models are scripted.
//!
//! `trialrun_agent::tests::endings` does the same for agents that are not run by a model of ours.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use testkit::Project;
use testkit::real::{CLAUDE_CODE, CODEX, OPENCODE};

/// Environment variable with which the vendors' programs run in all situations. Otherwise, each runs in some of them,
/// because its trials take a second or more of processor time.
const ALL: &str = "TRIALRUN_ALL_ENDINGS";

/// Something that happens in a trial.
struct Situation {
    /// Row of the table.
    happens: &'static str,
    /// Steps of the model.
    steps: Value,
    /// Further lines of the scenario.
    lines: &'static str,
}

/// Returns the situations. `command` is a call that runs a command.
fn situations(command: impl Fn(&str) -> Value) -> Vec<Situation> {
    let with = |happens, steps, lines| Situation { happens, steps, lines };
    let case = |happens, steps| with(happens, steps, "");
    let http = |status: u16, kind: &str, message: &str| {
        let fault = json!({"kind": "http", "status": status, "type": kind, "message": message, "times": "forever",
            "headers": {"retry-after": "0"}});
        json!([{"text": "x", "fault": fault}])
    };
    let fault = |fault: Value| json!([{"text": "x".repeat(300), "fault": fault}]);
    let forever = |mut step: Value| {
        step["repeat"] = json!("forever");
        json!([step])
    };
    let done = || json!({"text": "Done."});
    let too_long = "prompt is too long: 210000 tokens > 200000 maximum";
    vec![
        case("answers with text", json!([done()])),
        case("calls a tool and answers", json!([{"tools": [command("ls")]}, done()])),
        case("answers with nothing", forever(json!({"text": ""}))),
        case("answers with white space only", forever(json!({"text": " \n "}))),
        case("declines to answer", forever(json!({"text": "No.", "stop": "refusal"}))),
        case("answer reaches its token limit", forever(json!({"text": "I will", "stop": "max_tokens"}))),
        // OpenCode sends it again until the timeout.
        with("conversation too long for the model", http(400, "invalid_request_error", too_long), "timeout: 60s"),
        case(
            "content filter refuses the conversation",
            http(400, "content_filter", "Output blocked by content filtering policy"),
        ),
        case("model calls an unknown tool", json!([{"tools": [{"name": "no_such_tool", "offered": false}]}, done()])),
        case("key, address or format rejected", http(401, "authentication_error", "no")),
        case("HTTP 500", http(500, "api_error", "no")),
        case("HTTP 429 or 529", http(429, "rate_limit_error", "slow down")),
        case("HTTP 400 for another reason", http(400, "invalid_request_error", "temperature: too high")),
        case("answer is cut off", fault(json!({"kind": "cut", "times": "forever"}))),
        with(
            "nothing arrives until the timeout",
            fault(json!({"kind": "hang", "times": "forever"})),
            "timeout: TIMEOUT",
        ),
        case("fails once, then answers", json!([{"fault": {"kind": "http", "status": 500}}, done()])),
        with(
            "own command runs into the timeout",
            json!([{"tools": [command("sleep 60")]}, done()]),
            "timeout: TIMEOUT",
        ),
        with("reaches its limit of turns", forever(json!({"tools": [command("ls")]})), "max_turns: 2"),
        with("reaches its limit of tokens", forever(json!({"tools": [command("ls")]})), "token_budget: 250"),
        case("script has too few steps", json!([{"tools": [command("ls")]}])),
        with(
            "fails after a call that the script should not make",
            json!([{"tools": [{"name": "no_such_tool"}]}, done()]),
            "assertions: [{ id: never, type: tool_called, tool: WebFetch }]",
        ),
    ]
}

/// Returns the cell of the table for `happens` and `agent`.
#[track_caller]
fn cell(happens: &str, agent: &str) -> String {
    let page = include_str!("../../../../docs/explanation/verdicts.md");
    let table = page.split("<!-- endings -->").nth(1).unwrap().split("<!-- end -->").next().unwrap();
    let mut rows =
        table.trim().lines().map(|line| line.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>());
    let at = rows.next().unwrap().iter().position(|name| *name == agent).unwrap();
    let row = rows.find(|row| row[0] == happens).unwrap_or_else(|| panic!("no row for {happens}"));
    row[at].to_owned()
}

/// Runs the situations whose rows `is_tested` selects, and compares the outcomes with the table.
#[track_caller]
fn compare(project: &Project, agent: &str, command: impl Fn(&str) -> Value, is_tested: impl Fn(&str) -> bool) {
    let situations: Vec<_> = situations(command).into_iter().filter(|case| is_tested(case.happens)).collect();
    let mut arguments = Vec::new();
    for (number, Situation { steps, lines, .. }) in situations.iter().enumerate() {
        let usual = "assertions: [{ id: quiet, type: output_contains, pattern: \"^(?!never)\" }]";
        let assertions = if lines.contains("assertions") { "" } else { usual };
        project.write(&format!("{number}.model.yaml"), &json!({ "steps": steps }).to_string());
        // A real program may need several seconds for its first request on a busy machine.
        let lines = lines.replace("TIMEOUT", if ["chat", "assistant"].contains(&agent) { "2s" } else { "20s" });
        let scenario = format!(
            "scenario: s{number}\nsystem_prompt: Work.\nmodel: scripted:{number}.model.yaml\nuser_prompt: go\n{lines}\n\
             {assertions}\n"
        );
        project.write(&format!("{number}.yaml"), &scenario);
        arguments.push(format!("{number}.yaml"));
    }
    let mut arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    arguments.extend(["--agent", agent, "--jobs", "4", "--retries", "0"]);
    let report = project.report(&arguments, 1);
    let mut wrong = Vec::new();
    for (number, Situation { happens, .. }) in situations.iter().enumerate() {
        let id = json!(format!("s{number}"));
        let trial = report["trials"].as_array().unwrap().iter().find(|trial| trial["case"] == id).unwrap();
        let outcome = match trial["outcome"].as_str().unwrap() {
            "passed" => "graded",
            other => other,
        };
        let is_of_provider =
            happens.starts_with("HTTP") || ["answer is cut off", "nothing arrives until the timeout"].contains(happens);
        let is_named = !is_of_provider
            || (&trial["fault"], &trial["ending"]["kind"]) == (&json!("provider"), &json!("provider_failed"));
        if outcome != cell(happens, agent) || !is_named {
            wrong.push(format!("{happens}: {outcome}, not {}: {}", cell(happens, agent), trial["ending"]));
        }
    }
    assert!(wrong.is_empty(), "{agent}:\n{}", wrong.join("\n"));
    project.no_process_is_left();
}

/// Returns `true` for every second situation, or for all if they are asked for.
fn is_tested(happens: &str, remainder: usize) -> bool {
    let at = situations(|_| json!({})).iter().position(|situation| situation.happens == happens);
    std::env::var_os(ALL).is_some() || at.is_some_and(|at| at % 2 == remainder)
}

#[test]
fn the_embedded_agent_ends_as_the_table_says() {
    let command = |line: &str| json!({"name": "Bash", "input": {"command": line}});
    compare(&Project::new(env!("CARGO_BIN_EXE_trialrun")), "chat", command, |happens| {
        happens != "fails once, then answers"
    });
}

#[test]
fn an_assistant_ends_as_the_table_says() {
    let project = Project::new(env!("CARGO_BIN_EXE_trialrun"));
    project.write("trialrun.yaml", "agents: { assistant: { type: assistant, model: m } }\n");
    // It has no tools of its own, and errors of a script in this process are not retried.
    let untested = ["command", "limit", "calls", "script has", "fails"];
    compare(&project, "assistant", |_| json!({}), |happens| !untested.iter().any(|word| happens.contains(word)));
}

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn claude_code_ends_as_the_table_says() {
    let project = CLAUDE_CODE.project(env!("CARGO_BIN_EXE_trialrun"), env!("CARGO_TARGET_TMPDIR"));
    compare(
        &project,
        "claude-code",
        |line| json!({"name": "Bash", "input": {"command": line}}),
        |happens| is_tested(happens, 0),
    );
}

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn codex_ends_as_the_table_says() {
    let project = CODEX.project(env!("CARGO_BIN_EXE_trialrun"), env!("CARGO_TARGET_TMPDIR"));
    compare(
        &project,
        "codex",
        |line| json!({"name": "exec_command", "input": {"cmd": line}}),
        |happens| is_tested(happens, 1),
    );
}

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn opencode_without_ripgrep_has_not_shown_that_it_does_not_use_a_skill() {
    let project = OPENCODE.project(env!("CARGO_BIN_EXE_trialrun"), env!("CARGO_TARGET_TMPDIR"));
    let bin = project.dir().join("bin");
    let project = project.path_first(&bin);
    project.write("bin/rg", "#!/bin/sh\nexit 127\n");
    std::fs::set_permissions(bin.join("rg"), std::fs::Permissions::from_mode(0o755)).unwrap();
    project
        .write("trialrun.yaml", "skills_dir: ./skills\n")
        .write("skills/greet/SKILL.md", "---\nname: greet\ndescription: Greets.\n---\nSay hello.\n")
        .write(
            "skills/greet/model.yaml",
            "steps: [{ tools: [{ name: skill, input: { name: greet } }] }, { text: Done. }]\n",
        )
        .write(
            "skills/greet/tests/a.yaml",
            "scenario: a\nskill: greet\nmodel: scripted:../model.yaml\nuser_prompt: go\n\
             assertions: [{ id: quiet, type: skill_not_used, skill: greet }]\n",
        );
    let report = project.report(&["--agent", "opencode", "--retries", "0"], 3);
    let trial = &report["trials"][0];
    assert_eq!((&trial["outcome"], &trial["fault"]), (&json!("broken"), &json!("environment")), "{trial:#}");
    assert!(trial["ending"]["because"].as_str().unwrap().contains("could not run ripgrep"), "{}", trial["ending"]);
}

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn opencode_ends_as_the_table_says() {
    // Each of its trials takes about 7 seconds of processor time, and some of its retries last until the timeout.
    const TESTED: [&str; 4] = [
        "answers with nothing",
        "answer reaches its token limit",
        "content filter refuses the conversation",
        "model calls an unknown tool",
    ];
    let project = OPENCODE.project(env!("CARGO_BIN_EXE_trialrun"), env!("CARGO_TARGET_TMPDIR"));
    let command = |line: &str| json!({"name": "bash", "input": {"command": line, "description": "x"}});
    let all = std::env::var_os(ALL).is_some();
    compare(&project, "opencode", command, |happens| all || TESTED.contains(&happens));
}

#[test]
fn a_command_whose_program_does_not_exist_says_nothing_about_the_agent() {
    let project = Project::new(env!("CARGO_BIN_EXE_trialrun"));
    let outcome = |command: &str| {
        project.write(
            "a.yaml",
            &format!(
                "scenario: a\nagent: fake\nfixtures: {{ git_init: true }}\nsystem_prompt: x\nuser_prompt: '!write x.sh exit 127'\n\
                 assertions: [{{ id: c, type: command, run: '{command}' }}]\n"
            ),
        );
        let report = project.run(&["run", "a.yaml", "--report", "json"]).json();
        let trial = &report["trials"][0];
        (trial["outcome"].clone(), trial["findings"][0]["because"].clone())
    };
    let missing = "there is no program named `pytset` on the PATH of the sandbox";
    assert_eq!(outcome("pytset -q && true"), (json!("undecided"), json!(missing)));
    for command in ["./bin/check", "sh x.sh", "sh -c pytset"] {
        assert_eq!(outcome(command).0, "failed", "{command}");
    }
}

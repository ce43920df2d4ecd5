//! Mocked MCP servers and programs, from the scenario file to the exit code, with the agent `chat`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use serde_json::{Value, json};
use testkit::Project;

const TRIALRUN: &str = env!("CARGO_BIN_EXE_trialrun");

/// A case with a mocked server and a mocked program; the assertions follow.
const CASE: &str = r##"
scenario: closes
system_prompt: You manage issues.
user_prompt: Close issue 7.
agent: chat
model: scripted:model.yaml
mcp_servers:
  issues:
    tools:
      list:
        input_schema: { type: object, properties: { state: { type: string } } }
        answers:
          - { when: { state: open }, answer: [{ id: 7, file: "{{file:notes/7.txt}}" }] }
          - { error: "unknown state {{input.state}}" }
      close: { expect: { id: 7 }, answer: { closed: "{{input.id}}" } }
      ask: { play: An issue tracker with one issue., model: "scripted:tracker.yaml" }
mock_commands:
  kubectl: { answers: [{ args: get pods, stdout: "web-1\n" }, { args: "/^logs/", stderr: "no logs\n", exit_code: 3 }] }
assertions:
"##;

fn project() -> Project {
    let project = Project::new(TRIALRUN);
    project.write("notes/7.txt", "crash").write("tracker.yaml", "steps: [{ text: Issue 7 is mine. }]\n");
    project
}

/// Runs [`CASE`] with these assertions and calls of the model, and returns its trial.
#[track_caller]
fn run(project: &Project, assertions: &str, calls: &[Value], arguments: &[&str], code: i32) -> Value {
    let mut steps: Vec<Value> = calls.iter().map(|call| json!({"tools": [call]})).collect();
    steps.push(json!({"text": "Done."}));
    project.write("case.yaml", &format!("{CASE}{assertions}"));
    project.write("model.yaml", &json!({ "steps": steps }).to_string());
    let report = project.report(&[&["case.yaml"], arguments].concat(), code);
    report["trials"][0].clone()
}

fn tool(name: &str, input: &Value) -> Value {
    json!({"name": format!("mcp__issues__{name}"), "input": input})
}

fn bash(command: &str) -> Value {
    json!({"name": "Bash", "input": {"command": command}})
}

/// Returns the results of the calls.
fn results(trial: &Value) -> Vec<&str> {
    trial["tool_calls"].as_array().unwrap().iter().map(|call| call["result"].as_str().unwrap()).collect()
}

const ASSERTIONS: &str = r##"
  - { id: closes, type: mcp_called, server: issues, tool: close, max: 1 }
  - { id: by-its-name, type: tool_called, tool: mcp__issues__close }
  - { id: drops-nothing, type: mcp_not_called, server: issues, tool: list, args_match: { state: closed } }
  - { id: lists-pods, type: mock_called, command: kubectl, args: ^get pods }
  - { id: deletes-nothing, type: mock_not_called, command: kubectl, args: ^delete }
  - { id: as-text, type: matches, in: mock_calls, pattern: '/"closed\\+":7/' }
"##;

#[test]
fn calls_are_answered_as_declared_and_nothing_else_is_reached() {
    answers(&["--sandbox", "local"]);
}

#[test]
#[cfg_attr(not(has = "isolation"), ignore = "needs a kernel that isolates processes; run scripts/test")]
fn mocks_work_in_a_sandbox_without_a_network() {
    answers(&["--sandbox", "isolated", "--network", "none"]);
}

#[track_caller]
fn answers(arguments: &[&str]) {
    let project = project();
    let calls = [
        tool("list", &json!({"state": "open"})),
        tool("list", &json!({"state": "x"})),
        tool("close", &json!({"id": 7})),
        tool("ask", &json!({"about": 7})),
        bash("kubectl get pods --all; sh -lc 'kubectl logs web-1'; echo $?; kubectl scale"),
    ];
    let trial = run(&project, ASSERTIONS, &calls, arguments, 0);
    assert_eq!(
        results(&trial),
        [
            r#"[{"id":7,"file":"crash"}]"#,
            "unknown state x",
            r#"{"closed":7}"#,
            "Issue 7 is mine.",
            "Exit code 1\nweb-1\nno logs\n3\nkubectl: `kubectl scale` is not mocked with these arguments",
        ]
    );
    let verdicts: Vec<&Value> = trial["mock_calls"].as_array().unwrap().iter().map(|call| &call["verdict"]).collect();
    assert_eq!(verdicts, ["answered", "error", "answered", "answered", "answered", "error", "not_mocked"]);
    let warnings = trial["warnings"].to_string();
    assert!(warnings.contains("mock kubectl scale: not mocked"), "{warnings}");
    let mocks = trial["findings"].as_array().unwrap().iter().find(|finding| finding["type"] == "mock_arguments");
    assert_eq!(mocks.unwrap()["status"], "met");
}

#[test]
fn unexpected_arguments_fail_the_trial() {
    let trial = run(
        &project(),
        ASSERTIONS,
        &[tool("close", &json!({"id": 9})), json!({"name": "mcp__issues__drop", "offered": false, "input": {}})],
        &[],
        1,
    );
    let [rejected, unknown] = results(&trial)[..] else { panic!("{trial:#}") };
    assert!(rejected.contains("unexpected arguments: `id` is 9, not `7`"), "{rejected}");
    assert!(unknown.contains("No such tool"), "{unknown}");
    let findings = trial["findings"].as_array().unwrap();
    let status = |kind: &str| findings.iter().find(|finding| finding["type"] == kind).unwrap()["status"].clone();
    assert_eq!([status("mock_arguments"), status("mock_called")], [json!("unmet"), json!("unmet")]);
}

#[test]
fn a_mock_that_cannot_answer_breaks_the_trial() {
    let project = project();
    project.write("tracker.yaml", "steps: [{ fault: { kind: http, status: 400 } }]\n");
    let trial = run(&project, "  - { id: a, type: mcp_called, server: issues }\n", &[tool("ask", &json!({}))], &[], 3);
    assert_eq!(trial["outcome"], "broken");
    let ending = trial["ending"].to_string();
    assert!(ending.contains("the model that plays the mock failed"), "{trial:#}");
    project.write("trialrun.yaml", "mcp_servers: { db: { command: no-such-server } }\n");
    let trial = run(&project, "  - { id: a, type: mcp_not_called, server: db }\n", &[], &[], 3);
    let reason = "the MCP server `db` cannot start: there is no program named `no-such-server` on the PATH";
    assert!(trial.to_string().contains(reason), "{trial:#}");
}

#[test]
fn agents_and_sandboxes_that_cannot_have_mocks_are_refused_before_the_run() {
    let project = project();
    project.write("case.yaml", &format!("{CASE}  - {{ id: a, type: mcp_called, server: isues, tool: clos }}\n"));
    project.write("model.yaml", "steps: [{ text: x }]\n").write("bot.js", "export default () => 'x';\n");
    let refused = project.run(&["check", "case.yaml", "--agent", "custom:bot.js"]).exits(2).output();
    assert!(refused.contains("`custom` does not accept `mcp_servers`"), "{refused}");
    let misspelt = project.run(&["check", "case.yaml"]).exits(2).output();
    assert!(misspelt.contains("the agent is not given an MCP server `isues`"), "{misspelt}");
    assert!(misspelt.contains("case.yaml:20:40") && misspelt.contains("did you mean `issues`?"), "{misspelt}");
    project.write("case.yaml", &format!("{CASE}  - {{ id: a, type: mock_called, command: kubctl }}\n"));
    let misspelt = project.run(&["run", "case.yaml"]).exits(2).output();
    assert!(misspelt.contains("`kubctl` is not a mocked program of this case"), "{misspelt}");
    assert!(misspelt.contains("did you mean `kubectl`?"), "{misspelt}");
    project.write("case.yaml", &format!("{CASE}  - {{ id: a, type: contains, text: x }}\n"));
    let refused = project.run(&["run", "case.yaml", "--sandbox", "docker"]).exits(2).output();
    assert!(refused.contains("stand for mocks cannot run in `docker` sandboxes"), "{refused}");
}

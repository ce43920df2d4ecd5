//! Faults of a case: they occur where the case specifies, are shown in reports, and are part of the test.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::process::Command;

use serde_json::{Value, json};
use testkit::Project;
use testkit::real::{CLAUDE_CODE, CODEX, OPENCODE, RealAgent, only_trial};

const TRIALRUN: &str = env!("CARGO_BIN_EXE_trialrun");

/// Returns a project with a case for `chat`, whose scripted model runs `commands` and then answers.
fn project(faults: &str, commands: &[&str], assertions: &str) -> Project {
    let project = Project::new(TRIALRUN);
    let call = |command: &&str| json!({"tools": [{"name": "Bash", "input": {"command": command}}]});
    let mut steps: Vec<Value> = commands.iter().map(call).collect();
    steps.push(json!({"text": "Done."}));
    project.write("model.json", &json!({ "steps": steps }).to_string());
    project.write(
        "case.yaml",
        &format!(
            "scenario: faults\nsystem_prompt: Work.\nuser_prompt: go\nagent: chat\nmodel: scripted:model.json\n\
             fixtures: {{files_unstaged: [{{path: docs/a.txt, content: old}}]}}\nfaults:\n{faults}assertions:\n\
             {assertions}"
        ),
    );
    project
}

fn finding<'t>(trial: &'t Value, id: &str) -> &'t Value {
    trial["findings"].as_array().unwrap().iter().find(|finding| finding["id"] == id).unwrap()
}

const RECOVERY: &str = "  - {id: recovered, type: recovered}\n  - {id: retries, type: retries_at_most, max: 1}\n  \
                        - {id: loop, type: no_loop}\n";

#[test]
fn faults_occur_where_the_case_says_and_are_shown() {
    let faults = "  - http_status: {status: 529, at: 2}\n  - cut_stream: {at: 4}\n  \
                  - tool_fails: {command: make, exit_code: 3, stderr: no network}\n";
    let project = project(faults, &["make --version", "make --version"], RECOVERY);
    let trial = only_trial(&project.report(&["case.yaml"], 0));
    let kinds =
        |key: &str| trial["injected_faults"].as_array().unwrap().iter().map(|f| f[key].clone()).collect::<Vec<_>>();
    assert_eq!(kinds("fault"), ["http_status", "cut_stream", "tool_fails"]);
    assert_eq!(kinds("hits"), [json!([2]), json!([4]), json!([1])]);
    assert_eq!(trial["tool_calls"][0]["is_error"], true, "{trial:#}");
    assert!(trial["tool_calls"][0]["result"].as_str().unwrap().contains("no network"));
    assert_eq!(finding(&trial, "retries")["because"], "1 retry of model request 4");
    assert_eq!(finding(&trial, "faults_reached")["status"], "met");
    let shown = project.run(&["show", "case::faults"]).exits(0).out;
    for line in
        ["model request 2: HTTP 529", "model request 4: a connection cut", "run 1: `make` fails with exit code 3"]
    {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    let regraded = only_trial(&project.run(&["regrade", "latest", "--report", "json"]).exits(0).json());
    assert_eq!(finding(&regraded, "recovered")["status"], "met");
}

#[test]
fn a_trial_that_did_not_meet_its_fault_is_undecided() {
    let project = project("  - cut_stream: {at: 7}\n", &["true"], RECOVERY);
    let trial = only_trial(&project.report(&["case.yaml"], 3));
    assert_eq!(trial["outcome"], "undecided");
    assert_eq!(finding(&trial, "recovered")["status"], "undecided");
    let reached = finding(&trial, "faults_reached");
    assert_eq!(reached["because"], "the fault cut_stream did not occur: the agent sent 2 model requests");
}

#[test]
fn an_agent_that_does_not_get_over_a_fault_has_failed() {
    let project = project("  - http_status: {status: 500, every: 1}\n", &["true"], RECOVERY);
    let trial = only_trial(&project.report(&["case.yaml", "--retries", "1"], 1));
    assert_eq!((&trial["outcome"], &trial["fault"]), (&json!("failed"), &Value::Null), "{trial:#}");
    assert_eq!(trial["attempts"].as_array().unwrap().len(), 1, "it is not repeated");
    assert_eq!(finding(&trial, "recovered")["status"], "unmet");
}

#[test]
fn a_malformed_call_is_an_error_that_the_agent_gets_over() {
    let project = project("  - malformed_arguments: {}\n  - slow_stream: {at: 2, delay: 1ms}\n", &["true"], RECOVERY);
    let trial = only_trial(&project.report(&["case.yaml"], 0));
    assert_eq!(
        (&trial["tool_calls"][0]["is_error"], &trial["tool_calls"][1]["is_error"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(trial["integrity"], json!([]), "the call is not forged");
}

#[test]
fn a_fault_that_cannot_be_injected_is_an_error_before_the_run() {
    let check = |faults: &str, arguments: &[&str]| {
        let project = project(faults, &["true"], RECOVERY);
        project.run(&[&["check", "case.yaml"], arguments].concat()).exits(2).output()
    };
    let typing = check("  - http_statsu: {status: 529}\n", &[]);
    assert!(typing.contains("case.yaml:8:5") && typing.contains("did you mean `http_status`?"), "{typing}");
    let status = "  - http_status: {status: 529}\n";
    let vendor = check(status, &["--agent", "claude-code", "--model", "claude-x"]);
    assert!(vendor.contains("`claude-code` sends its model requests to the vendor"), "{vendor}");
    let program = check(status, &["--agent", "subprocess:cat"]);
    assert!(program.contains("the model requests of `subprocess` are not visible"), "{program}");
    let local = check("  - read_only: [docs]\n", &[]);
    assert!(local.contains("use `isolated` sandboxes"), "{local}");
}

#[test]
fn a_fault_that_a_kind_of_sandbox_does_not_support_is_an_error_before_the_run() {
    let check = |faults: &str, sandbox: &str, agent: &str, code: i32| {
        let project = project(faults, &["true"], RECOVERY);
        project.write("trialrun.yaml", &format!("sandbox: {{provider: {sandbox}, image: debian}}\n"));
        let output = project.run(&["check", "case.yaml", "--agent", agent]).exits(code).output();
        assert!(code == 0 || output.contains("case.yaml:8:5"), "{output}");
        output
    };
    for kind in ["docker", "podman"] {
        for fault in ["  - disk_full: {free_kb: 64}\n", "  - clock_offset: '+2d'\n"] {
            let refused = check(fault, kind, "chat", 2);
            assert!(refused.contains(kind) && refused.contains("use `isolated` sandboxes"), "{refused}");
        }
        for agent in ["codex", "chat"] {
            check("  - cut_stream: {at: 1}\n", kind, agent, 0);
        }
    }
    for fault in ["  - tool_fails: {command: make}\n", "  - read_only: [docs]\n"] {
        let remote = check(fault, "daytona", "chat", 2);
        assert!(remote.contains("the processes of `daytona` sandboxes run on another machine"), "{remote}");
    }
}

#[test]
#[cfg_attr(not(has = "isolation"), ignore = "needs a kernel that isolates processes; run scripts/test")]
fn files_are_read_only_in_isolated_sandboxes() {
    let project = project("  - read_only: [docs]\n", &["echo new > docs/a.txt", "echo new > b.txt"], RECOVERY);
    let trial = only_trial(&project.report(&["case.yaml", "--sandbox", "isolated"], 0));
    assert!(trial["tool_calls"][0]["result"].as_str().unwrap().contains("Read-only file system"), "{trial:#}");
    assert_eq!(trial["files_changed"], json!([{"path": "b.txt", "change": "added"}]));
}

#[test]
#[cfg_attr(not(has = "root"), ignore = "needs root that can mount file systems; run scripts/test")]
fn a_full_disk_is_the_agents_to_cope_with() {
    let faults = "  - disk_full: {free_kb: 64}\n";
    let commands = ["head -c 1000000 /dev/zero > big.bin", "rm big.bin; echo small > small.txt"];
    let project = project(faults, &commands, RECOVERY);
    let trial = only_trial(&project.report(&["case.yaml"], 0));
    assert_eq!(trial["outcome"], "passed", "{trial:#}");
    assert!(trial["tool_calls"][0]["result"].as_str().unwrap().contains("No space left on device"), "{trial:#}");
    assert_eq!(trial["files_changed"], json!([{"path": "small.txt", "change": "added"}]));
    assert!(project.left_over().is_empty(), "{:?}", project.left_over());
}

#[test]
fn without_the_right_to_mount_a_full_disk_is_refused() {
    let project = project("  - disk_full: {free_kb: 64}\n", &["true"], RECOVERY);
    let run = project.command(&["run", "case.yaml"]);
    // Root gives the right up; other users do not have it.
    let gives_up: &[&str] =
        if nix::unistd::geteuid().is_root() { &["setpriv", "--bounding-set=-sys_admin"] } else { &["env"] };
    let mut refused = Command::new(gives_up[0]);
    refused.args(&gives_up[1..]).arg(run.get_program()).args(run.get_args()).current_dir(project.dir());
    let refused = refused.env_clear().envs(run.get_envs().filter_map(|(name, value)| Some((name, value?)))).output();
    let refused = refused.unwrap();
    let message = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{message}");
    assert!(message.contains("run as root on Linux"), "{message}");
}

#[test]
#[cfg_attr(not(has = "faketime"), ignore = "needs the library libfaketime; run scripts/test")]
fn the_clock_is_wrong() {
    let project = project(
        "  - clock_offset: '+2d'\n",
        &["date -u +%s > now.txt"],
        "  - {id: now, type: file_exists, path: now.txt}\n",
    );
    let trial = only_trial(&project.report(&["case.yaml", "--keep-sandbox"], 0));
    let work = std::path::PathBuf::from(trial["sandbox"].as_str().unwrap());
    let then: i64 = std::fs::read_to_string(work.join("now.txt")).unwrap().trim().parse().unwrap();
    let now = jiff::Timestamp::now().as_second();
    assert!((86_400..3 * 86_400).contains(&(then - now)), "{then} {now}");
}

#[test]
#[cfg_attr(has = "faketime", ignore = "needs a machine without the library libfaketime")]
fn without_its_library_a_wrong_clock_is_refused() {
    let refused = project("  - clock_offset: '+2d'\n", &["true"], RECOVERY).run(&["run", "case.yaml"]).exits(2);
    assert!(refused.err.contains("`libfaketime` is not installed"), "{}", refused.output());
}

/// Runs an agent whose first request gets HTTP 529, and whose third one is cut. In `network.rs`, it does so in an
/// isolated sandbox.
#[track_caller]
fn recovers(agent: RealAgent) {
    let (tool, argument) = match agent.program {
        "claude" => ("Bash", "command"),
        "codex" => ("exec_command", "cmd"),
        _ => ("bash", "command"),
    };
    let input = json!({argument: "date > out.txt", "description": "Works"});
    let project = agent.project(TRIALRUN, env!("CARGO_TARGET_TMPDIR"));
    let model = json!({"steps": [{"tools": [{"name": tool, "input": input}]}, {"text": "Done."}]});
    project.write("model.json", &model.to_string()).write(
        "case.yaml",
        &format!(
            "scenario: faults\nsystem_prompt: Work.\nuser_prompt: go\nagent: {}\nmodel: scripted:model.json\n\
             faults:\n  - http_status: {{status: 529, retry_after: 1s}}\n  - cut_stream: {{at: 3}}\nassertions:\n  \
             - {{id: recovered, type: recovered}}\n  - {{id: out, type: file_exists, path: out.txt}}\n",
            agent.name
        ),
    );
    let trial = only_trial(&project.report(&["case.yaml"], 0));
    let hits: Vec<_> = trial["injected_faults"].as_array().unwrap().iter().map(|fault| &fault["hits"]).collect();
    assert_eq!(hits, [&json!([1]), &json!([3])], "{trial:#}");
    // Failed attempts are neither turns nor usage, but Claude Code may count the part of a response that arrived.
    assert_eq!((&trial["turn_count"], &trial["usage"]["input"]), (&json!(2), &json!(200)), "{trial:#}");
    let output = trial["usage"]["output"].as_u64().unwrap();
    assert!(output == 20 || (agent.program == "claude" && output > 20), "{trial:#}");
    assert_eq!((&trial["integrity"], &trial["tool_calls"][0]["name"]), (&json!([]), &json!("Bash")));
}

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn claude_code_recovers_from_an_overload_and_a_cut_stream() {
    recovers(CLAUDE_CODE);
}

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn codex_recovers_from_an_overload_and_a_cut_stream() {
    recovers(CODEX);
}

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn opencode_recovers_from_an_overload_and_a_cut_stream() {
    recovers(OPENCODE);
}

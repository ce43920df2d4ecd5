//! Tests of the real Codex with scripted models, from the scenario file to the exit code. Where the machine allows it,
//! they run without a network.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};
use testkit::Project;
use testkit::real::{CODEX, only_trial as trial};

const TRIALRUN: &str = env!("CARGO_BIN_EXE_trialrun");

/// Returns a project that uses the real agent with the model in `model.yaml`.
fn project() -> Project {
    CODEX.project(TRIALRUN, env!("CARGO_TARGET_TMPDIR"))
}

/// Writes a scenario and its model, runs it with the expected exit code `code`, and returns its trial.
#[track_caller]
fn run(project: &Project, scenario: &str, model: &str, code: i32) -> Value {
    project.write("case.yaml", scenario).write("model.yaml", model);
    trial(&project.report(&["case.yaml", "--agent", "codex", "--report", "jsonl=events.jsonl"], code))
}

/// Returns the name and main argument of each call, in order, followed by `!` if it failed.
fn calls(trial: &Value) -> Vec<String> {
    let all = trial["tool_calls"].as_array().unwrap().iter();
    all.map(|call| {
        let input = call["input"].as_object().unwrap();
        let argument = ["command", "file_path", "skill"].iter().find_map(|key| input.get(*key)?.as_str());
        let failed = if call["is_error"] == json!(true) { " !" } else { "" };
        format!("{} {}{failed}", call["name"].as_str().unwrap(), argument.unwrap_or("-"))
    })
    .collect()
}

fn result(trial: &Value, call: usize) -> &str {
    trial["tool_calls"][call]["result"].as_str().unwrap_or_default()
}

fn events(project: &Project, kind: &str) -> usize {
    let events = project.read("events.jsonl");
    let events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.filter(|line| line["event"]["type"] == "step" && line["event"]["kind"] == kind).count()
}

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn a_text_turn_is_recorded_exactly() {
    let project = project();
    let trial = run(
        &project,
        "
scenario: text
system_prompt: Be MANTRA.
user_prompt: \"--help is no option, and '-' is a prompt\"
runner: { model: scripted:model.yaml, reasoning_effort: low }
assertions: [{ id: says, type: output_contains, pattern: ^Hello\\.$ }]
",
        "
steps:
  - thinking: Hm.
    text: Hello.
    usage: { input: 70, cache_read: 30, output: 9, reasoning: 4 }
    expect_request:
      system_contains: Be MANTRA.
      last_user_contains: \"--help is no option, and '-' is a prompt\"
      tools_include: [exec_command, apply_patch]
      not_contains: [imagegen, skill-creator]
",
        0,
    );
    assert_eq!(trial["outcome"], "passed", "{trial:#}");
    assert_eq!(
        trial["usage"],
        json!({"input": 70, "cache_read": 30, "cache_write": 0, "output": 9, "reasoning": 4, "total": 109})
    );
    assert_eq!((&trial["turn_count"], &trial["model"]), (&json!(1), &json!("scripted:model.yaml")), "{trial:#}");
    assert_eq!((&trial["agent_version"], &trial["auth"]), (&json!("0.171.0"), &json!("scripted")));
    assert!(trial["session_id"].as_str().is_some_and(|id| id.len() == 36));
    assert_eq!(trial["warnings"], json!([]));
    assert_eq!((events(&project, "session"), events(&project, "thinking"), events(&project, "notice")), (1, 1, 0));
    project.no_process_is_left();
    assert_eq!(project.left_over(), Vec::<String>::new());
}

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn commands_and_patches_are_calls_with_their_results() {
    let project = project();
    let trial = run(
        &project,
        "
scenario: tools
system_prompt: Work.
model: scripted:model.yaml
fixtures:
  git_init: true
  files_committed: [{ path: README.md, content: \"The number is 42.\\n\" }, { path: old.txt, content: x }]
mcp_servers:
  issues: { tools: { get: { description: Returns an issue., answer: { id: \"{{input.id}}\" } } } }
mock_commands:
  kubectl: { stdout: \"web-1\\n\" }
assertions:
  - { id: asks-the-server, type: mcp_called, server: issues, tool: get, args_match: { id: ^7$ } }
  - { id: reads, type: tool_called, tool: Bash, args_match: { command: ^cat README.md$ } }
  - { id: writes, type: tool_called, tool: Write, args_match: { content: ^42 } }
  - { id: inside, type: no_path_escape }
",
        r#"
steps:
  - text: Reading.
    tools:
      - { name: exec_command, input: { cmd: cat README.md } }
      - { name: exec_command, input: { cmd: pwd && kubectl get pods, workdir: $SANDBOX } }
      - { name: mcp__issues.get, offered: false, input: { id: 7 } }
  - tools:
      - name: apply_patch
        input: "*** Begin Patch\n*** Add File: out.txt\n+42\n*** Update File: README.md\n@@\n-The number is 42.\n+The number is 43.\n*** Delete File: old.txt\n*** End Patch\n"
    expect_request: { tool_result_contains: [The number is 42., $SANDBOX, web-1, '{"id":7}'] }
    usage: { input: 200, output: 20 }
  - text: Done.
    usage: { input: 500, cache_read: 300, output: 20 }
    expect_request: { tool_result_contains: A out.txt }
"#,
        0,
    );
    assert_eq!(trial["outcome"], "passed", "{trial:#}");
    let names: Vec<String> = calls(&trial).iter().map(|call| call.split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(names, ["Bash", "Bash", "mcp__issues__get", "Edit", "Bash", "Write"], "{trial:#}");
    assert_eq!(result(&trial, 0), "The number is 42.\n");
    assert_eq!(
        trial["usage"],
        json!({"input": 800, "cache_read": 300, "cache_write": 0, "output": 50, "reasoning": 0, "total": 1150})
    );
    assert_eq!(trial["turn_count"], 3);
    let changed = trial["files_changed"].as_array().unwrap().len();
    assert_eq!(changed, 3, "{}", trial["files_changed"]);
}

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn calls_that_never_ran_are_recorded_as_failed() {
    let project = project();
    let trial = run(
        &project,
        "
scenario: failing
system_prompt: Work.
model: scripted:model.yaml
assertions: [{ id: tells, type: output_contains, pattern: failed with 3 }]
",
        r#"
steps:
  - tools: [{ name: exec_command, input: { cmd: "echo out; echo err >&2; exit 3" } }]
  - tools: [{ name: no_such_tool, offered: false, input: { x: 1 } }]
    expect_request: { tool_result_contains: ["exited with code 3", out, err] }
  - tools: [{ name: apply_patch, input: "*** Begin Patch\n*** Update File: missing.txt\n@@\n-a\n+b\n*** End Patch\n" }]
  - tools: [{ name: exec_command, input: { wrong: 1 } }]
  - tools: [{ name: request_user_input, input: { questions: [{ id: a, header: h, question: Which?, options: [{ label: x, description: d }, { label: y, description: d }] }] } }]
  - text: It failed with 3.
"#,
        0,
    );
    let expected =
        ["Bash echo out; echo err >&2; exit 3 !", "no_such_tool - !", "Edit", "Bash - !", "AskUserQuestion - !"];
    for (call, expected) in calls(&trial).iter().zip(expected) {
        assert!(call.starts_with(expected) && call.ends_with(" !"), "{call}: {trial:#}");
    }
    assert_eq!(trial["tool_calls"].as_array().unwrap().len(), 5, "{trial:#}");
    assert_eq!((&trial["turn_count"], &trial["usage"]["total"]), (&json!(6), &json!(660)));
}

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn a_chain_is_one_thread_and_each_message_is_billed_once() {
    let project = project();
    let trial = run(
        &project,
        "
scenario: chain
system_prompt: Be kind.
model: scripted:model.yaml
user_prompts: [Look around., \"-\", Now write it down.]
assertions:
  - { id: writes, type: tool_called, tool: Write }
  - { id: says, type: output_contains, pattern: ^Written\\.$ }
",
        r#"
steps:
  - tools: [{ name: exec_command, input: { cmd: ls } }]
    expect_request: { system_contains: Be kind., last_user_contains: Look around. }
  - text: Nothing here.
    usage: { input: 100, cache_read: 50, output: 10 }
  - text: A dash.
    expect_request: { contains: Nothing here. }
  - tools: [{ name: apply_patch, input: "*** Begin Patch\n*** Add File: note.txt\n+nothing\n*** End Patch\n" }]
    expect_request: { last_user_contains: Now write it down., contains: A dash. }
  - text: Written.
    usage: { input: 300, output: 10 }
"#,
        0,
    );
    assert_eq!(trial["outcome"], "passed", "{trial:#}");
    assert_eq!(
        trial["usage"],
        json!({"input": 700, "cache_read": 50, "cache_write": 0, "output": 50, "reasoning": 0, "total": 800})
    );
    assert_eq!(trial["turn_count"], 5);
    let count = |kind: &str| events(&project, kind);
    assert_eq!((count("session"), count("user_message"), count("finished")), (1, 3, 3));
}

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn codex_is_stopped_at_its_turn_and_token_limits() {
    let project = project();
    let steps: String =
        (0..6).map(|n| format!("  - tools: [{{ name: exec_command, input: {{ cmd: echo {n} }} }}]\n")).collect();
    let model = format!("steps:\n{steps}");
    let scenario = |limit: &str| format!("scenario: loop\nsystem_prompt: Loop.\nmodel: scripted:model.yaml\n{limit}\n");
    let turns = run(&project, &scenario("max_turns: 2"), &model, 1);
    assert_eq!(calls(&turns), ["Bash echo 0", "Bash echo 1"], "{turns:#}");
    assert_eq!(turns["ending"], json!({"kind": "out_of_budget", "budget": "turns", "limit": 2.0}));
    assert_eq!((&turns["turn_count"], &turns["outcome"]), (&json!(2), &json!("failed")));
    let tokens = run(&project, &scenario("token_budget: 250"), &model, 1);
    assert_eq!(tokens["ending"], json!({"kind": "out_of_budget", "budget": "tokens", "limit": 250.0}), "{tokens:#}");
    assert_eq!((&turns["usage"]["total"], &tokens["usage"]["total"]), (&json!(220), &json!(330)), "{tokens:#}");
    project.no_process_is_left();
}

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn a_skill_is_detected_when_read_or_named() {
    let project = project();
    project
        .write("trialrun.yaml", "skills_dir: ./skills\n")
        .write("skills/greet/SKILL.md", "---\nname: greet\ndescription: Greets people warmly.\n---\n\nSay MANTRA.\n")
        .write("skills/greet/tests/secret.yaml", "scenario: secret\nskill: greet\nuser_prompt: x\nassertions: []\n");
    let scenario = |prompt: &str| {
        format!(
            "scenario: greet\nskill: greet\nuser_prompt: {prompt}\nmodel: scripted:model.yaml\nassertions:\n\
             \x20 - {{ id: used, type: skill_used, skill: greet }}\n  - {{ id: inside, type: no_path_escape }}\n"
        )
    };
    for (index, read) in ["cat .agents/skills/greet/SKILL.md", "sed -n '1,40p' $SANDBOX/.agents/skills/greet/SKILL.md"]
        .iter()
        .enumerate()
    {
        let model = json!({"steps": [
            {"tools": [{"name": "exec_command", "input": {"cmd": read}}], "expect_request": {
                "system_contains": ["- greet: Greets people warmly."], "not_contains": ["secret"],
            }},
            {"text": "Ahoy.", "expect_request": {"tool_result_contains": "MANTRA"}},
        ]});
        let trial = run(&project, &scenario("Greet Ada."), &model.to_string(), 0);
        assert_eq!(trial["outcome"], "passed", "{index}: {trial:#}");
    }
    let model = "steps: [{ text: Ahoy., expect_request: { contains: [\"<name>greet</name>\"] } }]";
    let named = run(&project, &scenario("Use $greet for Ada."), model, 0);
    assert_eq!((&named["outcome"], calls(&named)), (&json!("passed"), vec!["Skill greet".to_owned()]), "{named:#}");
    assert_eq!(named["turn_count"], 1);
    let unused = run(&project, &scenario("Greet Ada."), "steps: [{ text: Hi. }]", 1);
    assert_eq!(unused["outcome"], "failed", "{unused:#}");
}

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn permissions_follow_the_mode() {
    let project = project();
    let scenario = |mode: &str| {
        format!(
            "scenario: mode\nsystem_prompt: Work.\nrunner: {{ model: scripted:model.yaml, permission_mode: {mode} }}\n\
             fixtures: {{ git_init: true }}\n\
             assertions: [{{ id: answers, type: output_contains, pattern: . }}]\n"
        )
    };
    let model = "
steps:
  - tools: [{ name: exec_command, input: { cmd: echo 1 > made.txt && git add made.txt && git commit -qm made } }]
  - tools: [{ name: exec_command, input: { cmd: echo 1 > /var/escaped-$$ && rm /var/escaped-$$ } }]
  - text: done
";
    let made = |mode: &str| {
        let trial = run(&project, &scenario(mode), model, 0);
        let failed = |call: usize| trial["tool_calls"][call]["is_error"] == json!(true);
        (failed(0), failed(1))
    };
    assert_eq!(made("acceptEdits"), (false, true));
    assert_eq!(made("default"), (false, true));
    assert_eq!(made("plan"), (true, true));
    assert_eq!(made("bypassPermissions"), (false, false));
}

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn an_answer_that_cannot_be_read_or_stops_breaks_the_trial() {
    let project = project();
    let faults = [
        ("malformed", "{ kind: malformed, times: forever }"),
        ("event", "{ kind: error_event, times: forever }"),
        ("hang-stream", "{ kind: hang_stream, times: forever }"),
    ];
    for (name, fault) in faults {
        project
            .write(
                &format!("{name}.model.yaml"),
                &format!("steps:\n  - text: {}\n    fault: {fault}\n", "x".repeat(300)),
            )
            .write(
                &format!("{name}.yaml"),
                &format!(
                    "scenario: fault-{name}\nsystem_prompt: Work.\nmodel: scripted:{name}.model.yaml\ntimeout: 10s\n\
                     assertions: [{{ id: never, type: tool_called, tool: Bash }}]\n"
                ),
            );
    }
    let files: Vec<String> = faults.iter().map(|(name, _)| format!("{name}.yaml")).collect();
    let mut arguments: Vec<&str> = files.iter().map(String::as_str).collect();
    arguments.extend(["--jobs", "4", "--agent", "codex"]);
    let report = project.report(&arguments, 3);
    assert_eq!(report["summary"]["broken"], faults.len(), "{report:#}");
    for trial in report["trials"].as_array().unwrap() {
        assert_eq!((&trial["outcome"], &trial["fault"]), (&json!("broken"), &json!("provider")), "{trial:#}");
        assert_eq!(trial["ending"]["kind"], "provider_failed", "{trial:#}");
    }
    project.no_process_is_left();
}

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn an_unreachable_address_is_an_environment_fault() {
    let project = project();
    project.write("case.yaml", "scenario: alone\nsystem_prompt: Work.\nuser_prompt: Go.\n");
    let arguments = ["case.yaml", "--agent", "codex", "--base-url", "http://127.0.0.1:9/v1", "--retries", "0"];
    let report = project.report(&arguments, 3);
    let trial = &report["trials"][0];
    assert_eq!((&trial["outcome"], &trial["fault"]), (&json!("broken"), &json!("provider")), "{trial:#}");
    assert!(trial["because"].as_str().unwrap().contains("Connection failed"), "{trial:#}");
}

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn a_child_that_does_not_exit_is_killed_at_the_timeout() {
    let project = project();
    let pipe = project.process_pipe("tether");
    let command = format!(
        "trap '' TERM INT HUP; exec 9> {0}; echo begun >&9; setsid tail -f /dev/null & tail -f /dev/null",
        pipe.path().display()
    );
    project.write(
        "case.yaml",
        "
scenario: stubborn
system_prompt: Wait.
model: scripted:model.yaml
timeout: 10s
",
    );
    let tool = json!({"name": "exec_command", "input": {"cmd": command, "yield_time_ms": 30_000}});
    project.write("model.yaml", &json!({"steps": [{"tools": [tool]}, {"text": "never"}]}).to_string());
    let trial = trial(&project.report(&["case.yaml", "--agent", "codex"], 1));
    assert_eq!(trial["outcome"], "failed", "{trial:#}");
    assert_eq!((&trial["ending"]["kind"], &trial["ending"]["after_ms"]), (&json!("timed_out"), &json!(10_000)));
    assert!(trial["duration_ms"].as_u64().unwrap() < 25_000, "{}", trial["duration_ms"]);
    assert_eq!(trial["usage"]["total"], 110, "{trial:#}");
    pipe.wait_for_line("begun");
    pipe.wait_until_closed();
    project.no_process_is_left();
    assert_eq!(project.left_over(), Vec::<String>::new());
}

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn the_work_of_a_sub_agent_is_recorded_and_billed_but_is_not_a_turn() {
    let project = project();
    let trial = run(
        &project,
        "
scenario: delegates
system_prompt: Delegate.
model: scripted:model.yaml
assertions: [{ id: sub-called, type: tool_called, tool: Bash, args_match: { command: ^echo deep$ } }]
",
        "
steps:
  - tools: [{ name: multi_agent_v1.spawn_agent, offered: false, input: { message: Dig. } }]
  - tools: [{ name: exec_command, input: { cmd: \"until grep -rqs task_[c]omplete $HOME/.codex/sessions; do :; done\" } }]
  - { text: All done., repeat: forever }
conversations:
  - match: { subagent: true }
    steps:
      - tools: [{ name: exec_command, input: { cmd: echo deep } }]
        expect_request: { last_user_contains: Dig. }
      - text: Dug.
",
        0,
    );
    assert_eq!(trial["outcome"], "passed", "{trial:#}");
    // Codex makes another request if it learns too late that the sub-agent is done.
    let turns = trial["turn_count"].as_u64().unwrap();
    assert!(matches!(turns, 3 | 4), "{trial:#}");
    assert_eq!(trial["usage"]["total"], (turns + 2) * 110, "{trial:#}");
}

/// Plants a configuration with an MCP server and a notifier, a skill and an AGENTS.md in the user's home. Each leaves
/// a file if it is used.
fn plant(project: &Project) -> (PathBuf, PathBuf) {
    let (notified, served) = (project.dir().join("NOTIFIED"), project.dir().join("SERVED"));
    let put = |path: &str, text: &str| {
        let path = project.home().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let touch = |path: &Path| format!("[\"-c\", \"touch {}\"]", path.display());
    put(
        ".codex/config.toml",
        &format!(
            "notify = [\"touch\", \"{}\"]\n[mcp_servers.planted]\ncommand = \"/bin/sh\"\nargs = {}\n",
            notified.display(),
            touch(&served)
        ),
    );
    put(".codex/skills/mine/SKILL.md", "---\nname: mine\ndescription: USERSKILL\n---\nx\n");
    put(".agents/skills/other/SKILL.md", "---\nname: other\ndescription: OTHERSKILL\n---\nx\n");
    put(".codex/AGENTS.md", "USERMEMORY\n");
    (notified, served)
}

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn machine_settings_are_hidden_unless_the_scenario_requests_them() {
    let project = project();
    let (notified, served) = plant(&project);
    let scenario = |sources: &str| {
        format!(
            "scenario: hermetic\nsystem_prompt: Work.\nrunner: {{ model: scripted:model.yaml, setting_sources: {sources} }}\n\
             fixtures: {{ files_committed: [{{ path: AGENTS.md, content: PROJECTMEMORY }}] }}\n\
             assertions: [{{ id: answers, type: output_contains, pattern: . }}]\n"
        )
    };
    let seen = "USERSKILL, OTHERSKILL, USERMEMORY, PROJECTMEMORY";
    let model = format!(
        "steps:\n  - tools: [{{ name: exec_command, input: {{ cmd: \"env\" }} }}]\n    expect_request: {{ not_contains: [{seen}] }}\n\
         \x20 - text: ok\n    expect_request: {{ not_contains: [TRIALRUN_CODEX_TOKEN] }}\n"
    );
    let trial = run(&project, &scenario("[]"), &model, 0);
    assert_eq!(trial["outcome"], "passed", "{trial:#}");
    assert!(!notified.exists() && !served.exists());

    let model = "steps:\n  - text: ok\n    expect_request: { contains: [USERSKILL, USERMEMORY, PROJECTMEMORY] }\n";
    run(&project, &scenario("[user, project]"), model, 0);
    assert!(served.exists());
}

/// Starts a model on loopback that answers one request, and reports the key of the request.
fn model() -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let (key, keys) = channel();
    std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream);
        let (mut line, mut length) = (String::new(), 0);
        while reader.read_line(&mut line).unwrap() > 2 {
            let (name, value) = line.trim_end().split_once(": ").unwrap_or_default();
            match name.to_ascii_lowercase().as_str() {
                "authorization" => key.send(value.to_owned()).unwrap(),
                "content-length" => length = value.parse().unwrap(),
                _ => {}
            }
            line.clear();
        }
        reader.read_exact(&mut vec![0; length]).unwrap();
        let part = json!({"type": "output_text", "text": "Hello.", "annotations": []});
        let item = json!({"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [part]});
        let usage = json!({"input_tokens": 7, "output_tokens": 2, "total_tokens": 9});
        let events = [
            json!({"type": "response.created", "response": {"id": "r"}}),
            json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
            json!({"type": "response.completed", "response": {"id": "r", "usage": usage}}),
        ];
        let body: String = events
            .iter()
            .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()))
            .collect();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        reader.get_mut().write_all(format!("{head}{body}").as_bytes()).unwrap();
    });
    (address, keys)
}

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn a_key_and_a_subscription_are_sent_to_another_base_url() {
    let agents = CODEX.installed();
    for (variable, auth, bearer) in
        [(Some("OPENAI_API_KEY"), "api key", "Bearer sk-planted"), (None, "subscription", "Bearer sk-stored")]
    {
        // Runs in the network namespace of this process, because the model listens there.
        let mut project = Project::new(TRIALRUN).path_first(&agents);
        std::fs::create_dir_all(project.home().join(".codex")).unwrap();
        std::fs::write(project.home().join(".codex/auth.json"), r#"{"OPENAI_API_KEY": "sk-stored"}"#).unwrap();
        if let Some(variable) = variable {
            project = project.env(variable, "sk-planted");
        }
        let (address, keys) = model();
        project.write("case.yaml", "scenario: signed\nsystem_prompt: Work.\nuser_prompt: Go.\nassertions: [{ id: answers, type: output_contains, pattern: . }]\n");
        let report =
            project.report(&["case.yaml", "--agent", "codex", "--model", "gpt-5.5", "--base-url", &address], 0);
        let trial = &report["trials"][0];
        assert_eq!((&trial["auth"], &trial["usage"]["total"]), (&json!(auth), &json!(9)), "{trial:#}");
        assert_eq!(keys.recv().unwrap(), bearer);
        let left = std::fs::read_dir(project.home().join(".codex")).unwrap();
        let mut left: Vec<_> = left.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        left.retain(|name| !name.starts_with("auth.json"));
        assert_eq!(left, Vec::<String>::new(), "the user's own home is not written to");
    }
}

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn without_a_sign_in_a_trial_is_broken_before_it_starts() {
    let project = project();
    project.write("case.yaml", "scenario: alone\nsystem_prompt: Work.\nuser_prompt: Go.\n");
    let report = project.report(&["case.yaml", "--agent", "codex"], 3);
    let trial = &report["trials"][0];
    assert_eq!((&trial["outcome"], &trial["fault"]), (&json!("broken"), &json!("environment")), "{trial:#}");
    assert!(trial["because"].as_str().unwrap().contains("codex login"), "{trial:#}");
}

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn doctor_reports_the_version() {
    let project = project();
    let ran = project.run(&["doctor"]);
    assert!(ran.out.contains("codex") && ran.out.contains("0.171.0"), "{}", ran.output());
}

/// Returns a project with a program in place of `codex`. It reads the user's message and runs `acts`, a shell script
/// that may also call `say TEXT` and `finish INPUT`. It keeps no files.
fn stub(acts: &str) -> Project {
    let opening = r#"#!/bin/sh
if [ "$1" = --version ]; then echo "codex-cli 0.171.0"; exit 0; fi
message=$(cat)
echo '{"type":"thread.started","thread_id":"t-1"}'
echo '{"type":"turn.started"}'
say() { printf '{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"%s"}}\n' "$1"; }
finish() { printf '{"type":"turn.completed","usage":{"input_tokens":%s,"cached_input_tokens":4,"output_tokens":2}}\n' "$1"; }
"#;
    let project = Project::new(TRIALRUN);
    project.write("bin/codex", &format!("{opening}{acts}\n"));
    let bin = project.dir().join("bin");
    std::fs::set_permissions(bin.join("codex"), std::fs::Permissions::from_mode(0o755)).unwrap();
    project.path_first(&bin).env("CODEX_API_KEY", "sk-test")
}

#[test]
fn stdout_is_used_if_the_thread_has_no_file() {
    let acts = r#"case "$*" in
  *"resume t-1 -") say "again $message"; finish 30 ;;
  *" -") say "first $message"; finish 10 ;;
esac"#;
    let project = stub(acts);
    project.write("case.yaml", "scenario: poor\nsystem_prompt: Work.\nuser_prompts: [--one, Two.]\nassertions: [{ id: answers, type: output_contains, pattern: . }]\n");
    let trial = trial(&project.report(&["case.yaml", "--agent", "codex"], 0));
    assert_eq!((&trial["answer"], &trial["session_id"]), (&json!("again Two."), &json!("t-1")), "{trial:#}");
    assert_eq!((&trial["turn_count"], &trial["usage"]["total"]), (&json!(2), &json!(32)));
    let warnings = trial["warnings"].as_array().unwrap();
    assert!(warnings.iter().any(|warning| warning.as_str().unwrap().contains("thread was not found")), "{warnings:?}");
}

#[test]
fn later_turns_of_one_message_are_read_and_counted() {
    let later = r#"say first; finish 10
sleep 0.2
echo '{"type":"turn.started"}'
printf '%s\n' '{"type":"item.completed","item":{"id":"item_1","type":"command_execution","command":"bash -lc ls","aggregated_output":"","exit_code":0,"status":"completed"}}'
say second"#;
    let case = "scenario: later\nsystem_prompt: Work.\nuser_prompt: Begin.\nassertions: [{ id: quiet, type: tool_not_called, tool: Bash }]\n";
    let project = stub(&format!("{later}; finish 30"));
    project.write("case.yaml", case);
    let read = trial(&project.report(&["case.yaml", "--agent", "codex"], 1));
    assert_eq!((&read["answer"], &read["usage"]["total"]), (&json!("second"), &json!(32)), "{read:#}");
    assert_eq!(calls(&read), ["Bash ls"]);

    let project = stub(later);
    project.write("case.yaml", case);
    let report = project.report(&["case.yaml", "--agent", "codex", "--retries", "0"], 3);
    assert_eq!(report["trials"][0]["ending"]["kind"], "aborted", "a turn that never ends is not an answer");
}

#[test]
fn a_cli_that_exits_silently_breaks_the_trial() {
    let project = stub("say halfway; echo 'config is bad' >&2; exit 3");
    project.write("case.yaml", "scenario: gone\nsystem_prompt: Work.\nuser_prompt: Begin.\n");
    let report = project.report(&["case.yaml", "--agent", "codex", "--retries", "0"], 3);
    let trial = &report["trials"][0];
    assert_eq!((&trial["outcome"], &trial["ending"]["kind"]), (&json!("broken"), &json!("aborted")), "{trial:#}");
    let reason = trial["because"].as_str().unwrap();
    assert!(reason.contains("exit code 3") && reason.contains("config is bad"), "{reason}");
}

#[test]
fn a_child_left_behind_by_an_agent_is_killed() {
    let project = Project::new(TRIALRUN);
    let pipe = project.process_pipe("tether");
    let acts = format!(
        "mkfifo {0}.held\n\
         setsid sh -c 'trap \"\" TERM HUP; exec 9> {0}; echo here >&9; echo > {0}.held; tail -f /dev/null' \
         > /dev/null 2>&1 < /dev/null &\n\
         read -r _ < {0}.held; say all; finish 10",
        pipe.path().display()
    );
    let project = stub(&acts);
    project.write("case.yaml", "scenario: pretends\nsystem_prompt: Work.\nuser_prompt: Begin.\nassertions: [{ id: answers, type: output_contains, pattern: . }]\n");
    let trial = trial(&project.report(&["case.yaml", "--agent", "codex"], 0));
    assert_eq!(trial["answer"], "all");
    pipe.wait_for_line("here");
    pipe.wait_until_closed();
    project.no_process_is_left();
}

#[test]
fn a_provider_that_is_being_retried_at_the_timeout_is_at_fault() {
    // Not a real agent and not a scripted model, but the vendor's own model, which cannot be reached.
    let project = stub(
        r#"echo '{"type":"error","message":"Reconnecting... 1/5 (unexpected status 503)"}'; exec tail -f /dev/null"#,
    );
    project.write("case.yaml", "scenario: waits\nsystem_prompt: Work.\nuser_prompt: Begin.\ntimeout: 3s\n");
    let report = project.report(&["case.yaml", "--agent", "codex", "--retries", "0"], 3);
    let trial = &report["trials"][0];
    assert_eq!((&trial["outcome"], &trial["fault"]), (&json!("broken"), &json!("provider")), "{trial:#}");
}

//! Tests of the real Claude Code with scripted models, from the scenario file to the exit code. Where the machine
//! allows it, they run without a network.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};
use testkit::Project;
use testkit::real::{CLAUDE_CODE, only_trial as trial};

const TRIALRUN: &str = env!("CARGO_BIN_EXE_trialrun");

/// Returns a project that uses the real agent with the model in `model.yaml`.
fn project() -> Project {
    CLAUDE_CODE.project(TRIALRUN, env!("CARGO_TARGET_TMPDIR"))
}

/// Writes a scenario and its model, runs it with the expected exit code `code`, and returns its trial.
#[track_caller]
fn run(project: &Project, scenario: &str, model: &str, code: i32) -> Value {
    project.write("case.yaml", scenario).write("model.yaml", model);
    trial(&project.report(&["case.yaml", "--report", "jsonl=events.jsonl"], code))
}

/// Returns the names and main arguments of the calls, in order.
fn calls(trial: &Value) -> Vec<String> {
    let all = trial["tool_calls"].as_array().unwrap().iter();
    all.map(|call| {
        let input = call["input"].as_object().unwrap();
        let argument = ["command", "file_path", "skill"].iter().find_map(|key| input.get(*key)?.as_str());
        format!("{} {}", call["name"].as_str().unwrap(), argument.unwrap_or("-"))
    })
    .collect()
}

fn result(trial: &Value, call: usize) -> (&str, bool) {
    let call = &trial["tool_calls"][call];
    (call["result"].as_str().unwrap_or_default(), call["is_error"].as_bool().unwrap())
}

const COMMIT_SKILL: &str = "---
name: aif-commit
description: Writes conventional commits.
allowed-tools: Read, Bash(git *)
---

# Commit

Look at what is staged, propose a conventional message, ask, commit, ask about pushing.
";

const COMMIT_SCENARIO: &str = r##"
scenario: basic-feat-commit
description: |
  Staged feature addition → git status → git diff --cached → conventional
  `feat` commit → ask confirmation → commit → ask push → skip push.
skill: aif-commit
argument: "auth"
max_turns: 14

runner:
  model: scripted:../model.yaml
  permission_mode: bypassPermissions
  allowed_tools_override:
    - Read
    - Write
    - Bash(git *)

fixtures:
  git_init: true
  git_branch: feature/auth
  files_committed:
    - path: README.md
      content: "# Demo\n"
    - path: src/auth/login.ts
      content: |
        export function login() {}
  files_staged:
    - path: src/auth/reset.ts
      content: "export function resetPassword() {}\n"

user_responses:
  - match_question: "(?i)commit|proposed|confirm|message"
    choose: "Commit as is"
  - match_question: "(?i)push"
    choose: "Skip push"

assertions:
  - id: calls-git-status
    type: tool_called
    tool: Bash
    args_match:
      command: "^git status"

  - id: diff-confirm-then-commit
    type: tool_call_sequence
    sequence:
      - tool: Bash
        args_match:
          command: "^git diff --cached"
      - tool: AskUserQuestion
      - tool: Bash
        args_match:
          command: "^git commit"
    weight: 2

  - id: no-unscoped-bash
    type: no_tool_called
    tool: Bash
    args_match:
      command: "^(?!git )"

  - id: mentions-feat-type
    type: output_contains
    pattern: "\\bfeat\\b"

  - id: efficient
    type: turn_count_at_most
    max: 12

  - id: stay-in-sandbox
    type: no_path_escape
"##;

const COMMIT_MODEL: &str = r#"
steps:
  - tools: [{ name: Bash, input: { command: git status } }]
    usage: { input: 1000, cache_write: 200, output: 30 }
    expect_request:
      system_contains: [propose a conventional message, .claude/skills/aif-commit]
      last_user_contains: [aif-commit, auth]
      tools_include: [Read, Write, Bash, AskUserQuestion]
      tools_exclude: [Edit, Skill, Agent, WebFetch, WebSearch, NotebookEdit]
  - tools: [{ name: Bash, input: { command: git diff --cached } }]
    expect_request: { tool_result_contains: src/auth/reset.ts }
  - tools:
      - name: AskUserQuestion
        input:
          questions:
            - question: "Proposed message: feat(auth): reset passwords"
              header: Commit
              multiSelect: false
              options: [{ label: Commit as is, description: Yes }, { label: Edit it, description: No }]
  - tools: [{ name: Bash, input: { command: "git commit -m \"$(cat <<'EOF'\nfeat(auth): reset passwords; part 1\n\nEOF\n)\"" } }]
    expect_request: { tool_result_contains: Commit as is }
  - tools:
      - name: AskUserQuestion
        input:
          questions:
            - question: Push it now?
              header: Push
              multiSelect: false
              options: [{ label: Push, description: Yes }, { label: Skip push, description: No }]
    expect_request: { tool_result_contains: "feat(auth)" }
  - text: "Committed as feat(auth): reset passwords. Not pushed."
    usage: { input: 50, cache_read: 1200, output: 20 }
    expect_request: { tool_result_contains: Skip push }
"#;

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn the_complete_example_commits_after_two_questions() {
    let project = project();
    project
        .write(".ai-tester.yaml", "skills_dir: ./skills\n")
        .write("skills/aif-commit/SKILL.md", COMMIT_SKILL)
        .write("skills/aif-commit/tests/basic-feat.yaml", COMMIT_SCENARIO)
        .write("skills/aif-commit/model.yaml", COMMIT_MODEL);
    let trial = trial(&project.report(&["aif-commit"], 0));
    assert_eq!(trial["outcome"], "passed", "{trial:#}");
    assert_eq!(trial["findings"].as_array().unwrap().iter().filter(|finding| finding["status"] != "met").count(), 0);
    assert_eq!(
        trial["usage"],
        json!({"input": 1450, "cache_read": 1200, "cache_write": 200, "output": 90, "reasoning": 0, "total": 2940})
    );
    assert_eq!(trial["turn_count"], 6);
    assert_eq!(
        trial["questions"],
        json!([{"question": "Proposed message: feat(auth): reset passwords", "answer": "Commit as is"},
               {"question": "Push it now?", "answer": "Skip push"}])
    );
    assert!(result(&trial, 3).0.contains("[feature/auth "), "{trial:#}");
    assert_eq!((&trial["agent_version"], &trial["auth"]), (&json!("2.1.332"), &json!("scripted")));
    assert_eq!(trial["warnings"], json!([]));
    assert_eq!(project.left_over(), Vec::<String>::new());
}

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn only_the_skill_under_test_is_found_and_the_skill_tool_triggers_it() {
    let project = project();
    project
        .write("trialrun.yaml", "skills_dir: ./skills\n")
        .write(
            "skills/greet/SKILL.md",
            "---\nname: greet\ndescription: Greets people warmly.\n---\n\nSay MANTRA to $ARGUMENTS.\n",
        )
        .write("skills/greet/references/words.txt", "Good day\n")
        .write(
            "skills/greet/tests/greet.yaml",
            "
scenario: greet
skill: greet
model: scripted:../model.yaml
fixtures:
  files_committed:
    - { path: .claude/skills/other/SKILL.md, content: \"---\\nname: other\\ndescription: OTHERSKILL\\n---\\nx\\n\" }
assertions:
  - { id: uses-it, type: tool_called, tool: Skill, args_match: { skill: ^greet$ } }
  - { id: reads, type: tool_called, tool: Read }
  - { id: inside, type: no_path_escape }
",
        )
        .write(
            "skills/greet/model.yaml",
            "
steps:
  - tools: [{ name: Skill, input: { skill: greet, args: Ada } }]
    expect_request:
      contains: \"- greet: Greets people warmly.\"
      not_contains: OTHERSKILL
  - tools: [{ name: Read, input: { file_path: $HOME/.claude/skills/greet/references/words.txt } }]
    expect_request: { contains: Say MANTRA to Ada }
  - text: Good day, Ada.
    expect_request: { tool_result_contains: Good day }
",
        );
    let trial = trial(&project.report(&["greet"], 0));
    assert_eq!(trial["outcome"], "passed", "{trial:#}");
    assert!(!result(&trial, 0).1, "{trial:#}");
}

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn a_chain_is_one_session_and_is_billed_once() {
    let project = project();
    let trial = run(
        &project,
        "
scenario: chain
system_prompt: Be kind.
model: scripted:model.yaml
user_prompts: [Look around., Now write it down.]
assertions:
  - { id: writes, type: tool_called, tool: Write }
  - { id: says, type: output_contains, pattern: ^Written\\.$ }
",
        "
steps:
  - tools: [{ name: Bash, input: { command: ls } }]
    expect_request: { system_contains: Be kind., last_user_contains: Look around. }
  - text: Nothing here.
  - tools: [{ name: Write, input: { file_path: $SANDBOX/note.txt, content: nothing } }]
    expect_request: { last_user_contains: Now write it down., contains: Nothing here. }
  - text: Written.
",
        0,
    );
    assert_eq!(trial["outcome"], "passed", "{trial:#}");
    assert_eq!((&trial["turn_count"], &trial["usage"]["total"]), (&json!(4), &json!(440)));
    let events = project.read("events.jsonl");
    let events: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let count = |kind: &str| {
        events.iter().filter(|line| line["event"]["type"] == "step" && line["event"]["kind"] == kind).count()
    };
    assert_eq!((count("session"), count("user_message"), count("finished")), (1, 2, 2));
    assert!(trial["session_id"].as_str().is_some_and(|id| id.len() == 36));
}

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn a_session_is_resumed_by_another_process_and_billed_once() {
    let project = project();
    // The first process receives only one message, so that it ends on its own after its answer.
    let program = format!(
        "#!/bin/sh\nreal='{0}'\nhere=$(dirname \"$0\")\ncase \"$*\" in\n\
         *--resume*) echo resumed >> \"$here/seen\" ;;\n\
         *--input-format*) echo begun >> \"$here/seen\"; head -n 2 | \"$real\" \"$@\"; exit $? ;;\n\
         esac\nexec \"$real\" \"$@\"\n",
        CLAUDE_CODE.installed().join(CLAUDE_CODE.program).display()
    );
    project.write("bin/claude", &program);
    let bin = project.dir().join("bin");
    std::fs::set_permissions(bin.join("claude"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let project = project.path_first(&bin);
    let trial = run(
        &project,
        "
scenario: resumed
system_prompt: Be kind.
model: scripted:model.yaml
user_prompts: [Look around., Now write it down.]
assertions: [{ id: says, type: output_contains, pattern: ^Written\\.$ }]
",
        "
steps:
  - text: Nothing here.
    usage: { input: 100, cache_read: 50, output: 10 }
  - tools: [{ name: Write, input: { file_path: $SANDBOX/note.txt, content: nothing } }]
    usage: { input: 200, output: 20 }
    expect_request: { last_user_contains: Now write it down., contains: Nothing here., system_contains: Be kind. }
  - text: Written.
    usage: { input: 300, output: 30 }
",
        0,
    );
    assert_eq!(trial["outcome"], "passed", "{trial:#}");
    assert_eq!(
        trial["usage"],
        json!({"input": 600, "cache_read": 50, "cache_write": 0, "output": 60, "reasoning": 0, "total": 710})
    );
    assert_eq!((&trial["turn_count"], &trial["warnings"]), (&json!(3), &json!([])));
    assert_eq!(project.read("bin/seen"), "begun\nresumed\n");
    project.no_process_is_left();
}

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn a_chain_stops_at_its_turn_limit() {
    let project = project();
    let trial = run(
        &project,
        "
scenario: chain
system_prompt: Be kind.
model: scripted:model.yaml
max_turns: 3
user_prompts: [One., Two., Three.]
",
        "
steps:
  - text: First.
  - tools: [{ name: Bash, input: { command: echo 1 } }]
  - tools: [{ name: Bash, input: { command: exit 3 } }, { name: NoSuchTool, offered: false }]
  - text: never asked for
",
        1,
    );
    assert_eq!(trial["outcome"], "failed", "{trial:#}");
    assert_eq!(trial["ending"], json!({"kind": "out_of_budget", "budget": "turns", "limit": 3.0}));
    assert_eq!(trial["turn_count"], 3);
    assert_eq!(calls(&trial), ["Bash echo 1", "Bash exit 3", "NoSuchTool -"]);
    assert_eq!(trial["usage"]["total"], 330, "{trial:#}");
    let budget = trial["findings"].as_array().unwrap().iter().find(|finding| finding["type"] == "turn_budget").unwrap();
    assert_eq!(budget["status"], "unmet");
}

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn a_closed_list_and_its_scopes_apply_in_every_mode() {
    let project = project();
    let trial = run(
        &project,
        "
scenario: closed
system_prompt: Work.
runner:
  model: scripted:model.yaml
  permission_mode: bypassPermissions
  allowed_tools_override: [Read(docs/**), \"Bash(git *)\"]
fixtures:
  git_init: true
  files_committed: [{ path: docs/a.md, content: INSIDE }, { path: secret.md, content: OUTSIDE }]
mcp_servers:
  issues: { tools: { get: { description: Returns an issue., answer: { id: \"{{input.id}}\" } } } }
mock_commands:
  git: { answers: [{ args: log, stdout: mocked }, { args: status, stdout: clean }] }
assertions:
  - { id: asks-the-server, type: mcp_called, server: issues, tool: get, args_match: { id: ^7$ } }
  - { id: logs, type: mock_called, command: git, args: ^log }
  - { id: nothing-escaped, type: output_contains, pattern: done }
",
        "
steps:
  - tools:
      - { name: Bash, input: { command: git log --oneline } }
      - { name: Bash, input: { command: ls } }
      - { name: Bash, input: { command: git status && touch made } }
      - { name: Read, input: { file_path: $SANDBOX/docs/a.md } }
      - { name: Read, input: { file_path: $SANDBOX/secret.md } }
      - { name: Write, input: { file_path: $SANDBOX/made, content: x } }
      - { name: mcp__issues__get, input: { id: 7 } }
    expect_request:
      tools_include: [Read, Bash, mcp__issues__get]
      tools_exclude: [Write, Edit, AskUserQuestion, Skill, Agent, Glob, Grep, WebFetch, WebSearch]
  - text: done
    expect_request: { tool_result_contains: [INSIDE, mocked, '{\"id\":7}'], not_contains: OUTSIDE }
",
        0,
    );
    let errors: Vec<bool> = (0..7).map(|call| result(&trial, call).1).collect();
    assert_eq!(errors, [false, true, true, false, true, true, false], "{trial:#}");
    assert!(result(&trial, 1).0.contains("Bash is limited to: git *"), "{:?}", result(&trial, 1));
    assert!(result(&trial, 5).0.contains("No such tool"), "{:?}", result(&trial, 5));
    assert_eq!(trial["files_changed"], json!([]));
}

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn a_failing_tool_makes_the_call_an_error_and_the_agent_continues() {
    let project = project();
    let trial = run(
        &project,
        "
scenario: failing
system_prompt: Work.
model: scripted:model.yaml
assertions: [{ id: tells, type: output_contains, pattern: failed with 3 }]
",
        "
steps:
  - tools: [{ name: Bash, input: { command: echo out; echo err >&2; exit 3 } }]
  - tools: [{ name: Read, input: { file_path: $SANDBOX/missing.txt } }]
    expect_request: { tool_result_contains: [\"Exit code 3\", out, err] }
  - text: It failed with 3.
",
        0,
    );
    assert_eq!((result(&trial, 0).1, result(&trial, 1).1), (true, true), "{trial:#}");
    assert_eq!((&trial["turn_count"], &trial["usage"]["total"]), (&json!(3), &json!(330)));
}

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn calls_without_permission_are_denied() {
    let project = project();
    let trial = run(
        &project,
        "
scenario: careful
system_prompt: Work.
runner: { model: scripted:model.yaml, permission_mode: default }
assertions: [{ id: answers, type: output_contains, pattern: . }]
",
        "
steps:
  - tools:
      - { name: Bash, input: { command: touch made } }
      - { name: Write, input: { file_path: $SANDBOX/made, content: x } }
  - text: I may not.
",
        0,
    );
    assert!(result(&trial, 0).1 && result(&trial, 1).1, "{trial:#}");
    assert_eq!(trial["files_changed"], json!([]));
}

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn an_unanswered_question_fails_and_the_agent_continues() {
    let project = project();
    let trial = run(
        &project,
        "
scenario: asks
system_prompt: Ask.
model: scripted:model.yaml
user_responses: [{ match_question: size, choose: \"S, L\" }]
",
        "
steps:
  - tools:
      - name: AskUserQuestion
        input:
          questions:
            - { question: Which color?, header: Color, multiSelect: false, options: [{ label: Red, description: r }, { label: Blue, description: b }] }
            - { question: Which size?, header: Size, multiSelect: true, options: [{ label: S, description: s }, { label: L, description: l }] }
  - text: Then red.
    expect_request: { tool_result_contains: [\"S, L\", No answer was prepared] }
",
        1,
    );
    assert_eq!(
        trial["questions"],
        json!([{"question": "Which color?", "answer": null}, {"question": "Which size?", "answer": "S, L"}])
    );
    assert_eq!(trial["turn_count"], 2);
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
assertions:
  - { id: works, type: tool_called, tool: Bash, args_match: { command: ^echo sub$ } }
  - { id: few, type: turn_count_at_most, max: 2 }
",
        "
steps:
  - tools: [{ name: Agent, input: { description: d, prompt: do the SUBTASK, subagent_type: general-purpose } }]
  - text: All done.
    expect_request: { tool_result_contains: sub says hi }
conversations:
  - match: { subagent: true }
    steps:
      - tools: [{ name: Bash, input: { command: echo sub } }]
      - text: sub says hi
",
        0,
    );
    assert_eq!((&trial["turn_count"], &trial["usage"]["total"]), (&json!(2), &json!(440)), "{trial:#}");
}

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn an_answer_that_cannot_be_read_or_stops_breaks_the_trial() {
    let project = project();
    let faults = [
        ("malformed", "{ kind: malformed, times: forever }"),
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
    arguments.extend(["--jobs", "4"]);
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
    let step = json!({"steps": [{"tools": [{"name": "Bash", "input": {"command": command}}]}, {"text": "never"}]});
    project.write("model.yaml", &step.to_string());
    let trial = trial(&project.report(&["case.yaml"], 1));
    assert_eq!(trial["outcome"], "failed", "{trial:#}");
    assert_eq!((&trial["ending"]["kind"], &trial["ending"]["after_ms"]), (&json!("timed_out"), &json!(10_000)));
    assert!(trial["duration_ms"].as_u64().unwrap() < 25_000, "{}", trial["duration_ms"]);
    pipe.wait_for_line("begun");
    pipe.wait_until_closed();
    project.no_process_is_left();
    assert_eq!(project.left_over(), Vec::<String>::new());
}

/// Plants a hook, an MCP server, a skill and a CLAUDE.md in the user's home. Each leaves a file if it is used.
fn plant(project: &Project) -> (PathBuf, PathBuf) {
    let (hooked, served) = (project.dir().join("HOOKED"), project.dir().join("SERVED"));
    let home = project.home();
    let put = |path: &str, text: &str| {
        let path = home.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let hook = json!([{"hooks": [{"type": "command", "command": format!("touch {}", hooked.display())}]}]);
    put(".claude/settings.json", &json!({"hooks": {"SessionStart": hook}}).to_string());
    let server = json!({"command": "/bin/sh", "args": ["-c", format!("touch {}", served.display())]});
    put(".claude.json", &json!({"numStartups": 3, "mcpServers": {"planted": server}}).to_string());
    put(".claude/skills/mine/SKILL.md", "---\nname: mine\ndescription: USERSKILL\n---\nx\n");
    put(".claude/CLAUDE.md", "USERMEMORY\n");
    (hooked, served)
}

const HERMETIC: &str = "
scenario: hermetic
system_prompt: Work.
runner: { model: scripted:model.yaml, setting_sources: SOURCES }
fixtures:
  files_committed:
    - { path: CLAUDE.md, content: PROJECTMEMORY }
    - { path: AGENTS.md, content: PROJECTAGENTS }
    - { path: .claude/skills/theirs/SKILL.md, content: \"---\\nname: theirs\\ndescription: PROJECTSKILL\\n---\\nx\\n\" }
assertions: [{ id: answers, type: output_contains, pattern: . }]
";

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn machine_settings_are_hidden_unless_the_scenario_requests_them() {
    let project = project();
    let (hooked, served) = plant(&project);
    let marks = "[USERSKILL, USERMEMORY, PROJECTMEMORY, PROJECTAGENTS, PROJECTSKILL]";
    let step = |expect: &str| format!("steps:\n  - text: done\n    expect_request: {{ {expect} }}\n");

    run(&project, &HERMETIC.replace("SOURCES", "[]"), &step(&format!("not_contains: {marks}")), 0);
    assert!(!hooked.exists() && !served.exists(), "a hook or a server ran");

    let seen = "contains: [USERSKILL, USERMEMORY], not_contains: [PROJECTMEMORY, PROJECTSKILL]";
    run(&project, &HERMETIC.replace("SOURCES", "[user]"), &step(seen), 0);
    assert!(hooked.exists() && served.exists(), "hook: {}, server: {}", hooked.exists(), served.exists());

    let seen = "contains: [PROJECTMEMORY, PROJECTSKILL], not_contains: [USERSKILL, USERMEMORY]";
    run(&project, &HERMETIC.replace("SOURCES", "[project]"), &step(seen), 0);
}

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn the_users_settings_do_not_replace_the_scripted_model() {
    let project = project();
    plant(&project);
    let env = json!({"env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9", "ANTHROPIC_API_KEY": "sk-test-other"}});
    std::fs::write(project.home().join(".claude/settings.json"), env.to_string()).unwrap();
    run(&project, &HERMETIC.replace("SOURCES", "[user]"), "steps:\n  - text: done\n", 0);
}

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn the_skill_under_test_has_the_same_name_for_every_sign_in() {
    let project = project();
    plant(&project);
    let case = "scenario: SOURCES\nskill: greet\nrunner: { model: scripted:../model.yaml, setting_sources: [SOURCES] }\n\
        assertions:\n  - { id: uses-it, type: tool_called, tool: Skill, args_match: { skill: ^greet$ } }\n";
    project
        .write("trialrun.yaml", "skills_dir: ./skills\n")
        .write("skills/greet/SKILL.md", "---\nname: greet\ndescription: Greets.\n---\n\nSay hello.\n")
        .write("skills/greet/tests/user.yaml", &case.replace("SOURCES", "user"));
    for name in ["greet", "greet:greet"] {
        let call = json!({"tools": [{"name": "Skill", "input": {"skill": name}}]});
        project.write("skills/greet/model.yaml", &json!({"steps": [call, {"text": "Hello."}]}).to_string());
        let trial = trial(&project.report(&["greet"], 0));
        assert_eq!(trial["tool_calls"][0]["input"]["skill"], "greet", "{trial:#}");
        assert_eq!(result(&trial, 0), ("Launching skill: greet", false));
    }
    let found =
        Command::new("find").arg(project.home().join(".claude/projects")).args(["-type", "f"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&found.stdout), "", "transcripts are left in the user's own folder");
}

/// Starts a model on loopback that always answers `hello`, and reports the head and the body of each request.
fn model() -> (String, Receiver<(Vec<String>, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (tell, requests) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let mut head = Vec::new();
            loop {
                let mut line = String::new();
                if stream.read_line(&mut line).unwrap_or(0) == 0 || line.trim().is_empty() {
                    break;
                }
                head.push(line.trim().to_lowercase());
            }
            let length = head.iter().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
            let mut request = vec![0; length.unwrap_or(0)];
            let _ = stream.read_exact(&mut request);
            let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
                "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 5, "output_tokens": 1}});
            let events = [
                ("message_start", json!({"message": message})),
                ("content_block_start", json!({"index": 0, "content_block": {"type": "text", "text": ""}})),
                ("content_block_delta", json!({"index": 0, "delta": {"type": "text_delta", "text": "hello"}})),
                ("content_block_stop", json!({"index": 0})),
                ("message_delta", json!({"delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}})),
                ("message_stop", json!({})),
            ];
            let body: String = events
                .into_iter()
                .map(|(kind, mut event)| {
                    event["type"] = json!(kind);
                    format!("event: {kind}\ndata: {event}\n\n")
                })
                .collect();
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            let _ = stream.get_mut().write_all(answer.as_bytes());
            let is_for_an_answer = head.first().is_some_and(|line| line.starts_with("post /v1/messages"));
            if is_for_an_answer && tell.send((head, String::from_utf8_lossy(&request).into_owned())).is_err() {
                return;
            }
        }
    });
    (address, requests)
}

const SIGNED_IN: &str = "scenario: signed-in\nsystem_prompt: Work.\nmodel: some-model\nuser_prompt: hi\nassertions: [{ id: answers, type: output_contains, pattern: . }]\n";

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn a_planted_token_is_sent_as_a_bearer_token() {
    let agents = CLAUDE_CODE.installed();
    let (address, requests) = model();
    let project = Project::new(TRIALRUN).path_first(&agents).env("CLAUDE_CODE_OAUTH_TOKEN", "sk-test-planted");
    project.write("case.yaml", SIGNED_IN);
    let trial = trial(&project.report(&["case.yaml", "--base-url", &address], 0));
    assert_eq!((&trial["auth"], &trial["answer"]), (&json!("oauth token"), &json!("hello")), "{trial:#}");
    assert!(requests.recv().unwrap().0.contains(&"authorization: bearer sk-test-planted".to_owned()));
    assert!(!project.read("report.json").contains("sk-test-planted"));
}

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn a_subscription_is_used_in_place() {
    let agents = CLAUDE_CODE.installed();
    let (address, requests) = model();
    let project = Project::new(TRIALRUN).path_first(&agents);
    let (hooked, served) = plant(&project);
    let credentials = project.home().join(".claude/.credentials.json");
    let planted = json!({"claudeAiOauth": {"accessToken": "sk-test-subscription", "refreshToken": "sk-test-refresh",
        "expiresAt": 4_102_444_800_000_u64, "scopes": ["user:inference"], "subscriptionType": "max"}});
    std::fs::write(&credentials, planted.to_string()).unwrap();
    project
        .write("trialrun.yaml", "skills_dir: ./skills\n")
        .write("skills/greet/SKILL.md", "---\nname: greet\ndescription: Greets.\n---\n\nSay hello.\n")
        .write("skills/greet/tests/case.yaml", "scenario: signed-in\nskill: greet\nmodel: some-model\nassertions: [{ id: answers, type: output_contains, pattern: . }]\n");
    let doctor = project.run(&["doctor"]);
    assert!(doctor.out.contains("subscription"), "{}", doctor.output());

    let report = project.report(&["greet", "--base-url", &address, "--keep-sandbox"], 0);
    let trial = trial(&report);
    assert_eq!((&trial["auth"], &trial["answer"]), (&json!("subscription"), &json!("hello")), "{trial:#}");
    let (head, body) = requests.recv().unwrap();
    assert!(head.contains(&"authorization: bearer sk-test-subscription".to_owned()), "{head:?}");
    assert!(body.contains("greet:greet: Greets."), "the skill is not shown");
    assert!(!body.contains("USERSKILL") && !body.contains("USERMEMORY"), "the user's own settings are seen");
    assert!(!hooked.exists() && !served.exists(), "a hook or a server ran");
    let projects = std::fs::read_dir(project.home().join(".claude/projects"));
    let left: Vec<_> = projects.into_iter().flatten().flatten().map(|entry| entry.file_name()).collect();
    assert!(left.is_empty(), "transcripts are left in the user's own folder: {left:?}");
    let found = Command::new("find").arg(project.tmp()).args(["-name", ".credentials.json"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&found.stdout), "", "the credentials were brought into the sandbox");
    assert!(credentials.symlink_metadata().unwrap().is_file());
}

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn without_a_sign_in_a_trial_is_broken_before_it_starts() {
    let project = project();
    project.write("case.yaml", SIGNED_IN);
    let report = project.report(&["case.yaml"], 3);
    let trial = &report["trials"][0];
    assert_eq!((&trial["outcome"], &trial["fault"]), (&json!("broken"), &json!("environment")), "{trial:#}");
    assert!(trial["because"].as_str().unwrap().contains("ANTHROPIC_API_KEY"), "{trial:#}");
}

#[test]
fn a_cli_that_exited_is_restarted_with_its_session() {
    // Not a real agent, because those do not exit on demand.
    let acts = r#"case "$*" in
  *"--resume s-1"*) text again; result again ;;
  *) text first; result first; exit 0 ;;
esac
hear"#;
    let project = Project::new(TRIALRUN).claude(acts);
    project.write("case.yaml", "scenario: resumes\nsystem_prompt: Work.\nuser_prompts: [One., Two.]\nassertions: [{ id: answers, type: output_contains, pattern: . }]\n");
    let trial = trial(&project.report(&["case.yaml"], 0));
    assert_eq!((&trial["answer"], &trial["session_id"]), (&json!("again"), &json!("s-1")), "{trial:#}");
}

#[test]
fn a_child_left_behind_by_an_agent_is_killed() {
    let project = Project::new(TRIALRUN);
    let pipe = project.process_pipe("tether");
    let acts = format!(
        "mkfifo {0}.held\n\
         setsid sh -c 'trap \"\" TERM HUP; exec 9> {0}; echo here >&9; echo > {0}.held; tail -f /dev/null' \
         > /dev/null 2>&1 < /dev/null &\n\
         read -r _ < {0}.held; text done; result done; hear",
        pipe.path().display()
    );
    let project = project.claude(&acts);
    project.write("case.yaml", "scenario: pretends\nsystem_prompt: Work.\nuser_prompt: Begin.\nassertions: [{ id: answers, type: output_contains, pattern: . }]\n");
    let trial = trial(&project.report(&["case.yaml"], 0));
    assert_eq!(trial["answer"], "done");
    pipe.wait_for_line("here");
    pipe.wait_until_closed();
    project.no_process_is_left();
}

#[test]
fn a_provider_that_is_being_retried_at_the_timeout_is_at_fault() {
    // Not a real agent and not a scripted model, but the vendor's own model, which cannot be reached.
    let retry =
        r#"printf '{"type":"system","subtype":"api_retry","attempt":1,"error_status":529,"error":"overloaded"}\n'"#;
    let project = Project::new(TRIALRUN).claude(&format!("{retry}; hear"));
    project.write("case.yaml", "scenario: waits\nsystem_prompt: Work.\nuser_prompt: Begin.\ntimeout: 3s\n");
    let report = project.report(&["case.yaml", "--retries", "0"], 3);
    let trial = &report["trials"][0];
    assert_eq!((&trial["outcome"], &trial["fault"]), (&json!("broken"), &json!("provider")), "{trial:#}");
}

//! Tests of the real OpenCode with scripted models, from the scenario file to the exit code. Where the machine allows
//! it, they run without a network. Each of its processes takes many seconds, so there are only a few tests, each of
//! which checks a lot.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use serde_json::{Value, json};
use testkit::Project;
use testkit::real::{OPENCODE, only_trial as trial};

const TRIALRUN: &str = env!("CARGO_BIN_EXE_trialrun");

/// Returns a project that uses the real agent with the model in `model.yaml`.
fn project() -> Project {
    OPENCODE.project(TRIALRUN, env!("CARGO_TARGET_TMPDIR"))
}

/// Returns every call as its name, its native name and its main argument, with `true` if it failed.
fn calls(trial: &Value) -> Vec<(String, bool)> {
    let call = |call: &Value| {
        let input = call["input"].as_object().unwrap();
        let argument =
            ["command", "file_path", "skill", "description"].iter().find_map(|key| input.get(*key)?.as_str());
        let argument = argument.unwrap_or("-").rsplit('/').next().unwrap();
        (format!("{} {argument}", call["name"].as_str().unwrap()), call["is_error"].as_bool().unwrap())
    };
    trial["tool_calls"].as_array().unwrap().iter().map(call).collect()
}

fn owned(list: &[(&str, bool)]) -> Vec<(String, bool)> {
    list.iter().map(|(call, failed)| ((*call).to_owned(), *failed)).collect()
}

const GREETING: &str = r##"
scenario: greet
skill: greet
runner:
  model: scripted:../model.yaml
  permission_mode: default
user_prompts:
  - |
    --help Ada, "please"
  - Write it down.
fixtures:
  git_init: true
  files_committed:
    - { path: AGENTS.md, content: FIXTURERULES }
    - { path: .opencode/skills/other/SKILL.md, content: "---\nname: other\ndescription: OTHERSKILL\n---\nx\n" }
    - { path: .claude/skills/third/SKILL.md, content: "---\nname: third\ndescription: THIRDSKILL\n---\nx\n" }
assertions:
  - { id: uses-it, type: skill_used, skill: greet }
  - { id: with-its-name, type: tool_called, tool: Skill, args_match: { skill: ^greet$ } }
  - { id: in-order, type: tool_call_sequence, sequence: [{ tool: Skill }, { tool: Bash }, { tool: Task }, { tool: Write }] }
  - { id: says, type: output_contains, pattern: ^Written\.$ }
"##;

const GREETING_MODEL: &str = r##"
steps:
  - tools:
      - { name: skill, input: { name: greet } }
      - { name: bash, input: { command: "echo hello; exit 3", description: fails } }
      - { name: grep, input: { pattern: MANTRA } }
    usage: { input: 1000, cache_read: 200, output: 30 }
    expect_request:
      system_contains: [Say MANTRA, .opencode/skills/greet]
      last_user_contains: '--help Ada, "please"'
      contains: Greets people warmly.
      not_contains: [FIXTURERULES, OTHERSKILL, THIRDSKILL, customize-opencode]
      tools_include: [bash, edit, glob, grep, read, skill, task, write]
      tools_exclude: [webfetch, websearch, question]
  - text: Good day, Ada.
    expect_request: { tool_result_contains: [Say MANTRA, hello] }
  - tools: [{ name: task, input: { description: look, prompt: Look around., subagent_type: general } }]
    expect_request: { last_user_contains: Write it down., contains: "Good day, Ada." }
  - tools: [{ name: bash, input: { command: echo below, description: x } }]
    expect_request: { last_user_contains: Look around. }
  - text: seen
    expect_request: { tool_result_contains: below }
  - tools:
      - { name: write, input: { filePath: $SANDBOX/note.txt, content: Good day } }
      - { name: read, input: { filePath: /etc/hostname } }
      - { name: no_such_tool, offered: false, input: { x: 1 } }
    expect_request: { tool_result_contains: seen }
  - text: Written.
    expect_request: { tool_result_contains: Wrote file }
    usage: { input: 50, cache_read: 1200, output: 20 }
"##;

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn a_conversation_with_a_skill_a_sub_agent_and_failing_tools_is_recorded_exactly() {
    let project = project();
    project
        .write("trialrun.yaml", "skills_dir: ./skills\n")
        .write(
            "skills/greet/SKILL.md",
            "---\nname: greet\ndescription: Greets people warmly.\n---\n\nSay MANTRA and a name.\n",
        )
        .write("skills/greet/tests/greet.yaml", GREETING)
        .write("skills/greet/model.yaml", GREETING_MODEL);
    let trial = trial(&project.report(&["greet", "--agent", "opencode"], 0));
    assert_eq!(trial["outcome"], "passed", "{trial:#}");
    assert_eq!(
        calls(&trial),
        owned(&[
            ("Skill greet", false),
            ("Bash echo hello; exit 3", true),
            ("Grep -", false),
            ("Task look", false),
            ("Write note.txt", false),
            ("Read hostname", true),
            ("no_such_tool -", true),
            ("Bash echo below", false),
        ]),
        "{trial:#}"
    );
    // Two of the seven messages are the sub-agent's: they cost money, but are not turns of the agent.
    assert_eq!(
        trial["usage"],
        json!({"input": 1550, "cache_read": 1400, "cache_write": 0, "output": 100, "reasoning": 0, "total": 3050})
    );
    assert_eq!(trial["turn_count"], 5);
    assert_eq!((&trial["agent_version"], &trial["auth"]), (&json!("1.18.33"), &json!("scripted")));
    assert!(trial["session_id"].as_str().is_some_and(|id| id.starts_with("ses_")));
    assert_eq!(trial["warnings"], json!([]));
    assert_eq!(project.left_over(), Vec::<String>::new());
}

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn a_closed_list_and_the_turn_limit_are_enforced() {
    let project = project();
    project.write(
        "case.yaml",
        "
scenario: closed
system_prompt: Work.
max_turns: 2
runner:
  model: scripted:model.yaml
  allowed_tools_override: [Read(docs/**), \"Bash(git *)\"]
fixtures:
  git_init: true
  files_committed: [{ path: docs/a.md, content: INSIDE }, { path: secret.md, content: OUTSIDE }]
mcp_servers:
  issues: { tools: { get: { description: Returns an issue., answer: { id: \"{{input.id}}\" } } } }
",
    );
    project.write(
        "model.yaml",
        "
steps:
  - tools:
      - { name: bash, input: { command: git log --oneline, description: x } }
      - { name: bash, input: { command: ls, description: x } }
      - { name: bash, input: { command: git status && touch made, description: x } }
      - { name: read, input: { filePath: $SANDBOX/docs/a.md } }
      - { name: read, input: { filePath: $SANDBOX/secret.md } }
      - { name: write, offered: false, input: { filePath: $SANDBOX/made, content: x } }
      - { name: issues_get, input: { id: 7 } }
    expect_request: { system_contains: Work., tools_include: [bash, read, issues_get], tools_exclude: [write, edit, glob, task, skill] }
  - tools: [{ name: bash, input: { command: git status, description: x } }]
    expect_request: { tool_result_contains: [INSIDE, '{\"id\":7}'], not_contains: OUTSIDE }
  - text: never asked for
",
    );
    let trial = trial(&project.report(&["case.yaml", "--agent", "opencode"], 1));
    assert_eq!(
        calls(&trial),
        owned(&[
            ("Bash git log --oneline", false),
            ("Bash ls", true),
            ("Bash git status && touch made", true),
            ("Read a.md", false),
            ("Read secret.md", true),
            ("Write made", true),
            ("mcp__issues__get -", false),
            ("Bash git status", false),
        ]),
        "{trial:#}"
    );
    assert_eq!(trial["ending"], json!({"kind": "out_of_budget", "budget": "turns", "limit": 2.0}));
    assert_eq!((&trial["turn_count"], &trial["usage"]["total"]), (&json!(2), &json!(220)));
    assert_eq!(project.left_over(), Vec::<String>::new());
}

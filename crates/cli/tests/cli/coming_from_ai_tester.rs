//! The commands and files from ai-tester's documentation, unchanged, in a clean directory. Differences are listed in
//! `docs/coming-from-ai-tester.md` and are tested here too.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use testkit::{Project, Ran};

const CONFIGURATION: &str = "\
# Where skills are, relative to this file.
skills_dir: ./skills
defaults:
  model: claude-sonnet-4-6
  permission_mode: bypassPermissions
";

const SKILL: &str = "\
---
name: commit
description: Commits what is staged.
allowed-tools: Read, Write, Bash(git *)
token-budget: 50000     # of every kind together
---
Look at what is staged and commit it.
";

/// All keys of a scenario, its fixtures and its assertions.
const WHOLE: &str = r##"
scenario: basic-feature                  # required
description: |                           # optional
  Something is staged, is looked at, and is committed.
skill: commit
argument: "auth"
max_turns: 14
token_budget: 10000

runner:
  runtime: claude
  model: claude-sonnet-4-6
  permission_mode: bypassPermissions
  allowed_tools_override:
    - Read
    - Write
    - Bash(git *)
  setting_sources: [project]

fixtures:
  git_init: true
  git_branch: feature/auth
  copy_trees:
    - from: ./fixtures/baseline
    - from: ./fixtures/vendor
      to: vendor/
  files_committed:
    - path: README.md
      content: "# Shop\n"
    - path: src/login.ts
      content_from: ./fixtures/login.ts
  files_staged:
    - path: src/reset.ts
      content: "export function reset() {}\n"
  files_unstaged:
    - path: TODO.md
      content: "- audit\n"
  setup_commands:
    - git tag v0.1.0
  env:
    MY_FLAG: "1"

user_responses:
  - match_question: "(?i)commit|proposed"
    choose: "Commit as is"
  - match_question: "(?i)push"
    choose: "Skip push"

assertions:
  - id: looks-first
    type: tool_called
    tool: Bash
    call_index: 0
    args_match:
      command: "^git status"
    capture: [command]
    capture_max_chars: 3000
  - id: asks-before-it-commits
    type: tool_call_sequence
    sequence:
      - tool: Bash
        args_match:
          command: "^git diff --cached"
      - tool: AskUserQuestion
      - tool: Bash
        args_match:
          command: "^git commit"
        capture: [command]
    weight: 2
    capture_max_chars: 3000
  - id: only-git
    type: no_tool_called
    tool: Bash
    args_match:
      command: "^(?!git )"
  - id: no-web
    type: no_tool_called
    tool: WebSearch
  - id: says-feat
    type: output_contains
    pattern: "(?i)\\bfeat\\b"
  - id: is-short
    type: turn_count_at_most
    max: 12
  - id: stays-inside
    type: no_path_escape
  - id: stays-inside-strictly
    type: no_path_escape
    tools: [Read, Write, Edit]
    allow_outside:
      - ~/.config/
      - /etc/ssl/certs/
"##;

const INLINE: &str = r##"
scenario: inline-prompt
system_prompt: |
  You write functions with type hints.
argument: "def length(s: str) -> int"
runner:
  model: claude-sonnet-4-6
  permission_mode: bypassPermissions
fixtures: {}
assertions:
  - id: has-type-hint
    type: output_contains
    pattern: "->\\s*int"
"##;

const FROM_FILE: &str = "\
scenario: prompt-from-file
system_prompt_file: ./prompts/reviewer.md
argument: \"review src/auth.ts\"
assertions:
  - { id: stays-inside, type: no_path_escape }
";

const ONE_MESSAGE: &str = "\
scenario: slash
skill: commit
user_prompt: \"/commit everything\"
assertions:
  - { id: says-it, type: output_contains, pattern: everything }
";

const SEVERAL_MESSAGES: &str = "\
scenario: warm-up
skill: commit
user_prompts:
  - \"Study this repository.\"
  - \"/commit now\"
token-budget: 10000
assertions:
  - { id: says-it, type: output_contains, pattern: now }
";

const CODEX: &str = r##"
scenario: with-codex
skill: commit
argument: "now"
runner:
  runtime: codex
  model: gpt-5-codex
  permission_mode: bypassPermissions   # for Codex: no sandbox of its own
fixtures:
  git_init: true
assertions:
  - { id: writes, type: tool_called, tool: Write, args_match: { file_path: "PLAN\\.md$" } }
"##;

/// Returns a project with the layout from ai-tester's documentation.
fn project() -> Project {
    let project = Project::new(env!("CARGO_BIN_EXE_trialrun"));
    project
        .write(".ai-tester.yaml", CONFIGURATION)
        .write("skills/commit/SKILL.md", SKILL)
        .write("skills/commit/tests/basic.yaml", WHOLE)
        .write("skills/commit/tests/slash.yaml", ONE_MESSAGE)
        .write("skills/commit/tests/warm-up.yaml", SEVERAL_MESSAGES)
        .write("skills/commit/tests/codex.yaml", CODEX)
        .write("skills/commit/tests/_shared.yaml", "reserved: for later\n")
        .write("skills/commit/tests/fixtures/baseline/package.json", "{}\n")
        .write("skills/commit/tests/fixtures/vendor/lib.js", "// vendored\n")
        .write("skills/commit/tests/fixtures/login.ts", "export {};\n")
        .write("elsewhere/inline.yaml", INLINE)
        .write("elsewhere/from-file.yaml", FROM_FILE)
        .write("elsewhere/prompts/reviewer.md", "You review code.\n");
    project
}

fn typed(project: &Project, line: &str) -> Ran {
    project.run(&line.split(' ').collect::<Vec<_>>())
}

#[test]
fn every_file_is_read_unchanged() {
    // Their programs need not be installed here.
    let project = project().env("TRIALRUN_CLAUDE", "/bin/true").env("TRIALRUN_CODEX", "/bin/true");
    for line in [
        "run --dry-run",
        "run commit --dry-run",
        "run commit --scenario basic-feature --dry-run",
        "run --file elsewhere/inline.yaml --dry-run",
        "run --file elsewhere/from-file.yaml --dry-run",
        "run --dry-run --model claude-opus-4-7 --scenario slash",
        "run --dry-run --runtime claude --filter ^warm",
    ] {
        let ran = typed(&project, line).exits(0);
        assert_eq!(ran.err, "", "{line}");
        assert!(ran.out.contains("nothing was run"), "{line}: {}", ran.out);
    }
    let listed = typed(&project, "list").exits(0).out;
    for case in ["basic-feature  claude-code:claude-sonnet-4-6", "with-codex     codex:gpt-5-codex"] {
        assert!(listed.contains(case), "{case}: {listed}");
    }
    assert!(!listed.contains("shared"), "{listed}");
}

#[test]
fn every_command_works_as_before() {
    let project = project();
    // The project is found from a subdirectory.
    project.write("skills/commit/tests/deeper/notes.txt", "");
    let ran =
        typed(&project, "run commit --scenario basic-feature --runtime fake --quiet --idle-warn 30 --keep-sandbox")
            .exits(1);
    assert!(ran.out.contains("commit::basic-feature") && ran.out.contains("sandbox kept in "), "{}", ran.output());
    typed(&project, "run --file elsewhere/inline.yaml --runtime fake").exits(0);
    let ran = typed(&project, "run --runtime fake --filter ^nothing").exits(4);
    assert!(ran.err.contains("was selected"), "{}", ran.err);
    let history = typed(&project, "history commit --scenario basic-feature --last 10").exits(0).out;
    assert!(history.contains("commit::basic-feature") && !history.contains("inline-prompt"), "{history}");
    assert!(typed(&project, "history --cases --last 1").exits(0).out.contains("inline-prompt"));
    assert_eq!(typed(&project, "history --cases --json").exits(0).json().as_array().unwrap().len(), 2);
    assert!(typed(&project, "runtimes").out.contains("claude-code"));
    typed(&project, "doctor --self-test");
    for line in ["sandbox-prune", "sandbox-prune --yes", "sandbox-prune --min-age 300 --yes"] {
        assert!(!typed(&project, line).exits(0).out.is_empty(), "{line}");
    }
    let empty = Project::new(env!("CARGO_BIN_EXE_trialrun"));
    typed(&empty, "init").exits(0);
    typed(&empty, "run --dry-run").exits(0);
    // A project with skills runs them with the agent of ai-tester, whose model has a default.
    let skills = Project::new(env!("CARGO_BIN_EXE_trialrun"));
    skills.write("skills/commit/SKILL.md", SKILL).write("skills/commit/tests/slash.yaml", ONE_MESSAGE);
    typed(&skills, "init").exits(0);
    assert!(typed(&skills, "run --dry-run").exits(0).out.contains("commit::slash"), "{}", skills.read("trialrun.yaml"));
}

#[test]
fn differences_are_as_documented() {
    let project = project();
    // ai-tester passes a scenario without assertions; a token budget counts as one.
    project.write("none.yaml", "scenario: none\nsystem_prompt: x\n");
    let ran = typed(&project, "run --file none.yaml --runtime fake").exits(3);
    assert!(ran.out.contains("1 of 1 trial has no result (undecided: "), "{}", ran.output());
    project.write(
        "budget.yaml",
        "scenario: budget\nsystem_prompt: x\nuser_prompt: \"hi\\n!tokens 40 10\"\ntoken_budget: 100\n",
    );
    typed(&project, "run --file budget.yaml --runtime fake").exits(0);
    project.write(
        "skills/commit/tests/cheap.yaml",
        "scenario: cheap\nskill: commit\nuser_prompt: \"hi\\n!tokens 40 10\"\nrunner: {reasoning: high, mode: sdk, mcp_profile: none}\n\
         fixtures: {setup_timeout_seconds: 90}\n",
    );
    let ran = typed(&project, "run commit --scenario cheap --runtime fake").exits(0);
    for key in ["`mode`", "`mcp_profile`", "`setup_timeout_seconds`"] {
        assert!(ran.err.contains(&format!("{key} of ai-tester has no effect")), "{}", ran.err);
    }
    // The configuration never stops a run.
    project.write(
        ".ai-tester.yaml",
        "skills_dir: ./skills\nruns_dir: ./runs\nother: 1\ndefaults: {runtime: fake, new: 2}\n",
    );
    let ran = typed(&project, "run commit --scenario cheap").exits(0);
    assert!(
        ran.err.contains("`runs_dir` of ai-tester has no effect") && ran.err.contains("unknown key `new`"),
        "{}",
        ran.err
    );
    // What only ai-tester has is named with what to write instead.
    project.write(
        "newer.yaml",
        "scenario: newer\nsystem_prompt: x\nassertions:\n  - { id: a, type: file_read, path: a.txt }\n  \
         - { id: b, type: no_tool_called, tool_pattern: '^mcp__' }\n  \
         - { id: c, type: tool_call_sequence, sequence: [{ tool_pattern: Re.* }, { tool: Edit }] }\n",
    );
    let messages = typed(&project, "run --file newer.yaml").exits(2).err;
    for hint in [
        "`args_match: {file_path: PATTERN}`",
        "`no_tool_called` has no `tool_pattern`",
        "one assertion for each",
        "a step of `sequence` has no `tool_pattern`",
    ] {
        assert!(messages.contains(hint) && !messages.contains("did you mean"), "{hint}: {messages}");
    }
    // Mistakes in files are reported before anything runs.
    project.write(
        "wrong.yaml",
        "scenario: wrong\nsystem_prompt: x\nmaxTurns: 5\nassertions:\n  - { id: a, type: output_contains, pattern: '(' }\n  \
         - { id: a, type: no_tool_called, tool: Wirte }\n",
    );
    let messages = typed(&project, "run --file wrong.yaml").exits(2).err;
    for problem in ["did you mean `max_turns`?", "invalid regular expression", "did you mean `Write`?", "the id `a`"] {
        assert!(messages.contains(problem), "{problem}: {messages}");
    }
    assert!(!project.dir().join("runs").exists(), "the record is in `.trialrun`");
}

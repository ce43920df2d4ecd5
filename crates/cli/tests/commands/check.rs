//! `check`: every problem, before anything runs.

use serde_json::{Value, json};

use crate::{demo, empty};

/// One of everything that can be wrong, with the line it is on.
const WRONG: &str = "scenario: wrong
descripton: typo
system_prompt: x
agent: clade-code
fixtures:
  files_committed:
    - { path: ../outside, content: x }
    - { path: inside, content_from: nowhere.txt }
assertions:
  - { id: a, type: output_contains, pattern: \"(\" }
  - { id: a, type: tool_called, tool: Bash }
  - { id: c, type: tool_caled, tool: Bash }
";

#[test]
fn check_reports_every_problem_at_once_with_its_line() {
    let project = empty();
    project.write("wrong.yaml", WRONG).write(
        "tool.yaml",
        "scenario: tool\nsystem_prompt: x\nagent: chat\nmodel: scripted:m.yaml\nassertions:\n  - { id: a, type: tool_called, tool: Basch }\n",
    );
    project.write("m.yaml", "steps: [{ text: hi }]\n");
    let found = project.run(&["check", "wrong.yaml", "tool.yaml", "--format", "json"]).exits(2).json();
    assert_eq!(found["valid"], false);
    let problems = found["problems"].as_array().unwrap();
    let told = |line: u64, severity: &str, words: &[&str]| {
        let is = |problem: &Value| {
            let text = problem.to_string();
            problem["source"]["line"] == line
                && problem["severity"] == severity
                && words.iter().all(|word| text.contains(word))
        };
        assert!(problems.iter().any(is), "line {line}, {words:?}: {problems:#?}");
    };
    told(2, "error", &["unknown key `descripton`", "did you mean `description`?"]);
    told(4, "error", &["unknown agent `clade-code`", "did you mean `claude-code`?"]);
    told(7, "error", &["../outside"]);
    told(8, "error", &["nowhere.txt"]);
    told(10, "error", &["regular expression"]);
    told(11, "error", &["`a`"]);
    told(12, "error", &["tool_caled", "did you mean `tool_called`?"]);
    told(6, "warning", &["Basch", "did you mean `Bash`?"]);
    assert_eq!((found["errors"].as_u64(), found["warnings"].as_u64()), (Some(7), Some(1)), "{problems:#?}");

    let text = project.run(&["check", "wrong.yaml", "tool.yaml"]).exits(2);
    assert_eq!(text.out, "");
    for place in ["wrong.yaml:2:1", "wrong.yaml:4:8", "wrong.yaml:7:15", "wrong.yaml:10:46", "tool.yaml:6:39"] {
        assert!(text.err.contains(&format!("--> {place}")), "{place}: {}", text.err);
    }
    assert!(text.err.contains("descripton: typo") && text.err.ends_with("7 errors, 1 warning\n"), "{}", text.err);
    assert!(!project.dir().join(".trialrun").exists(), "checking records nothing");
}

#[test]
fn check_counts_what_is_fine_and_strictness_makes_warnings_errors() {
    let project = demo();
    assert_eq!(project.run(&["check"]).exits(0).out, "3 cases and 3 trials are fine; nothing was run\n");
    assert_eq!(
        project.run(&["check", "greet", "--format", "json"]).exits(0).json(),
        json!({"schema": "trialrun.check/1", "valid": true, "cases": 3, "trials": 3, "errors": 0, "warnings": 0, "claims": [], "problems": []})
    );
    project.write("bare.yaml", "scenario: bare\nsystem_prompt: x\n");
    let ran = project.run(&["check", "bare.yaml"]).exits(0);
    assert_eq!(ran.out, "1 case and 1 trial are fine, with 1 warning; nothing was run\n");
    assert!(ran.err.contains("`bare` asserts nothing"), "{}", ran.err);
    project.run(&["check", "bare.yaml", "--strict"]).exits(2);
    assert_eq!(project.run(&["run", "--dry-run"]).exits(0).out, "3 cases and 3 trials are fine; nothing was run\n");
    assert_eq!(project.run(&["validate"]).exits(0).code, 0);
}

#[test]
fn a_broken_suite_stops_the_run_before_anything_is_recorded() {
    let project = demo();
    project.write("skills/greet/tests/d.yaml", WRONG);
    let ran = project.run(&["run"]).exits(2);
    assert!(ran.err.contains("descripton") && ran.out.is_empty(), "{}", ran.said());
    assert!(!project.dir().join(".trialrun").exists());
}

#[test]
fn what_became_of_each_claim_is_told_as_briefly_or_fully_as_anybody_wants() {
    let project = testkit::Project::new(env!("CARGO_BIN_EXE_trialrun"));
    project.write("skills/notes/SKILL.md", "---\nname: notes\ndescription: Notes.\n---\n\nWrite.\n");
    let suite = json!({"skill_name": "notes", "evals": [{"id": "a", "prompt": "p", "expected_output": "o", "assertions": [
        "The file `N.md` exists", "A branch and a commit were created", "It reads well", {"type": "git_clean"}]}]});
    project.write("skills/notes/evals/evals.json", &suite.to_string());
    let check = |more: &[&str]| project.run(&[&["check", "skills/notes", "--agent", "fake"], more].concat()).exits(0);
    let counts = "3 claims: code decides 2, a model judges 1";
    let brief = check(&[]).out;
    assert!(brief.ends_with(&format!("nothing was run\n{counts}; `check --verbose` shows which\n")), "{brief}");
    let verbose = check(&["--verbose"]).out;
    let table = [
        "notes::a",
        "  file_exists `N.md`                 The file `N.md` exists",
        "  branch_created and commit_created  A branch and a commit were created",
        "  a model judges                     It reads well",
        "",
    ];
    assert!(verbose.lines().zip(table).all(|(line, expected)| line == expected), "{verbose}");
    assert!(verbose.ends_with(&format!("{counts}\n")), "{verbose}");
    let all = check(&["--format", "json"]).json();
    let claims = all["claims"].as_array().unwrap();
    assert_eq!(claims.len(), 3);
    assert_eq!(
        (&claims[1]["method"], &claims[1]["compiled_as"], &claims[1]["judged"]),
        (&json!("branch_created + commit_created"), &json!(["branch_created", "commit_created"]), &json!(false))
    );
    assert_eq!((&claims[2]["method"], &claims[2]["compiled_as"]), (&json!("judge"), &Value::Null));
    assert_eq!(claims[2]["source"]["file"], "skills/notes/evals/evals.json");
}

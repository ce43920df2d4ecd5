//! `check`: every problem is reported before anything runs.

use serde_json::{Value, json};

use super::{demo, empty};

/// One mistake of each kind, with its line.
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
    let reports = |line: u64, severity: &str, words: &[&str]| {
        let is = |problem: &Value| {
            let text = problem.to_string();
            problem["source"]["line"] == line
                && problem["severity"] == severity
                && words.iter().all(|word| text.contains(word))
        };
        assert!(problems.iter().any(is), "line {line}, {words:?}: {problems:#?}");
    };
    reports(2, "error", &["unknown key `descripton`", "did you mean `description`?"]);
    reports(4, "error", &["unknown agent `clade-code`", "did you mean `claude-code`?"]);
    reports(7, "error", &["../outside"]);
    reports(8, "error", &["nowhere.txt"]);
    reports(10, "error", &["regular expression"]);
    reports(11, "error", &["`a`"]);
    reports(12, "error", &["tool_caled", "did you mean `tool_called`?"]);
    reports(6, "error", &["Basch", "did you mean `Bash`?"]);
    assert_eq!((found["errors"].as_u64(), found["warnings"].as_u64()), (Some(8), Some(0)), "{problems:#?}");

    let text = project.run(&["check", "wrong.yaml", "tool.yaml"]).exits(2);
    assert_eq!(text.out, "");
    for place in ["wrong.yaml:2:1", "wrong.yaml:4:8", "wrong.yaml:7:15", "wrong.yaml:10:46", "tool.yaml:6:39"] {
        assert!(text.err.contains(&format!("--> {place}")), "{place}: {}", text.err);
    }
    assert!(text.err.contains("descripton: typo") && text.err.ends_with("8 errors\n"), "{}", text.err);
    assert!(!project.dir().join(".trialrun").exists(), "checking records nothing");
}

#[test]
fn text_cut_off_by_a_comment_is_an_error_at_the_comment() {
    let project = empty();
    let case = "turns:\n  - says: wö is my order #5\n    expect:\n      - contains: order\n";
    project.write("tests/order.yaml", case);
    let checked = project.run(&["check", "tests", "--agent", "fake"]).exits(2);
    assert!(checked.err.contains("`#5` is a comment, so the text ends before it"), "{}", checked.output());
    assert!(
        checked.err.contains("order.yaml:2:26") && checked.err.contains("put the text into quotes"),
        "{}",
        checked.output()
    );
    let harmless = case.replace(" #5", "").replace("turns:", "name: c #todo\ndescription: about order #5\nturns:");
    project.write("tests/order.yaml", &harmless);
    let checked = project.run(&["check", "tests", "--agent", "fake"]).exits(0);
    assert!(
        checked.err.contains("`#5` is a comment") && checked.err.contains("`#todo` is a comment"),
        "{}",
        checked.err
    );
}

#[test]
fn check_counts_valid_cases_and_strict_makes_warnings_errors() {
    let project = demo();
    assert_eq!(project.run(&["check"]).exits(0).out, "checked 3 cases and 3 trials: no problems; nothing was run\n");
    assert_eq!(
        project.run(&["check", "greet", "--format", "json"]).exits(0).json(),
        json!({"schema": "trialrun.check/1", "valid": true, "cases": 3, "trials": 3, "errors": 0, "warnings": 0, "claims": [], "coverage": [], "problems": []})
    );
    project.write("bare.yaml", "scenario: bare\nsystem_prompt: x\n");
    let ran = project.run(&["check", "bare.yaml"]).exits(0);
    assert_eq!(ran.out, "checked 1 case and 1 trial: 1 warning; nothing was run\n");
    assert!(ran.err.contains("`bare` has no assertions"), "{}", ran.err);
    project.run(&["check", "bare.yaml", "--strict"]).exits(2);
    let dry = project.run(&["run", "--dry-run"]).exits(0).out;
    let listed = project.run(&["list"]).exits(0).out;
    assert_eq!(dry, listed + "\nchecked 3 cases and 3 trials: no problems; nothing was run\n");
    let lent = project.run(&["run", "--dry-run", "--source-repo", ".", "--lend-git-sign-in"]).exits(2);
    assert!(lent.err.contains("`--lend-git-sign-in` needs `--remote real`"), "{}", lent.err);
    project.run(&["run", "--dry-run", "--report", "nonsense"]).exits(2);
    assert_eq!(project.run(&["validate"]).exits(0).code, 0);
}

#[test]
fn a_broken_suite_stops_the_run_before_anything_is_recorded() {
    let project = demo();
    project.write("skills/greet/tests/d.yaml", WRONG);
    let ran = project.run(&["run"]).exits(2);
    assert!(ran.err.contains("descripton") && ran.out.is_empty(), "{}", ran.output());
    assert!(!project.dir().join(".trialrun").exists());
}

#[test]
fn compiled_claims_are_reported_briefly_or_in_full() {
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
        "notes/evals::a",
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

#[test]
fn a_problem_has_a_location_and_a_suggestion() {
    let project = empty();
    let case = "scenario: a\nsystem_prompt: x\nassertions:\n  - { id: a, type: output_contains, pattern: x }\n";
    project.write("a.yaml", case).write("b.yaml", &format!("{case}agent: chat\nmodel: scripted:nowhere.yaml\n"));
    // An unknown agent is not parsed as part of the model's name.
    let ran = project.run(&["check", "a.yaml", "--agent", "fake", "--model", "codx=gpt"]).exits(2);
    assert!(ran.err.contains("unknown agent `codx` in `--model codx=gpt`"), "{}", ran.err);
    assert!(ran.err.contains("did you mean `codex`?"), "{}", ran.err);
    let ran = project.run(&["check", "a.yaml", "--agent", "fake,echo"]).exits(2);
    assert!(ran.err.contains("this is one agent: give each of them on its own"), "{}", ran.err);
    project.run(&["check", "a.yaml", "--agent", "fake", "--model", "fake=gpt"]).exits(0);
    let ran = project.run(&["check", "a.yaml", "--agent", "fake", "--model", "fake=a", "--model", "fake=b"]).exits(0);
    assert!(ran.err.contains("the model `a` of `fake` is not used"), "{}", ran.err);
    // The missing script is the only problem.
    let ran = project.run(&["check", "b.yaml"]).exits(2);
    assert!(ran.err.contains("cannot read the script `nowhere.yaml`") && ran.err.contains("b.yaml:6:8"), "{}", ran.err);
    assert!(!ran.err.contains("needs a model"), "{}", ran.err);
    // A tab is reported on its own line, and an empty file at its beginning.
    project.write("tab.yaml", "scenario: a\nfixtures:\n  git_init: true\n\tenv: {}\n").write("empty.yaml", "");
    let ran = project.run(&["check", "tab.yaml", "empty.yaml"]).exits(2);
    assert!(ran.err.contains("a tab in the indentation") && ran.err.contains("tab.yaml:4:1"), "{}", ran.err);
    assert!(ran.err.contains("--> empty.yaml:1:1"), "{}", ran.err);
    // A problem with the value of a row names the row.
    let rows = "name: d\nagent: fake\ncases: d.csv\nturns: [{ says: hi, expect: [{ contains: '{{ b }}' }] }]\n";
    project.write("d.yaml", rows).write("d.csv", "a,b\nx,y\nv,\nw,\n");
    let ran = project.run(&["check", "d.yaml"]).exits(2);
    assert!(ran.err.contains("the first case with this problem is `d [v]`"), "{}", ran.err);
    assert_eq!(ran.err.matches("must not be empty").count(), 1, "{}", ran.err);
    // A problem with the project's judge is reported at its location.
    project.write("trialrun.yaml", "judge: gpt-4\n");
    project.write("c.yaml", "name: c\nagent: fake\nturns: [hi]\nassertions: [{ llm_judge: is polite }]\n");
    let ran = project.run(&["check", "c.yaml"]).exits(2);
    assert!(ran.err.contains("--> trialrun.yaml:1:8"), "{}", ran.err);
    assert!(ran.err.contains("did you mean `openai:gpt-4`?"), "{}", ran.err);
}

#[test]
fn a_case_that_asserts_nothing_is_undecided_in_every_format() {
    let project = empty();
    project
        .write("a.yaml", "scenario: a\nsystem_prompt: x\nagent: fake\n")
        .write("b.yaml", "name: b\nturns: [hi]\nagent: fake\n")
        .write("c.fixture.yaml", "agent: fake\n---\n- { title: c, input: hello }\n")
        .write("d.test.ts", "import { scenario } from 'trialrun';\nexport default scenario('d', () => {});\n");
    for file in ["a.yaml", "b.yaml", "c.fixture.yaml", "d.test.ts"] {
        let ran = project.run(&["run", file, "--agent", "fake"]).exits(3);
        assert!(
            ran.out.contains("1 of 1 trial has no result (undecided: ") && ran.out.contains("has no assertions"),
            "{}",
            ran.output()
        );
    }
    project.write("e.fixture.yaml", "- { title: a, input: hello, ouput: x }\n");
    let ran = project.run(&["run", "e.fixture.yaml", "--agent", "fake"]).exits(2);
    assert!(ran.err.contains("e.fixture.yaml:1:29") && ran.err.contains("did you mean `output`?"), "{}", ran.err);
    project.write("f.fixture.yaml", "agent: fake\n---\n");
    project.run(&["run", "f.fixture.yaml"]).exits(4);
}

#[test]
fn a_pipe_or_a_device_is_not_read() {
    let project = empty();
    project.write(
        "a.yaml",
        "scenario: a\nsystem_prompt: x\nassertions:\n  - { id: a, type: output_contains, pattern: x }\n",
    );
    for pipe in ["p.yaml", "p.fixture.yaml", "p.test.ts", "p.jsonl"] {
        let path = project.dir().join(pipe);
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    }
    for suite in ["p.yaml", "p.fixture.yaml", "p.test.ts"] {
        let messages = project.run(&["check", suite]).exits(2).err;
        assert!(messages.contains("it is not a regular file") && messages.contains(suite), "{messages}");
    }
    for answers in ["recorded:p.jsonl", "recorded:/dev/zero"] {
        let messages = project.run(&["run", "a.yaml", "--agent", answers]).exits(2).err;
        assert!(messages.contains("it is neither a regular file nor a folder"), "{messages}");
    }
    std::os::unix::fs::symlink("/dev/zero", project.dir().join("z.yaml")).unwrap();
    assert!(project.run(&["check", "z.yaml"]).exits(2).err.contains("it is not a regular file"));
}

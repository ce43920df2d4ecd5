//! `evals.json`: accepted and rejected content with locations, the skill under test, and the paths of files.

mod problems;
mod skills;
mod vectors;

use std::sync::Arc;

use model::{Arguments, AssertionScope, Case, SideEffectContract, SideEffectLevel, Subject};
use serde_json::{Value, json};

use crate::scratch::{Scratch, describe};

/// Path of the suite of the `s` skill.
const SUITE: &str = "skills/s/evals/evals.json";

/// Creates a project with the `s` skill, whose suite has this text, and with some files.
fn skill(text: &str) -> Scratch {
    let scratch = Scratch::new();
    scratch.skill("s").write(SUITE, text);
    for file in ["files/a.txt", "files/b.txt", "files/one/a.txt", "files/one/deep/c.txt", "files/two/a.txt", "top.txt"]
    {
        scratch.write(&format!("skills/s/evals/{file}"), format!("{file}\n"));
    }
    scratch
}

/// Returns a suite with one case that has these keys in addition to the required ones.
fn one(rest: &str) -> String {
    let comma = if rest.is_empty() { "" } else { "," };
    format!(
        "{{\"skill_name\": \"s\", \"evals\": [\n{{\"id\": 1, \"prompt\": \"p\", \"expected_output\": \"\"{comma}\n{rest}}}]}}"
    )
}

/// Returns the only case in a suite without problems.
fn case(rest: &str) -> Arc<Case> {
    let loaded = skill(&one(rest)).load(&["s"]);
    assert!(loaded.diagnostics.is_empty(), "{:#?}", describe(&loaded.diagnostics));
    Arc::clone(&loaded.suites[0].cases[0])
}

/// Suite from the documentation of agent-skill-eval.
const OF_THE_SEED: &str = r#"{
  "skill_name": "write-release-notes",
  "evals": [
    {
      "id": "explicit-invoke",
      "prompt": "Write release notes for the commit history in commits.txt.",
      "expected_output": "A RELEASE_NOTES.md grouping changes by type with breaking changes highlighted.",
      "files": ["files/commits.txt"],
      "force_skill_invocation": true,
      "assertions": [
        "The file `RELEASE_NOTES.md` exists",
        "The breaking change is mentioned prominently",
        "The release notes do not mention any change that is not in commits.txt"
      ]
    },
    {
      "id": "negative-control",
      "prompt": "How many commits are listed in commits.txt?",
      "expected_output": "The skill should NOT trigger.",
      "files": ["files/commits.txt"],
      "should_trigger": false,
      "assertions": [
        "A new git branch was created",
        "A git commit was created",
        "The agent only answered the question without creating files"
      ]
    }
  ]
}
"#;

#[test]
fn the_original_example_loads_unchanged() {
    let scratch = Scratch::new();
    scratch
        .skill("write-release-notes")
        .write("examples/write-release-notes/evals/evals.json", OF_THE_SEED)
        .write("examples/write-release-notes/evals/files/commits.txt", "abc123 feat: x\n");
    let loaded = scratch.load(&["examples/write-release-notes/evals/evals.json"]);
    assert_eq!(describe(&loaded.diagnostics), [] as [&str; 0]);
    let suite = &loaded.suites[0];
    assert_eq!((suite.name.as_str(), suite.format, suite.cases.len()), ("write-release-notes/evals", "evals", 2));

    let forced = &suite.cases[0];
    assert_eq!(forced.source.to_string(), "examples/write-release-notes/evals/evals.json:5:13");
    let Subject::Installed(skill) = &forced.subject else { panic!("{:?}", forced.subject) };
    assert_eq!(skill.directory.as_deref(), Some(scratch.path("skills/write-release-notes").as_path()));
    assert_eq!(forced.messages[0].text, "Write release notes for the commit history in commits.txt.");
    let expected = "A RELEASE_NOTES.md grouping changes by type with breaking changes highlighted.";
    assert_eq!(forced.expected, Some(json!(expected)));
    let eval = forced.skill_eval.as_ref().unwrap();
    assert_eq!(eval.invocation.as_deref(), Some("Use the $write-release-notes skill. "));
    assert!(eval.should_trigger && eval.contract.is_none() && eval.side_effect_level == SideEffectLevel::LocalOnly);
    let fixtures = &forced.fixtures;
    assert!(fixtures.git_init && fixtures.files_staged.is_empty() && fixtures.files_committed.is_empty());
    let file = &fixtures.files_unstaged[0];
    assert_eq!((file.path.as_str(), &*file.content), ("commits.txt", b"abc123 feat: x\n".as_slice()));
    let claims: Vec<(&str, &str, f64)> =
        forced.assertions.iter().map(|spec| (spec.id.as_str(), spec.kind.value.as_str(), spec.weight)).collect();
    assert_eq!(claims, [("assertion-1", "claim", 1.0), ("assertion-2", "claim", 1.0), ("assertion-3", "claim", 1.0)]);
    let Arguments::Brief(node) = &forced.assertions[0].arguments else { panic!() };
    assert_eq!(node.as_str(), Some("The file `RELEASE_NOTES.md` exists"));
    assert!(forced.must_assert && forced.assertions[0].about == AssertionScope::Trial);

    let negative = &suite.cases[1];
    let eval = negative.skill_eval.as_ref().unwrap();
    assert!(!eval.should_trigger && eval.invocation.is_none());
    let last = negative.assertions.last().unwrap();
    assert_eq!(
        (negative.assertions.len(), last.id.as_str(), last.kind.value.as_str()),
        (4, "skill-not-used", "skill_not_used")
    );
    let Arguments::Brief(node) = &last.arguments else { panic!() };
    assert_eq!(node.as_str(), Some("write-release-notes"));
    assert_eq!((node.excerpt().line, last.node.excerpt().line), (21, 21));
}

#[test]
fn ids_can_be_numbers_or_strings() {
    let scratch = skill(
        r#"{"$schema": "https://example.test/evals.json", "skill_name": "s", "evals": [
{"id": 7, "prompt": "-p is fine", "expected_output": ""},
{"id": -1, "prompt": "p", "expected_output": ""},
{"id": "a case: no. 1", "prompt": " p\n", "expected_output": ""}]}"#,
    );
    let loaded = scratch.load(&["s"]);
    assert_eq!(describe(&loaded.diagnostics), [] as [&str; 0]);
    let cases = &loaded.suites[0].cases;
    let ids: Vec<&str> = cases.iter().map(|case| case.id.as_str()).collect();
    assert_eq!(ids, ["7", "-1", "a case: no. 1"]);
    let output: Vec<&str> = cases.iter().map(|case| case.messages[0].text.as_str()).collect();
    assert_eq!(output, ["-p is fine", "p", " p\n"], "word for word");
}

#[test]
fn allowed_side_effects_are_read() {
    let case = case(
        r#""side_effect_level": "live-external",
"side_effect_contract": {"allow_new_remote_branches": false, "allow_new_commits": true}"#,
    );
    let eval = case.skill_eval.as_ref().unwrap();
    assert_eq!(eval.side_effect_level, SideEffectLevel::LiveExternal);
    let (contract, place) = eval.contract.as_ref().unwrap();
    assert_eq!(*contract, SideEffectContract { allow_new_remote_branches: false, ..SideEffectContract::default() });
    assert_eq!(place.line, 4);
}

#[test]
fn typed_assertions_keep_their_fields() {
    let case = case(
        r#""assertions": ["Said.", {"type": "json_path", "json_path": "a.0", "equals": null, "path": "out/x.json"},
{"type": "file_not_contains", "contains": "TODO", "text": "nothing is left open"}, {"type": "tests_pass"}]"#,
    );
    let specs: Vec<(&str, &str)> =
        case.assertions.iter().map(|spec| (spec.id.as_str(), spec.kind.value.as_str())).collect();
    assert_eq!(
        specs,
        [
            ("assertion-1", "claim"),
            ("assertion-2", "json_path"),
            ("assertion-3", "file_not_contains"),
            ("assertion-4", "tests_pass")
        ]
    );
    assert!(case.assertions[1..].iter().all(|spec| matches!(spec.arguments, Arguments::Fields)));
    assert_eq!(case.assertions[1].node.get("equals").map(model::Node::to_json), Some(Value::Null));
    let kind = &case.assertions[2].kind;
    assert_eq!(&case.assertions[2].node.source.text[kind.span.start()..kind.span.end()], "\"file_not_contains\"");
}

/// Returns the paths of a case's untracked, staged and committed files.
fn lying(rest: &str) -> [Vec<String>; 3] {
    let case = case(rest);
    let fixtures = &case.fixtures;
    let paths = |files: &[model::FixtureFile]| files.iter().map(|file| file.path.clone()).collect::<Vec<_>>();
    [&fixtures.files_unstaged, &fixtures.files_staged, &fixtures.files_committed].map(|files| paths(files))
}

#[test]
fn files_are_at_the_documented_paths() {
    let untracked = |files: &str| lying(&format!("\"files\": {files}"))[0].join(" ");
    for (files, expected) in [
        (r#"["files/a.txt"]"#, "a.txt"),
        (r#"["files/a.txt", "files/b.txt", "top.txt"]"#, "a.txt b.txt top.txt"),
        (r#"["files/one/a.txt"]"#, "a.txt"),
        (r#"["files/one/a.txt", "files/one/deep/c.txt"]"#, "a.txt deep/c.txt"),
        (r#"["files/one/deep/c.txt"]"#, "deep/c.txt"),
        (r#"["files/one/a.txt", "files/two/a.txt"]"#, "one/a.txt two/a.txt"),
        (r#"["./files//one/"]"#, "one/a.txt one/deep/c.txt"),
        (r#"["files/a.txt", "files/one"]"#, "a.txt one/a.txt one/deep/c.txt"),
        (r#"["files/one/deep"]"#, "deep/c.txt"),
        (r#"["files"]"#, "a.txt b.txt one/a.txt one/deep/c.txt two/a.txt"),
    ] {
        assert_eq!(untracked(files), expected, "{files}");
    }
}

#[test]
fn files_are_staged_or_committed_if_the_case_requests_it() {
    let none = Vec::<String>::new;
    let file = || vec!["a.txt".to_owned()];
    let files = |rest: &str| lying(&format!("\"files\": [\"files/a.txt\"]{rest}"));
    assert_eq!(files(""), [file(), none(), none()]);
    assert_eq!(files(r#", "stage_files": false, "commit_files": false"#), [file(), none(), none()]);
    assert_eq!(files(r#", "stage_files": true"#), [none(), file(), none()]);
    assert_eq!(files(r#", "commit_files": true"#), [none(), none(), file()]);
}

#[cfg(unix)]
#[test]
fn files_keep_their_bytes_and_their_executable_bit() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = skill(&one("\"files\": [\"files/bin\"]"));
    let bytes: Vec<u8> = (0..=255).collect();
    scratch.write("skills/s/evals/files/bin/run", &bytes);
    let permissions = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(scratch.path("skills/s/evals/files/bin/run"), permissions).unwrap();
    let loaded = scratch.load(&["s"]);
    let file = &loaded.suites[0].cases[0].fixtures.files_unstaged[0];
    assert_eq!((file.path.as_str(), &*file.content, file.executable), ("bin/run", bytes.as_slice(), true));
}

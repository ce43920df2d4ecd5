//! Rejected content, each part with its line.

use super::{SUITE, one, skill};
use crate::scratch::{all_problems, describe};

/// Returns the problems with a suite whose only case has these keys on the third line, without the file name.
fn problems_with(rest: &str) -> Vec<String> {
    problems_of(&one(rest))
}

fn problems_of(text: &str) -> Vec<String> {
    let loaded = skill(text).load(&["s"]);
    describe(&all_problems(&loaded))
        .iter()
        .map(|line| line.trim_start_matches(&format!("{SUITE}:")).to_owned())
        .collect()
}

#[test]
fn missing_and_unknown_keys_of_a_case_are_reported_at_their_line() {
    for (rest, expected) in [
        (r#""asertions": []"#, "3:1: unknown key `asertions` in a case"),
        (r#""fixtures": {}"#, "3:1: `fixtures` is not supported: it may be a check or a setting"),
        (r#""files": null"#, "3:10: `files` must be a list, not an empty value (null)"),
        (r#""files": "a""#, "3:10: `files` must be a list, not a string"),
        (r#""files": [1]"#, "3:11: an item of `files` must be a string, not a number"),
        (r#""assertions": {}"#, "3:15: `assertions` must be a list, not a map"),
        (r#""assertions": [" "]"#, "3:16: an assertion must not be empty"),
        (r#""assertions": [5]"#, "3:16: an assertion must be a string or a map, not a number"),
        (r#""should_trigger": "yes""#, "3:19: `should_trigger` must be true or false, not a string"),
        (r#""should_trigger": 1"#, "3:19: `should_trigger` must be true or false, not a number"),
        (r#""should_trigger": null"#, "3:19: `should_trigger` must be true or false, not an empty value (null)"),
        (
            r#""should_trigger": false, "force_skill_invocation": true"#,
            "3:26: `force_skill_invocation` and `should_trigger: false` contradict each other",
        ),
        (r#""side_effect_level": "local""#, "3:22: `side_effect_level` must be one of"),
        (r#""side_effect_contract": true"#, "3:25: `side_effect_contract` must be a map, not a boolean"),
        (
            r#""side_effect_contract": {"allow_commits": true}"#,
            "3:26: unknown key `allow_commits` in `side_effect_contract`",
        ),
        (
            r#""side_effect_contract": {"allow_new_commits": "no"}"#,
            "3:47: `allow_new_commits` must be true or false, not a string",
        ),
        (
            r#""files": ["top.txt"], "stage_files": true, "commit_files": true"#,
            "3:44: `stage_files` and `commit_files` are both true",
        ),
        (r#""stage_files": true"#, "3:1: `stage_files` does nothing without `files`"),
        (r#""id": 2"#, "3:1: duplicate key `id`"),
    ] {
        let messages = problems_with(rest);
        assert!(messages.len() == 1 && messages[0].starts_with(expected), "{rest}: {messages:#?}");
    }
}

#[test]
fn a_misspelt_name_gets_a_suggestion() {
    let helps = |rest: &str| {
        all_problems(&skill(&one(rest)).load(&["s"])).into_iter().flat_map(|it| it.help).collect::<Vec<_>>()
    };
    assert_eq!(helps(r#""asertions": []"#), ["did you mean `assertions`?"]);
    assert_eq!(helps(r#""side_effect_level": "local_only""#), ["did you mean `local-only`?"]);
    assert_eq!(helps(r#""should_trigger": "no""#), ["write `true` or `false`, without quotes"]);
    assert_eq!(helps(r#""assertions": [{"type": "file_exist", "path": "x"}]"#), ["did you mean `file_exists`?"]);
    assert_eq!(helps(r#""files": ["files/a.txr"]"#)[0], "did you mean `files/a.txt`?");
    assert_eq!(helps(r#""files": ["b.txt"]"#)[0], "did you mean `files/b.txt`?");
}

#[test]
fn ids_that_are_not_valid_folder_names_are_rejected() {
    let with = |id: &str| {
        format!(
            "{{\"skill_name\": \"s\", \"evals\": [\n{{\"id\": {id}, \"prompt\": \"p\", \"expected_output\": \"\"}}]}}"
        )
    };
    for (id, expected) in [
        ("\"\"", "must not be empty"),
        ("\"  \"", "must not be empty"),
        ("\"a/b\"", "must not contain `/` or `\\`"),
        ("\"a\\\\b\"", "must not contain `/` or `\\`"),
        ("\"..\"", "must not contain `..`"),
        ("\".\"", "must not contain `..`"),
        ("\"../../etc\"", "must not contain `/` or `\\`"),
        ("\"a\\nb\"", "is one line of text, without control characters"),
        ("\"\\u0000\"", "is one line of text, without control characters"),
        ("\" a\"", "must not start or end with white space"),
        ("1.5", "must be a whole number or a string"),
        ("1.0", "must be a whole number or a string"),
        ("true", "must be a whole number or a string, not a boolean"),
        ("null", "must be a whole number or a string, not an empty value (null)"),
    ] {
        assert_eq!(problems_of(&with(id)), [format!("2:8: `id` {expected}")], "{id}");
    }
}

#[test]
fn ids_must_be_unique_whether_numbers_or_strings() {
    let case = |id: &str| format!("{{\"id\": {id}, \"prompt\": \"p\", \"expected_output\": \"\"}}");
    let text = format!("{{\"skill_name\": \"s\", \"evals\": [\n{},\n{}]}}", case("1"), case("\"1\""));
    assert_eq!(problems_of(&text), ["3:8: a second case with the id `1` in `s/evals`"]);
}

#[test]
fn required_keys_of_suites_and_cases_are_enforced() {
    assert_eq!(problems_of("{\"evals\": []}"), ["1:11: the suite has no cases"], "the skill is that of the folder");
    assert_eq!(problems_of("{\"skill_name\": \"s\"}"), ["1:2: the suite has no `evals`"]);
    assert_eq!(
        problems_of("{\"skill_name\": \"\", \"evals\": {}}"),
        ["1:16: `skill_name` must not be empty", "1:29: `evals` must be a list, not a map",]
    );
    assert_eq!(problems_of("{\"skill_name\": \"s\", \"evals\": [], \"version\": 1}"), ["1:30: the suite has no cases"]);
    assert_eq!(problems_of("[]"), ["1:1: the suite has no cases"]);
    assert_eq!(problems_of("3"), ["1:1: the suite must be a map, not a number"]);
    assert_eq!(
        problems_of("{\"skill_name\": \"s\", \"evals\": [\n3,\n{\"x\": 1}]}"),
        ["2:1: a case must be a map, not a number", "3:2: a case has no `prompt`",]
    );
    let empty = problems_of(
        "{\"skill_name\": \"s\", \"evals\": [\n{\"id\": 1, \"prompt\": \" \\n\", \"expected_output\": null}]}",
    );
    assert_eq!(
        empty,
        ["2:21: `prompt` must not be empty", "2:47: `expected_output` must be a string, not an empty value (null)"]
    );
}

#[test]
fn invalid_json_is_reported_at_the_error() {
    assert_eq!(problems_of("{\"skill_name\": \"s\",\n \"evals\": [],}").len(), 1);
    assert!(problems_of("{\"skill_name\": \"s\",\n \"evals\": [],}")[0].starts_with("2:14: "));
    assert!(problems_of("// comment\n{}")[0].starts_with("1:1: "));
}

#[test]
fn missing_files_and_escaping_paths_are_rejected() {
    for (file, expected) in [
        ("files/none.txt", "there is no file named `files/none.txt`"),
        ("/etc/passwd", "`/etc/passwd` is absolute"),
        ("../SKILL.md", "`../SKILL.md` leaves the folder of this file with `..`"),
        ("files/../files/a.txt", "`files/../files/a.txt` leaves the folder of this file with `..`"),
        (".", "`.` is the folder of this file itself"),
        ("files/a.txt/", "`files/a.txt/` is a file, not a directory"),
    ] {
        assert_eq!(problems_with(&format!("\"files\": [\"{file}\"]")), [format!("3:11: {expected}")], "{file}");
    }
    assert_eq!(problems_with("\"files\": [\"\"]"), ["3:11: an item of `files` must not be empty"]);
}

#[test]
fn files_with_the_same_target_are_rejected() {
    let problems_with = |files: &str| problems_with(&format!("\"files\": [{files}]"));
    assert_eq!(
        problems_with("\"files/a.txt\", \"files/a.txt\""),
        ["3:26: `files/a.txt` and `files/a.txt` would both be at `a.txt`"]
    );
    let mixed = problems_with("\"files/a.txt\", \"files/one/a.txt\"");
    assert_eq!(
        mixed,
        [
            "3:26: `files/one/a.txt` becomes `a.txt` in the sandbox",
            "3:26: `files/one/a.txt` and `files/a.txt` would both be at `a.txt`",
        ]
    );
    assert_eq!(
        problems_with("\"files/one\", \"files\""),
        ["3:24: `files` and `files/one` would both be at `one/a.txt`"]
    );
}

#[test]
fn a_file_and_a_folder_with_the_same_name_are_rejected_in_either_order() {
    for (files, expected) in [
        ("\"files/x\", \"x/y\"", "3:22: `x/y` and `files/x` would both be at `x/y`"),
        ("\"x/y\", \"other\", \"files/x\"", "3:27: `files/x` and `x/y` would both be at `x`"),
    ] {
        let scratch = skill(&one(&format!("\"files\": [{files}]")));
        scratch.write("skills/s/evals/files/x", "").write("skills/s/evals/x/y", "").write("skills/s/evals/other/z", "");
        // Two folders, so that neither is removed from the paths.
        let text = one(&format!("\"files\": [{files}, \"files/one/deep/c.txt\"]"));
        let messages = describe(&scratch.write(SUITE, text).load(&["s"]).diagnostics);
        assert_eq!(messages, [format!("{SUITE}:{expected}")]);
    }
}

#[test]
fn paths_of_git_and_the_skill_are_reserved() {
    let problems = |file: &str, entry: &str| {
        let scratch = skill(&one(&format!("\"files\": [\"{entry}\"]")));
        scratch.write(&format!("skills/s/evals/{file}"), "x");
        describe(&scratch.load(&["s"]).diagnostics)
            .iter()
            .map(|line| line.replace(&format!("{SUITE}:"), ""))
            .collect::<Vec<_>>()
    };
    let git = |written: &str| vec![format!("3:11: `{written}` would be in a `.git` folder, which is reserved for git")];
    assert_eq!(problems("files/.git", "files/.git"), git("files/.git"));
    assert_eq!(problems("files/repo/.git/config", "files/repo"), git("repo/.git/config"));
    assert_eq!(problems("files/x/y/.GIT/config", "files/x/y/.GIT/config"), git("files/x/y/.GIT/config"));
    assert_eq!(problems("files/.gitignore", "files/.gitignore"), [] as [&str; 0]);
    let skill = |written: &str| vec![format!("3:11: `{written}` would be where the skill is installed")];
    assert_eq!(problems("files/.claude/skills/s/x.md", "files/.claude"), skill(".claude/skills/s/x.md"));
    assert_eq!(
        problems("files/a/.codex/skills/s/x.md", "files/a/.codex/skills/s/x.md"),
        skill("files/a/.codex/skills/s/x.md")
    );
    assert_eq!(problems("files/.claude/skills/other/x.md", "files/.claude"), [] as [&str; 0]);
}

#[test]
fn an_empty_folder_is_not_a_fixture() {
    let scratch = skill(&one("\"files\": [\"files/void\"]"));
    std::fs::create_dir_all(scratch.path("skills/s/evals/files/void/deeper")).unwrap();
    assert_eq!(
        describe(&scratch.load(&["s"]).diagnostics),
        [format!("{SUITE}:3:11: there are no files in `files/void`")]
    );
}

#[cfg(unix)]
#[test]
fn links_are_followed_and_special_files_are_rejected() {
    use std::os::unix::fs::symlink;
    let scratch = skill(&one("\"files\": [\"files/linked\", \"files/pipe\", \"files/round\"]"));
    let folder = scratch.path("skills/s/evals/files");
    symlink(folder.join("a.txt"), folder.join("linked")).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(folder.join("pipe")).status().unwrap().success());
    std::fs::create_dir(folder.join("round")).unwrap();
    symlink(folder.join("round"), folder.join("round/again")).unwrap();
    let loaded = scratch.load(&["s"]);
    let messages = describe(&loaded.diagnostics);
    assert!(messages[0].ends_with("3:27: `files/pipe` is neither a file nor a directory"), "{messages:#?}");
    assert!(messages[1].contains("3:41: cannot read all of `files/round`"), "{messages:#?}");
    assert_eq!(&*loaded.suites[0].cases[0].fixtures.files_unstaged[0].content, b"files/a.txt\n");
}

#[test]
fn typed_assertions_are_validated_by_type() {
    for (assertion, expected) in [
        (r#"{}"#, "an assertion has no `type`"),
        (r#"{"path": "x"}"#, "an assertion has no `type`"),
        (r#"{"type": "nope"}"#, "`type` must be one of `file_exists`, `file_not_exists`"),
        (r#"{"type": 5}"#, "`type` must be one of"),
        (r#"{"type": "file_exists"}"#, "an assertion has no `path`"),
        (r#"{"type": "file_unchanged", "path": ""}"#, "`path` must not be empty"),
        (r#"{"type": "file_not_exists", "path": "/x"}"#, "`path` is absolute: `/x`"),
        (r#"{"type": "file_exists", "path": "../x"}"#, "`path` leaves the sandbox with `..`: `../x`"),
        (r#"{"type": "file_exists", "path": "./"}"#, "`path` does not name a file: `./`"),
        (r#"{"type": "file_contains", "path": "x"}"#, "an assertion has no `contains`"),
        (r#"{"type": "file_not_contains", "contains": 5}"#, "`contains` must be a string, not a number"),
        (r#"{"type": "command_ran"}"#, "an assertion has no `command`"),
        (r#"{"type": "json_path", "equals": 1}"#, "an assertion has no `json_path`"),
        (
            r#"{"type": "json_path_not_exists", "json_path": "a", "path": "a/../../b"}"#,
            "`path` leaves the sandbox with `..`",
        ),
        (r#"{"type": "git_clean", "text": ""}"#, "`text` must not be empty"),
        (r#"{"type": "git_clean", "path": "x"}"#, "`git_clean` has no `path`"),
        (
            r#"{"type": "json_path_not_exists", "json_path": "a", "equals": 1}"#,
            "`json_path_not_exists` has no `equals`",
        ),
        (r#"{"type": "tests_pass", "weight": 2}"#, "`weight` is not supported"),
        (r#"{"type": "file_unchanged", "file": "a"}"#, "unknown key `file` in an assertion"),
    ] {
        let messages = problems_with(&format!("\"assertions\": [{assertion}]"));
        let (place, message) = messages[0].split_once(": ").unwrap();
        assert_eq!(messages.len(), 1, "{assertion}: {messages:#?}");
        assert!(place.starts_with("3:") && message.starts_with(expected), "{assertion}: {messages:#?}");
    }
}

#[test]
fn duplicate_assertions_cause_a_warning() {
    let messages = problems_with("\"assertions\": [\"A file exists.\",\n\"a  File\\texists\", \"another\"]");
    assert_eq!(messages, ["4:1: line 3 asserts the same thing"]);
}

#[test]
fn all_problems_of_a_suite_are_reported_together() {
    let text = r#"{"skill_nam": "s", "evals": [
{"id": "a/b", "prompt": "", "expected_output": 1},
{"id": 2, "prompt": "p", "expected_output": "", "files": ["no"], "assertions": [{"type": "x"}, ""],
 "force_skill_invocation": 1}
]}"#;
    let messages = problems_of(text);
    let lines: Vec<&str> = messages.iter().map(|line| line.split(':').next().unwrap()).collect();
    // Those of a case are last.
    assert_eq!(lines, ["1", "2", "2", "2", "3", "4", "3", "3"], "{messages:#?}");
}

#[test]
fn a_setting_of_other_formats_is_a_warning() {
    for (rest, expected) in [
        (r#""trials": 3"#, "3:1: `trials` has no effect in a case of evals.json"),
        (r#""timeout": "10 m""#, "3:1: `timeout` has no effect in a case of evals.json"),
        (r#""skip": true"#, "3:1: `skip` has no effect in a case of evals.json"),
    ] {
        assert_eq!(problems_with(rest), [expected], "{rest}");
    }
    assert_eq!(problems_with(r#""author": "me""#), [""; 0]);
}

#[test]
fn a_mistake_at_the_list_of_cases_is_reported_once() {
    assert_eq!(problems_of("{\"skill_name\": \"s\", \"eval\": []}"), ["1:21: unknown key `eval` in the suite"]);
    let loaded = skill("{\"skill_name\": \"s\", \"evals\": {\"prompt\": \"hi\"}}").load(&["s"]);
    let problems = all_problems(&loaded);
    assert_eq!(problems[0].message, "`evals` must be a list, not a map");
    assert_eq!(problems[0].help, ["write `[…]` around the items"]);
}

//! Invalid files: scenarios that ai-tester rejects, scenarios that it wrongly accepts, and fixtures files with every
//! kind of mistake. `check` rejects all of them, at the lines with the mistakes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(clippy::print_stdout, reason = "a test says what it counted")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use testkit::Project;

/// A file and its errors: the line of each, and parts of the message.
type Refusal = (&'static str, &'static [(u64, &'static str)]);

/// Files that ai-tester rejects too.
const INVALID: &[Refusal] = &[
    ("05-empty-scenario.yaml", &[(1, "`scenario` must not be empty")]),
    ("06-no-prompt-source.yaml", &[(1, "the scenario has no subject")]),
    ("10-max-turns-zero.yaml", &[(3, "a whole number of at least 1, not 0")]),
    ("11-max-turns-float.yaml", &[(3, "a whole number of at least 1, not 1.5")]),
    ("12-token-budget-negative.yaml", &[(3, "must be greater than 0, not -1")]),
    ("13-bad-permission-mode.yaml", &[(3, "`permission_mode` must be one of")]),
    ("14-bad-setting-source.yaml", &[(3, "an item of `setting_sources` must be one of")]),
    ("17-tool-called-missing-tool.yaml", &[(4, "`tool`")]),
    ("20-negative-call-index.yaml", &[(4, "a whole number of at least 0, not -1")]),
    ("22-empty-pattern.yaml", &[(4, "`pattern` must not be empty")]),
    ("24-content-and-content-from.yaml", &[(3, "`content` or `content_from`, not both")]),
    ("26-copy-tree-missing.yaml", &[(3, "cannot find the directory `./missing`")]),
    ("27-copy-tree-is-file.yaml", &[(3, "`./01-empty.yaml` is not a directory")]),
    ("28-empty-match-question.yaml", &[(3, "`match_question` must not be empty")]),
    ("29-response-missing-choose.yaml", &[(3, "has no `choose`")]),
    ("30-env-nonstring.yaml", &[(3, "`env.A` must be a string, not a number")]),
    ("31-scenario-number.yaml", &[(1, "`scenario` must be a string, not a number")]),
    ("33-runner-null.yaml", &[(3, "`runner` must be a map, not an empty value (null)")]),
    ("34-assertions-null.yaml", &[(3, "`assertions` must be a list, not an empty value (null)")]),
    ("35-git-init-string.yaml", &[(3, "`git_init` must be true or false, not a string")]),
    ("36-duplicate-keys.yaml", &[(2, "duplicate key `a`")]),
];

/// Files that ai-tester rejects but that are valid here: an assertion without an id gets one from its type, and a number
/// in `args_match` is the required value of the argument.
const UNDERSTOOD: &[&str] = &["16-assertion-missing-id.yaml", "19-args-match-nonstring.yaml"];

/// Files that ai-tester wrongly accepts.
const ACCEPTED: &[Refusal] = &[
    (
        "01-typo-key-silently-dropped.yaml",
        &[(2, "there is no skill called `does-not-exist`"), (3, "unknown key `asserions`")],
    ),
    (
        "03-bad-regex-and-duplicate-ids.yaml",
        &[(4, "invalid regular expression"), (5, "two assertions have the id `a`"), (5, "invalid regular expression")],
    ),
    ("04-missing-system-prompt-file.yaml", &[(2, "`./nope.md`: cannot read the file")]),
    ("05-fixture-path-escape-not-checked.yaml", &[(3, "leaves the sandbox with `..`")]),
    ("06-both-token-budget-spellings.yaml", &[(4, "the token budget is given twice")]),
];

fn vectors(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../suite/tests/vectors").join(name)
}

/// Returns a project with the vectors in a folder, and the names of the files.
fn project(folder: &str) -> (Project, Vec<String>) {
    let project = Project::new(env!("CARGO_BIN_EXE_trialrun"));
    project.write("skills/x/SKILL.md", "---\nname: x\ndescription: d\n---\nx\n").write("01-empty.yaml", "");
    let mut files = Vec::new();
    for entry in fs::read_dir(vectors(folder)).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.ends_with(".yaml") {
            project.write(&name, &fs::read_to_string(&path).unwrap());
            files.push(name);
        }
    }
    files.sort();
    (project, files)
}

/// Checks that every file in a folder is rejected with exactly the errors in the table, except for the files that are
/// valid here.
fn hold(folder: &str, table: &[Refusal], understood: &[&str]) {
    let (project, mut files) = project(folder);
    for file in understood {
        let report = project.run(&["check", file, "--format", "json"]).exits(0).json();
        assert_eq!((&report["valid"], &report["errors"]), (&json!(true), &json!(0)), "{file}: {report:#}");
    }
    files.retain(|file| !understood.contains(&file.as_str()));
    assert_eq!(
        files,
        table.iter().map(|(file, _)| (*file).to_owned()).collect::<Vec<_>>(),
        "every file is in the table"
    );
    for (file, wanted) in table {
        let ran = project.run(&["check", file, "--format", "json"]).exits(2);
        let report = ran.json();
        let errors: Vec<(u64, &str)> = report["problems"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|problem| problem["severity"] == "error")
            .map(|problem| {
                assert_eq!(problem["source"]["file"], *file, "{problem:#}");
                (problem["source"]["line"].as_u64().unwrap(), problem["message"].as_str().unwrap())
            })
            .collect();
        assert_eq!(report["valid"], false, "{file}");
        for (line, words) in *wanted {
            let is = |(at, message): &(u64, &str)| at == line && message.contains(words);
            assert!(errors.iter().any(is), "{file}: line {line}, {words}: {errors:?}");
        }
        // With duplicate keys, `a` is not a valid scenario either.
        let more = usize::from(*file == "36-duplicate-keys.yaml");
        assert_eq!(errors.len(), wanted.len() + more, "{file}: {errors:?}");
        assert_eq!(project.run(&["run", file]).code, 2, "{file} runs nevertheless");
    }
    assert!(!project.dir().join(".trialrun").exists(), "nothing was run");
    // Written past the capture of passing tests, because the count is for whoever reads the test output.
    let counted = format!(
        "{folder}: {} of {} files refused at their lines, {} understood",
        table.len(),
        files.len(),
        understood.len()
    );
    std::io::Write::write_all(&mut std::io::stdout(), format!("\n{counted}\n").as_bytes()).unwrap();
}

#[test]
fn files_rejected_by_the_original_are_rejected_at_their_line() {
    hold("invalid", INVALID, UNDERSTOOD);
}

#[test]
fn files_wrongly_accepted_by_the_original_are_rejected() {
    // `gemini` is an agent here.
    hold("accepted", ACCEPTED, &["02-unknown-runtime.yaml"]);
}

/// Folder of malformed fixtures files, with the expected messages.
fn refused() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/specimens/refused")
}

/// Returns a project with all these files.
fn malformed() -> Project {
    let project = Project::new(env!("CARGO_BIN_EXE_trialrun"));
    project.write("answers.jsonl", "{\"output\":\"a\"}\n");
    for entry in fs::read_dir(refused()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        project.write(&name, &fs::read_to_string(&path).unwrap());
    }
    project
}

/// Returns the messages of `check` about `file`, one per line, in file order: `12:3 error: what is wrong`.
fn messages(project: &Project, file: &str, agents: &[&str]) -> Vec<String> {
    let agents = agents.iter().flat_map(|agent| ["--agent", agent]);
    let arguments: Vec<&str> = ["check", file, "--format", "json"].into_iter().chain(agents).collect();
    let report = project.run(&arguments).exits(2).json();
    let mut lines: Vec<(Option<u64>, Option<u64>, String)> = Vec::new();
    for problem in report["problems"].as_array().unwrap() {
        let place = &problem["source"];
        assert_eq!(place["file"], file, "{problem:#}");
        let words = ["severity", "message"].map(|of| problem[of].as_str().unwrap()).join(": ");
        let text = format!("{}:{} {words}", place["line"], place["column"]);
        lines.push((place["line"].as_u64(), place["column"].as_u64(), text));
    }
    lines.sort();
    lines.into_iter().map(|(_, _, text)| text).collect()
}

const RECORDED: &str = "recorded:answers.jsonl";

/// Checks that all mistakes in `file` are reported together, each exactly once, and that nothing in the file runs.
fn hold_malformed(file: &str) {
    let project = malformed();
    let messages = messages(&project, file, &[RECORDED]);
    let places: BTreeSet<&str> = messages.iter().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(places.len(), messages.len(), "a mistake is reported twice: {messages:#?}");
    let text = messages.join("\n") + "\n";
    let known = refused().join(format!("{file}.txt"));
    if std::env::var_os("TRIALRUN_UPDATE_EXPECTED").is_some() {
        fs::write(&known, &text).unwrap();
    }
    let known = fs::read_to_string(&known).unwrap_or_default();
    assert!(known == text, "{file} is not rejected as expected.\n--- expected\n{known}\n--- actual\n{text}");

    let ran = project.run(&["run", file, "--agent", RECORDED]).exits(2);
    assert_eq!(ran.out, "", "{file}");
    let drawn = ran.err.lines().filter(|line| line.trim_start().starts_with("--> ")).count();
    assert_eq!(drawn, messages.len(), "{file}: {}", ran.err);
    assert!(!project.dir().join(".trialrun").exists(), "{file}: something was recorded");
}

#[test]
fn all_problems_of_a_fixtures_file_are_reported_together() {
    hold_malformed("wrong.fixture.yaml");
}

#[test]
fn all_problems_of_fixtures_in_a_module_are_reported_together() {
    hold_malformed("wrong.fixture.ts");
}

#[test]
fn a_module_without_fixtures_is_rejected_at_its_line() {
    for (text, wanted) in [
        ("export default [\n  { output: \"a\"\n    input: 1 },\n];\n", "3:5 error: Expected"),
        (
            "import { readFileSync } from \"node:fs\";\nexport default [readFileSync(\"x\")];\n",
            "1:30 error: node:fs is not available here",
        ),
        ("const from = (x: any) => x.b.c;\nexport default [from({})];\n", "1:26 error: TypeError: "),
        ("export const cases = [{ output: 1 }];\n", "1:1 error: the module does not export fixtures"),
        ("import { a } from \"./absent.ts\";\nexport default [a];\n", "1:19 error: cannot find `./absent.ts`"),
        (
            "import { absent } from \"./good.js\";\nexport default [absent];\n",
            "1:10 error: `good.js` has no export `absent`",
        ),
    ] {
        let project = malformed();
        project.write("x.fixture.ts", text);
        let messages = messages(&project, "x.fixture.ts", &[RECORDED]);
        assert!(messages.len() == 1 && messages[0].starts_with(wanted), "{text}: {messages:#?}");
        project.run(&["run", "x.fixture.ts", "--agent", RECORDED]).exits(2);
        assert!(!project.dir().join(".trialrun").exists(), "{text}");
    }
}

#[test]
fn problems_shared_by_all_cases_are_reported_once() {
    let project = malformed();
    let shared = "---\nscripts: [a.ai, b.ai]\noutput: \"/(/\"\nexpect: { output: \"{{ nobody }}\", $contians: 1 }\n\
        operators: { x: ./absent.js }\n---\n- title: one\n- title: two\n- title: three\n";
    project.write("x.fixture.yaml", shared);
    let messages = messages(&project, "x.fixture.yaml", &[RECORDED, "fake"]);
    let words: Vec<&str> = messages.iter().map(|line| line.split(": ").nth(1).unwrap()).collect();
    assert_eq!(
        words,
        [
            "invalid regular expression",
            "unknown variable `nobody`",
            "unknown operator `$contians`",
            "cannot find `./absent.js`"
        ],
        "{messages:#?}"
    );
}

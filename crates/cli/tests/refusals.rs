//! Scenario files that must not run: those that ai-tester refuses, and those that it wrongly accepts. `check` refuses all
//! of them, at the lines that are wrong.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(clippy::print_stdout, reason = "a test says what it counted")]

use std::fs;
use std::path::{Path, PathBuf};

use testkit::Project;

/// A file and where it is refused: lines, and words of the messages.
type Refusal = (&'static str, &'static [(u64, &'static str)]);

/// Refused by ai-tester too.
const INVALID: &[Refusal] = &[
    ("05-empty-scenario.yaml", &[(1, "`scenario` must not be empty")]),
    ("06-no-prompt-source.yaml", &[(1, "puts nothing to the test")]),
    ("10-max-turns-zero.yaml", &[(3, "a whole number of at least 1, not 0")]),
    ("11-max-turns-float.yaml", &[(3, "a whole number of at least 1, not 1.5")]),
    ("12-token-budget-negative.yaml", &[(3, "must be greater than 0, not -1")]),
    ("13-bad-permission-mode.yaml", &[(3, "`permission_mode` must be one of")]),
    ("14-bad-setting-source.yaml", &[(3, "an item of `setting_sources` must be one of")]),
    ("16-assertion-missing-id.yaml", &[(4, "an assertion has no `id`")]),
    ("17-tool-called-missing-tool.yaml", &[(4, "`tool`")]),
    ("19-args-match-nonstring.yaml", &[(4, "must be a string, not a number")]),
    ("20-negative-call-index.yaml", &[(4, "a whole number of at least 0, not -1")]),
    ("22-empty-pattern.yaml", &[(4, "`pattern` must not be empty")]),
    ("24-content-and-content-from.yaml", &[(3, "`content` or `content_from`, not both")]),
    ("26-copy-tree-missing.yaml", &[(3, "cannot find the directory `./missing`")]),
    ("27-copy-tree-is-file.yaml", &[(3, "`./01-empty.yaml` is not a directory")]),
    ("28-empty-match-question.yaml", &[(3, "`match_question` must not be empty")]),
    ("29-response-missing-choose.yaml", &[(3, "has no `choose`")]),
    ("30-env-nonstring.yaml", &[(3, "`env.A` must be a string, not a number")]),
    ("31-scenario-number.yaml", &[(1, "`scenario` must be a string, not a number")]),
    ("33-runner-null.yaml", &[(3, "`runner` must be a map, not nothing (null)")]),
    ("34-assertions-null.yaml", &[(3, "`assertions` must be a list, not nothing (null)")]),
    ("35-git-init-string.yaml", &[(3, "`git_init` must be true or false, not a string")]),
    ("36-duplicate-keys.yaml", &[(2, "duplicate key `a`")]),
];

/// Accepted by ai-tester, wrongly.
const ACCEPTED: &[Refusal] = &[
    (
        "01-typo-key-silently-dropped.yaml",
        &[(2, "there is no skill called `does-not-exist`"), (3, "unknown key `asserions`")],
    ),
    ("02-unknown-runtime.yaml", &[(3, "unknown agent `gemini`")]),
    (
        "03-bad-regex-and-duplicate-ids.yaml",
        &[(4, "invalid regular expression"), (5, "two assertions have the id `a`"), (5, "invalid regular expression")],
    ),
    ("04-missing-system-prompt-file.yaml", &[(2, "`./nope.md`: cannot read the file")]),
    ("05-fixture-path-escape-not-checked.yaml", &[(3, "leaves the sandbox by `..`")]),
    ("06-both-token-budget-spellings.yaml", &[(4, "the token budget is given twice")]),
];

fn vectors(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../suite/tests/vectors").join(name)
}

/// A project with the vectors of a folder and what they name.
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

/// Holds that every file of a folder is refused, for what the table says and nothing else.
fn hold(folder: &str, table: &[Refusal]) {
    let (project, files) = project(folder);
    assert_eq!(
        files,
        table.iter().map(|(file, _)| (*file).to_owned()).collect::<Vec<_>>(),
        "every file is in the table"
    );
    for (file, wanted) in table {
        let ran = project.run(&["check", file, "--format", "json"]).exits(2);
        let told = ran.json();
        let errors: Vec<(u64, &str)> = told["problems"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|problem| problem["severity"] == "error")
            .map(|problem| {
                assert_eq!(problem["source"]["file"], *file, "{problem:#}");
                (problem["source"]["line"].as_u64().unwrap(), problem["message"].as_str().unwrap())
            })
            .collect();
        assert_eq!(told["valid"], false, "{file}");
        for (line, words) in *wanted {
            let is = |(at, message): &(u64, &str)| at == line && message.contains(words);
            assert!(errors.iter().any(is), "{file}: line {line}, {words}: {errors:?}");
        }
        // A map of `a` is moreover no scenario.
        let more = usize::from(*file == "36-duplicate-keys.yaml");
        assert_eq!(errors.len(), wanted.len() + more, "{file}: {errors:?}");
        assert_eq!(project.run(&["run", file]).code, 2, "{file} is run all the same");
    }
    assert!(!project.dir().join(".trialrun").exists(), "nothing was run");
    // Past the capture of passing tests: the count is for whoever reads the run.
    let counted = format!("{folder}: {} of {} files refused at their lines", table.len(), files.len());
    std::io::Write::write_all(&mut std::io::stdout(), format!("\n{counted}\n").as_bytes()).unwrap();
}

#[test]
fn what_the_original_refuses_is_refused_at_its_line() {
    hold("invalid", INVALID);
}

#[test]
fn what_the_original_wrongly_accepts_is_refused_too() {
    hold("accepted", ACCEPTED);
}

//! Fixtures files from the second system's manual, in `specimens/manual/`: `NAME.fixture.yaml` (or `.ts`), answers
//! that pass in `NAME.right.*`, answers that fail in `NAME.wrong.*`, and the terminal output for both. `expected.yaml`
//! lists where each case fails, and its score.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;
use testkit::{Project, packages};

use super::{all_hold, copy, holds_replay, timeless};

/// Expected result of a case.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    /// Paths at which the wrong answer fails.
    fails_at: Vec<String>,
    /// Score of the right answer, if the case is scored.
    right: Option<f64>,
    /// Score of the wrong answer.
    wrong: Option<f64>,
}

/// Cases by specimen.
type Table = BTreeMap<String, BTreeMap<String, Expected>>;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/specimens/manual")
}

fn table() -> Table {
    let node = suite::read_document(&folder().join("expected.yaml"), "expected.yaml");
    let node = node.unwrap_or_else(|problems| panic!("{problems:#?}"));
    serde_json::from_value(node.to_json()).unwrap_or_else(|error| panic!("expected.yaml: {error}"))
}

/// Returns the files in the folder whose names begin with `stem` and a dot.
fn files(stem: &str) -> Vec<String> {
    let begins = format!("{stem}.");
    let names = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(&begins)).collect()
}

fn file(stem: &str, mark: &str) -> String {
    let begins = format!("{stem}.{mark}.");
    let found = files(stem).into_iter().find(|name| name.starts_with(&begins) && !name.ends_with(".txt"));
    found.unwrap_or_else(|| panic!("there is no file named `{begins}…`"))
}

/// Returns `true` if a specimen imports a package.
fn imports_a_package(stem: &str) -> bool {
    fs::read_to_string(folder().join(file(stem, "fixture"))).unwrap().contains("lodash-es#")
}

/// Returns a project with all these files, and the packages if the specimen imports one.
fn project(stem: &str) -> Project {
    let project = Project::new(env!("CARGO_BIN_EXE_trialrun"));
    copy(&folder(), &project.dir());
    if imports_a_package(stem) {
        symlink(packages().join("node_modules"), project.dir().join("node_modules")).unwrap();
    }
    project
}

/// Runs a specimen with the answers called `mark` and returns its report.
fn run(stem: &str, mark: &str, project: &Project) -> Value {
    let suite = file(stem, "fixture");
    let answers = file(stem, mark);
    let agent = if answers.ends_with(".jsonl") { format!("recorded:{answers}") } else { format!("custom:{answers}") };
    let live = project.run(&[
        "run",
        &suite,
        "--agent",
        &agent,
        "--jobs",
        "1",
        "--report",
        "terminal",
        "--report",
        "json=live.json",
        "--report",
        "jsonl=live.jsonl",
    ]);
    let passes = mark == "right";
    assert_eq!(live.code, i32::from(!passes), "{stem}, {mark}: {}", live.output());
    assert_eq!(live.err, "", "{stem}, {mark}");
    holds_text(&format!("{stem}.{mark}.txt"), &timeless(&live.out));
    holds_replay(stem, project, &live);
    serde_json::from_str(&project.read("live.json")).unwrap()
}

fn holds_text(name: &str, text: &str) {
    let file = folder().join(name);
    if std::env::var_os("TRIALRUN_UPDATE_EXPECTED").is_some() {
        fs::write(&file, text).unwrap();
        return;
    }
    let known = fs::read_to_string(&file).unwrap_or_default();
    assert!(known == text, "{name} is not as expected.\n--- expected\n{known}\n--- actual\n{text}");
}

/// Checks that every case has the outcome `outcome`. Returns for each case the paths at which it failed and its score.
fn failures<'r>(stem: &str, report: &'r Value, outcome: &str) -> BTreeMap<&'r str, (Vec<&'r str>, Option<f64>)> {
    let trials = report["trials"].as_array().unwrap().iter();
    let cases = trials.map(|trial| {
        let case = trial["case"].as_str().unwrap();
        assert_eq!(trial["outcome"], outcome, "{stem}::{case}: {:#}", trial["findings"]);
        let failures = trial["findings"].as_array().unwrap().iter().flat_map(|found| {
            let failures = found["failures"].as_array().unwrap().iter();
            failures.map(|failure| failure["key"].as_str().unwrap())
        });
        let score = trial["pass_score"].as_f64().and(trial["score"].as_f64());
        (case, (failures.collect(), score))
    });
    cases.collect()
}

#[track_caller]
fn holds(stem: &str, cases: &BTreeMap<String, Expected>) {
    let project = project(stem);
    let right = run(stem, "right", &project);
    let wrong = run(stem, "wrong", &project);
    let (right, wrong) = (failures(stem, &right, "passed"), failures(stem, &wrong, "failed"));
    let wanted: BTreeSet<&str> = cases.keys().map(String::as_str).collect();
    assert_eq!(right.keys().copied().collect::<BTreeSet<_>>(), wanted, "{stem}");
    for (case, expected) in cases {
        let name = format!("{stem}::{case}");
        let (fails_at, score) = &wrong[case.as_str()];
        assert_eq!(*fails_at, expected.fails_at, "{name}: failing paths");
        assert!(
            is_near(right[case.as_str()].1, expected.right),
            "{name}: the right answer scores {:?}",
            right[case.as_str()]
        );
        assert!(is_near(*score, expected.wrong), "{name}: the wrong answer scores {score:?}");
    }
}

/// Returns `true` if both are missing, or equal apart from rounding.
fn is_near(score: Option<f64>, expected: Option<f64>) -> bool {
    match (score, expected) {
        (Some(score), Some(expected)) => (score - expected).abs() < 1e-9,
        (score, expected) => score == expected,
    }
}

#[test]
fn examples_from_the_manual_have_their_documented_results() {
    let table = table();
    let names = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let stems = names.filter_map(|name| name.split_once(".fixture.").map(|(stem, _)| stem.to_owned()));
    assert_eq!(stems.collect::<BTreeSet<_>>(), table.keys().cloned().collect::<BTreeSet<_>>());
    all_hold(&table.iter().filter(|(stem, _)| !imports_a_package(stem)).collect::<Vec<_>>(), holds);
}

#[test]
#[cfg_attr(not(has = "packages"), ignore = "needs npm packages; run scripts/test")]
fn examples_from_the_manual_that_import_packages_have_their_documented_results() {
    let table = table();
    let importing: Vec<_> = table.iter().filter(|(stem, _)| imports_a_package(stem)).collect();
    assert!(!importing.is_empty());
    all_hold(&importing, holds);
}

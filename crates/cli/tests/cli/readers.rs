//! Reports in the formats of other tools, read by independent programs from package registries.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use testkit::{Project, packages};

const PROGRAM: &str = env!("CARGO_BIN_EXE_trialrun");

fn reader(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/readers").join(name)
}

fn answer(command: &mut Command) -> Value {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Runs cases with each outcome and writes all reports. Returns the names and outcomes in the JSON report.
fn project() -> (Project, Vec<(String, String)>) {
    let project = Project::new(PROGRAM);
    let case = |name: &str, expected: &str| {
        format!("name: {name}\nagent: fake\nturns: [hello <there> & \"you\"]\nassertions:\n  - {expected}\n")
    };
    project.write("cases/passes.yaml", &case("passes", "{ contains: hello }"));
    project.write("cases/fails.yaml", &case("fails", "{ contains: ']]> &amp; # not' }"));
    project.write("cases/open.yaml", &case("open", "{ sentiment: friendly }"));
    let formats = ["json", "junit", "junit:gitlab", "junit:jenkins", "tap", "ctrf"];
    let reports: Vec<String> = formats.iter().map(|format| format!("{format}=out/{format}")).collect();
    project.write("out/.keep", "");
    let mut arguments = vec!["run", "cases", "--trials", "2"];
    reports.iter().for_each(|report| arguments.extend(["--report", report]));
    project.run(&arguments).exits(1);
    let report: Value = serde_json::from_str(&project.read("out/json")).unwrap();
    let text = |trial: &Value, key: &str| trial[key].as_str().unwrap().to_owned();
    let trials = report["trials"].as_array().unwrap().iter();
    let mut trials: Vec<_> = trials
        .map(|trial| (format!("{}@fake#{}", text(trial, "case"), trial["repetition"]), text(trial, "outcome")))
        .collect();
    trials.sort();
    assert_eq!(trials.len(), 6);
    (project, trials)
}

/// Returns the sorted names and outcomes that a reader found.
fn read(found: &Value) -> Vec<(String, String)> {
    let pair = |pair: &Value| (pair[0].as_str().unwrap().to_owned(), pair[1].as_str().unwrap().to_owned());
    let mut all: Vec<_> = found.as_array().unwrap().iter().map(pair).collect();
    all.sort();
    all
}

/// Returns what readers of JUnit files should find: a trial without a verdict is skipped.
fn as_junit(trials: &[(String, String)]) -> Vec<(String, String)> {
    let outcome = |outcome: &str| if outcome == "undecided" { "skipped" } else { outcome }.to_owned();
    trials.iter().map(|(name, trial)| (name.clone(), outcome(trial))).collect()
}

#[test]
#[cfg_attr(not(has = "packages"), ignore = "needs npm packages; run scripts/test")]
fn readers_from_npm_find_every_trial_with_its_outcome() {
    let (project, trials) = project();
    let files = ["out/junit", "out/tap", "out/ctrf"].map(|file| project.dir().join(file));
    let found = answer(Command::new("node").arg(reader("read.mjs")).arg(packages()).args(files));
    assert_eq!(read(&found["junit"]), as_junit(&trials));
    assert_eq!((&found["tapPlan"], &found["tapProblems"]), (&json!([1, 6]), &json!([])), "{found}");
    assert_eq!(found["ctrfErrors"], json!([]), "the report conforms to the schema");
    let counted = |of: &Value, outcome: &str| read(of).iter().filter(|(_, found)| found == outcome).count();
    for kind in ["tap", "ctrf"] {
        let numbers = ["passed", "failed"].map(|outcome| counted(&found[kind], outcome));
        assert_eq!((numbers, read(&found[kind]).len()), ([2, 2], 6), "{kind}: {found}");
    }
}

#[test]
#[cfg_attr(not(has = "python-packages"), ignore = "needs Python packages; run scripts/test")]
fn readers_from_pypi_find_every_trial_and_every_problem() {
    let (project, trials) = project();
    project.write("wrong/case.yaml", "scenario: wrong\nsystem_prompt: x\ndescripton: typo\n");
    let sarif = project.run(&["check", "wrong/case.yaml", "--format", "sarif"]).exits(2).out;
    project.write("out/sarif", &sarif);
    let files =
        ["out/sarif", "out/junit", "out/junit:gitlab", "out/junit:jenkins"].map(|file| project.dir().join(file));
    let mut command = Command::new("python3");
    command.arg("-B").arg(reader("read.py")).args(files).env("PYTHONPATH", packages().join("python"));
    let found = answer(&mut command);
    for junit in found["junit"].as_array().unwrap() {
        assert_eq!(read(junit), as_junit(&trials));
    }
    let problems = found["sarif"].as_array().unwrap();
    let misspelt = problems.iter().find(|problem| problem[3].as_str().unwrap().starts_with("unknown-key")).unwrap();
    assert!(misspelt[0].as_str().unwrap().ends_with("wrong/case.yaml"), "{misspelt}");
    assert_eq!((&misspelt[1], &misspelt[2]), (&json!(3), &json!("error")), "{misspelt}");
}

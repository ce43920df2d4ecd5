//! `verify`: changes to a recorded run are found, whatever was done with it before.

use std::fs;

use serde_json::json;

use super::demo;

/// Replaces `old` in the record file with `new`, which has the same length, as someone editing the file would.
fn edit(project: &testkit::Project, old: &str, new: &str) {
    let path = project.dir().join(".trialrun/runs.db");
    let mut bytes = fs::read(&path).unwrap();
    let found: Vec<usize> =
        bytes.windows(old.len()).enumerate().filter(|(_, bytes)| *bytes == old.as_bytes()).map(|(at, _)| at).collect();
    assert!(!found.is_empty(), "{old}");
    for at in found {
        bytes[at..at + old.len()].copy_from_slice(new.as_bytes());
    }
    fs::write(path, bytes).unwrap();
}

#[test]
fn an_unchanged_run_is_verified_and_its_hash_is_in_its_reports() {
    let project = demo();
    let report = project.report(&[], 1);
    let hash = report["run"]["hash"].as_str().unwrap();
    let ran = project.run(&["verify"]).exits(0);
    assert!(
        ran.out.contains("is unchanged since it was recorded (3 trials)") && ran.out.contains(hash),
        "{}",
        ran.output()
    );
    let json = project.run(&["verify", "latest", "--expect", hash, "--json"]).exits(0).json();
    assert_eq!((&json["result"], &json["hash"], &json["differences"]), (&json!("intact"), &json!(hash), &json!([])));
    assert!(project.run(&["show", "second"]).exits(0).out.contains(&format!("hash of the run  {hash}")));
    assert_eq!(project.run(&["show", "second", "--json"]).exits(0).json()["run_hash"], hash);
    assert_eq!(project.run(&["report", "--format", "json"]).exits(0).json()["run"]["hash"], hash);
    let other = "0".repeat(64);
    let ran = project.run(&["verify", "--expect", &other]).exits(1);
    assert!(ran.out.contains("its hash is") && ran.out.contains(&other), "{}", ran.output());
    assert_eq!(project.run(&["verify", "--expect", &other, "--json"]).exits(1).json()["result"], "other");
    project.run(&["verify", "no-such-run"]).exits(2);
}

#[test]
fn an_edited_outcome_is_reported_with_its_trial() {
    let project = demo();
    project.run(&["run"]).exits(1);
    edit(&project, "fakefailed", "fakepassed");
    let ran = project.run(&["verify"]).exits(1);
    let expected = "greet::second@fake#1: `outcome` is `passed` in the list of trials, and `failed` in its events";
    assert!(ran.out.contains(expected), "{}", ran.output());
    let json = project.run(&["verify", "--json"]).exits(1).json();
    assert_eq!((&json["result"], &json["hash"]), (&json!("changed"), &json!(null)));
    assert_eq!(json["differences"][0]["trial"], "greet::second@fake#1");
    let file = project.dir().join("out.run").display().to_string();
    let ran = project.run(&["export", "latest", &file]).exits(0);
    assert!(ran.err.contains("was changed after it was recorded"), "{}", ran.output());
    project.run(&["import", &file, "--state", "other"]).exits(0);
    project.run(&["verify", "--state", "other"]).exits(3);
}

#[test]
fn an_imported_run_has_the_same_hash_and_other_runs_stay_verified_after_pruning() {
    let project = demo();
    let report = project.report(&[], 1);
    let file = project.dir().join("out.run").display().to_string();
    project.run(&["export", "latest", &file]).exits(0);
    project.run(&["import", &file, "--state", "other"]).exits(0);
    let hash = report["run"]["hash"].as_str().unwrap();
    project.run(&["verify", "--state", "other", "--expect", hash]).exits(0);
    project.run(&["run", "--case", "first"]).exits(0);
    project.run(&["regrade", "latest"]).exits(0);
    project.run(&["prune", "--runs", "2", "--yes"]).exits(0);
    for run in ["latest", "previous"] {
        project.run(&["verify", run]).exits(0);
    }
}

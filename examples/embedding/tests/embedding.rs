//! Runs the example as a user does: as a program, and in an asynchronous test of one's own.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;

use embedding::{bot, run};

/// A test of the bot, as a crate would contain it: the program of the crate supervises the processes.
#[tokio::test]
async fn the_bot_passes_its_tests_but_for_one() {
    let tests = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests"));
    let program = Path::new(env!("CARGO_BIN_EXE_embedding"));
    let summary = run(tests, bot(), program, drop).await.unwrap();
    assert_eq!((summary.by_outcome.passed, summary.by_outcome.failed), (2, 1));
}

#[test]
fn the_program_prints_an_outcome_for_each_case_also_if_trials_start_processes() {
    let output = Command::new(env!("CARGO_BIN_EXE_embedding")).output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    let stdout = String::from_utf8(output.stdout).unwrap();
    let mut lines: Vec<&str> = stdout.lines().collect();
    let summary = lines.pop();
    lines.sort_unstable();
    let outcomes = [
        "failed names the capital of Spain",
        "passed names the capital of France",
        "passed names-a-capital-in-a-repository",
    ];
    assert_eq!(lines, outcomes);
    assert_eq!(summary, Some("2 passed, 1 failed"));
}

#[test]
fn a_stand_in_for_gh_does_not_start_the_program_again() {
    let output = Command::new(env!("CARGO_BIN_EXE_embedding")).args(["__stand-in", "gh"]).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(stderr, "trialrun supervisor: this program has no stand-ins for `gh` and `glab`\n");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(125), 0));
}

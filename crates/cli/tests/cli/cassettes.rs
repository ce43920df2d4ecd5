//! Model traffic of real agents: recorded from a provider on loopback, then replayed without the provider.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that cannot go on fails")]

use serde_json::{Value, json};
use testkit::real::is_offline;
use testkit::{Project, ScriptedProvider};

use crate::observe::is_counted;
use crate::vendor::{CLAUDE, CODEX_CLI, OPENCODE_CLI, Vendor};

/// Address on which no server listens.
const NOBODY: &str = "http://127.0.0.1:9";

/// A case in which the model's second call uses the directory and a commit id.
const CASE: &str = "scenario: commits\nsystem_prompt: Work.\nuser_prompt: go\nfixtures: {git_init: true}\n\
    runner: {permission_mode: bypassPermissions}\n\
    assertions:\n  - {id: done, type: output_contains, pattern: Done}\n  \
    - {id: shown, type: file_contains, path: shown.txt, pattern: first message}\n";

const COMMIT: &str = "echo hi > a.txt && git add . && git -c user.name=a -c user.email=a@b.c commit -qm 'first message' \
    && echo \"made:$(git rev-parse HEAD) under:$(pwd)/ on $(date)\"";

/// Returns the word that follows `before` in the result of the last command.
fn word(body: &str, before: &str) -> String {
    let rest = &body[body.rfind(before).unwrap() + before.len()..];
    rest.split(|char: char| char.is_whitespace() || "\"\\".contains(char)).next().unwrap().to_owned()
}

fn provider(vendor: Vendor) -> ScriptedProvider {
    vendor.provider_of(|body, results| match results {
        0 => Some(COMMIT.to_owned()),
        1 => {
            let (id, directory) = (word(body, "made:"), word(body, "under:"));
            Some(format!("git show {} > {directory}shown.txt", &id[..12]))
        }
        _ => None,
    })
}

/// Returns the parts of a trial that a replay must reproduce.
fn essence(trial: &Value) -> Value {
    let findings: Vec<Value> =
        trial["findings"].as_array().unwrap().iter().map(|found| json!([found["id"], found["status"]])).collect();
    let calls = trial["tool_calls"].as_array().unwrap();
    let calls: Vec<&Value> = calls.iter().map(|call| &call["name"]).collect();
    json!([trial["outcome"], trial["answer"], trial["usage"], findings, calls])
}

/// Records a trial, which the gateway observes, and replays it. Returns the project without a provider.
fn is_counted_and_replayed(vendor: Vendor, more: &[&str]) -> Project {
    let project = vendor.project();
    project.write("case.yaml", CASE);
    let recorded = {
        let provider = provider(vendor);
        let ran = vendor.run(&project, &provider.url(), &[&["--cassette", "record"], more].concat());
        let recorded = ran.json()["trials"][0].clone();
        is_counted(&project, &recorded, &provider);
        recorded
    };
    assert_eq!((&recorded["outcome"], &recorded["warnings"]), (&json!("passed"), &json!([])), "{recorded:#}");
    // Simulates another machine: no key, and no provider.
    let other = Project::new(env!("CARGO_BIN_EXE_trialrun")).path_first(&vendor.agent.installed());
    copy(&project.dir(), &other.dir());
    let ran = vendor.run(&other, NOBODY, &[&["--cassette", "replay"], more].concat());
    let replayed = ran.json()["trials"][0].clone();
    assert_eq!(essence(&replayed), essence(&recorded), "{replayed:#}");
    let traffic = &replayed["model_traffic"];
    assert_eq!(traffic["replayed"], traffic["requests"], "{traffic:#}");
    assert_eq!((project.left_over(), other.left_over()), (vec![], vec![]));
    other
}

/// A changed prompt makes a replayed trial stale, with a pointer to the prompt.
fn is_stale_after_a_change(vendor: Vendor, other: &Project) {
    other.write("case.yaml", &CASE.replace("user_prompt: go", "user_prompt: stop"));
    let ran = vendor.run(other, NOBODY, &["--cassette", "replay"]).exits(3);
    let stale = ran.json()["trials"][0].clone();
    assert_eq!(stale["outcome"], "stale", "{stale:#}");
    let because = stale["because"].as_str().unwrap();
    assert!(because.contains("go") && because.contains("stop"), "{because}");
    let listed = other.run(&["cassettes", "case.yaml", "--agent", vendor.agent.name, "--model", vendor.model]).exits(0);
    assert!(listed.out.contains("stale"), "{}", listed.output());
    assert_eq!(other.left_over(), [""; 0]);
}

/// Copies the case and its cassettes.
fn copy(from: &std::path::Path, to: &std::path::Path) {
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() && entry.file_name() != ".trialrun" {
            std::fs::create_dir_all(&target).unwrap();
            copy(&entry.path(), &target);
        } else if entry.path().is_file() {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn the_real_claude_code_is_counted_and_replayed_without_its_provider() {
    let name = "cassettes::the_real_claude_code_is_counted_and_replayed_without_its_provider";
    if is_offline(name) {
        is_stale_after_a_change(CLAUDE, &is_counted_and_replayed(CLAUDE, &[]));
    }
}

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn the_real_codex_is_counted_and_replayed_without_its_provider() {
    let name = "cassettes::the_real_codex_is_counted_and_replayed_without_its_provider";
    if is_offline(name) {
        is_stale_after_a_change(CODEX_CLI, &is_counted_and_replayed(CODEX_CLI, &[]));
    }
}

#[test]
#[cfg_attr(not(has = "agents"), ignore = "needs the agent CLIs; run scripts/test")]
fn the_real_opencode_is_counted_and_replayed_without_its_provider() {
    let name = "cassettes::the_real_opencode_is_counted_and_replayed_without_its_provider";
    if is_offline(name) {
        is_counted_and_replayed(OPENCODE_CLI, &[]);
    }
}

#[test]
#[cfg_attr(
    not(all(has = "agents", has = "isolation")),
    ignore = "needs the agent CLIs and a kernel that isolates processes; run scripts/test"
)]
fn agents_that_reach_only_their_model_are_counted_and_replayed() {
    let name = "cassettes::agents_that_reach_only_their_model_are_counted_and_replayed";
    if is_offline(name) {
        for vendor in [CLAUDE, CODEX_CLI] {
            is_counted_and_replayed(vendor, &["--sandbox", "isolated", "--network", "model-only"]);
        }
    }
}

#[test]
fn check_names_the_trials_without_recorded_answers() {
    let project = Project::new(env!("CARGO_BIN_EXE_trialrun"));
    project.write("tests/talk.yaml", "turns: [{ says: hi }]\nassertions: [{ contains: hi }]\n");
    let check = |more: &[&str]| {
        let chat = ["check", "--agent", "chat", "--model", "anthropic:claude-haiku-4-5"];
        project.run(&[&chat, more].concat())
    };
    let checked = check(&["--cassette", "replay"]).exits(0);
    assert!(checked.err.contains("no answers are recorded for this trial"), "{}", checked.output());
    check(&["--cassette", "replay", "--strict"]).exits(2);
    assert!(!check(&[]).output().contains("recorded"));
}

//! The contract for Podman containers, and tests that only they need.

use serde_json::json;
use testkit::real::{CLAUDE_CODE, CODEX, OPENCODE};

use super::container;
use super::machine::Settings;

const KIND: &str = "podman";

fn settings() -> Option<Settings> {
    container::settings(KIND)
}

#[path = "contract.rs"]
#[allow(clippy::duplicate_mod, reason = "every kind fulfils the same contract")]
mod contract;

#[path = "processes.rs"]
#[allow(clippy::duplicate_mod, reason = "every kind fulfils the same contract")]
mod processes;

#[test]
fn what_a_killed_run_leaves_behind_is_removed() {
    container::what_a_killed_run_leaves_behind_is_removed(KIND);
}

#[test]
fn programs_fail_files_are_read_only_and_canaries_are_planted() {
    container::programs_fail_files_are_read_only_and_canaries_are_planted(KIND);
}

#[test]
fn claude_code_recovers_from_faults_in_a_container() {
    let input = json!({"command": "date > out.txt", "description": "Works"});
    let test = "claude_code_recovers_from_faults_in_a_container";
    container::a_real_agent_recovers_from_faults(CLAUDE_CODE, "Bash", &input, test);
}

#[test]
fn codex_recovers_from_faults_in_a_container() {
    let input = json!({"cmd": "date > out.txt"});
    let test = "codex_recovers_from_faults_in_a_container";
    container::a_real_agent_recovers_from_faults(CODEX, "exec_command", &input, test);
}

#[test]
fn opencode_recovers_from_faults_in_a_container() {
    let input = json!({"command": "date > out.txt", "description": "Works"});
    let test = "opencode_recovers_from_faults_in_a_container";
    container::a_real_agent_recovers_from_faults(OPENCODE, "bash", &input, test);
}

#[test]
fn an_agent_with_a_model_does_not_run_without_a_closed_network() {
    container::policies_that_do_not_hold_are_refused(KIND);
}

#[test]
fn a_missing_image_is_named_with_the_command_that_gets_it() {
    container::a_missing_image_is_named(KIND);
}

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

#[path = "container_contract.rs"]
#[allow(clippy::duplicate_mod, reason = "every kind of container fulfils the same contract")]
mod container_contract;

#[test]
fn claude_code_recovers_from_faults_in_a_container() {
    let input = json!({"command": "date > out.txt", "description": "Works"});
    let test = "claude_code_recovers_from_faults_in_a_container";
    container::a_real_agent_recovers_from_faults(KIND, CLAUDE_CODE, "Bash", &input, test);
}

#[test]
fn codex_recovers_from_faults_in_a_container() {
    let input = json!({"cmd": "date > out.txt"});
    let test = "codex_recovers_from_faults_in_a_container";
    container::a_real_agent_recovers_from_faults(KIND, CODEX, "exec_command", &input, test);
}

#[test]
fn opencode_recovers_from_faults_in_a_container() {
    let input = json!({"command": "date > out.txt", "description": "Works"});
    let test = "opencode_recovers_from_faults_in_a_container";
    container::a_real_agent_recovers_from_faults(KIND, OPENCODE, "bash", &input, test);
}

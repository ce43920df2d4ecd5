//! The contract for Podman containers, and tests that only they need.

use serde_json::json;
use testkit::real::{CLAUDE_CODE, CODEX, OPENCODE};

use super::container::{self, a_real_agent_recovers_from_faults};
use super::container_contract::container_tests;
use super::contract::directory_tests;
use super::kind::Kind;
use super::processes::process_tests;

fn kind() -> Kind {
    container::kind("podman")
}

directory_tests!(kind, [#[cfg_attr(not(has = "podman"), ignore = "needs Podman; run scripts/test")]]);
process_tests!(kind, [#[cfg_attr(not(has = "podman"), ignore = "needs Podman; run scripts/test")]]);
container_tests!(kind, [#[cfg_attr(not(has = "podman"), ignore = "needs Podman; run scripts/test")]]);

#[test]
#[cfg_attr(not(all(has = "agents", has = "podman")), ignore = "needs the agent CLIs and Podman; run scripts/test")]
fn claude_code_recovers_from_faults_in_a_container() {
    let input = json!({"command": "date > out.txt", "description": "Works"});
    a_real_agent_recovers_from_faults(&kind(), CLAUDE_CODE, "Bash", &input);
}

#[test]
#[cfg_attr(not(all(has = "agents", has = "podman")), ignore = "needs the agent CLIs and Podman; run scripts/test")]
fn codex_recovers_from_faults_in_a_container() {
    let input = json!({"cmd": "date > out.txt"});
    a_real_agent_recovers_from_faults(&kind(), CODEX, "exec_command", &input);
}

#[test]
#[cfg_attr(not(all(has = "agents", has = "podman")), ignore = "needs the agent CLIs and Podman; run scripts/test")]
fn opencode_recovers_from_faults_in_a_container() {
    let input = json!({"command": "date > out.txt", "description": "Works"});
    a_real_agent_recovers_from_faults(&kind(), OPENCODE, "bash", &input);
}

//! The contract for Docker containers, and tests that only they need.

use super::container;
use super::machine::Settings;

const KIND: &str = "docker";

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
fn an_agent_with_a_model_does_not_run_without_a_closed_network() {
    container::policies_that_do_not_hold_are_refused(KIND);
}

#[test]
fn a_missing_image_is_named_with_the_command_that_gets_it() {
    container::a_missing_image_is_named(KIND);
}

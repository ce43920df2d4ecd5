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

#[path = "container_contract.rs"]
#[allow(clippy::duplicate_mod, reason = "every kind of container fulfils the same contract")]
mod container_contract;

//! The contract, for local sandboxes.

use super::machine::Settings;

const KIND: &str = "local";

fn settings() -> Option<Settings> {
    Some(Settings::default())
}

#[path = "contract.rs"]
#[allow(clippy::duplicate_mod, reason = "every kind fulfils the same contract")]
mod contract;

#[path = "processes.rs"]
#[allow(clippy::duplicate_mod, reason = "every kind fulfils the same contract")]
mod processes;

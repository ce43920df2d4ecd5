//! The contract, for local sandboxes.

const KIND: &str = "local";

#[path = "contract.rs"]
#[allow(clippy::duplicate_mod, reason = "every kind fulfils the same contract")]
mod contract;

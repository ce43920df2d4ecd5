//! The contract, for local sandboxes.

const KIND: &str = "local";

#[path = "contract.rs"]
mod contract;

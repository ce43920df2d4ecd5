//! Tests of sandboxes with real git and real processes. All kinds fulfil the same contract: `contract.rs` tests kinds
//! that are directories on this machine, `processes.rs` tests all kinds, and `container_contract.rs` all containers.
//! Each of them lists its rules in macros, with which the file of a kind defines a test for each rule.

mod container;
mod container_contract;
mod contract;
pub mod daytona;
mod docker;
mod engine;
mod isolated;
mod kind;
mod local;
mod podman;
mod processes;

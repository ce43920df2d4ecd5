//! Tests of sandboxes with real git and real processes. All kinds fulfil the same contract: `contract.rs` tests kinds
//! that are directories on this machine, `processes.rs` tests all kinds, and `container_contract.rs` all containers.

mod container;
mod daytona;
mod docker;
mod engine;
mod isolated;
mod local;
mod machine;
mod podman;

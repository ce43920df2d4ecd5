//! Tests of sandboxes with real git and real processes. All kinds fulfil the same contract: `contract.rs` tests kinds
//! that are directories on this machine, and `processes.rs` tests all kinds.

mod container;
mod daytona;
mod docker;
mod isolated;
mod local;
mod machine;
mod podman;

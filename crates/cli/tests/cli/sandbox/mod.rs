//! Sandboxes with real git and real processes. All kinds fulfil the same contract: `contract.rs` for kinds that are
//! directories on this machine, and `processes.rs` for all kinds.

mod container;
mod daytona;
mod docker;
mod isolated;
mod local;
mod machine;
mod podman;

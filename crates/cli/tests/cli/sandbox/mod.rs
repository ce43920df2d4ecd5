//! Sandboxes, with real git and real processes. All kinds fulfil one contract: `contract.rs` for those that are
//! directories of this machine, and `processes.rs` for all.

mod container;
mod daytona;
mod docker;
mod isolated;
mod local;
mod machine;
mod podman;

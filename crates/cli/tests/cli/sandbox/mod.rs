//! Sandboxes with real git and real processes. All kinds fulfil the same contract.

mod isolated;
mod local;

//! Sandboxes, with real git and real processes. All kinds fulfil one contract.

mod isolated;
mod local;

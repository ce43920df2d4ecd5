//! Tests of all agents, and code shared by the tests of individual agents.

pub(crate) mod contract;
mod endings;
pub(crate) mod harness;
pub(crate) mod loopback;
mod vectors;

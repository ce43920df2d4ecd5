//! Tests of all agents, and what the tests of single agents share.

pub(crate) mod contract;
pub(crate) mod loopback;
pub(crate) mod rehearsal;
pub(crate) mod sample;
mod vectors;

//! Tests a real client on a real socket against every kind of answer.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod admission;
mod answers;
mod client;
mod faults;
mod forward;
mod openai;
mod recorded;
mod relay;

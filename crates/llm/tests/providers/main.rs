//! Tests of every provider with a real loopback server and every kind of response.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod answers;
mod client;
mod documents;
mod faults;
mod limits;
mod list;
mod secrets;
mod server;
mod streams;

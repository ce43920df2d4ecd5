//! Every provider against a real server on loopback, with every kind of answer.

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

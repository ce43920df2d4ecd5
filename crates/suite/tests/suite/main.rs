//! LOAD from outside: files on disk in, suites and diagnostics out.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

mod code;
mod conversation;
mod discovery;
mod evals;
mod fixtures;
mod mended;
mod scenario;
mod scratch;
mod shared_fixtures;
mod vectors;

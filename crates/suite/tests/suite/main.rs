//! Tests of LOAD through its public interface: files on disk as input, suites and diagnostics as output.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

mod code;
mod conversation;
mod discovery;
mod evals;
mod fixtures;
mod foreign;
mod fuzz;
mod mcp;
mod mended;
mod rows;
mod scenario;
mod scratch;
mod shared_fixtures;
mod vectors;
mod writer;

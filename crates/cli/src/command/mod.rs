//! One file per command: its arguments, whose comments are the help, and its implementation.

pub mod check;
pub mod cleanup;
pub mod compare;
pub mod completions;
pub mod config;
pub mod doctor;
pub mod export;
pub mod history;
pub mod import;
pub mod init;
pub mod licenses;
pub mod list;
pub mod man;
pub mod prune;
pub mod reference;
pub mod regrade;
pub mod report;
pub mod run;
pub mod schema;
pub mod show;
pub mod status;
pub mod trend;

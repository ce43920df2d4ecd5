//! REPORT: turns events into output for people and programs.
//!
//! A reporter receives one event after the other and cannot tell whether the run is in progress or was recorded last
//! year. The output of lists (`history`, `status`, `show`, `trend`, `compare`) is created by plain functions from
//! records to text.
//!
//! Nothing here reads the environment or prints: writers and [`Style`] are parameters. Times come from the events; only
//! the live table has a clock of its own, so that it moves while nothing happens. [`terminal_size()`] is for callers
//! that create a [`Style`].

// The schema of a trial is one literal of many fields.
#![recursion_limit = "256"]

mod arms;
mod artifacts;
pub mod columns;
mod compare;
mod counts;
mod figure;
mod given;
mod history;
mod json;
mod jsonl;
mod ledger;
mod markdown;
mod names;
mod plain;
mod reporter;
mod score;
mod show;
mod status;
mod terminal;
mod trend;

pub use arms::Arms;
pub use artifacts::{Tree, TrialFiles, merged_side_effects};
pub use compare::{CaseChange, Change, Comparison, THRESHOLD};
pub use given::reason_of;
pub use history::{history, history_json};
pub use json::{SCHEMA, reference as json_reference, report_schema, trial_json};
pub use reporter::{Open, Opening, REPORTS, Report, Reporter, find, to_directory};
pub use show::{show, show_json};
pub use status::{Details, StatusView, status};
pub use terminal::{Style, diagnostics, result, tally, terminal_size};
pub use trend::trend;

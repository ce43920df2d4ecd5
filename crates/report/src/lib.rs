//! REPORT: turns events into output for people and programs.
//!
//! A reporter receives one event after the other and cannot tell whether the run is in progress or was recorded last
//! year. The output of lists (`history`, `status`, `show`, `trend`, `compare`) is created by plain functions from
//! records to text.
//!
//! Nothing here reads the environment or prints: writers and [`Style`] are parameters. Times come from the events; only
//! the live table has its own clock, so that it moves while nothing happens. [`terminal_size()`] is for callers
//! that create a [`Style`].
//!
//! ```
//! use trialrun_report::{Opening, Style, find};
//!
//! let json = find("json").expect("a built-in report");
//! let opening = Opening::new(Box::new(std::io::stdout()), Style::plain());
//! let mut reporter = json.to_stream(opening).expect("a report that is a stream");
//! // For each event of a run: reporter.event(&envelope)?;
//! reporter.finish()?;
//! # Ok::<(), std::io::Error>(())
//! ```

mod agent_output;
mod arms;
mod artifacts;
pub mod columns;
mod compare;
mod counts;
mod ctrf;
mod fields;
mod finished;
mod format;
mod github;
mod gitlab;
mod history;
mod json;
mod jsonl;
mod junit;
mod markdown;
mod names;
mod plain;
mod reporter;
mod runs;
mod sarif;
mod score;
mod show;
mod status;
mod tap;
mod terminal;
mod totals;
mod trend;
mod verdict;

use std::sync::Arc;

pub use agent_output::reason_of;
pub use arms::Arms;
pub use artifacts::{Tree, TrialFiles, merged_side_effects};
pub use compare::{CaseChange, Change, Comparison, THRESHOLD};
pub use format::counted;
pub use history::{history, history_json};
pub use json::{SCHEMA, reference as json_reference, report_schema, trial_json};
pub use reporter::{Opening, Reporter};
pub use runs::{ListedRun, run_json, runs};
pub use sarif::sarif;
pub use show::{show, show_json};
pub use status::{Details, StatusView, status};
pub use terminal::{Style, diagnostics, result, tally, terminal_size};
pub use trend::trend;

/// A kind of report.
pub struct Report {
    /// Name in `--report`.
    pub name: &'static str,
    /// Description, one line.
    pub summary: &'static str,
    /// Extension of its files.
    pub extension: &'static str,
    /// Function that opens a reporter.
    pub open: Open,
}

/// Opens a reporter.
#[derive(Debug, Clone, Copy)]
pub enum Open {
    /// One that writes a stream: standard output, or a file.
    Stream(fn(Opening) -> Box<dyn Reporter>),
    /// One that writes a directory, while the run goes on.
    Directory(fn(&Arc<Tree>) -> Box<dyn Reporter>),
}

impl Report {
    /// Returns `true` if it is a directory.
    pub fn is_directory(&self) -> bool {
        matches!(self.open, Open::Directory(_))
    }

    /// Opens one that writes a stream; `None` if it is a directory.
    pub fn to_stream(&self, opening: Opening) -> Option<Box<dyn Reporter>> {
        let Open::Stream(open) = self.open else { return None };
        Some(open(opening))
    }
}

/// Opens the report that is a directory.
pub fn to_directory(tree: &Arc<Tree>) -> Option<Box<dyn Reporter>> {
    REPORTS.iter().find_map(|report| match report.open {
        Open::Directory(open) => Some(open(tree)),
        Open::Stream(_) => None,
    })
}

/// All kinds of reports, in the order users see.
pub const REPORTS: &[Report] = &[
    Report {
        name: "terminal",
        summary: "for people: progress, failures and their reasons",
        extension: "txt",
        open: Open::Stream(terminal::open),
    },
    Report {
        name: "markdown",
        summary: "a page for a pull request",
        extension: "md",
        open: Open::Stream(markdown::open),
    },
    Report {
        name: "json",
        summary: "the whole run as one JSON document",
        extension: "json",
        open: Open::Stream(json::open),
    },
    Report {
        name: "jsonl",
        summary: "the event stream, one JSON object per line",
        extension: "jsonl",
        open: Open::Stream(jsonl::open),
    },
    Report {
        name: "junit",
        summary: "JUnit XML, for any reader",
        extension: "junit.xml",
        open: Open::Stream(junit::open),
    },
    Report {
        name: "junit:gitlab",
        summary: "JUnit XML as GitLab reads it",
        extension: "junit-gitlab.xml",
        open: Open::Stream(junit::open_gitlab),
    },
    Report {
        name: "junit:jenkins",
        summary: "JUnit XML with an element for each attempt, as Jenkins reads it",
        extension: "junit-jenkins.xml",
        open: Open::Stream(junit::open_jenkins),
    },
    Report {
        name: "tap",
        summary: "the Test Anything Protocol, version 14",
        extension: "tap",
        open: Open::Stream(tap::open),
    },
    Report {
        name: "ctrf",
        summary: "the Common Test Report Format, as JSON",
        extension: "ctrf.json",
        open: Open::Stream(ctrf::open),
    },
    Report {
        name: "github",
        summary: "annotations and the step summary of GitHub Actions",
        extension: "github.txt",
        open: Open::Stream(github::open),
    },
    Report {
        name: "gitlab",
        summary: "a code quality report for GitLab, as JSON",
        extension: "gitlab.json",
        open: Open::Stream(gitlab::open),
    },
    Report {
        name: "artifacts",
        summary: "a directory of files about the run and each trial",
        extension: "artifacts",
        open: Open::Directory(artifacts::open),
    },
];

/// Returns the report of that name.
pub fn find(name: &str) -> Option<&'static Report> {
    let name = if name == "junit:generic" { "junit" } else { name };
    REPORTS.iter().find(|report| report.name == name)
}

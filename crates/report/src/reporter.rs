//! The trait of reports, and the list of them.

use std::io::{self, Write};
use std::sync::Arc;

use model::Envelope;

use crate::artifacts::{self, Tree};
use crate::{Style, json, jsonl, markdown, terminal};

/// Output of a run, event by event.
pub trait Reporter: Send {
    /// Processes the next event. An error is about the writer; it never changes a run's outcome.
    fn event(&mut self, envelope: &Envelope) -> io::Result<()>;

    /// Processes the next event, which the reporter may keep.
    ///
    /// # Errors
    /// Same as [`event`](Self::event).
    fn take(&mut self, envelope: Arc<Envelope>) -> io::Result<()> {
        self.event(&envelope)
    }

    /// Writes the rest. Called once, after the last event, also when the run did not complete.
    fn finish(&mut self) -> io::Result<()>;
}

/// Arguments for opening a reporter.
pub struct Opening {
    /// Destination of the report.
    pub out: Box<dyn Write + Send>,
    /// Destination of output that changes in place: the interactive terminal's stderr. Without it, nothing is ever
    /// redrawn.
    pub live: Option<Box<dyn Write + Send>>,
    /// Style of the output.
    pub style: Style,
    /// `true` to show only failures and the summary. Does not change reports for programs.
    pub quiet: bool,
    /// `true` to show only trials that did not pass, in every report.
    pub failures_only: bool,
    /// `true` to show evidence also of met findings.
    pub show_evidence: bool,
}

impl Opening {
    /// Creates an opening with all defaults: the whole report, nothing redrawn.
    pub fn new(out: Box<dyn Write + Send>, style: Style) -> Self {
        Self { out, live: None, style, quiet: false, failures_only: false, show_evidence: false }
    }
}

/// A kind of report.
pub struct Report {
    /// Name in `--report`.
    pub name: &'static str,
    /// Description, one line.
    pub summary: &'static str,
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
    /// True if it is a directory.
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
        summary: "for people: what happens, what failed and why",
        open: Open::Stream(terminal::open),
    },
    Report { name: "markdown", summary: "a page to paste into a pull request", open: Open::Stream(markdown::open) },
    Report { name: "json", summary: "the whole run as one JSON document", open: Open::Stream(json::open) },
    Report { name: "jsonl", summary: "the event stream, one JSON object a line", open: Open::Stream(jsonl::open) },
    Report {
        name: "artifacts",
        summary: "a directory of files about the run and each trial",
        open: Open::Directory(artifacts::open),
    },
];

/// Returns the report of that name.
pub fn find(name: &str) -> Option<&'static Report> {
    REPORTS.iter().find(|report| report.name == name)
}

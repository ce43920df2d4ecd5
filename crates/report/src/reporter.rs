//! What a report is, and the list of them.

use std::io::{self, Write};
use std::sync::Arc;

use model::Envelope;

use crate::{Style, json, jsonl, markdown, terminal};

/// Shows a run, event by event.
pub trait Reporter: Send {
    /// Takes the next event. An error is about the writer; it never changes a run's outcome.
    fn event(&mut self, envelope: &Envelope) -> io::Result<()>;

    /// Takes the next event, to keep if that is of use.
    ///
    /// # Errors
    /// As [`event`](Self::event).
    fn take(&mut self, envelope: Arc<Envelope>) -> io::Result<()> {
        self.event(&envelope)
    }

    /// Writes what is left. Called once, after the last event, also when the run did not come to its end.
    fn finish(&mut self) -> io::Result<()>;
}

/// What a reporter is opened with.
pub struct Opening {
    /// Where the report goes.
    pub out: Box<dyn Write + Send>,
    /// Where a picture that changes in place may be drawn: the interactive terminal's error output. Without one,
    /// nothing is ever drawn over.
    pub live: Option<Box<dyn Write + Send>>,
    /// How to draw.
    pub style: Style,
    /// Only what failed and the summary. Changes nothing in a report that a program reads.
    pub quiet: bool,
    /// Only trials that did not pass, in every report.
    pub failures_only: bool,
    /// Evidence also where a finding is met.
    pub show_evidence: bool,
}

impl Opening {
    /// Everything at its default: the whole report, nothing drawn over.
    pub fn new(out: Box<dyn Write + Send>, style: Style) -> Self {
        Self { out, live: None, style, quiet: false, failures_only: false, show_evidence: false }
    }
}

/// A kind of report.
pub struct Report {
    /// As `--report` takes it.
    pub name: &'static str,
    /// One line about it.
    pub summary: &'static str,
    /// Opens one.
    pub open: fn(Opening) -> Box<dyn Reporter>,
}

/// Every kind of report, in the order users see.
pub const REPORTS: &[Report] = &[
    Report { name: "terminal", summary: "for people: what happens, what failed and why", open: terminal::open },
    Report { name: "markdown", summary: "a page to paste into a pull request", open: markdown::open },
    Report { name: "json", summary: "the whole run as one JSON document", open: json::open },
    Report { name: "jsonl", summary: "the event stream, one JSON object a line", open: jsonl::open },
];

/// The report of that name.
pub fn find(name: &str) -> Option<&'static Report> {
    REPORTS.iter().find(|report| report.name == name)
}

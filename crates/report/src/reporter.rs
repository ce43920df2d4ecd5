//! The trait that all reports implement.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use model::Envelope;

use crate::{Style, telemetry};

/// Output of a run, event by event.
pub trait Reporter: Send {
    /// Processes the next event. An error is about the writer and never changes the run's outcome.
    fn event(&mut self, envelope: &Envelope) -> io::Result<()>;

    /// Called every few seconds while a run is in progress.
    fn tick(&mut self, _now: Timestamp) -> io::Result<()> {
        Ok(())
    }

    /// Writes the rest. Called once, after the last event, even if the run did not complete.
    fn finish(&mut self) -> io::Result<()>;
}

/// Hash of everything recorded about a run. Events do not contain it, so it is set when the last event has been
/// recorded.
pub type RunHash = Arc<OnceLock<String>>;

/// Options of a reporter.
pub struct ReporterOptions {
    /// Destination of the report.
    pub out: Box<dyn Write + Send>,
    /// Destination of a report that is a directory.
    pub directory: Option<PathBuf>,
    /// Destination of output that changes in place: the interactive terminal's stderr. Without it, nothing is ever
    /// redrawn.
    pub live: Option<Box<dyn Write + Send>>,
    /// Destination of a line per minute about the progress of the run: stderr, unless something is redrawn in place.
    pub heartbeat: Option<Box<dyn Write + Send>>,
    /// Style of the output.
    pub style: Style,
    /// `true` to show only failures and the summary. Does not affect reports for programs.
    pub quiet: bool,
    /// `true` to show only trials that did not pass, in every report.
    pub failures_only: bool,
    /// `true` to show evidence even for met findings.
    pub show_evidence: bool,
    /// Folder of the current directory in its repository, for formats that need paths relative to the repository's
    /// root.
    pub folder: PathBuf,
    /// Folder for temporary files of reports that are larger than the memory that they take. Without it, they are in
    /// memory.
    pub temp: Option<PathBuf>,
    /// Destination of the step summary in GitHub Actions, if there is one.
    pub step_summary: Option<Box<dyn Write + Send>>,
    /// Hash of the run, once it is known.
    pub hash: RunHash,
    /// Arguments of the report for OpenTelemetry.
    pub otlp: telemetry::Options,
}

impl ReporterOptions {
    /// Creates options with all defaults: the whole report, nothing redrawn.
    pub fn new(out: Box<dyn Write + Send>, style: Style) -> Self {
        Self {
            out,
            directory: None,
            live: None,
            heartbeat: None,
            style,
            quiet: false,
            failures_only: false,
            show_evidence: false,
            folder: PathBuf::new(),
            temp: None,
            step_summary: None,
            hash: RunHash::default(),
            otlp: telemetry::Options::default(),
        }
    }
}

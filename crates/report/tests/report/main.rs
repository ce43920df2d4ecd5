//! Output of all reports. Expected texts are in `tests/expected`; set `TRIALRUN_UPDATE_EXPECTED=1` to rewrite them and
//! review the diff.

// Some functions here are not tests, but all of it is test code.
#![allow(clippy::unwrap_used, clippy::panic)]

extern crate trialrun_report as report;

mod arms;
mod atif;
mod compare;
mod documents;
mod evidence;
mod first_lines;
mod fixture;
mod formats;
mod fuzz;
mod html;
mod judged;
mod lists;
mod otlp;
mod preference;
mod run_builder;
mod screen;

use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

use model::Envelope;
use report::{ReporterOptions, Style};

/// A writer whose text can be read.
#[derive(Clone, Default)]
pub struct Paper(Arc<Mutex<Vec<u8>>>);

impl Paper {
    /// Returns the text so far.
    pub fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    /// Returns a writer that appends to this.
    pub fn writer(&self) -> Box<dyn Write + Send> {
        Box::new(self.clone())
    }
}

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Style of plain text for a file.
pub fn plain() -> Style {
    Style::plain()
}

/// Returns the report with this name for `events`.
pub fn reported(kind: &str, events: &[Envelope], change: impl FnOnce(&mut ReporterOptions)) -> String {
    let paper = Paper::default();
    let mut options = ReporterOptions::new(paper.writer(), plain());
    change(&mut options);
    let mut reporter = report::find(kind).unwrap().to_stream(options).unwrap();
    for event in events {
        reporter.event(event).unwrap();
    }
    reporter.finish().unwrap();
    paper.text()
}

/// Compares `actual` with the file called `name`.
pub fn expect(name: &str, actual: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/expected").join(name);
    if std::env::var_os("TRIALRUN_UPDATE_EXPECTED").is_some() {
        std::fs::write(&path, actual).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(expected == actual, "{name} is not as expected.\n--- expected\n{expected}\n--- actual\n{actual}");
}

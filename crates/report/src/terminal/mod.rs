//! Report for people. A single job is shown as it happens; several jobs with a line each, and on an interactive
//! terminal with a table of the workers below.
//!
//! Only this module uses terminal libraries.

mod activity;
pub(crate) mod arms;
mod diagnostic;
pub(crate) mod diff;
mod failure;
pub(crate) mod grid;
mod lines;
mod paint;
mod result;
mod score;
mod screen;
mod stream;
mod summary;
mod table;

use std::io::{self, Write};

use model::{Envelope, Event, RunInfo};

use activity::waiting_for;
pub(crate) use activity::{call, doing, shows_whole_input};
pub(crate) use diagnostic::{distinct, finding};
pub(crate) use paint::Paint;
pub(crate) use result::{counts, fault_name, needs_reason};
pub(crate) use summary::{RunSummary, cost, pass_rates};

pub use diagnostic::{diagnostics, tally};
pub use paint::Style;
pub use result::result;
pub use screen::terminal_size;

use crate::format::{counted, in_parentheses};
use crate::names::Names;
use crate::{Reporter, ReporterOptions};
use lines::Lines;
use stream::Stream;
use table::Table;

/// Selection of what is shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Detail {
    /// `true` to show only failures and the summary.
    pub(crate) quiet: bool,
    /// `true` to show evidence also of met findings.
    pub(crate) evidence: bool,
}

/// Views of the events between the header and the summary.
enum View {
    Stream(Stream),
    Lines(Lines),
    Table(Box<Table>),
}

struct Terminal {
    out: Box<dyn Write + Send>,
    live: Option<Box<dyn Write + Send>>,
    paint: Paint,
    detail: Detail,
    /// Set by the first event.
    run: Option<(View, RunSummary)>,
    over: bool,
}

pub(crate) fn open(options: ReporterOptions) -> Box<dyn Reporter> {
    Box::new(Terminal {
        out: options.out,
        live: options.live.filter(|_| options.style.interactive),
        paint: Paint::new(options.style),
        detail: Detail { quiet: options.quiet || options.failures_only, evidence: options.show_evidence },
        run: None,
        over: false,
    })
}

impl Terminal {
    fn begin(&mut self, info: &RunInfo) -> io::Result<()> {
        let names = Names::of(&info.trials);
        let view = if self.detail.quiet {
            View::Lines(Lines::new(self.paint, self.detail, names.clone()))
        } else if info.jobs.min(info.trials.len()) <= 1 {
            View::Stream(Stream::new(self.paint, self.detail, names.clone(), &info.agents))
        } else if let Some(live) = self.live.take() {
            View::Table(Box::new(Table::new(self.paint, self.detail, names.clone(), live, info.trials.len())))
        } else {
            View::Lines(Lines::new(self.paint, self.detail, names.clone()))
        };
        self.run = Some((view, RunSummary::new(self.paint, names, info)));
        if !self.detail.quiet {
            self.out.write_all(header(info, &self.paint).as_bytes())?;
        }
        self.out.flush()
    }

    /// Writes the output after the last trial.
    fn close(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.over, true) {
            return Ok(());
        }
        if let Some((view, summary)) = &mut self.run {
            let failures = match view {
                View::Stream(_) => String::new(),
                View::Lines(lines) => lines.failures(),
                View::Table(table) => table.end(),
            };
            let text = failures + &summary.draw();
            // In quiet mode, this is the first output.
            let text = if self.detail.quiet { text.trim_start_matches('\n') } else { &text };
            self.out.write_all(text.as_bytes())?;
        }
        self.out.flush()
    }
}

impl Reporter for Terminal {
    fn event(&mut self, envelope: &Envelope) -> io::Result<()> {
        if let Event::RunStarted(info) = &envelope.event {
            return self.begin(info);
        }
        let Some((view, summary)) = &mut self.run else { return Ok(()) };
        summary.event(envelope);
        let text = match view {
            View::Stream(stream) => stream.event(envelope),
            View::Lines(lines) => lines.event(envelope),
            View::Table(table) => return table.event(envelope, &mut self.out).and_then(|()| self.end(envelope)),
        };
        if !text.is_empty() {
            self.out.write_all(text.as_bytes())?;
            self.out.flush()?;
        }
        self.end(envelope)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.close()
    }
}

impl Terminal {
    fn end(&mut self, envelope: &Envelope) -> io::Result<()> {
        if matches!(envelope.event, Event::RunFinished { .. }) { self.close() } else { Ok(()) }
    }
}

fn header(info: &RunInfo, paint: &Paint) -> String {
    let first = paint.join(&[
        format!("{} {}", paint.bold("trialrun"), info.trialrun_version),
        counted(info.trials.len(), "trial"),
        counted(info.jobs, "job"),
    ]);
    let label = info.label.as_ref().map(|label| paint.folded(label, 40));
    let mut run = format!("run {}{}", info.id, in_parentheses(label.as_deref()));
    if let Some(regraded) = &info.regrade_of {
        run.push_str(&format!(", grades run {regraded} again"));
    }
    format!("{first}\n{}\n", paint.dim(&run))
}

/// Returns `text` with every line indented.
pub(crate) fn indented(text: &str, by: usize) -> String {
    let mut moved = String::with_capacity(text.len() + text.lines().count() * by);
    for line in text.lines() {
        if !line.is_empty() {
            moved.push_str(&" ".repeat(by));
            moved.push_str(line);
        }
        moved.push('\n');
    }
    moved
}

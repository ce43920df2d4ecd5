//! Report for people. A single trial, and on an interactive terminal a single job, is shown as it happens. Otherwise
//! each trial gets a line, followed on an interactive terminal by a table of the workers.
//!
//! Only this module uses terminal libraries.

mod activity;
pub(crate) mod arms;
pub(crate) mod decisions;
mod diagnostic;
pub(crate) mod diff;
mod failure;
pub(crate) mod grid;
mod last_line;
mod lines;
mod paint;
mod progress;
mod result;
mod score;
mod screen;
mod stream;
mod summary;
mod table;

use std::io::{self, Write};

use jiff::Timestamp;
use model::{Envelope, Event, RunInfo};

use activity::waiting_for;
pub(crate) use activity::{call, doing, shows_whole_input};
pub(crate) use diagnostic::{distinct, finding};
pub(crate) use paint::Paint;
pub(crate) use result::{counts, fault_name, needs_reason, verdict};
pub(crate) use summary::{RunSummary, at_least, cost, known, pass_rates, verdict as run_verdict};

pub use crate::style::Style;
pub use diagnostic::{diagnostics, tally};
pub use failure::mismatches;
pub use last_line::last_line;
pub use result::result;
pub use screen::terminal_size;

use crate::format::{between, counted, in_parentheses};
use crate::names::Names;
use crate::{Reporter, ReporterOptions, totals};
use lines::Lines;
use progress::Progress;
use stream::Stream;
use table::Table;

/// Parts of the report to show.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Detail {
    /// `true` to show only failures and the summary.
    pub(crate) quiet: bool,
    /// `true` to show evidence even for met findings.
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
    heartbeat: Option<Box<dyn Write + Send>>,
    /// Time of the first call of [`Reporter::tick`], later of the last line about the progress.
    last_heartbeat: Option<Timestamp>,
    paint: Paint,
    detail: Detail,
    /// Set by the first event.
    run: Option<Run>,
    over: bool,
}

struct Run {
    view: View,
    summary: RunSummary,
    progress: Progress,
    /// Time at which the progress was last shown between trials, or the start of the run.
    shown_at: Timestamp,
}

/// Interval between two lines about the progress, in milliseconds.
const HEARTBEAT: u64 = 60_000;
/// Minimum time in milliseconds before the progress is shown between trials again.
const PAUSE: u64 = 10_000;

pub(crate) fn open(options: ReporterOptions) -> Box<dyn Reporter> {
    Box::new(Terminal {
        out: options.out,
        live: options.live.filter(|_| options.style.interactive),
        heartbeat: options.heartbeat.filter(|_| !options.quiet && !options.failures_only),
        last_heartbeat: None,
        paint: Paint::new(options.style),
        detail: Detail { quiet: options.quiet || options.failures_only, evidence: options.show_evidence },
        run: None,
        over: false,
    })
}

impl Terminal {
    fn begin(&mut self, info: &RunInfo) -> io::Result<()> {
        let names = Names::new(&info.trials);
        let view = if self.detail.quiet {
            View::Lines(Lines::new(self.paint, self.detail, names.clone()))
        } else if info.trials.len() <= 1 || (info.jobs == 1 && self.paint.style.interactive) {
            View::Stream(Stream::new(self.paint, self.detail, names.clone(), &info.agents))
        } else if let Some(live) = self.live.take() {
            View::Table(Box::new(Table::new(self.paint, self.detail, names.clone(), live)))
        } else {
            View::Lines(Lines::new(self.paint, self.detail, names.clone()).with_starts())
        };
        let progress = Progress::new(self.paint, names.clone(), info);
        self.run =
            Some(Run { view, summary: RunSummary::new(self.paint, names, info), progress, shown_at: info.started_at });
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
        if let Some(Run { view, summary, .. }) = &mut self.run {
            let failures = match view {
                View::Stream(_) => String::new(),
                View::Lines(lines) => lines.failures(),
                View::Table(table) => table.end(),
            };
            let text = failures + &summary.draw(matches!(view, View::Stream(_)));
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
        let Some(Run { view, summary, progress, shown_at }) = &mut self.run else { return Ok(()) };
        summary.event(envelope);
        progress.event(envelope);
        let text = match view {
            View::Stream(stream) => {
                let mut text = stream.event(envelope);
                if matches!(envelope.event, Event::TrialFinished(_))
                    && !progress.is_over()
                    && between(*shown_at, envelope.at) >= PAUSE
                {
                    *shown_at = envelope.at;
                    text.push_str(&format!("\n  {}\n", progress.describe(envelope.at)));
                }
                text
            }
            View::Lines(lines) => lines.event(envelope),
            View::Table(table) => {
                table.event(envelope, progress, &mut self.out)?;
                return self.end(envelope);
            }
        };
        if !text.is_empty() {
            self.out.write_all(text.as_bytes())?;
            self.out.flush()?;
        }
        self.end(envelope)
    }

    fn tick(&mut self, now: Timestamp) -> io::Result<()> {
        let Some(Run { view, progress, .. }) = self.run.as_mut().filter(|_| !self.over) else { return Ok(()) };
        if let View::Table(table) = view {
            table.draw(progress, now);
        }
        let Some(heartbeat) = &mut self.heartbeat else { return Ok(()) };
        if between(*self.last_heartbeat.get_or_insert(now), now) < HEARTBEAT {
            return Ok(());
        }
        self.last_heartbeat = Some(now);
        let mut parts = vec![progress.describe(now)];
        parts.extend(progress.longest(now));
        writeln!(heartbeat, "{} {}", self.paint.symbols().ellipsis, self.paint.join(&parts))?;
        heartbeat.flush()
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
    let mut parts = vec![
        format!("{} {}", paint.bold("trialrun"), info.trialrun_version),
        if info.decisions > 0 {
            format!("at most {}", counted(info.trials.len(), "trial"))
        } else {
            counted(info.trials.len(), "trial")
        },
        match info.jobs {
            0 => "run by workers".to_owned(),
            jobs => counted(jobs, "job"),
        },
    ];
    parts.extend(info.shard.as_ref().map(totals::shard));
    let first = paint.join(&parts);
    let label = info.label.as_ref().map(|label| paint.folded(label, 40));
    let mut run = format!("run {}{}", info.id, in_parentheses(label.as_deref()));
    if let Some(regraded) = &info.regrade_of {
        run.push_str(&format!(", grades run {regraded} again"));
    }
    let isolation = info.isolation.as_ref().map(|isolation| format!("{}\n", paint.dim(&isolation.summary())));
    format!("{first}\n{}\n{}", paint.dim(&run), isolation.unwrap_or_default())
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

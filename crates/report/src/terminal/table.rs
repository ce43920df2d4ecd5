//! View for several jobs on an interactive terminal: a table at the bottom shows the longest-running trials and the
//! progress of the run. It is redrawn in place; finished trials scroll by above it.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use jiff::Timestamp;
use model::{Envelope, Event};

use super::lines::Lines;
use super::progress::{Progress, RunningTrial};
use super::screen::{Screen, terminal_size};
use super::{Detail, Paint};
use crate::columns;
use crate::format::{between, elapsed};
use crate::names::Names;

/// Interval at which the elapsed times are updated.
const TICK: Duration = Duration::from_millis(200);

/// Maximum number of rows.
const ROWS: usize = 8;
/// Number of terminal lines that the rows leave free.
const MARGIN: usize = 4;

/// The table and the lines above it.
pub(super) struct Table {
    paint: Paint,
    names: Names,
    lines: Lines,
    screen: MultiProgress,
    /// Rows by the id of their trial.
    rows: HashMap<Arc<str>, ProgressBar>,
    /// Maximum number of rows.
    most: usize,
    total: ProgressBar,
}

impl Table {
    pub(super) fn new(paint: Paint, detail: Detail, names: Names, live: Box<dyn Write + Send>) -> Self {
        let target = ProgressDrawTarget::term_like_with_hz(Box::new(Screen::new(live, paint.width())), 10);
        let screen = MultiProgress::with_draw_target(target);
        let total = screen.add(ProgressBar::no_length().with_style(style("{wide_msg}")));
        let most = terminal_size().map_or(ROWS, |(_, lines)| ROWS.min(lines.saturating_sub(MARGIN)).max(1));
        // Nothing is drawn yet, because the lines above the table have not been written.
        Self {
            paint,
            lines: Lines::new(paint, detail, names.clone()),
            names,
            screen,
            rows: HashMap::new(),
            most,
            total,
        }
    }

    pub(super) fn event(
        &mut self,
        envelope: &Envelope,
        progress: &Progress,
        out: &mut Box<dyn Write + Send>,
    ) -> io::Result<()> {
        let trial = envelope.trial.as_deref().unwrap_or_default();
        match &envelope.event {
            Event::TrialStarted { .. } | Event::TrialFinished(_) => self.draw(progress, envelope.at),
            _ => {
                if let (Some(bar), Some(running)) = (self.rows.get(trial), progress.running(trial)) {
                    bar.set_message(self.row(running));
                }
            }
        }
        let text = self.lines.event(envelope);
        if text.is_empty() {
            return Ok(());
        }
        self.screen.suspend(|| {
            out.write_all(text.as_bytes())?;
            out.flush()
        })
    }

    /// Removes the table and returns the output after the last trial.
    pub(super) fn end(&mut self) -> String {
        for (_, bar) in self.rows.drain() {
            bar.finish_and_clear();
        }
        self.total.finish_and_clear();
        // Failing to erase the table is not worth an error: the summary follows below it.
        let _ = self.screen.clear();
        self.lines.failures()
    }

    /// Shows the longest-running trials, and the progress of the run in the last line.
    pub(super) fn draw(&mut self, progress: &Progress, now: Timestamp) {
        let shown = progress.oldest(self.most);
        self.rows.retain(|trial, bar| {
            let remains = shown.iter().any(|(id, _)| *id == trial);
            if !remains {
                bar.finish_and_clear();
                self.screen.remove(bar);
            }
            remains
        });
        for (trial, running) in shown {
            let message = self.row(running);
            if let Some(bar) = self.rows.get(trial) {
                bar.set_message(message);
                continue;
            }
            let since = Duration::from_millis(between(running.since, now));
            let bar = ProgressBar::no_length().with_style(style("  {since} {wide_msg}")).with_elapsed(since);
            let bar = self.screen.insert_before(&self.total, bar);
            bar.set_message(message);
            bar.enable_steady_tick(TICK);
            self.rows.insert(Arc::clone(trial), bar);
        }
        self.total.set_message(format!("  {}", progress.describe(now)));
        self.total.tick();
    }

    fn row(&self, running: &RunningTrial) -> String {
        let name = columns::padded(&running.name, self.names.width().min(44));
        let line = format!("{}  {}", self.paint.bold(&name), self.paint.dim(&running.activity));
        line.trim_end().to_owned()
    }
}

fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner());
    style.with_key("since", |state: &ProgressState, out: &mut dyn std::fmt::Write| {
        let _ = write!(out, "{:>6}", elapsed(u64::try_from(state.elapsed().as_millis()).unwrap_or(u64::MAX)));
    })
}

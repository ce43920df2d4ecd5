//! View of several jobs on an interactive terminal: a table at the bottom shows the activity of each worker and is
//! redrawn in place; finished trials scroll by above it.

use std::collections::HashMap;
use std::io::{self, Write};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use jiff::Timestamp;
use model::{Envelope, Event};

use super::lines::Lines;
use super::progress::Progress;
use super::screen::Screen;
use super::{Detail, Paint};
use crate::columns;
use crate::format::elapsed;
use crate::names::Names;

/// Interval at which the clocks are updated.
const TICK: Duration = Duration::from_millis(200);

/// The table and the lines above it.
pub(super) struct Table {
    paint: Paint,
    names: Names,
    lines: Lines,
    screen: MultiProgress,
    rows: HashMap<String, ProgressBar>,
    total: ProgressBar,
}

impl Table {
    pub(super) fn new(paint: Paint, detail: Detail, names: Names, live: Box<dyn Write + Send>) -> Self {
        let target = ProgressDrawTarget::term_like_with_hz(Box::new(Screen::new(live, paint.width())), 10);
        let screen = MultiProgress::with_draw_target(target);
        let total = screen.add(ProgressBar::no_length().with_style(style("{wide_msg}")));
        // Nothing is drawn yet, because the lines above the table are still to be written.
        Self { paint, lines: Lines::new(paint, detail, names.clone()), names, screen, rows: HashMap::new(), total }
    }

    pub(super) fn event(
        &mut self,
        envelope: &Envelope,
        progress: &Progress,
        out: &mut Box<dyn Write + Send>,
    ) -> io::Result<()> {
        let trial = envelope.trial.as_deref().unwrap_or_default();
        match &envelope.event {
            Event::TrialStarted { .. } => {
                if let Some(old) = self.rows.remove(trial) {
                    old.finish_and_clear();
                }
                let bar = ProgressBar::no_length().with_style(style("  {since} {wide_msg}"));
                let bar = self.screen.insert_before(&self.total, bar);
                bar.enable_steady_tick(TICK);
                self.rows.insert(trial.to_owned(), bar);
                self.show(progress, envelope.at);
            }
            Event::TrialFinished(_) => {
                if let Some(bar) = self.rows.remove(trial) {
                    bar.finish_and_clear();
                    self.screen.remove(&bar);
                }
                self.show(progress, envelope.at);
            }
            _ => {}
        }
        if let (Some(bar), Some(running)) = (self.rows.get(trial), progress.running(trial)) {
            let name = columns::padded(&running.name, self.names.width().min(44));
            let line = format!("{}  {}", self.paint.bold(&name), self.paint.dim(&running.activity));
            bar.set_message(line.trim_end().to_owned());
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
        // A table that cannot be erased is not worth an error: the summary follows below it.
        let _ = self.screen.clear();
        self.lines.failures()
    }

    /// Shows the progress of the run in the last line.
    pub(super) fn show(&self, progress: &Progress, now: Timestamp) {
        self.total.set_message(format!("  {}", progress.describe(now)));
        self.total.tick();
    }
}

fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner());
    style.with_key("since", |state: &ProgressState, out: &mut dyn std::fmt::Write| {
        let _ = write!(out, "{:>6}", elapsed(u64::try_from(state.elapsed().as_millis()).unwrap_or(u64::MAX)));
    })
}

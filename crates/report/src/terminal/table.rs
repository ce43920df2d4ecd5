//! View of several jobs on an interactive terminal: a table at the bottom shows the activity of each worker and is
//! redrawn in place; finished trials scroll by above it.

use std::collections::HashMap;
use std::io::{self, Write};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use model::{Envelope, Event, Outcome};

use super::lines::Lines;
use super::screen::Screen;
use super::{Detail, Paint, doing};
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
    rows: HashMap<String, Row>,
    total: ProgressBar,
    planned: usize,
    /// Outcomes of trials outside the baseline.
    counts: [(Outcome, usize); 6],
    done: usize,
}

struct Row {
    bar: ProgressBar,
    name: String,
    waiting: String,
}

impl Table {
    pub(super) fn new(paint: Paint, detail: Detail, names: Names, live: Box<dyn Write + Send>, planned: usize) -> Self {
        let target = ProgressDrawTarget::term_like_with_hz(Box::new(Screen::new(live, paint.width())), 10);
        let screen = MultiProgress::with_draw_target(target);
        let total = screen.add(ProgressBar::no_length().with_style(style("{wide_msg}")));
        // Nothing is drawn yet, because the lines above the table are still to be written.
        Self {
            paint,
            lines: Lines::new(paint, detail, names.clone()),
            names,
            screen,
            rows: HashMap::new(),
            total,
            planned,
            done: 0,
            counts: Outcome::ALL.map(|outcome| (outcome, 0)),
        }
    }

    pub(super) fn event(&mut self, envelope: &Envelope, out: &mut Box<dyn Write + Send>) -> io::Result<()> {
        let trial = envelope.trial.as_deref().unwrap_or_default();
        match &envelope.event {
            Event::TrialStarted { id, .. } => {
                if let Some(old) = self.rows.remove(trial) {
                    old.bar.finish_and_clear();
                }
                let bar = ProgressBar::no_length().with_style(style("  {since} {wide_msg}"));
                let bar = self.screen.insert_before(&self.total, bar);
                let name = self.names.of_id(id);
                bar.set_message(self.paint.bold(&name));
                bar.enable_steady_tick(TICK);
                self.rows.insert(trial.to_owned(), Row { bar, name, waiting: String::new() });
                self.count();
                return Ok(());
            }
            Event::Waiting { on } => self.set_activity(trial, on.clone()),
            Event::SandboxReady { .. } => self.set_activity(trial, "agent".to_owned()),
            Event::Step(step) => {
                if let Some(doing) = doing(step, &self.paint) {
                    self.set_activity(trial, doing);
                }
            }
            Event::TrialFinished(record) => {
                if let Some(row) = self.rows.remove(trial) {
                    row.bar.finish_and_clear();
                    self.screen.remove(&row.bar);
                }
                self.done += 1;
                for (outcome, count) in &mut self.counts {
                    *count += usize::from(*outcome == record.outcome && !record.is_baseline());
                }
                self.count();
            }
            _ => {}
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
        for (_, row) in self.rows.drain() {
            row.bar.finish_and_clear();
        }
        self.total.finish_and_clear();
        // A table that cannot be erased is not worth an error: the summary follows below it.
        let _ = self.screen.clear();
        self.lines.failures()
    }

    fn set_activity(&mut self, trial: &str, what: String) {
        if let Some(row) = self.rows.get_mut(trial) {
            row.waiting = what;
            let name = columns::padded(&row.name, self.names.width().min(44));
            row.bar.set_message(format!("{}  {}", self.paint.bold(&name), self.paint.dim(&row.waiting)));
        }
    }

    fn count(&self) {
        let mut parts = vec![format!("{}/{} trials", self.done, self.planned)];
        for (outcome, count) in self.counts.iter().filter(|(_, count)| *count > 0) {
            parts.push(self.paint.as_outcome(*outcome, &format!("{count} {}", outcome.name())));
        }
        parts.push(format!("{} running", self.rows.len()));
        self.total.set_message(format!("  {}", self.paint.join(&parts)));
        self.total.tick();
    }
}

fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner());
    style.with_key("since", |state: &ProgressState, out: &mut dyn std::fmt::Write| {
        let _ = write!(out, "{:>6}", elapsed(u64::try_from(state.elapsed().as_millis()).unwrap_or(u64::MAX)));
    })
}

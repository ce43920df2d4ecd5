//! Recorded runs, newest first: one line each.

use jiff::Timestamp;
use model::{Gate, Outcome, RunRow, Summary};
use serde_json::{Value, json};

use crate::counts::outcomes;
use crate::format::{between, elapsed, in_parentheses, money, precise_percent, timestamp};
use crate::plain;
use crate::terminal::grid::{Cell, CellStyle, Grid};
use crate::terminal::{Paint, Style};
use crate::totals::without_shards;

/// Maximum width of a label, and of the names of all of a run's agents.
const NAME: usize = 24;

/// A run in the list.
pub struct ListedRun {
    /// The run.
    pub run: RunRow,
    /// Counts of its finished trials.
    pub summary: Summary,
    /// Conditions for its exit code.
    pub gate: Gate,
    /// `true` if its process still exists. Ignored if the run is over.
    pub alive: bool,
}

impl ListedRun {
    /// Returns the state of the run in one word.
    fn state(&self) -> &'static str {
        match (self.run.finished_at, &self.run.signal) {
            (None, _) if self.alive => "running",
            (None, _) | (_, Some(_)) => "interrupted",
            _ => "finished",
        }
    }

    /// Returns the number of planned trials that did not finish.
    fn unfinished(&self) -> usize {
        (self.run.needed() + self.summary.by_outcome.cancelled).saturating_sub(self.run.finished)
    }

    /// Returns its result in one word: `running`, `passed`, `failed`, or `incomplete`.
    pub(crate) fn word(&self) -> &'static str {
        match (self.state(), self.gate.exit_code(&self.summary)) {
            ("running", _) => "running",
            (_, 1) => "failed",
            ("finished", 0) if self.has_passed() => "passed",
            _ => "incomplete",
        }
    }

    /// Returns `true` if a trial passed and no shard is missing.
    fn has_passed(&self) -> bool {
        self.summary.by_outcome.passed > 0 && self.run.missing_shards.is_none()
    }

    pub(crate) fn results(&self) -> String {
        let mut parts = outcomes(self.summary.by_outcome, |outcome| outcome != Outcome::Cancelled);
        parts.extend(self.run.missing_shards.as_ref().map(without_shards));
        parts.extend((self.summary.flaky > 0).then(|| format!("{} flaky", self.summary.flaky)));
        // Quarantined trials do not count, and the line is long enough without them.
        let quarantined = self.summary.all_quarantined();
        parts.extend((quarantined > 0).then(|| format!("{quarantined} quarantined")));
        let least = self.gate.min_pass_rate.filter(|_| self.gate.is_missed(&self.summary));
        parts.extend(least.map(|least| format!("needs {} passed", precise_percent(least))));
        match (self.state(), self.unfinished()) {
            ("finished", 0) => {}
            ("finished", open) => parts.push(format!("{open} of {} unfinished", self.run.needed())),
            (state, open) => {
                let done = self.run.planned.saturating_sub(open);
                parts.push(format!("{state} at {done} of {}", self.run.planned));
            }
        }
        parts.join(", ")
    }

    pub(crate) fn agents(&self) -> String {
        let agents = self.run.agents.iter();
        let names = agents.map(|agent| format!("{}{}", agent.name, in_parentheses(agent.model.as_deref())));
        names.collect::<Vec<_>>().join(", ")
    }

    fn style(&self) -> CellStyle {
        match self.gate.exit_code(&self.summary) {
            1 => CellStyle::Red,
            0 if self.state() == "finished" && self.has_passed() => CellStyle::Green,
            _ => CellStyle::Plain,
        }
    }
}

/// Formats the list. `now` is the current time.
pub fn runs(runs: &[ListedRun], now: Timestamp, style: &Style) -> String {
    if runs.is_empty() {
        return "no runs are recorded yet\n".into();
    }
    let paint = Paint::new(*style);
    let fold = |text: &str| plain::folded(text, NAME, paint.symbols().ellipsis);
    let columns = [("run", 0), ("started", 2), ("label", 1), ("agents", 3), ("results", 0), ("cost", 5), ("time", 4)];
    let mut grid = Grid::new(&columns).left(5);
    for listed in runs {
        let run = &listed.run;
        let time = match run.duration_ms {
            None if listed.alive => Some(between(run.started_at, now)),
            known => known,
        };
        grid.row([
            Cell::new(&run.short, CellStyle::Bold),
            Cell::new(timestamp(run.started_at), CellStyle::Dim),
            fold(run.label.as_deref().unwrap_or_default()).into(),
            fold(&listed.agents()).into(),
            Cell::new(listed.results(), listed.style()),
            listed.summary.cost_usd.map_or_else(String::new, money).into(),
            time.map_or_else(String::new, elapsed).into(),
        ]);
    }
    grid.draw(&paint)
}

/// Returns a run as an entry of the JSON array.
pub fn run_json(listed: &ListedRun) -> Value {
    let mut json = json!(listed.run);
    json["state"] = listed.state().into();
    json["unfinished"] = listed.unfinished().into();
    json["summary"] = json!(listed.summary);
    json
}

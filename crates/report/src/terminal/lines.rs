//! Many jobs, nothing drawn over: a line when a trial starts, one when it has its outcome, and the failures at the end.

use std::collections::HashMap;

use model::{Envelope, Event, TrialRecord};

use super::{Detail, Paint, result};
use crate::figure::{elapsed, money, span, whole};
use crate::names::Names;
use crate::plain;

/// Start and finish lines.
pub(super) struct Lines {
    paint: Paint,
    detail: Detail,
    names: Names,
    began: bool,
    /// What a trial is called here, by its id.
    called: HashMap<String, String>,
    /// Trials whose reason is to be drawn at the end.
    failures: Vec<TrialRecord>,
}

impl Lines {
    pub(super) fn new(paint: Paint, detail: Detail, names: Names) -> Self {
        Self { paint, detail, names, began: false, called: HashMap::new(), failures: Vec::new() }
    }

    pub(super) fn event(&mut self, envelope: &Envelope) -> String {
        let paint = self.paint;
        let signs = paint.signs();
        if let (Event::TrialStarted { id, .. }, Some(trial)) = (&envelope.event, &envelope.trial) {
            self.called.insert(trial.clone(), self.names.of_id(id));
        }
        let trial = envelope.trial.as_deref().unwrap_or_default();
        let trial = self.called.get(trial).map_or(trial, String::as_str);
        let text = match &envelope.event {
            Event::TrialStarted { id, .. } => {
                let again = envelope.attempt.filter(|attempt| *attempt > 1);
                let again = again.map_or_else(String::new, |attempt| format!(" (attempt {attempt})"));
                paint.dim(&format!("{} {:<18} {}{again}", signs.trial, "started", self.names.of_id(id))) + "\n"
            }
            Event::TrialRetried { because } => {
                let because = plain::folded(because, 120, signs.ellipsis);
                paint.yellow(&format!("{} {:<18} {trial}: {because}", signs.again, "tried again")) + "\n"
            }
            Event::Idle { idle_ms, on } => {
                let idle = span(*idle_ms);
                paint.yellow(&format!(
                    "{} {:<18} {trial}: waiting for the {on}",
                    signs.ellipsis,
                    format!("idle for {idle}")
                )) + "\n"
            }
            Event::TrialFinished(record) => {
                let line = self.finished(record);
                if result::wants_reason(record.outcome) {
                    self.failures.push((**record).clone());
                }
                line
            }
            _ => String::new(),
        };
        if self.detail.quiet || text.is_empty() {
            return String::new();
        }
        if std::mem::replace(&mut self.began, true) { text } else { format!("\n{text}") }
    }

    fn finished(&self, record: &TrialRecord) -> String {
        let paint = self.paint;
        let word = format!("{} {:<10}", paint.mark(record.outcome), record.outcome.name());
        let mut parts = vec![self.names.of_record(record)];
        let mut notes = Vec::new();
        notes.extend(record.flaky.then(|| "flaky".to_owned()));
        notes.extend(record.usage.map(|tokens| format!("{} tokens", whole(tokens.total()))));
        notes.extend(record.cost_usd.map(money));
        if !notes.is_empty() {
            let width = self.names.width().min(60);
            parts[0] = format!("{:<width$}", parts[0]);
            parts.push(paint.dim(&paint.join(&notes)));
        }
        let time = format!("{:>6}", elapsed(record.duration_ms));
        format!("{} {time}  {}\n", paint.as_outcome(record.outcome, &word), parts.join("  "))
    }

    /// Every trial that did not pass, with its reasons, in the order of the outcomes.
    pub(super) fn failures(&mut self) -> String {
        let mut text = String::new();
        for record in std::mem::take(&mut self.failures) {
            text.push('\n');
            text.push_str(&result::draw(&record, &self.names, &self.paint, self.detail));
        }
        text
    }
}

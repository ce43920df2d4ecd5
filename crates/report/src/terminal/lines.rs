//! View for several jobs without redrawing: a line for each trial when it gets its outcome, and the failures at the
//! end.

use std::collections::HashMap;
use std::sync::Arc;

use model::{Envelope, Event, Outcome, TrialRecord};

use super::{Detail, Paint, result, waiting_for};
use crate::format::{elapsed, money, number, span, tokens_in_and_out};
use crate::names::{Names, is_skill};
use crate::{columns, score};

/// Key of the repetitions of a trial: suite, case and arm.
type Series = (Arc<str>, Arc<str>, Arc<str>);

/// Maximum number of failures drawn. Repetitions that failed in the same way count as one.
const DRAWN: usize = 20;

/// View with a line for each finished trial.
pub(super) struct Lines {
    paint: Paint,
    detail: Detail,
    names: Names,
    began: bool,
    /// Display names of the running trials, by id.
    called: HashMap<Arc<str>, String>,
    /// Failures that are drawn at the end.
    failures: Vec<Failure>,
    /// Number of trials whose failures are not drawn.
    omitted: usize,
    /// Number of finished repetitions of each case under each arm.
    repetitions: HashMap<Series, usize>,
    /// Reason for which a trial was retried last. It is shown once in a row.
    retried_for: Option<String>,
    /// True if there is also a line when a trial of a skill starts. Such a trial often takes minutes.
    has_starts: bool,
}

/// Failure of a trial, which also stands for repetitions with the same result, and for trials of all cases that broke
/// for the same reason.
struct Failure {
    key: String,
    record: TrialRecord,
    others: Vec<Other>,
}

/// Another trial with the same result.
struct Other {
    name: String,
    repetition: u64,
    series: Series,
}

impl Lines {
    pub(super) fn new(paint: Paint, detail: Detail, names: Names) -> Self {
        Self {
            paint,
            detail,
            names,
            began: false,
            called: HashMap::new(),
            failures: Vec::new(),
            omitted: 0,
            repetitions: HashMap::new(),
            retried_for: None,
            has_starts: false,
        }
    }

    /// Returns the view with a line for each start of a trial of a skill.
    pub(super) fn with_starts(self) -> Self {
        Self { has_starts: true, ..self }
    }

    pub(super) fn event(&mut self, envelope: &Envelope) -> String {
        let paint = self.paint;
        let symbols = paint.symbols();
        if let (Event::TrialStarted { id, .. }, Some(trial)) = (&envelope.event, &envelope.trial) {
            self.called.insert(Arc::clone(trial), self.names.of_id(id));
        }
        let trial = envelope.trial.as_deref().unwrap_or_default();
        let trial = self.called.get(trial).map_or(trial, String::as_str);
        let text = match &envelope.event {
            Event::TrialStarted { id, subject, .. } => {
                let is_of_skill = id.is_baseline() || subject.as_deref().is_some_and(is_skill);
                match self.has_starts && is_of_skill && envelope.attempt.unwrap_or(1) == 1 {
                    true => paint.dim(&format!("{} {:<18} {trial}", symbols.dot, "started")) + "\n",
                    false => String::new(),
                }
            }
            Event::TrialRetried { reason } => {
                let is_same = self.retried_for.replace(reason.clone()).as_ref() == Some(reason);
                let reason = if is_same { "for the same reason".to_owned() } else { paint.folded(reason, 120) };
                paint.yellow(&format!("{} {:<18} {trial}: {reason}", symbols.again, "tried again")) + "\n"
            }
            Event::Idle { idle_ms, on } => {
                let idle = span(*idle_ms);
                paint.yellow(&format!(
                    "{} {:<18} {trial}: waiting for {}",
                    symbols.ellipsis,
                    format!("idle for {idle}"),
                    waiting_for(on)
                )) + "\n"
            }
            Event::TrialFinished(record) => {
                let line = self.finished(record);
                *self.repetitions.entry(series(record)).or_default() += 1;
                let has_evidence = record.findings.iter().any(|finding| !finding.evidence.is_empty());
                // The baseline is expected to fail without the skill.
                let is_noted = result::needs_reason(record.outcome) && !record.is_baseline();
                if is_noted || (self.detail.evidence && has_evidence) {
                    self.keep(record);
                }
                line
            }
            _ => String::new(),
        };
        // A long run has many trials.
        if let (Event::TrialFinished(_), Some(trial)) = (&envelope.event, &envelope.trial) {
            self.called.remove(trial);
        }
        if self.detail.quiet || text.is_empty() {
            return String::new();
        }
        if std::mem::replace(&mut self.began, true) { text } else { format!("\n{text}") }
    }

    fn finished(&self, record: &TrialRecord) -> String {
        let paint = self.paint;
        // A trial without the skill only serves for comparison; its failure does not fail the run.
        let (mark, word) = match record.is_baseline() {
            true => (paint.symbols().dot, "baseline"),
            false => (paint.mark(record.outcome), record.outcome.name()),
        };
        let word = format!("{mark} {word:<10}");
        let mut parts = vec![self.names.of_record(record)];
        let mut notes = Vec::new();
        notes.extend(record.is_baseline().then(|| record.outcome.name().to_owned()));
        notes.extend(record.flaky.then(|| "flaky".to_owned()));
        notes.extend(record.quarantine.is_some().then(|| "quarantined".to_owned()));
        notes.extend(record.passed_but_for().map(|_| score::outcome(record)));
        let is_scored = matches!(record.outcome, Outcome::Passed | Outcome::Failed);
        notes.extend(score::describe(record).filter(|_| is_scored).map(|(score, _)| format!("score {score}")));
        notes.extend(record.usage.map(|tokens| tokens_in_and_out(&tokens, " tokens")));
        notes.extend(record.cost_usd.map(money));
        if !notes.is_empty() {
            parts[0] = columns::padded(&parts[0], self.names.width().min(60));
            parts.push(paint.dim(&paint.join(&notes)));
        }
        let time = format!("{:>6}", elapsed(record.duration_ms));
        let word = if record.is_baseline() { paint.dim(&word) } else { paint.as_outcome(record.outcome, &word) };
        format!("{word} {time}  {}\n", parts.join("  "))
    }

    /// Keeps a trial to draw it at the end. Among repetitions with the same result only the first is kept, and at most
    /// [`DRAWN`] results in total, failed ones before others. If evidence is shown, everything is kept.
    fn keep(&mut self, record: &TrialRecord) {
        let key = match &record.reason {
            Some(reason) if record.outcome == Outcome::Broken => format!("{:?} {reason}", record.fault),
            _ => score::result_key(record),
        };
        let failure = |key| Failure { key, record: record.clone(), others: Vec::new() };
        if self.detail.evidence {
            return self.failures.push(failure(key));
        }
        if let Some(known) = self.failures.iter_mut().find(|known| known.key == key) {
            let name = self.names.of_record(record);
            return known.others.push(Other { name, repetition: record.repetition, series: series(record) });
        }
        if self.failures.len() < DRAWN {
            return self.failures.push(failure(key));
        }
        self.omitted += 1;
        let is_major = |record: &TrialRecord| record.outcome == Outcome::Failed && record.quarantine.is_none();
        let is_minor = |known: &Failure| !is_major(&known.record);
        if is_major(record)
            && let Some(minor) = self.failures.iter().rposition(is_minor)
        {
            self.omitted += self.failures.remove(minor).others.len();
            self.failures.push(failure(key));
        }
    }

    /// Returns the trials that did not pass, with their reasons: failed ones first, each in the order in which they
    /// finished. If evidence is shown, every trial is returned with its evidence.
    pub(super) fn failures(&mut self) -> String {
        let mut failures = std::mem::take(&mut self.failures);
        if !self.detail.evidence {
            failures
                .sort_by_key(|Failure { record, .. }| (record.quarantine.is_some(), record.outcome != Outcome::Failed));
        }
        let mut text = String::new();
        for Failure { record, others, .. } in failures {
            text.push('\n');
            text.push_str(&result::draw(&record, &self.names, &self.paint, self.detail));
            if !others.is_empty() {
                text.push_str(&self.likewise(&record, &others));
            }
        }
        if self.omitted > 0 {
            let trials = if self.omitted == 1 { "trial" } else { "trials" };
            let more = format!("{} more {trials} did not pass", number(self.omitted as u64));
            let line = format!("{more}: `trialrun status --all` lists them, `trialrun show TRIAL` shows one");
            text.push_str(&format!("\n  {}\n", self.paint.bold(&line)));
        }
        text
    }

    fn likewise(&self, first: &TrialRecord, others: &[Other]) -> String {
        if others.iter().any(|other| other.series != series(first)) {
            let names: Vec<&str> = others.iter().map(|other| other.name.as_str()).collect();
            let (count, names) = (number(others.len() as u64), self.paint.folded(&names.join(", "), 160));
            let trials = if others.len() == 1 { "trial" } else { "trials" };
            return format!(
                "    {}\n",
                self.paint.dim(&format!("{count} more {trials} broke for the same reason: {names}"))
            );
        }
        let did = match first.outcome {
            Outcome::Failed => "failed",
            Outcome::Broken => "broke",
            Outcome::Stale => "became stale",
            _ => "are undecided",
        };
        let all = self.repetitions.get(&series(first)).copied().unwrap_or_default();
        let mut repetitions: Vec<u64> = others.iter().map(|other| other.repetition).collect();
        repetitions.sort_unstable();
        let numbers: Vec<String> = repetitions.iter().map(|number| format!("#{number}")).collect();
        let numbers = self.paint.folded(&numbers.join(", "), 80);
        let [same, all] = [others.len() + 1, all].map(|count| number(count as u64));
        let line = format!("{same} of {all} repetitions {did} the same way, also {numbers}");
        format!("    {}\n", self.paint.dim(&line))
    }
}

fn series(record: &TrialRecord) -> Series {
    (record.suite.clone(), record.case.clone(), record.arm.clone())
}

//! The last block: the summary of the run.

use model::{Envelope, Event, HookRecord, Outcome, RunInfo, Summary, Tokens, TrialRecord};

use super::{Paint, arms, result};
use crate::figure::{aside, between, cached, counted, elapsed, money, percent, whole};
use crate::ledger::Ledger;
use crate::names::Names;
use crate::plain;

/// Maximum number of trials that are suggested for `show`.
const HINTS: usize = 3;

/// Collects the data for the last block. Trials are listed in the order of the plan, whenever they finished.
pub(crate) struct Closing {
    paint: Paint,
    names: Names,
    ledger: Ledger,
    started: jiff::Timestamp,
    last: jiff::Timestamp,
    duration_ms: Option<u64>,
    signal: Option<String>,
    faults: Vec<&'static str>,
    /// Trials that did not pass: place, outcome and name.
    look_at: Vec<(usize, Outcome, String)>,
    /// Failed commands around the run.
    hooks: Vec<HookRecord>,
}

impl Closing {
    pub(super) fn new(paint: Paint, names: Names, info: &RunInfo) -> Self {
        Self {
            paint,
            ledger: Ledger::new(info, names.compares()),
            names,
            started: info.started_at,
            last: info.started_at,
            duration_ms: None,
            signal: None,
            faults: Vec::new(),
            look_at: Vec::new(),
            hooks: Vec::new(),
        }
    }

    pub(super) fn event(&mut self, envelope: &Envelope) {
        self.last = envelope.at;
        match &envelope.event {
            Event::TrialFinished(record) => self.trial(record),
            Event::HookFinished(hook) if envelope.trial.is_none() && !hook.succeeded() => self.hooks.push(hook.clone()),
            Event::RunFinished { duration_ms, signal, .. } => {
                self.duration_ms = Some(*duration_ms);
                self.signal.clone_from(signal);
            }
            _ => {}
        }
    }

    fn trial(&mut self, record: &TrialRecord) {
        let place = self.ledger.add(record);
        // The baseline is expected to fail without the skill.
        if record.is_baseline() {
            return;
        }
        self.faults.extend(record.fault.filter(|_| record.outcome == Outcome::Broken).map(result::fault_name));
        if result::wants_reason(record.outcome) {
            self.look_at.push((place, record.outcome, self.names.of_record(record)));
        }
    }

    pub(super) fn draw(&mut self) -> String {
        self.look_at.sort_by_key(|(place, ..)| *place);
        self.faults.sort_unstable();
        let paint = self.paint;
        let summary = &self.ledger.summary();
        let mut text = format!("\n{}\n", paint.dim(&paint.signs().rule.repeat(paint.width())));
        let mut row = |name: &str, value: String| {
            text.push_str(&format!("  {} {value}\n", paint.dim(&format!("{name:<10}"))));
        };

        let (trials, baseline) = self.ledger.counted();
        row("trials", trials + &paint.dim(&baseline));
        for (outcome, count) in [
            (Outcome::Passed, summary.passed),
            (Outcome::Failed, summary.failed),
            (Outcome::Undecided, summary.undecided),
            (Outcome::Broken, summary.broken),
            (Outcome::Skipped, summary.skipped),
            (Outcome::Cancelled, summary.cancelled),
        ] {
            let always = matches!(outcome, Outcome::Passed | Outcome::Failed);
            if count > 0 {
                let note = match outcome {
                    Outcome::Broken => self.whose_fault(),
                    Outcome::Passed if summary.flaky > 0 => format!(" ({} flaky)", summary.flaky),
                    Outcome::Undecided => but_undecided(summary),
                    _ => String::new(),
                };
                row(outcome.name(), paint.as_outcome(outcome, &whole(count as u64)) + &note);
            } else if always {
                row(outcome.name(), "0".into());
            }
        }
        for (name, rate) in pass_rates(summary) {
            row(name, rate);
        }
        row("duration", elapsed(self.duration_ms.unwrap_or_else(|| between(self.started, self.last))));
        row("tokens", summary.tokens.as_ref().map_or_else(|| "n/a".into(), |tokens| self.tokens(tokens)));
        row("cost", cost(summary));
        if let Some(judge) = &summary.judge {
            row("judge", aside(judge));
        }
        if let Some(user) = &summary.user {
            row("user", aside(user));
        }
        for hook in &self.hooks {
            let how = format!("{} `{}`: {}", hook.hook.name(), hook.command, hook.describe());
            row("hook", paint.yellow(&plain::folded(&how, 160, paint.signs().ellipsis)));
        }
        text.push_str(&arms::draw(&self.ledger.arms(), &paint));
        text.push_str(&self.verdict());
        text
    }

    fn whose_fault(&self) -> String {
        let faults: Vec<&[&str]> = self.faults.chunk_by(|a, b| a == b).collect();
        match faults[..] {
            [] => String::new(),
            [same] => format!(" ({})", same[0]),
            _ => {
                let parts: Vec<String> = faults.iter().map(|same| format!("{} {}", same.len(), same[0])).collect();
                format!(" ({})", parts.join(", "))
            }
        }
    }

    fn tokens(&self, tokens: &Tokens) -> String {
        let mut parts = vec![
            whole(tokens.total()),
            format!("input {}", whole(tokens.input)),
            format!("output {}", whole(tokens.output)),
        ];
        if tokens.cache_write > 0 {
            parts.push(format!("cache write {}", whole(tokens.cache_write)));
        }
        if let Some(share) = cached(tokens) {
            let read = whole(tokens.cache_read);
            parts.push(format!("cache read {read} ({})", percent(share)));
        }
        self.paint.join(&parts)
    }

    fn verdict(&self) -> String {
        let paint = self.paint;
        let verdict = self.ledger.verdict(self.signal.as_deref());
        let word = paint.as_outcome(verdict.outcome, &paint.bold(verdict.word));
        let mut text = format!("\n{word}  {}\n", verdict.because);
        // Failures come first, because the reader is looking for them.
        let (failed, others): (Vec<_>, Vec<_>) =
            self.look_at.iter().partition(|(_, outcome, _)| *outcome == Outcome::Failed);
        for (.., name) in failed.into_iter().chain(others).take(HINTS) {
            text.push_str(&format!("  {}\n", paint.dim(&format!("trialrun show {}", quoted(name)))));
        }
        if self.look_at.len() > HINTS {
            let more = self.look_at.len() - HINTS;
            text.push_str(&format!("  {}\n", paint.dim(&format!("and {more} more: trialrun status"))));
        }
        text
    }
}

/// Formats ` (9 of them passed but for what is undecided)`: of the undecided trials, those in which all decided
/// findings pass.
fn but_undecided(summary: &Summary) -> String {
    match (summary.passed_but_undecided, summary.undecided) {
        (0, _) => String::new(),
        (open, all) if open == all => " (passed but for what is undecided)".into(),
        (open, _) => format!(" ({open} of them passed but for what is undecided)"),
    }
}

/// Returns the pass rate of the trials in which everything was decided; and if that is not all of them, the pass rate
/// by the decided findings.
pub(crate) fn pass_rates(summary: &Summary) -> Vec<(&'static str, String)> {
    let Summary { decided, by_decided, .. } = summary;
    let mut rates = Vec::new();
    if let Some(rate) = summary.pass_rate {
        let of = format!(" of {} decided", whole(decided.trials as u64));
        rates.push(("pass rate", percent(rate) + if decided.trials < summary.trials { &of } else { "" }));
    }
    if let Some(rate) = by_decided.rate().filter(|_| by_decided.trials > decided.trials) {
        let of = counted(by_decided.trials, "trial");
        rates.push(("as decided", format!("{} of {of}, undecided assertions left out", percent(rate))));
    }
    rates
}

/// Formats the cost as `$0.0492 ($0.0246 of it without the skill; 3 of 4 trials known)`.
pub(crate) fn cost(summary: &Summary) -> String {
    let (known, trials) = (summary.trials_with_cost, summary.trials + summary.baseline);
    let Some(cost) = summary.cost_usd else { return "n/a".into() };
    let mut notes = Vec::new();
    notes.extend(summary.baseline_cost_usd.map(|cost| format!("{} of it without the skill", money(cost))));
    notes.extend((known < trials).then(|| format!("{known} of {trials} trials known")));
    if notes.is_empty() { money(cost) } else { format!("{} ({})", money(cost), notes.join("; ")) }
}

/// Quotes a word for a shell, if needed.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-.:/@#+=,%".contains(c);
    if word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

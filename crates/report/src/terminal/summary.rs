//! The last block: what the run came to.

use model::{ArmSummary, Envelope, Event, Outcome, RunInfo, Summary, Tokens, TrialRecord};

use super::{Paint, result};
use crate::figure::{aside, between, cached, counted, elapsed, money, percent, whole};
use crate::names::Names;
use crate::plain;

/// How many trials are offered for a closer look.
const HINTS: usize = 3;

/// Collects what the last block needs.
pub(crate) struct Closing {
    paint: Paint,
    names: Names,
    planned: usize,
    started: jiff::Timestamp,
    last: jiff::Timestamp,
    summary: Summary,
    duration_ms: Option<u64>,
    signal: Option<String>,
    faults: Vec<(&'static str, usize)>,
    /// Trials that did not pass: outcome and name.
    look_at: Vec<(Outcome, String)>,
    /// Without their texts; only kept where arms are compared.
    trials: Vec<TrialRecord>,
    compares: bool,
}

impl Closing {
    pub(super) fn new(paint: Paint, names: Names, info: &RunInfo) -> Self {
        Self {
            paint,
            compares: names.compares(),
            names,
            planned: info.trials.len(),
            started: info.started_at,
            last: info.started_at,
            summary: Summary::default(),
            duration_ms: None,
            signal: None,
            faults: Vec::new(),
            look_at: Vec::new(),
            trials: Vec::new(),
        }
    }

    pub(super) fn event(&mut self, envelope: &Envelope) {
        self.last = envelope.at;
        match &envelope.event {
            Event::TrialFinished(record) => {
                self.summary.add(record);
                if let Some(fault) = record.fault.filter(|_| record.outcome == Outcome::Broken) {
                    let fault = result::fault_name(fault);
                    match self.faults.iter_mut().find(|(name, _)| *name == fault) {
                        Some((_, count)) => *count += 1,
                        None => self.faults.push((fault, 1)),
                    }
                }
                if result::wants_reason(record.outcome) {
                    self.look_at.push((record.outcome, self.names.of_record(record)));
                }
                if self.compares {
                    self.trials.push(bare(record));
                }
            }
            Event::RunFinished { duration_ms, signal, .. } => {
                self.duration_ms = Some(*duration_ms);
                self.signal.clone_from(signal);
            }
            _ => {}
        }
    }

    pub(super) fn draw(&self) -> String {
        let paint = self.paint;
        let summary = &self.summary;
        let mut text = format!("\n{}\n", paint.dim(&paint.signs().rule.repeat(paint.width())));
        let mut row = |name: &str, value: String| {
            text.push_str(&format!("  {} {value}\n", paint.dim(&format!("{name:<10}"))));
        };

        row("trials", whole(summary.trials as u64) + &self.missing());
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
                    _ => String::new(),
                };
                row(outcome.name(), paint.as_outcome(outcome, &whole(count as u64)) + &note);
            } else if always {
                row(outcome.name(), "0".into());
            }
        }
        if let Some(rate) = summary.pass_rate {
            let decided = summary.passed + summary.failed;
            let of =
                if decided < summary.trials { format!(" of {} decided", whole(decided as u64)) } else { String::new() };
            row("pass rate", percent(rate) + &of);
        }
        row("duration", elapsed(self.duration_ms.unwrap_or_else(|| between(self.started, self.last))));
        row("tokens", summary.tokens.as_ref().map_or_else(|| "n/a".into(), |tokens| self.tokens(tokens)));
        row("cost", self.cost());
        if let Some(judge) = &summary.judge {
            row("judge", aside(judge));
        }
        if let Some(user) = &summary.user {
            row("user", aside(user));
        }
        text.push_str(&self.arms());
        text.push_str(&self.verdict());
        text
    }

    fn missing(&self) -> String {
        if self.summary.trials < self.planned {
            format!(" of {} planned", whole(self.planned as u64))
        } else {
            String::new()
        }
    }

    fn whose_fault(&self) -> String {
        if self.faults.is_empty() {
            return String::new();
        }
        if let [(fault, _)] = self.faults[..] {
            return format!(" ({fault})");
        }
        let parts: Vec<String> = self.faults.iter().map(|(fault, count)| format!("{count} {fault}")).collect();
        format!(" ({})", parts.join(", "))
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

    fn cost(&self) -> String {
        let (known, trials) = (self.summary.trials_with_cost, self.summary.trials);
        match self.summary.cost_usd {
            None => "n/a".into(),
            Some(cost) if known < trials => format!("{} ({known} of {trials} trials known)", money(cost)),
            Some(cost) => money(cost),
        }
    }

    /// One line for each arm, where some case ran more than once.
    fn arms(&self) -> String {
        if !self.compares {
            return String::new();
        }
        let arms = ArmSummary::of(&self.trials);
        let names: Vec<String> =
            arms.iter().map(|arm| plain::folded(&arm.arm, 44, self.paint.signs().ellipsis)).collect();
        let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(3);
        let k = arms.iter().map(|arm| arm.k).max().unwrap_or(0);
        let mut head = format!("  {:<width$}  {:>7}  {:>4}  {:>9}", "arm", "passed", "rate", "95%");
        if k > 1 {
            head.push_str(&format!("  {:>7}  {:>7}", format!("pass@{k}"), format!("pass^{k}")));
        }
        let mut text = format!("\n{}\n", self.paint.dim(&head));
        for (arm, name) in arms.iter().zip(&names) {
            let (passed, rate, interval) = match arm.full_pass_rate {
                Some(rate) => (
                    format!("{}/{}", (rate.mean * arm.trials as f64).round(), arm.trials),
                    percent(rate.mean),
                    rate.ci95.map_or_else(|| "n/a".into(), |[low, high]| range(low, high)),
                ),
                None => ("0/0".into(), "n/a".into(), "n/a".into()),
            };
            text.push_str(&format!("  {name:<width$}  {passed:>7}  {rate:>4}  {interval:>9}"));
            if k > 1 {
                let share = |share: Option<f64>| {
                    let same = if arm.k == k { String::new() } else { format!(" k={}", arm.k) };
                    share.map_or_else(|| "n/a".into(), |share| percent(share) + &same)
                };
                text.push_str(&format!("  {:>7}  {:>7}", share(arm.pass_at_k), share(arm.pass_hat_k)));
            }
            text.push('\n');
        }
        text
    }

    fn verdict(&self) -> String {
        let paint = self.paint;
        let summary = &self.summary;
        let unfinished = self.planned.saturating_sub(summary.trials);
        let mut because: Vec<String> = Vec::new();
        let (word, outcome) = if summary.failed > 0 {
            because.push(format!("{} of {} failed", summary.failed, counted(summary.trials, "trial")));
            ("FAIL", Outcome::Failed)
        } else {
            for (count, what) in [
                (summary.broken, "broken"),
                (summary.undecided, "undecided"),
                (summary.cancelled, "cancelled"),
                (unfinished, "not finished"),
            ] {
                if count > 0 {
                    because.push(format!("{} {what}", counted(count, "trial")));
                }
            }
            if because.is_empty() && self.signal.is_none() {
                because.push(format!("{} passed", counted(summary.passed, "trial")));
                ("PASS", Outcome::Passed)
            } else {
                ("INCOMPLETE", Outcome::Broken)
            }
        };
        because.extend(self.signal.as_ref().map(|signal| format!("stopped by {signal}")));
        let mut text = format!("\n{}  {}\n", paint.as_outcome(outcome, &paint.bold(word)), because.join(", "));
        // Failures are what a reader came for.
        let (failed, others): (Vec<_>, Vec<_>) =
            self.look_at.iter().partition(|(outcome, _)| *outcome == Outcome::Failed);
        for (_, name) in failed.into_iter().chain(others).take(HINTS) {
            text.push_str(&format!("  {}\n", paint.dim(&format!("trialrun show {}", quoted(name)))));
        }
        if self.look_at.len() > HINTS {
            let more = self.look_at.len() - HINTS;
            text.push_str(&format!("  {}\n", paint.dim(&format!("and {more} more: trialrun status"))));
        }
        text
    }
}

/// `45-94%`
fn range(low: f64, high: f64) -> String {
    format!("{}-{}", percent(low).trim_end_matches('%'), percent(high))
}

/// As a shell takes it for one word.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-.:/@#+=,%".contains(c);
    if word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// A record without its texts: what comparing arms needs.
fn bare(record: &TrialRecord) -> TrialRecord {
    let mut findings = record.findings.clone();
    for finding in &mut findings {
        finding.because.clear();
        finding.expected = None;
        finding.actual = None;
        finding.evidence.clear();
        finding.captures.clear();
        finding.source = None;
        finding.failed_critical.clear();
        finding.details.clear();
        finding.failures.clear();
    }
    TrialRecord {
        findings,
        input: Vec::new(),
        input_value: None,
        answer: None,
        result: None,
        expected: None,
        tools: Vec::new(),
        vars: None,
        tool_calls: Vec::new(),
        questions: Vec::new(),
        files_changed: Vec::new(),
        errors: Vec::new(),
        warnings: Vec::new(),
        settings: serde_json::Map::new(),
        attempts: Vec::new(),
        ..record.clone()
    }
}

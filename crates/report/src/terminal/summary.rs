//! The last block of the output: the summary of the run.

use std::collections::HashMap;

use model::{
    DecisionRecord, Envelope, Event, Gate, GateResult, HookRecord, Outcome, RunInfo, SampledTrials, Summary,
    TrialRecord,
};

use super::{Paint, arms, decisions, result};
use crate::decisions::{NOTE, reasons};
use crate::format::{
    between, cached, counted, elapsed, model_usage, money, number, percent, precise_percent, range, share,
};
use crate::names::Names;
use crate::totals::{self, RunTotals, Verdict};

/// Maximum number of trials suggested for `show`.
const HINTS: usize = 3;

/// Number of lines of a summary that are visible at once in a small terminal, with the hints below them.
const SCREEN: usize = 20;

/// Maximum number of warnings that are listed.
const WARNINGS: usize = 5;

/// Collects the data for the last block. Trials are listed in the order of the plan, regardless of when they finished.
pub(crate) struct RunSummary {
    paint: Paint,
    names: Names,
    totals: RunTotals,
    started: jiff::Timestamp,
    last: jiff::Timestamp,
    duration_ms: Option<u64>,
    signal: Option<String>,
    faults: Vec<&'static str>,
    /// Trials that did not pass: position, outcome and name.
    unsuccessful: Vec<(usize, Outcome, String)>,
    /// Warnings of passed trials: position, text and name of the trial.
    warnings: Vec<(usize, String, String)>,
    /// Failed commands around the run.
    hooks: Vec<HookRecord>,
    /// Command that records stale cassettes again.
    refresh: String,
}

impl RunSummary {
    pub(super) fn new(paint: Paint, names: Names, info: &RunInfo) -> Self {
        Self {
            paint,
            totals: RunTotals::new(info, names.compares()),
            names,
            started: info.started_at,
            last: info.started_at,
            duration_ms: None,
            signal: None,
            faults: Vec::new(),
            unsuccessful: Vec::new(),
            warnings: Vec::new(),
            hooks: Vec::new(),
            refresh: refresh(info.invocation.as_ref().map_or(&[], |invocation| &invocation.arguments)),
        }
    }

    pub(super) fn event(&mut self, envelope: &Envelope) {
        self.last = envelope.at;
        match &envelope.event {
            Event::TrialFinished(record) => self.trial(record),
            Event::HookFinished(hook) if envelope.trial.is_none() && !hook.succeeded() => self.hooks.push(hook.clone()),
            Event::Decided(decision) => self.totals.decide(decision),
            Event::RunFinished { duration_ms, signal, .. } => {
                self.duration_ms = Some(*duration_ms);
                self.signal.clone_from(signal);
            }
            _ => {}
        }
    }

    fn trial(&mut self, record: &TrialRecord) {
        let place = self.totals.add(record);
        if record.outcome == Outcome::Passed {
            let name = self.names.of_record(record);
            self.warnings.extend(record.warnings.iter().map(|warning| (place, warning.clone(), name.clone())));
        }
        // The baseline is expected to fail without the skill.
        if record.is_baseline() || record.quarantine.is_some() {
            return;
        }
        self.faults.extend(record.fault.filter(|_| record.outcome == Outcome::Broken).map(result::fault_name));
        if result::needs_reason(record.outcome) {
            self.unsuccessful.push((place, record.outcome, self.names.of_record(record)));
        }
    }

    /// Draws the summary, which begins with the verdict. Unless the result of every trial was drawn, it lists the warnings
    /// of passed trials.
    pub(super) fn draw(&mut self, has_all_results: bool) -> String {
        if has_all_results {
            self.warnings.clear();
        }
        self.unsuccessful.sort_by_key(|(place, ..)| *place);
        self.faults.sort_unstable();
        let paint = self.paint;
        let summary = &self.totals.summary();
        let verdict = self.verdict();
        let mut text = format!("\n{}\n{verdict}", paint.dim(&paint.symbols().rule.repeat(paint.width())));
        let mut row = |name: &str, value: String| {
            text.push_str(&format!("  {} {value}\n", paint.dim(&format!("{name:<10}"))));
        };

        let (trials, baseline) = self.totals.counted();
        row("trials", trials + &paint.dim(&baseline));
        for outcome in Outcome::ALL {
            let count = summary.by_outcome[outcome];
            let always = matches!(outcome, Outcome::Passed | Outcome::Failed);
            if count > 0 {
                let note = match outcome {
                    Outcome::Broken => self.fault_note(),
                    Outcome::Passed => passed_note(summary),
                    Outcome::Undecided => undecided_note(summary),
                    _ => String::new(),
                };
                row(outcome.name(), paint.as_outcome(outcome, &number(count as u64)) + &note);
            } else if always {
                row(outcome.name(), "0".into());
            }
        }
        if let Some(quarantined) = totals::quarantined(summary) {
            row("ignored", paint.yellow(&quarantined));
        }
        for (name, rate) in pass_rates(summary, &self.totals.gate()) {
            row(name, rate);
        }
        row("duration", elapsed(self.duration_ms.unwrap_or_else(|| between(self.started, self.last))));
        for (place, tokens) in self.tokens(summary).into_iter().enumerate() {
            row(if place == 0 { "tokens" } else { "" }, tokens);
        }
        row("cost", cost(summary));
        if let Some(judge) = &summary.judge {
            row("judge", model_usage(judge));
        }
        if let Some(user) = &summary.user {
            row("user", model_usage(user));
        }
        if let Some(used) = self.totals.cassettes() {
            row("cassettes", paint.folded(&used, 200));
        }
        for hook in &self.hooks {
            let how = format!("{} `{}`: {}", hook.hook.name(), hook.command, hook.describe());
            row("hook", paint.yellow(&paint.folded(&how, 160)));
        }
        for warning in warned(&mut self.warnings) {
            row("warning", paint.yellow(&paint.folded(&warning, 300)));
        }
        let decisions = self.totals.decisions();
        text.push_str(&decided(&decisions, &paint));
        text.push_str(&arms::draw(&self.totals.arms(), &paint));
        let hints = self.hints();
        // The end of a longer summary is on the screen when its beginning is not.
        let is_long = text.lines().count() > SCREEN;
        if is_long || !hints.is_empty() {
            text.push('\n');
        }
        if is_long {
            text.push_str(&verdict);
        }
        text + &hints
    }

    fn fault_note(&self) -> String {
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

    /// Returns the tokens in one line, or in two if the sum is only a lower limit.
    fn tokens(&self, summary: &Summary) -> Vec<String> {
        let Some(tokens) = &summary.tokens else { return vec!["n/a".into()] };
        let mut parts = vec![format!("input {}", number(tokens.input)), format!("output {}", number(tokens.output))];
        if tokens.cache_write > 0 {
            parts.push(format!("cache write {}", number(tokens.cache_write)));
        }
        if let Some(share) = cached(tokens) {
            let read = number(tokens.cache_read);
            parts.push(format!("cache read {read} ({})", percent(share)));
        }
        let total = number(tokens.total());
        match known(summary, summary.trials_with_tokens) {
            Some(known) => vec![format!("at least {total} ({known})"), self.paint.join(&parts)],
            None => {
                parts.insert(0, total);
                vec![self.paint.join(&parts)]
            }
        }
    }

    fn verdict(&self) -> String {
        verdict(&self.totals.verdict(self.signal.as_deref()), &self.paint)
    }

    /// Returns commands that show the trials that did not pass, and the one that records stale cassettes again.
    fn hints(&self) -> String {
        let paint = self.paint;
        let mut text = String::new();
        // Failures come first, because they are what the reader is looking for.
        let (failed, others): (Vec<_>, Vec<_>) =
            self.unsuccessful.iter().partition(|(_, outcome, ..)| *outcome == Outcome::Failed);
        for (.., name) in failed.into_iter().chain(others).take(HINTS) {
            text.push_str(&format!("  {}\n", paint.dim(&format!("trialrun show {}", model::text::shell_word(name)))));
        }
        if self.unsuccessful.len() > HINTS {
            let more = number((self.unsuccessful.len() - HINTS) as u64);
            text.push_str(&format!("  {}\n", paint.dim(&format!("and {more} more: trialrun status"))));
        }
        if self.totals.summary().open_stale() > 0 {
            text.push_str(&format!("  {}\n", paint.dim(&crate::plain::clean(&self.refresh))));
        }
        text
    }
}

/// Formats a verdict, folded to the width of prose.
pub(crate) fn verdict(verdict: &Verdict, paint: &Paint) -> String {
    let Verdict { word, outcome, reason } = verdict;
    let folded = arms::folded(&format!("{word}  {reason}"), paint, |_, line| line.to_owned());
    // The margin of other sentences is wider.
    let lines: String = folded.lines().map(|line| format!("{}\n", line.get(2..).unwrap_or_default())).collect();
    lines.replacen(word, &paint.as_outcome(*outcome, &paint.bold(word)), 1)
}

/// Returns the decisions about cases, followed by notes.
fn decided(decisions: &[DecisionRecord], paint: &Paint) -> String {
    let table = decisions::table(decisions, paint);
    if table.is_empty() {
        return table;
    }
    let notes: String = reasons(decisions)
        .iter()
        .map(|reason| arms::folded(reason, paint, Paint::yellow))
        .chain([arms::folded(NOTE, paint, Paint::dim)])
        .collect();
    format!("{table}\n{notes}")
}

/// Formats ` (9 of them passed except for undecided assertions)`: the undecided trials in which all decided findings
/// pass.
fn undecided_note(summary: &Summary) -> String {
    match (summary.passed_but_undecided, summary.by_outcome.undecided - summary.not_judged) {
        (0, _) if summary.not_judged == 0 => String::new(),
        (0, 0) => " (not judged)".into(),
        (0, _) => format!(" ({} of them not judged)", summary.not_judged),
        (open, _) if summary.not_judged > 0 => {
            format!(" ({} of them not judged, {open} passed except for undecided assertions)", summary.not_judged)
        }
        (open, all) if open == all => " (passed except for undecided assertions)".into(),
        (open, _) => format!(" ({open} of them passed except for undecided assertions)"),
    }
}

/// Describes the passed trials that need a look: `2 flaky, 1 with signs of tampering` in brackets.
fn passed_note(summary: &Summary) -> String {
    let notes = [(summary.flaky, "flaky"), (summary.passed_with_signs, "with signs of tampering")];
    let notes = notes.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
    let notes = notes.collect::<Vec<_>>().join(", ");
    if notes.is_empty() { notes } else { format!(" ({notes})") }
}

/// Returns the pass rate, the required one and the sample for the judge.
pub(crate) fn pass_rates(summary: &Summary, gate: &Gate) -> Vec<(&'static str, String)> {
    let mut rates = Vec::new();
    let counted = summary.counted();
    // The counts are above, unless some trials do not count.
    let is_plain = summary.flaky == 0 && counted.trials() == summary.trials as u64;
    let rate = summary.pass_rate.filter(|_| is_plain).map(percent);
    // If no trial has a result, the rate could be anything.
    let rate = rate.or_else(|| totals::rate(summary)).filter(|_| counted.unknown < counted.trials());
    rates.extend(rate.map(|rate| ("pass rate", rate)));
    if let Some(least) = gate.min_pass_rate {
        let result = match gate.result(summary) {
            Some(GateResult::Met) => "met",
            Some(GateResult::NotMet) => "not met",
            Some(GateResult::Unknown) => "cannot tell, so it is not met",
            None => "no trial counts",
        };
        rates.push(("required", format!("at least {}: {result}", precise_percent(least))));
    }
    rates.extend(summary.judge_sample.as_ref().map(|sample| ("sample", sampled(sample))));
    rates
}

/// Describes the sample that the judge decided, with its pass rate and the interval.
fn sampled(sample: &SampledTrials) -> String {
    let of = format!("{} of {} judged", number(sample.judged as u64), counted(sample.trials, "trial"));
    match sample.counted().rate() {
        Some(rate) => {
            let interval = rate.ci95.map_or_else(String::new, |ends| format!(" ({})", range(ends)));
            format!("{of}; {} of them passed{interval}", share(rate.bounds))
        }
        None => of,
    }
}

/// Formats the cost as `at least $0.0492 ($0.0246 without the skill; 3 of 4 trials known)`.
pub(crate) fn cost(summary: &Summary) -> String {
    let Some(cost) = summary.cost_usd else { return "n/a".into() };
    let mut notes = Vec::new();
    notes.extend(summary.baseline_cost_usd.map(|cost| format!("{} without the skill", money(cost))));
    notes.extend(known(summary, summary.trials_with_cost));
    let cost = at_least(money(cost), summary, summary.trials_with_cost);
    if notes.is_empty() { cost } else { format!("{cost} ({})", notes.join("; ")) }
}

/// Writes a sum that is known for the number of trials `with` it: `at least 120` if that is not all of them.
pub(crate) fn at_least(sum: String, summary: &Summary, with: usize) -> String {
    if summary.partly_known(with).is_some() { format!("at least {sum}") } else { sum }
}

/// Returns `3 of 4 trials known` if a sum is known only for `with` of the trials.
pub(crate) fn known(summary: &Summary, with: usize) -> Option<String> {
    summary.partly_known(with).map(|(known, ran)| format!("{known} of {ran} trials known"))
}

/// Describes each distinct warning once, with the number of its trials and the name of the first.
fn warned(warnings: &mut [(usize, String, String)]) -> Vec<String> {
    warnings.sort_by_key(|(place, ..)| *place);
    let mut distinct: Vec<(&str, &str, usize)> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (_, text, name) in &*warnings {
        let place = *places.entry(text).or_insert(distinct.len());
        match distinct.get_mut(place) {
            Some((.., count)) => *count += 1,
            None => distinct.push((text, name, 1)),
        }
    }
    let more = distinct.len().saturating_sub(WARNINGS);
    let describe = |(text, name, count): &(&str, &str, usize)| match count {
        1 => format!("{name}: {text}"),
        _ => format!("{name} and {} more: {text}", number(*count as u64 - 1)),
    };
    let mut lines: Vec<String> = distinct.iter().take(WARNINGS).map(describe).collect();
    lines.extend((more > 0).then(|| format!("and {} more", number(more as u64))));
    lines
}

/// Returns the command that records the stale cassettes of a run again. It has the options of the run, because these
/// select the trials, their arms and their folder.
fn refresh(arguments: &[String]) -> String {
    let mut command = vec!["trialrun".to_owned(), "cassettes".to_owned()];
    if let Some((_, options)) = arguments.split_first().filter(|(first, _)| *first == "run") {
        let mut options = options.iter();
        while let Some(option) = options.next() {
            match option.as_str() {
                // It records in any case.
                "--cassette" => drop(options.next()),
                option if option.starts_with("--cassette=") => {}
                option => command.push(model::text::shell_word(option)),
            }
        }
    }
    // Before the others, because these may end with `-- PATH`.
    command.splice(2..2, ["--refresh".to_owned(), "stale".to_owned()]);
    command.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_distinct_warning_is_listed_once_with_the_number_of_its_trials() {
        let warning = |place: usize, text: &str| (place, text.to_owned(), format!("trial{place}"));
        assert_eq!(warned(&mut [warning(3, "full"), warning(1, "full")]), ["trial1 and 1 more: full"]);
        let mut many: Vec<_> = (0..7).map(|place| warning(place, &place.to_string())).collect();
        let lines = warned(&mut many);
        assert_eq!((lines[0].as_str(), lines.len()), ("trial0: 0", 6));
        assert_eq!(lines[5], "and 2 more");
    }

    #[test]
    fn stale_cassettes_are_recorded_again_with_the_options_of_the_run() {
        let of = |line: &str| refresh(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(
            of("run tests --cassette replay --trials 4 --model it's"),
            r"trialrun cassettes --refresh stale tests --trials 4 --model 'it'\''s'"
        );
        assert_eq!(of("run --cassette=auto"), "trialrun cassettes --refresh stale");
        assert_eq!(of("cassettes --refresh all"), "trialrun cassettes --refresh stale");
        assert_eq!(refresh(&[]), "trialrun cassettes --refresh stale");
    }
}

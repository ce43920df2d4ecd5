//! A finished trial: its outcome, its findings, its cost.

use model::{Capture, Ending, Finding, Outcome, Status, TrialRecord};

use super::{Detail, Paint, Style, failure, finding, indented, score};
use crate::format::{counted, elapsed, money, number, tokens_in_and_out};
use crate::names::Names;
use crate::{columns, plain};

/// Maximum length of a line of text.
const TEXT: usize = 300;

/// Maximum number of signs of tampering that are listed.
const SIGNS: usize = 5;

/// Formats a finished trial with all its findings.
pub fn result(record: &TrialRecord, style: &Style) -> String {
    draw(record, &Names::default(), &Paint::new(*style), Detail { quiet: false, evidence: true })
}

pub(super) fn draw(record: &TrialRecord, names: &Names, paint: &Paint, detail: Detail) -> String {
    let symbols = paint.symbols();
    let folded = |text: &str| paint.folded(text, TEXT);
    let mut text = String::new();

    let name = names.of_record(record);
    let column = (names.width() + 4).max(46).min(paint.width().saturating_sub(24));
    let dots = ".".repeat(column.saturating_sub(columns::width(&name) + 1).max(3));
    text.push_str(&format!("  {} {} {}\n", paint.bold(&name), paint.dim(&dots), verdict(record, paint)));

    if let Some(quarantine) = &record.quarantine {
        text.push_str(&format!("    {}\n", paint.yellow(&folded(&quarantine.describe()))));
    }
    if let Some(sentence) = turned(record) {
        let passed = record.outcome == Outcome::Passed;
        text.push_str(&format!("    {}\n", if passed { paint.dim(sentence) } else { sentence.to_owned() }));
    } else if let Some(reason) = record.reason.as_ref()
        // The findings below describe a failed or undecided trial better.
        && !record.findings.iter().any(|found| counts(found, record))
        // The next line describes a failure caused by the score.
        && !(record.outcome == Outcome::Failed && crate::score::describe(record).is_some())
    {
        text.push_str(&format!("    {}\n", folded(reason)));
    }
    text.push_str(&score::head(record, paint));
    let is_shown = |finding: &&Finding| {
        let noted = finding.status != Status::Met || detail.evidence;
        if detail.quiet { noted } else { noted || !finding.implicit }
    };
    let width = columns::widest(record.findings.iter().filter(is_shown).map(|finding| &finding.id)).min(36);
    for found in record.findings.iter().filter(is_shown) {
        text.push_str(&one(found, width, record, paint, detail));
    }
    text.push_str(&ending(record, paint));
    if needs_reason(record.outcome) && record.should_trigger == Some(true) && record.triggered == Some(false) {
        text.push_str(&format!("    {}\n", paint.yellow("the agent did not use the skill")));
    }
    for error in record.errors.iter().filter(|error| Some(*error) != record.reason.as_ref()) {
        text.push_str(&format!("    {} {}\n", paint.red("error:"), folded(error)));
    }
    for warning in &record.warnings {
        text.push_str(&format!("    {} {}\n", paint.yellow("warning:"), folded(warning)));
    }
    for sign in record.integrity.iter().take(SIGNS) {
        text.push_str(&format!("    {} {}\n", paint.yellow("integrity:"), folded(&sign.to_string())));
    }
    if let Some(more) = record.integrity.len().checked_sub(SIGNS).filter(|more| *more > 0) {
        text.push_str(&format!("    {} and {more} more\n", paint.yellow("integrity:")));
    }
    if record.attempts.len() > 1 {
        for (index, attempt) in record.attempts.iter().enumerate().take(record.attempts.len() - 1) {
            let reason = match &attempt.reason {
                reason if *reason == record.reason => " for the same reason".to_owned(),
                Some(reason) => format!(": {}", folded(reason)),
                None => String::new(),
            };
            let line = format!("attempt {} {}{reason}", index + 1, attempt.outcome.name());
            text.push_str(&format!("    {} {line}\n", symbols.again));
        }
    }
    if let Some(sandbox) = &record.sandbox {
        text.push_str(&format!("    {}\n", paint.dim(&format!("sandbox kept in {sandbox}"))));
    }
    text.push_str(&format!("    {}\n", paint.dim(&paint.join(&footer(record)))));
    text
}

/// Returns the outcome with its symbol and notes: `! broken (provider)`.
pub(crate) fn verdict(record: &TrialRecord, paint: &Paint) -> String {
    let mut text = format!("{} {}", paint.mark(record.outcome), crate::score::outcome(record));
    // An undecided trial is nobody's fault.
    if let Some(fault) = record.fault.filter(|_| record.outcome == Outcome::Broken) {
        text.push_str(&format!(" ({})", fault_name(fault)));
    }
    if record.flaky {
        text.push_str(" (flaky)");
    }
    if record.quarantine.is_some() {
        text.push_str(" (quarantined)");
    }
    paint.as_outcome(record.outcome, &text)
}

pub(crate) fn fault_name(fault: model::Fault) -> &'static str {
    match fault {
        model::Fault::Environment => "environment",
        model::Fault::Provider => "provider",
        model::Fault::Harness => "harness",
        model::Fault::Judge => "judge",
        model::Fault::Test => "test",
    }
}

/// Describes how `not` affected the outcome of the trial, if it did.
fn turned(record: &TrialRecord) -> Option<&'static str> {
    let own = |found: &Finding| found.implicit && found.status != Status::Met;
    match record.outcome {
        _ if !record.not || record.findings.iter().any(own) => None,
        Outcome::Failed => Some("the assertions hold, but the case has `not`"),
        Outcome::Passed => Some("the assertions do not hold, as `not` requires"),
        _ => None,
    }
}

/// Returns `true` if a finding is a reason why the trial did not pass. An unmet finding is not a reason if the trial
/// has no verdict, passed by its score, or has `not`, or if the finding has no weight.
pub(crate) fn counts(found: &Finding, record: &TrialRecord) -> bool {
    let is_wanted = record.not && !found.implicit && found.status == Status::Unmet;
    found.status != Status::Met
        && matches!(record.outcome, Outcome::Failed | Outcome::Undecided)
        && !is_wanted
        && Finding::decisive(&record.findings).any(|decisive| decisive.id == found.id)
}

/// Returns `true` if a met finding earned less than its full share of a score that was too low.
fn is_short(found: &Finding, record: &TrialRecord) -> bool {
    let has_share = !found.implicit && found.weight != 0.0;
    let is_part = record.pass_score.is_some() && has_share && found.status == Status::Met;
    is_part && record.outcome == Outcome::Failed && found.score.is_some_and(|score| score < 1.0)
}

fn one(found: &Finding, width: usize, record: &TrialRecord, paint: &Paint, detail: Detail) -> String {
    let mut reason = paint.folded(&found.reason, TEXT);
    let counts = counts(found, record);
    let fell_short = is_short(found, record);
    // The failures are drawn below, and a met finding does not explain a score that is too low.
    if (counts && found.status != Status::Met && !found.failures.is_empty()) || fell_short {
        reason.clear();
    }
    let is_scored = record.pass_score.is_some() && !found.implicit && record.outcome.is_graded();
    if let Some(share) = score::share(found).filter(|_| is_scored) {
        // In a passed trial, only the finding's share of the score is shown.
        let is_all = reason.is_empty() || (found.status != Status::Met && !counts);
        reason = if is_all { share } else { paint.join(&[share, reason]) };
    }
    // A finding that does not count is shown dimmed.
    let reason = if counts { reason } else { paint.dim(&reason) };
    let id = paint.folded(&found.id, 80);
    // With `not`, the trial's outcome determines what a met finding means.
    let is_turned = record.not && !found.implicit && found.status != Status::Undecided;
    let mark = if is_turned || (record.outcome == Outcome::Passed && found.status != Status::Met) {
        paint.dim(paint.symbols().dot)
    } else if counts || found.status == Status::Met {
        paint.status(found.status)
    } else {
        paint.dim(paint.mark_of(found.status))
    };
    let mut text = format!("    {mark} {}  {reason}", columns::padded(&id, width)).trim_end().to_owned();
    text.push('\n');
    for capture in &found.captures {
        text.push_str(&captured(capture, paint));
    }
    if is_scored && (counts || fell_short || detail.evidence) {
        text.push_str(&indented(&score::tree(found, paint), 6));
    }
    let is_unmet = found.status != Status::Met;
    if counts || (detail.evidence && (is_unmet || !found.evidence.is_empty())) {
        if is_unmet && !found.failures.is_empty() {
            text.push_str(&indented(&failure::draw(found, counts, detail.evidence, paint), 6));
        } else {
            text.push_str(&indented(&finding(found, counts, paint), 6));
        }
    }
    text
}

fn captured(capture: &Capture, paint: &Paint) -> String {
    let (shown, cut) = capture.shown();
    let step = capture.step.map_or_else(String::new, |step| format!(" (step {step})"));
    let mut text = format!("      {}{step}\n", paint.folded(&capture.field, 80));
    let bar = paint.dim(paint.symbols().bar);
    let lines = plain::lines(shown);
    if lines.is_empty() {
        text.push_str(&format!("      {bar} {}\n", paint.dim("(empty)")));
    }
    for line in lines {
        text.push_str(format!("      {bar} {line}").trim_end());
        text.push('\n');
    }
    if cut {
        let all = capture.value.encode_utf16().count();
        let note = format!(
            "(showing {} of {} characters; the record has all)",
            number(shown.encode_utf16().count() as u64),
            number(all as u64)
        );
        text.push_str(&format!("      {}\n", paint.dim(&note)));
    }
    text
}

/// Describes how the act phase ended, if neither the outcome nor a finding says so.
fn ending(record: &TrialRecord, paint: &Paint) -> String {
    let Some(ending) = &record.ending else { return String::new() };
    let description = match ending {
        Ending::Finished | Ending::Cancelled => true,
        Ending::ProviderFailed { .. }
        | Ending::Silent { .. }
        | Ending::Aborted { .. }
        | Ending::Unreachable { .. }
        | Ending::InvalidTest { .. }
        | Ending::Stale(_) => record.reason.is_some(),
        // Each of these has its own assertion, except that a budget has one only if it was set.
        Ending::GaveUp { .. } | Ending::OutOfBudget { .. } | Ending::TimedOut { .. } => {
            record.findings.iter().any(|found| found.implicit && found.status == Status::Unmet)
        }
    };
    if description {
        return String::new();
    }
    format!("    {}\n", paint.yellow(&paint.folded(&ending.describe(), TEXT)))
}

fn footer(record: &TrialRecord) -> Vec<String> {
    let mut parts = Vec::new();
    if record.outcome != Outcome::Skipped && (record.turn_count > 0 || record.ending.is_some()) {
        let (turns, limits) = (record.turn_count, &record.limits);
        parts.push(match (limits.turn_cap(), limits.warn_turns()) {
            (Some(cap), _) => format!("turns {turns}/{cap}"),
            (None, Some(most)) if turns as u64 > most => format!("turns {turns}/{most} (only warns)"),
            (None, _) => format!("turns {turns}"),
        });
        parts.push(match (record.calls_unreported, record.tool_calls.len()) {
            (true, 0) => "tools not reported".to_owned(),
            (true, reported) => format!("at least {}", counted(reported, "tool")),
            (false, calls) => counted(calls, "tool"),
        });
    }
    parts.extend(record.usage.as_ref().map(|tokens| tokens_in_and_out(tokens, "")));
    parts.extend(record.cost_usd.map(money));
    parts.push(elapsed(record.duration_ms));
    parts
}

/// Returns `true` if the outcome needs an explanation.
pub(crate) fn needs_reason(outcome: Outcome) -> bool {
    outcome == Outcome::Failed || outcome.is_unknown()
}

//! Section about a trial that did not pass: the reason, and the location of the assertion.

use model::{EgressVerdict, Finding, Outcome, Status, TrialRecord};

use super::escape::{block, plain_code, text};
use crate::format::{elapsed, money, rounded};
use crate::names::Names;
use crate::score;

/// Maximum length of a reason.
const REASON: usize = 400;
/// Maximum length of a value.
const VALUE: usize = 200;
/// Maximum number of lines of evidence.
const LINES: usize = 30;
/// Maximum number of failures of one finding.
const FAILURES: usize = 5;

/// Section about a trial, written when the trial finishes.
pub(super) struct Section {
    /// Position of the trial in the plan.
    pub(super) place: usize,
    pub(super) repetition: u64,
    /// Key shared by repetitions with the same result; `None` if each has its own details to show.
    pub(super) alike: Option<String>,
    pub(super) name: String,
    pub(super) text: String,
}

impl Section {
    pub(super) fn new(record: &TrialRecord, place: usize, names: &Names, evidence: bool) -> Self {
        Self {
            place,
            repetition: record.repetition,
            alike: (!evidence).then(|| score::result_key(record)),
            name: names.of_record(record),
            text: body(record, evidence),
        }
    }
}

fn body(record: &TrialRecord, evidence: bool) -> String {
    let mut took = vec![format!("{} in {}", outcome(record), elapsed(record.duration_ms))];
    took.extend(record.usage.map(|tokens| format!("{} tokens", rounded(tokens.total() as f64))));
    took.extend(record.cost_usd.map(money));
    let mut body = format!("{}\n\n", took.join(", "));
    let is_noted = |finding: &&Finding| finding.status != Status::Met;
    let is_shown = |finding: &&Finding| is_noted(finding) || (evidence && !finding.evidence.is_empty());
    // The reason of a trial with a verdict would only repeat the findings.
    let repeats = record.outcome.is_graded() && record.findings.iter().any(|found| is_noted(&found));
    if let Some(reason) = record.reason.as_ref().filter(|_| !repeats) {
        body.push_str(&format!("- {}\n", text(reason, REASON)));
    }
    for finding in record.findings.iter().filter(is_shown) {
        body.push_str(&found(finding, evidence));
    }
    let refused = record.egress.iter().filter(|attempt| attempt.verdict == EgressVerdict::Refused);
    for attempt in refused.take(LINES) {
        body.push_str(&format!("- network: {}\n", text(&attempt.describe(), REASON)));
    }
    if record.should_trigger == Some(true) && record.triggered == Some(false) {
        body.push_str("- The agent did not use the skill.\n");
    }
    for error in record.errors.iter().filter(|error| Some(*error) != record.reason.as_ref()) {
        body.push_str(&format!("- error: {}\n", text(error, REASON)));
    }
    body
}

fn outcome(record: &TrialRecord) -> String {
    match record.fault.filter(|_| record.outcome == Outcome::Broken) {
        Some(fault) => format!("broken ({})", crate::terminal::fault_name(fault)),
        None => score::outcome(record),
    }
}

fn found(finding: &Finding, evidence: bool) -> String {
    let mark = match finding.status {
        Status::Met => "✓ ",
        Status::Unmet => "",
        Status::Undecided => "undecided: ",
    };
    let mut lines = format!("- {mark}**{}**: {}", text(&finding.id, 120), text(&finding.reason, REASON));
    if let Some(source) = &finding.source {
        let place = if source.text.is_empty() {
            source.file.to_string()
        } else {
            format!("{}:{}:{}", source.file, source.line, source.column)
        };
        lines.push_str(&format!("  \n  {}", plain_code(&place, 300)));
    }
    lines.push('\n');
    if finding.status == Status::Unmet && finding.failures.is_empty() {
        lines.push_str(&values(finding.expected.as_deref(), finding.actual.as_deref()));
    }
    for failure in finding.failures.iter().take(FAILURES) {
        let path = if failure.key.is_empty() { String::new() } else { format!("{}: ", plain_code(&failure.key, 120)) };
        let is_said = finding.failures.len() == 1 && path.is_empty() && failure.message == finding.reason;
        if !is_said {
            lines.push_str(&format!("  - {path}{}\n", text(&failure.message, REASON)));
        }
        let shown = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let (expected, actual) = (failure.expected.as_ref().map(shown), failure.actual.as_ref().map(shown));
        let indent = if is_said { "" } else { "  " };
        for line in values(expected.as_deref(), actual.as_deref()).lines() {
            lines.push_str(&format!("{indent}{line}\n"));
        }
    }
    if finding.failures.len() > FAILURES {
        lines.push_str(&format!("  - and {} more\n", finding.failures.len() - FAILURES));
    }
    if evidence {
        let proof = proof(finding);
        if !proof.is_empty() {
            lines.push_str(&format!("\n{}\n", block(&proof, 2, LINES)));
        }
    }
    lines
}

/// Returns the expected and the actual value, one line each.
fn values(expected: Option<&str>, actual: Option<&str>) -> String {
    let line = |name: &str, value: &str| format!("  - {name}: {}\n", plain_code(value, VALUE));
    let values = [("expected", expected), ("actual", actual)];
    let values =
        values.into_iter().filter_map(|(name, value)| Some((name, value.filter(|value| !value.trim().is_empty())?)));
    values.map(|(name, value)| line(name, value)).collect()
}

/// Returns the evidence, and the expected and the actual value unless they are already shown in full.
fn proof(finding: &Finding) -> String {
    let mut proof = Vec::new();
    let is_shown = |value: &str| finding.status == Status::Unmet && value.chars().count() <= VALUE;
    for (name, value) in [("expected", &finding.expected), ("actual", &finding.actual)] {
        let value = value.as_ref().filter(|value| !value.trim().is_empty() && !is_shown(value));
        proof.extend(value.map(|value| format!("{name}: {value}")));
    }
    proof
        .extend(finding.error.as_ref().filter(|error| !error.trim().is_empty()).map(|error| format!("error: {error}")));
    proof.extend(finding.evidence.iter().cloned());
    proof.join("\n")
}

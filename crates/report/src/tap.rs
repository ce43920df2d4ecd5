//! TAP, version 14. Undecided trials are skipped. Baseline trials and trials of quarantined cases that did not pass
//! are to-dos. TAP counts neither as a failure.

use std::io::{self, Write};

use model::Outcome;
use serde_json::Value;

use crate::finished::{FinishedRun, FinishedTrial, TestResult, clean};
use crate::terminal::indented;
use crate::totals;

pub(crate) fn write(run: &FinishedRun, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "TAP version 14\n1..{}", run.trials.len())?;
    for (index, trial) in run.trials.iter().enumerate() {
        out.write_all(point(index + 1, trial).as_bytes())?;
    }
    if let Some(sentence) = totals::required(&run.summary, run.gate()) {
        writeln!(out, "# {sentence}")?;
    }
    match &run.signal {
        Some(signal) => writeln!(out, "Bail out! stopped by {}", escaped(signal)),
        None => Ok(()),
    }
}

fn point(number: usize, trial: &FinishedTrial) -> String {
    let ok = match trial.result {
        TestResult::Passed => "ok",
        TestResult::Skipped if !is_todo(trial) => "ok",
        TestResult::Failed | TestResult::Error | TestResult::Skipped => "not ok",
    };
    let directive = match trial.result {
        TestResult::Skipped if is_todo(trial) => format!(" # TODO {}", escaped(&trial.reason)),
        TestResult::Skipped => format!(" # SKIP {}", escaped(&trial.reason)),
        TestResult::Passed | TestResult::Failed | TestResult::Error => String::new(),
    };
    // The id contains a `#`. Readers of older versions take it for the start of a directive, even if it is escaped.
    let (name, repetition) = match trial.repetition {
        // A decision is about several trials, so it has no repetition.
        0 => (format!("{}::{}", trial.suite, trial.name()), String::new()),
        number => (format!("{}::{}@{}", trial.suite, trial.case, trial.arm), format!(", repetition {number}")),
    };
    let line = format!("{ok} {number} - {}{repetition}{directive}", escaped(&name));
    format!("{}\n  ---\n{}  ...\n", line.trim_end(), indented(&diagnostics(trial), 2))
}

/// Returns `true` if the trial ran and may fail.
fn is_todo(trial: &FinishedTrial) -> bool {
    (trial.is_baseline || trial.quarantine.is_some()) && matches!(trial.outcome, Outcome::Failed | Outcome::Broken)
}

/// Returns the diagnostics as YAML. Single-line texts are written as JSON, which is valid YAML.
fn diagnostics(trial: &FinishedTrial) -> String {
    let mut yaml = format!("id: {}\noutcome: {}\n", Value::from(&*trial.id), trial.outcome.name());
    if !trial.reason.is_empty() {
        yaml.push_str(&format!("message: {}\n", Value::from(&*trial.reason)));
    }
    match trial.result {
        TestResult::Failed => yaml.push_str("severity: fail\n"),
        TestResult::Error => yaml.push_str("severity: error\n"),
        TestResult::Passed | TestResult::Skipped => {}
    }
    if let Some(place) = &trial.place {
        yaml.push_str(&format!("at:\n  file: {}\n", Value::from(&*place.file)));
        yaml.push_str(&place.line.map_or_else(String::new, |line| format!("  line: {line}\n")));
    }
    yaml.push_str(&format!("duration_ms: {}\n", trial.duration_ms));
    if trial.flaky {
        yaml.push_str("flaky: true\n");
    }
    if !trial.earlier.is_empty() {
        yaml.push_str("earlier_attempts:\n");
        yaml.extend(trial.describe_attempts().lines().map(|line| format!("  - {}\n", Value::from(line))));
    }
    if !trial.text.is_empty() {
        // The number states the indentation of the text, because its first line may begin with spaces.
        yaml.push_str(&format!("details: |2\n{}", indented(&trial.text, 2)));
    }
    yaml
}

/// Escapes the two characters that have a meaning in a line of TAP.
fn escaped(text: &str) -> String {
    clean(text).replace('\n', " ").replace('\\', "\\\\").replace('#', "\\#")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_cannot_become_a_directive() {
        assert_eq!(escaped("a # SKIP\nnot ok \\ b"), "a \\# SKIP not ok \\\\ b");
    }
}

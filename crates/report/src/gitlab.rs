//! GitLab's code quality report: each assertion that does not hold becomes an issue at its line.

use std::collections::HashMap;
use std::io::{self, Write};

use model::Outcome;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::finished::{FinishedRun, FinishedTrial, Location, TestResult, UnmetCheck};

pub(crate) fn write(run: &FinishedRun, out: &mut dyn Write) -> io::Result<()> {
    let mut issues: Vec<Issue> = Vec::new();
    let mut numbers: HashMap<String, usize> = HashMap::new();
    for issue in run.trials.iter().flat_map(Issue::all_of) {
        let number = *numbers.entry(issue.fingerprint.clone()).or_insert(issues.len());
        match issues.get_mut(number) {
            // The same assertion in another repetition.
            Some(known) => known.trials += 1,
            None => issues.push(issue),
        }
    }
    let issues: Vec<Value> = issues.iter().map(Issue::to_json).collect();
    serde_json::to_writer_pretty(&mut *out, &issues)?;
    out.write_all(b"\n")
}

struct Issue {
    description: String,
    check_name: String,
    fingerprint: String,
    severity: &'static str,
    place: Location,
    /// Number of repetitions with this issue.
    trials: usize,
}

impl Issue {
    /// Returns the issues of a trial that did not pass. Issues without a location cannot be shown.
    fn all_of(trial: &FinishedTrial) -> Vec<Self> {
        if trial.result == TestResult::Passed || trial.is_baseline {
            return Vec::new();
        }
        match trial.outcome {
            Outcome::Failed | Outcome::Undecided if !trial.unmet.is_empty() => {
                trial.unmet.iter().filter_map(|check| Self::from_check(trial, check)).collect()
            }
            _ if trial.quarantine.is_some() => Self::from_trial(trial, "info").into_iter().collect(),
            Outcome::Failed => Self::from_trial(trial, "major").into_iter().collect(),
            Outcome::Broken => Self::from_trial(trial, "minor").into_iter().collect(),
            Outcome::Undecided | Outcome::Stale => Self::from_trial(trial, "info").into_iter().collect(),
            Outcome::Passed | Outcome::Skipped | Outcome::Cancelled => Vec::new(),
        }
    }

    fn from_check(trial: &FinishedTrial, check: &UnmetCheck) -> Option<Self> {
        let severity = match trial.outcome {
            Outcome::Undecided => "info",
            _ if trial.quarantine.is_some() => "info",
            _ if check.is_critical => "critical",
            _ => "major",
        };
        Some(Self {
            description: format!("{}::{}@{}: {}: {}", trial.suite, trial.case, trial.arm, check.id, check.reason),
            check_name: check.kind.clone(),
            fingerprint: fingerprint(trial, &check.id),
            severity,
            place: check.place.clone()?,
            trials: 1,
        })
    }

    fn from_trial(trial: &FinishedTrial, severity: &'static str) -> Option<Self> {
        let outcome = trial.outcome.name();
        Some(Self {
            description: format!("{}::{}@{}: {outcome}: {}", trial.suite, trial.case, trial.arm, trial.reason),
            check_name: trial.kind.clone(),
            fingerprint: fingerprint(trial, outcome),
            severity,
            place: trial.place.clone()?,
            trials: 1,
        })
    }

    fn to_json(&self) -> Value {
        let times = if self.trials > 1 { format!(" (in {} trials)", self.trials) } else { String::new() };
        json!({
            "description": format!("{}{times}", self.description),
            "check_name": self.check_name,
            "fingerprint": self.fingerprint,
            "severity": self.severity,
            "location": { "path": self.place.file, "lines": { "begin": self.place.line.unwrap_or(1) } },
        })
    }
}

/// Returns a fingerprint of the issue that is the same in every run. It does not include the line, because unrelated
/// edits change line numbers.
fn fingerprint(trial: &FinishedTrial, check: &str) -> String {
    model::text::hex(&Sha256::digest([&*trial.suite, &trial.case, &trial.arm, check].join("\0")))
}

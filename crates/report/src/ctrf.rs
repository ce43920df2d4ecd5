//! CTRF, the Common Test Report Format: one JSON document. A broken trial is a failed test whose raw status says
//! `broken`, because the format has no status for it.

use std::io::{self, Write};

use model::Outcome;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::fields::{put, put_list, put_some};
use crate::finished::{EarlierAttempt, FinishedRun, FinishedTrial, TestResult};

/// Version of the format.
const VERSION: &str = "0.0.0";

pub(crate) fn write(run: &FinishedRun, out: &mut dyn Write) -> io::Result<()> {
    let count = |status: Status| run.trials.iter().filter(|trial| Status::from_trial(trial) == status).count();
    let document = json!({
        "reportFormat": "CTRF",
        "specVersion": VERSION,
        "reportId": run.info.id,
        "timestamp": run.ended_at,
        "generatedBy": "trialrun",
        "results": {
            "tool": { "name": "trialrun", "version": run.info.trialrun_version },
            "summary": {
                "tests": run.trials.len(),
                "passed": count(Status::Passed),
                "failed": count(Status::Failed),
                "skipped": count(Status::Skipped),
                "pending": 0,
                "other": count(Status::Other),
                "flaky": run.trials.iter().filter(|trial| trial.flaky).count(),
                "suites": run.suites().len(),
                "start": run.info.started_at.as_millisecond(),
                "stop": run.ended_at.as_millisecond(),
                "duration": run.duration_ms(),
                "extra": summary(run),
            },
            "tests": run.trials.iter().map(test).collect::<Vec<_>>(),
            "extra": { "run": run.info.id, "label": run.info.label, "signal": run.signal },
        },
    });
    serde_json::to_writer_pretty(&mut *out, &document)?;
    out.write_all(b"\n")
}

/// Returns the counts that the format has no fields for. `tests` lists decisions and all trials, also those of the
/// baseline and of quarantined cases.
fn summary(run: &FinishedRun) -> Map<String, Value> {
    let mut extra = Map::new();
    put(&mut extra, "unfinished", run.unfinished);
    put(&mut extra, "trials", run.summary.trials);
    put(&mut extra, "baseline", run.summary.baseline);
    put(&mut extra, "quarantined", run.summary.all_quarantined());
    for (rate, value) in FinishedRun::pass_rate(run.summary.counted()) {
        put(&mut extra, rate, value);
    }
    let gate = run.gate();
    put_some(&mut extra, "requiredPassRate", gate.min_pass_rate);
    put_some(&mut extra, "requiredPassRateResult", gate.result(&run.summary));
    extra
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Passed,
    Failed,
    Skipped,
    Other,
}

fn test(trial: &FinishedTrial) -> Map<String, Value> {
    let (start, duration) = (trial.started_at.as_millisecond(), trial.duration_ms);
    let place = trial.place.as_ref();
    let is_nonempty = |text: &&str| !text.is_empty();
    let mut parameters = Map::new();
    put(&mut parameters, "agent", &trial.agent);
    put(&mut parameters, "arm", &trial.arm);
    put_some(&mut parameters, "model", trial.model.as_ref());
    put(&mut parameters, "repetition", trial.repetition);
    let mut extra = Map::new();
    put_some(&mut extra, "costUsd", trial.cost_usd);
    put_some(&mut extra, "kind", Some(&trial.kind).filter(|_| trial.result != TestResult::Passed));
    put_some(&mut extra, "quarantine", trial.quarantine.as_ref());
    put_some(&mut extra, "score", trial.score.map(|[score, most]| json!({ "score": score, "max": most })));
    put_some(&mut extra, "tokens", trial.tokens);
    let mut test = Map::new();
    // The same in every run.
    put(&mut test, "testId", &trial.id);
    put(&mut test, "name", trial.name());
    put(&mut test, "status", Status::from_trial(trial));
    put(&mut test, "rawStatus", trial.outcome.name());
    put(&mut test, "duration", duration);
    put(&mut test, "start", start);
    put(&mut test, "stop", start.saturating_add_unsigned(duration));
    put(&mut test, "suite", [&trial.suite]);
    put_some(&mut test, "message", Some(trial.reason.as_str()).filter(is_nonempty));
    put_some(&mut test, "trace", Some(trial.text.as_str()).filter(is_nonempty));
    put_some(&mut test, "filePath", place.map(|place| &place.file));
    put_some(&mut test, "line", place.and_then(|place| place.line));
    put_some(&mut test, "retries", Some(trial.earlier.len()).filter(|retries| *retries > 0));
    put_list(&mut test, "retryAttempts", trial.earlier.iter().enumerate().map(attempt).collect());
    put(&mut test, "flaky", trial.flaky);
    put(&mut test, "parameters", parameters);
    put(&mut test, "extra", extra);
    test
}

fn attempt((at, attempt): (usize, &EarlierAttempt)) -> Map<String, Value> {
    let status = match attempt.outcome {
        Outcome::Passed => Status::Passed,
        Outcome::Failed | Outcome::Broken => Status::Failed,
        Outcome::Undecided | Outcome::Stale | Outcome::Skipped | Outcome::Cancelled => Status::Other,
    };
    let mut fields = Map::new();
    put(&mut fields, "attempt", at + 1);
    put(&mut fields, "status", status);
    put(&mut fields, "duration", attempt.duration_ms);
    put_some(&mut fields, "message", Some(attempt.reason.as_str()).filter(|reason| !reason.is_empty()));
    fields
}

impl Status {
    fn from_trial(trial: &FinishedTrial) -> Self {
        match trial.result {
            TestResult::Passed => Self::Passed,
            TestResult::Failed | TestResult::Error => Self::Failed,
            TestResult::Skipped if trial.outcome == Outcome::Skipped => Self::Skipped,
            TestResult::Skipped => Self::Other,
        }
    }
}

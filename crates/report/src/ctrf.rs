//! CTRF, the Common Test Report Format: one JSON document. A broken trial is a failed test whose raw status says
//! `broken`, because the format has no status for it.

use std::collections::BTreeMap;
use std::io::{self, Write};

use model::Outcome;
use serde::Serialize;
use serde_json::{Value, json};

use crate::finished::{self, EarlierAttempt, FinishedRun, FinishedTrial, TestResult};
use crate::{Opening, Reporter};

/// Version of the format.
const VERSION: &str = "0.0.0";

pub(crate) fn open(opening: Opening) -> Box<dyn Reporter> {
    finished::open(opening, write)
}

fn write(run: &FinishedRun, out: &mut dyn Write) -> io::Result<()> {
    let tests: Vec<Test<'_>> = run.trials.iter().map(Test::of).collect();
    let count = |status: Status| tests.iter().filter(|test| test.status == status).count();
    let document = json!({
        "reportFormat": "CTRF",
        "specVersion": VERSION,
        "reportId": run.info.id,
        "timestamp": run.ended_at,
        "generatedBy": "trialrun",
        "results": {
            "tool": { "name": "trialrun", "version": run.info.trialrun_version },
            "summary": {
                "tests": tests.len(),
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
                "extra": { "unfinished": run.unfinished },
            },
            "tests": tests,
            "extra": { "run": run.info.id, "label": run.info.label, "signal": run.signal },
        },
    });
    serde_json::to_writer_pretty(&mut *out, &document)?;
    out.write_all(b"\n")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Passed,
    Failed,
    Skipped,
    Other,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Test<'a> {
    test_id: String,
    name: String,
    status: Status,
    raw_status: &'static str,
    duration: u64,
    start: i64,
    stop: i64,
    suite: [&'a str; 1],
    #[serde(skip_serializing_if = "str::is_empty")]
    message: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    trace: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_path: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "is_zero")]
    retries: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    retry_attempts: Vec<Attempt<'a>>,
    flaky: bool,
    parameters: BTreeMap<&'static str, Value>,
    extra: BTreeMap<&'static str, Value>,
}

#[derive(Serialize)]
struct Attempt<'a> {
    attempt: usize,
    status: Status,
    duration: u64,
    #[serde(skip_serializing_if = "str::is_empty")]
    message: &'a str,
}

impl<'a> Test<'a> {
    fn of(trial: &'a FinishedTrial) -> Self {
        let (start, duration) = (trial.started_at.as_millisecond(), trial.duration_ms);
        let stop = start.saturating_add_unsigned(duration);
        let place = trial.place.as_ref();
        let attempts = trial.earlier.iter().enumerate().map(|(at, attempt)| Attempt::of(at + 1, attempt));
        let mut parameters = BTreeMap::from([
            ("arm", json!(trial.arm)),
            ("agent", json!(trial.agent)),
            ("repetition", json!(trial.repetition)),
        ]);
        parameters.extend(trial.model.as_ref().map(|model| ("model", json!(model))));
        let mut extra = BTreeMap::new();
        if trial.result != TestResult::Passed {
            extra.insert("kind", json!(trial.kind));
        }
        extra.extend(trial.score.map(|[score, most]| ("score", json!({ "score": score, "max": most }))));
        extra.extend(trial.tokens.map(|tokens| ("tokens", json!(tokens))));
        extra.extend(trial.cost_usd.map(|cost| ("costUsd", json!(cost))));
        Self {
            // The same in each run.
            test_id: trial.id.to_string(),
            name: trial.name(),
            status: Status::of(trial),
            raw_status: trial.outcome.name(),
            duration,
            start,
            stop,
            suite: [&trial.suite],
            message: &trial.reason,
            trace: &trial.text,
            file_path: place.map(|place| place.file.as_str()),
            line: place.and_then(|place| place.line),
            retries: trial.earlier.len(),
            retry_attempts: attempts.collect(),
            flaky: trial.flaky,
            parameters,
            extra,
        }
    }
}

impl<'a> Attempt<'a> {
    fn of(number: usize, attempt: &'a EarlierAttempt) -> Self {
        let status = match attempt.outcome {
            Outcome::Passed => Status::Passed,
            Outcome::Failed | Outcome::Broken => Status::Failed,
            Outcome::Undecided | Outcome::Skipped | Outcome::Cancelled => Status::Other,
        };
        Self { attempt: number, status, duration: attempt.duration_ms, message: &attempt.reason }
    }
}

impl Status {
    fn of(trial: &FinishedTrial) -> Self {
        match trial.result {
            TestResult::Passed => Self::Passed,
            TestResult::Failed | TestResult::Error => Self::Failed,
            TestResult::Skipped if trial.outcome == Outcome::Skipped => Self::Skipped,
            TestResult::Skipped => Self::Other,
        }
    }
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

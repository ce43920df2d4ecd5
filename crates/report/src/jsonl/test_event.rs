//! `test:start` and the events after it: trials of a fixtures file in the format that readers of such files expect.

use model::{Detail, Ending, Failure, Finding, Outcome, Status, TrialRecord};
use serde_json::{Map, Value};

use crate::agent_output;
use crate::fields::{put, put_list, put_some};

/// Returns the event for the start of a case.
pub(super) fn start(position: usize, script: Option<&str>, input: Option<&Value>) -> Value {
    let mut event = event("test:start");
    put(&mut event, "i", position);
    put_some(&mut event, "script", script);
    put_some(&mut event, "input", agent_output::some(input));
    event.into()
}

/// Returns the event for the end of a case; `None` if the trial's case is not numbered.
pub(super) fn end(record: &TrialRecord) -> Option<Value> {
    let position = record.position?;
    let mut event = match record.outcome {
        Outcome::Passed => log("test:pass", record),
        // The executor threw, so its answer was not tested.
        Outcome::Failed if matches!(record.ending, Some(Ending::GaveUp { .. } | Ending::Aborted { .. })) => {
            error(record)
        }
        Outcome::Failed => log("test:fail", record),
        Outcome::Skipped => skip(record),
        Outcome::Broken | Outcome::Undecided | Outcome::Stale | Outcome::Cancelled => error(record),
    };
    put(&mut event, "i", position);
    let duration = if record.outcome == Outcome::Skipped { 0 } else { record.duration_ms };
    put(&mut event, "duration", duration);
    Some(event.into())
}

/// Returns the fields that all events for the end of a case share.
fn ended(kind: &str, record: &TrialRecord) -> Map<String, Value> {
    let mut event = event(kind);
    put_some(&mut event, "title", record.title.as_deref());
    put(&mut event, "passed", record.outcome == Outcome::Passed);
    put_some(&mut event, "input", agent_output::some(record.input_value.as_ref()));
    put_some(&mut event, "expected", agent_output::some(record.expected.as_ref()));
    event
}

fn skip(record: &TrialRecord) -> Map<String, Value> {
    let mut event = ended("test:skip", record);
    put(&mut event, "skipped", true);
    event
}

fn error(record: &TrialRecord) -> Map<String, Value> {
    let mut event = ended("test:error", record);
    let reason = record.reason.as_deref().or_else(|| record.errors.first().map(String::as_str));
    put(&mut event, "error", reason.unwrap_or(record.outcome.name()));
    event
}

fn log(kind: &str, record: &TrialRecord) -> Map<String, Value> {
    let mut event = ended(kind, record);
    if record.pass_score.is_some() {
        put_some(&mut event, "score", record.score);
        put(&mut event, "scoreDetails", written(record).map(part).collect::<Vec<_>>());
        put_some(&mut event, "maxScore", record.max_score);
        put_some(&mut event, "passScore", record.pass_score);
    }
    put_list(&mut event, "failedCritical", crate::score::failed_critical(&record.findings));
    match agent_output::output(record) {
        Some(output) => put(&mut event, "actual", output),
        // Without a result, the text is the whole answer. A result without an output means that there is no output.
        None if record.result.is_none() => put_some(&mut event, "actual", record.answer.as_deref()),
        None => {}
    }
    put_some(&mut event, "reason", agent_output::reason(record));
    // In the record, `expected` belongs to the output, otherwise to the whole result, otherwise to the schema.
    let (mut trace, mut schema) = (record.expected_trace.as_ref(), record.expected_schema.as_ref());
    match (checks(record, "output"), checks(record, "expect")) {
        (true, _) => {}
        (false, true) => trace = record.expected.as_ref(),
        (false, false) => schema = record.expected.as_ref(),
    }
    put_some(&mut event, "expectedTrace", agent_output::some(trace));
    put_some(&mut event, "expectedSchema", agent_output::some(schema));
    // A case with `not` passes because its expectations do not hold.
    if !(record.not && record.outcome == Outcome::Passed) {
        put_list(&mut event, "failures", failures(record));
    }
    if record.not {
        put(&mut event, "not", true);
    }
    put_some(&mut event, "script", record.script.as_deref());
    put_some(&mut event, "actualTrace", agent_output::messages(record));
    put_list(&mut event, "tools", record.tools.iter().collect());
    put_some(&mut event, "vars", record.vars.as_ref());
    event
}

/// Returns the findings of the case's own assertions.
fn written(record: &TrialRecord) -> impl Iterator<Item = &Finding> {
    record.findings.iter().filter(|finding| !finding.implicit)
}

fn checks(record: &TrialRecord, part: &str) -> bool {
    written(record).any(|finding| finding.id == part)
}

fn part(finding: &Finding) -> Value {
    let mut part = Map::new();
    put(&mut part, "key", &finding.id);
    put(&mut part, "score", finding.score);
    put(&mut part, "weight", finding.weight);
    put(&mut part, "pass", finding.status == Status::Met);
    put_some(&mut part, "title", finding.title.as_deref());
    put_some(&mut part, "dimension", finding.dimension.as_deref());
    if !finding.failed_critical.is_empty() {
        put(&mut part, "critical", true);
    }
    put_list(&mut part, "details", finding.details.iter().map(detail).collect());
    put_list(&mut part, "failures", finding.failures.iter().map(failure).collect());
    part.into()
}

fn detail(detail: &Detail) -> Value {
    let mut part = Map::new();
    put(&mut part, "key", &detail.key);
    put(&mut part, "score", detail.score);
    put(&mut part, "weight", detail.weight);
    put(&mut part, "pass", detail.status == Status::Met);
    put_some(&mut part, "title", detail.title.as_deref());
    put_some(&mut part, "dimension", detail.dimension.as_deref());
    if detail.critical {
        put(&mut part, "critical", true);
    }
    put_list(&mut part, "details", detail.details.iter().map(self::detail).collect());
    part.into()
}

/// Returns each place with a failure. A finding without places is itself a failure.
fn failures(record: &TrialRecord) -> Vec<Value> {
    let mut failures = Vec::new();
    for finding in &record.findings {
        failures.extend(finding.failures.iter().map(failure));
        if finding.failures.is_empty() && finding.status == Status::Unmet {
            let key = if finding.implicit { Some(finding.id.as_str()) } else { finding.key.as_deref() };
            let mut one = Map::new();
            put(&mut one, "key", key.unwrap_or_default());
            put(&mut one, "message", &finding.reason);
            put_some(&mut one, "expected", finding.expected.as_deref());
            put_some(&mut one, "actual", finding.actual.as_deref());
            failures.push(one.into());
        }
    }
    failures
}

fn failure(failure: &Failure) -> Value {
    let mut one = Map::new();
    put(&mut one, "key", &failure.key);
    put(&mut one, "message", &failure.message);
    put_some(&mut one, "expected", agent_output::some(failure.expected.as_ref()));
    put_some(&mut one, "actual", agent_output::some(failure.actual.as_ref()));
    put_list(&mut one, "diff", failure.diff.iter().collect());
    if failure.critical {
        put(&mut one, "critical", true);
    }
    one.into()
}

fn event(kind: &str) -> Map<String, Value> {
    Map::from_iter([("type".to_owned(), kind.into())])
}

//! Trials of a fixtures file, defined in code.

use model::*;
use serde_json::{Value, json};

use crate::run_builder::{RunBuilder, begin, id, met, passed};

/// File of the trials.
const FILE: &str = "people.fixture.yaml";

pub fn excerpt(line: usize, column: usize, length: usize, text: &str) -> Excerpt {
    Excerpt { file: FILE.into(), line, column, length, text: text.into(), skipped: 0 }
}

pub fn failure(key: &str, message: &str, expected: Value, actual: Value) -> Failure {
    Failure {
        key: key.into(),
        message: message.into(),
        expected: Some(expected),
        actual: Some(actual),
        diff: Vec::new(),
        critical: false,
        source: None,
    }
}

fn segment(part: Part, text: &str) -> Segment {
    Segment { part, text: text.into() }
}

pub fn detail(key: &str, weight: f64, score: f64, details: Vec<Detail>) -> Detail {
    Detail {
        key: key.into(),
        title: None,
        dimension: None,
        critical: false,
        weight,
        score,
        status: if score < 1.0 { Status::Unmet } else { Status::Met },
        passed_over: false,
        details,
    }
}

pub fn output(status: Status, score: f64, weight: f64, reason: &str) -> Finding {
    Finding {
        status,
        score: Some(score),
        weight,
        key: Some("output".into()),
        source: Some(excerpt(3, 3, 6, "  output:")),
        ..met("output", "expect", reason)
    }
}

pub fn trial(case: &str) -> TrialId {
    TrialId { suite: "people".into(), ..id(case, "recorded", 1) }
}

/// Returns the record of the case at `position`, which passed.
pub fn record(case: &str, position: usize) -> TrialRecord {
    let mut record = passed(&trial(case));
    record.agent = "recorded".into();
    record.model = None;
    record.title = Some(format!("finds {case}"));
    record.findings = vec![output(Status::Met, 1.0, 1.0, "matches")];
    record.input = vec!["{\"name\":\"Al\"}".into()];
    record.input_value = Some(json!({ "name": "Al" }));
    record.answer = Some("{\"name\":\"Alice\"}".into());
    record.result = Some(json!({
        "output": { "name": "Alice", "reasoning": "the only one" },
        "messages": [{ "role": "assistant", "content": "found" }],
    }));
    record.expected = Some(json!({ "name": "Alice" }));
    record.script = Some("find.ai.yaml".into());
    record.tools = vec![json!({ "name": "lookup" })];
    record.position = Some(position);
    record.skill = None;
    record.tool_calls.clear();
    record.questions.clear();
    record.files_changed.clear();
    record.usage = None;
    record.cost_usd = None;
    record.attempts.truncate(1);
    (record.score, record.max_score) = (Some(1.0), Some(1.0));
    record
}

/// A case whose output differs from the expected one in seven places.
pub fn differs() -> TrialRecord {
    let mut record = record("people", 0);
    let mut finding = output(Status::Unmet, 0.0, 1.0, "7 places are not as they should be");
    let mut name = failure("name", "the text is not in it", json!("Alice"), json!("Alina"));
    name.diff = vec![segment(Part::Same, "Ali"), segment(Part::Missing, "ce"), segment(Part::Extra, "na")];
    name.source = Some(excerpt(4, 11, 5, "    name: Alice"));
    let mut note = failure("note", "lines differ", json!("one\ntwo\nthree\n"), json!("one\n2\nthree\nfour\n"));
    note.diff = vec![
        segment(Part::Same, "…\none\n"),
        segment(Part::Missing, "two\n"),
        segment(Part::Extra, "2\n"),
        segment(Part::Same, "three\n"),
        segment(Part::Extra, "four\n"),
    ];
    note.source = Some(excerpt(12, 11, 1, "    note: |"));
    let mut missing = failure("address.city", "nothing is there", json!("/^Par/i"), json!(null));
    missing.actual = None;
    missing.critical = true;
    missing.source = Some(excerpt(6, 13, 7, "      city: /^Par/i"));
    let tags = excerpt(9, 11, 20, "    tags: { $each: /^[a-z]+$/ }");
    let tag = |index: usize, actual: &str| {
        let mut tag =
            failure(&format!("tags[{index}]"), "the expression does not match", json!("/^[a-z]+$/"), json!(actual));
        tag.source = Some(tags.clone());
        tag
    };
    finding.failures = vec![name, missing, note, tag(0, "A"), tag(2, "7"), tag(3, "x-y"), tag(4, "")];
    record.findings = vec![finding];
    record.outcome = Outcome::Failed;
    record.reason = Some("output: 7 places are not as they should be".into());
    record.score = Some(0.0);
    record
}

/// A case that scores 76 of 100 points and needs 80.
pub fn scored() -> TrialRecord {
    let mut record = record("answers", 1);
    let mut finding = output(Status::Unmet, 0.92, 50.0, "2 places are not as they should be");
    finding.details = vec![
        Detail {
            title: Some("knows the name".into()),
            dimension: Some("accuracy".into()),
            ..detail("name", 0.5, 1.0, vec![])
        },
        Detail {
            critical: true,
            ..detail(
                "address",
                0.5,
                0.84,
                vec![
                    Detail { dimension: Some("accuracy".into()), ..detail("address.city", 0.84, 1.0, vec![]) },
                    Detail {
                        dimension: Some("form".into()),
                        critical: true,
                        ..detail("address.zip", 0.16, 0.0, vec![])
                    },
                ],
            )
        },
    ];
    finding.failed_critical = vec!["address.zip".into()];
    let mut zip = failure("address.zip", "the expression does not match", json!("/^\\d{5}$/"), json!("7500"));
    zip.critical = true;
    zip.source = Some(excerpt(24, 12, 9, "      zip: { $expect: /^\\d{5}$/, $critical: true }"));
    finding.failures = vec![zip];
    let mut whole = output(Status::Unmet, 0.6, 50.0, "1 place is not as it should be");
    whole.id = "expect".into();
    whole.key = None;
    whole.source = None;
    whole.details = vec![
        detail("messages", 1.0, 0.8, vec![]),
        Detail {
            title: Some("swears".into()),
            dimension: Some("form".into()),
            ..detail("messages[1]", -0.2, 1.0, vec![])
        },
        Detail {
            title: Some("shouts".into()),
            dimension: Some("form".into()),
            ..detail("messages[1]", -0.1, 0.0, vec![])
        },
    ];
    let mut length = failure("messages", "the list has 3 items", json!(2), json!(3));
    length.source = None;
    whole.failures = vec![length];
    record.findings = vec![finding, whole];
    record.outcome = Outcome::Failed;
    record.reason = Some("output: 2 places are not as they should be (and 1 more)".into());
    (record.score, record.max_score, record.pass_score) = (Some(76.0), Some(100.0), Some(80.0));
    record.vars = Some(serde_json::Map::from_iter([("city".to_owned(), json!("Paris"))]));
    record
}

/// The same case with a required score of 70 and no critical parts.
pub fn enough() -> TrialRecord {
    let mut record = TrialRecord { pass_score: Some(70.0), outcome: Outcome::Passed, reason: None, ..scored() };
    let trial = trial("enough");
    (record.id, record.case, record.position) = ((&trial).into(), trial.case, Some(2));
    record.findings.iter_mut().for_each(|finding| finding.failed_critical.clear());
    record
}

/// A case with `not` whose assertions hold.
pub fn holds() -> TrialRecord {
    let mut record = record("holds", 3);
    record.not = true;
    record.outcome = Outcome::Failed;
    record.reason = Some("all assertions hold, but the case has `not`".into());
    record
}

/// A case with `not` whose assertions do not hold.
pub fn holds_not() -> TrialRecord {
    let mut record = TrialRecord { not: true, outcome: Outcome::Passed, reason: None, ..differs() };
    let trial = trial("holds-not");
    (record.id, record.case, record.position) = ((&trial).into(), trial.case, Some(4));
    record
}

/// A case without an answer.
pub fn nothing() -> TrialRecord {
    let mut record = record("nothing", 5);
    record.outcome = Outcome::Broken;
    record.fault = Some(Fault::Harness);
    record.reason = Some("no answer is recorded for it".into());
    record.findings.clear();
    (record.result, record.answer, record.score, record.max_score) = (None, None, None, None);
    record
}

pub fn skipped() -> TrialRecord {
    let mut record = nothing();
    let trial = trial("skipped");
    (record.id, record.case, record.position) = ((&trial).into(), trial.case, Some(6));
    record.outcome = Outcome::Skipped;
    record.fault = None;
    record.reason = Some("another case has `only: true`".into());
    record.ending = None;
    record.started_at = begin();
    record
}

/// A single job with a case of each kind.
pub fn file() -> RunBuilder {
    let records = [record("found", 7), differs(), scored(), enough(), holds(), holds_not(), nothing(), skipped()];
    let trials: Vec<TrialId> = records.iter().map(|record| trial(&record.case)).collect();
    let mut story = RunBuilder::new(trials.clone(), 1);
    for (trial, record) in trials.iter().zip(records) {
        if record.outcome != Outcome::Skipped {
            story.after(1).counts(trial, &record);
        }
        story.after(1).ends(record);
    }
    story.over();
    story
}

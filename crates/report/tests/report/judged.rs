//! Reports on trials whose output is judged: failures, scores, dimensions, `not`.

use model::{Envelope, Outcome, TrialRecord};
use report::Style;
use serde_json::{Value, json};

use crate::fixture::{self, differs, enough, file, holds, holds_not, nothing, scored, skipped, trial};
use crate::run_builder::{RUN, RunBuilder, row, run_row};
use crate::{expect, plain, reported};

fn lines(events: &[Envelope]) -> Vec<Value> {
    reported("jsonl", events, |_| {}).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the event in the last line about a trial with this record.
fn event_of(record: TrialRecord) -> Value {
    let mut story = RunBuilder::new(Vec::new(), 1);
    story.ends(record);
    lines(&story.events).pop().unwrap()["event"].take()
}

#[test]
fn a_judged_trial_is_shown_with_its_differences_and_its_score() {
    let drawn = |change: fn(&mut Style)| {
        reported("terminal", &file().events, |options| {
            options.style.interactive = true;
            change(&mut options.style);
        })
    };
    expect("judged.txt", &drawn(|_| {}));
    let ascii = drawn(|style| style.unicode = false);
    assert!(ascii.is_ascii(), "{ascii}");
    let colored = drawn(|style| style.color = true);
    expect("judged.color.txt", &colored.replace('\u{1b}', "\\e"));
}

#[test]
fn many_judged_trials_have_one_line_each_with_their_scores() {
    let trials: Vec<_> = ["answers", "enough"].map(trial).into();
    let mut story = RunBuilder::new(trials, 2);
    story.ends(scored()).ends(enough()).over();
    expect("judged.lines.txt", &reported("terminal", &story.events, |_| {}));
}

#[test]
fn show_displays_expected_and_actual_values() {
    expect("judged.show.txt", &report::show(&scored(), &[], RUN, &plain()));
    let of_pass = report::show(&enough(), &[], RUN, &plain());
    assert!(of_pass.contains("address.zip: the expression"), "{of_pass}");
}

#[test]
fn lists_show_a_score_that_the_outcome_does_not_imply() {
    let rows = [scored(), enough(), differs(), fixture::record("found", 7)].map(|record| row(&record, RUN));
    let history = report::history(&rows, &plain());
    let line = |text: &str, case: &str| text.lines().find(|line| line.contains(case)).unwrap().to_owned();
    assert!(line(&history, "::answers").ends_with("  score 76/100"), "{history}");
    assert!(line(&history, "::enough").ends_with("  score 76/100"), "{history}");
    assert!(!line(&history, "::people").contains("score"), "none of it holds: {history}");
    assert!(!line(&history, "::found").contains("score"), "{history}");
    let run = run_row(RUN);
    let view = report::StatusView {
        run: &run,
        trials: &rows,
        live: &[],
        alive: false,
        now: crate::run_builder::begin(),
        all: false,
        details: &report::Details::default(),
    };
    let status = report::status(&view, &plain());
    assert!(status.contains("people::answers@recorded#1  score 76/100\n"), "{status}");
}

#[test]
fn the_report_contains_the_whole_score_tree() {
    let trial = report::trial_json(&scored());
    assert_eq!(trial["failed_critical"], json!(["address.zip"]));
    assert_eq!(
        (&trial["score"], &trial["max_score"], &trial["pass_score"]),
        (&76.0.into(), &100.0.into(), &80.0.into())
    );
    assert_eq!(trial["input"], json!({ "name": "Al" }));
    assert_eq!(trial["expected"], json!({ "name": "Alice" }));
    assert_eq!(trial["output"]["name"], "Alice");
    assert_eq!(trial["reason"], "the only one");
    assert_eq!((&trial["script"], &trial["position"]), (&json!("find.ai.yaml"), &json!(1)));
    assert_eq!(trial["tools"], json!([{ "name": "lookup" }]));
    assert_eq!(trial["vars"], json!({ "city": "Paris" }));
    assert_eq!(trial["messages"][0]["content"], "found");
    assert_eq!(trial["dimensions"]["accuracy"], 1.0);
    assert_eq!(trial["dimensions"]["form"], 0.0, "the penalty exceeds the earned points");
    let finding = &trial["findings"][0];
    assert_eq!((&finding["key"], &finding["critical"]), (&json!("output"), &json!(true)));
    let zip = &finding["details"][1]["details"][1];
    assert_eq!((&zip["key"], &zip["weight"], &zip["status"]), (&json!("address.zip"), &json!(0.16), &json!("unmet")));
    assert_eq!((&zip["critical"], &zip["dimension"], &zip["details"]), (&json!(true), &json!("form"), &json!([])));
    let failure = &finding["failures"][0];
    assert_eq!((&failure["key"], &failure["actual"]), (&json!("address.zip"), &json!("7500")));
    assert_eq!((&failure["source"]["line"], &failure["diff"]), (&json!(24), &json!([])));
}

#[test]
fn a_trial_without_a_value_is_identified_by_the_user_message() {
    let mut record = scored();
    (record.input_value, record.result, record.expected) = (None, None, None);
    let trial = report::trial_json(&record);
    assert_eq!(trial["input"], json!(["{\"name\":\"Al\"}"]));
    for field in ["output", "expected", "reason"] {
        assert_eq!(trial[field], Value::Null, "{field}");
    }
    assert_eq!(trial["messages"], json!([]));
}

#[test]
fn the_first_reason_key_of_an_output_is_used_even_if_it_is_null() {
    let reason = |output: Value| {
        let record = TrialRecord { result: Some(json!({ "output": output })), ..scored() };
        (report::trial_json(&record)["reason"].clone(), event_of(record).get("reason").cloned())
    };
    assert_eq!(reason(json!({ "reason": "b", "thinking": "a" })), (json!("a"), Some(json!("a"))));
    assert_eq!(reason(json!({ "reason": "b", "reasons": null })), (Value::Null, Some(Value::Null)));
    assert_eq!(reason(json!("text")), (Value::Null, None));
}

#[test]
fn the_events_of_a_fixtures_file_follow_their_source_lines() {
    let events = file().events;
    let all = lines(&events);
    let of_file = |line: &&Value| line["event"]["type"].as_str().unwrap().starts_with("test:");
    let own: Vec<Value> = all.iter().filter(|line| !of_file(line)).cloned().collect();
    assert_eq!(own, events.iter().map(|event| serde_json::to_value(event).unwrap()).collect::<Vec<_>>());
    for pair in all.windows(2).filter(|pair| of_file(&&pair[1])) {
        for field in ["v", "seq", "at", "run", "trial", "attempt"] {
            assert_eq!(pair[0][field], pair[1][field], "{field}");
        }
    }
    let derived: Vec<&Value> = all.iter().filter(of_file).map(|line| &line["event"]).collect();
    let kinds: Vec<(&str, u64)> =
        derived.iter().map(|event| (event["type"].as_str().unwrap(), event["i"].as_u64().unwrap())).collect();
    let ends = |kind, i| [("test:start", i), (kind, i)];
    let expected = [
        ends("test:pass", 7),
        ends("test:fail", 0),
        ends("test:fail", 1),
        ends("test:pass", 2),
        ends("test:fail", 3),
        ends("test:pass", 4),
        ends("test:error", 5),
    ];
    assert_eq!(kinds, [expected.as_flattened(), &[("test:skip", 6)]].concat());
    assert_eq!(
        derived[0],
        &json!({ "type": "test:start", "i": 7, "script": "find.ai.yaml", "input": { "name": "Al" } })
    );
    let text: String = derived.iter().map(|event| serde_json::to_string_pretty(event).unwrap() + "\n").collect();
    expect("judged.events.txt", &text);
}

#[test]
fn a_trial_that_is_not_from_a_fixtures_file_has_no_test_events() {
    let events = crate::run_builder::one_job().events;
    assert_eq!(lines(&events).len(), events.len());
}

#[test]
fn a_retried_case_has_one_start_event() {
    let mut story = RunBuilder::new(Vec::new(), 1);
    story.counts(&trial("nothing"), &nothing());
    let mut second = story.events[1].clone();
    second.attempt = Some(2);
    story.events.push(second);
    let starts = lines(&story.events).iter().filter(|line| line["event"]["type"] == "test:start").count();
    assert_eq!(starts, 1);
}

#[test]
fn an_error_event_contains_only_the_error() {
    let names = |event: &Value| event.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    for outcome in [Outcome::Broken, Outcome::Undecided, Outcome::Cancelled] {
        let error = event_of(TrialRecord { outcome, ..nothing() });
        assert_eq!(names(&error), "type title passed input expected error i duration", "{outcome:?}");
        assert_eq!((&error["passed"], &error["error"]), (&json!(false), &json!("no answer is recorded for it")));
    }
    let skip = event_of(skipped());
    assert_eq!(names(&skip), "type title passed input expected skipped i duration");
    assert_eq!((&skip["passed"], &skip["skipped"], &skip["duration"]), (&json!(false), &json!(true), &json!(0)));
}

#[test]
fn an_unmet_assertion_is_not_a_failure_in_a_negated_case() {
    let event = event_of(holds_not());
    assert_eq!((&event["type"], &event["not"], event.get("failures")), (&json!("test:pass"), &json!(true), None));
    let event = event_of(holds());
    assert_eq!((&event["type"], &event["passed"], &event["not"]), (&json!("test:fail"), &json!(false), &json!(true)));
}

#[test]
fn an_unmet_implicit_assertion_fails_a_case_under_its_own_name() {
    let mut record = fixture::record("found", 7);
    record.outcome = Outcome::Failed;
    let budget = crate::run_builder::met("turn_budget", "turn_budget", "13 of 12 turns");
    record.findings.push(model::Finding { implicit: true, status: model::Status::Unmet, ..budget });
    let event = event_of(record);
    assert_eq!(event["failures"], json!([{ "key": "turn_budget", "message": "13 of 12 turns" }]));
    assert_eq!(event.get("scoreDetails"), None, "nothing is scored");
}

#[test]
fn a_score_that_is_too_low_is_shown_once() {
    let reason = Some("scores 76 of 100, and needs 80".to_owned());
    let mut record = TrialRecord { pass_score: Some(80.0), outcome: Outcome::Failed, reason, ..enough() };
    record.findings.iter_mut().for_each(|finding| finding.status = model::Status::Met);
    let drawn = report::result(&record, &plain());
    assert_eq!((drawn.matches("needs 80").count(), drawn.matches("76 of 100").count()), (1, 1), "{drawn}");
}

#[test]
fn a_finding_without_weight_has_its_reason_and_no_points() {
    for status in [model::Status::Met, model::Status::Unmet] {
        let mut record = scored();
        (record.findings[0].weight, record.findings[0].status) = (0.0, status);
        let drawn = report::result(&record, &plain());
        assert!(drawn.contains("  2 places are not as they should be\n"), "{drawn}");
        assert!(!drawn.contains("0 of 0") && !drawn.contains(" \n"), "{drawn}");
    }
}

#[test]
fn the_schema_covers_judged_trials() {
    let document: Value = serde_json::from_str(&reported("json", &file().events, |_| {})).unwrap();
    let schema = report::report_schema();
    crate::documents::agree(&document, &schema, &schema, "report");
}

#[test]
fn nothing_in_a_judged_output_moves_the_cursor() {
    let evil = "\u{1b}[2J\u{1b}]0;x\u{7}\u{8}evil\u{9b}1A\n\u{202e}";
    let mut record = scored();
    record.not = false;
    for finding in &mut record.findings {
        finding.failed_critical = vec![evil.into()];
        for detail in &mut finding.details {
            (detail.key, detail.title, detail.dimension) = (evil.into(), Some(evil.into()), Some(evil.into()));
        }
        for failure in &mut finding.failures {
            (failure.key, failure.message) = (evil.into(), evil.into());
            (failure.expected, failure.actual) = (Some(evil.into()), Some(evil.into()));
            failure.diff = vec![model::Segment { part: model::Part::Extra, text: evil.into() }];
        }
    }
    (record.input_value, record.expected, record.script) = (Some(evil.into()), Some(evil.into()), Some(evil.into()));
    (record.result, record.tools) = (Some(json!({ "output": [evil] })), vec![evil.into()]);
    let text = report::show(&record, &[], "r", &plain());
    assert!(text.contains("evil"));
    assert_eq!(text.chars().find(|c| c.is_control() && *c != '\n'), None, "{text:?}");
}

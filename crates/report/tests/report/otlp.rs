//! The report for OpenTelemetry, as JSON lines.

use std::collections::BTreeSet;

use model::*;
use serde_json::{Value, json};

use crate::run_builder::{RunBuilder, id, met, passed};
use crate::{expect, reported};

fn lines(events: &[Envelope], content: bool) -> Vec<Value> {
    let text = reported("otlp", events, |options| options.otlp.content = content);
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn all<'a>(lines: &'a [Value], [resource, scope, records]: [&str; 3]) -> Vec<&'a Value> {
    let parts = lines.iter().filter_map(|line| line[resource].as_array()).flatten();
    let scopes = parts.flat_map(|part| part[scope].as_array().unwrap());
    scopes.flat_map(|scope| scope[records].as_array().unwrap()).collect()
}

fn spans(lines: &[Value]) -> Vec<&Value> {
    all(lines, ["resourceSpans", "scopeSpans", "spans"])
}

fn logs(lines: &[Value]) -> Vec<&Value> {
    all(lines, ["resourceLogs", "scopeLogs", "logRecords"])
}

fn attribute<'a>(record: &'a Value, key: &str) -> Option<&'a Value> {
    let found = record["attributes"].as_array().unwrap().iter().find(|attribute| attribute["key"] == key)?;
    found["value"].as_object().unwrap().values().next()
}

/// Returns the result of each trial, as shown in its span.
pub fn trials(events: &[Envelope]) -> Vec<String> {
    let lines = lines(events, false);
    let trials = spans(&lines).into_iter().filter(|span| attribute(span, "trialrun.trial.id").is_some());
    trials
        .map(|span| {
            let result = attribute(span, "test.case.result.status").map_or("-", |status| status.as_str().unwrap());
            if span["status"]["code"] == 2 { format!("{result}, error") } else { result.to_owned() }
        })
        .collect()
}

/// A trial with two attempts, a sub-agent and a judge.
fn conversation() -> RunBuilder {
    let trial = id("splits-in-two", "claude-code:sonnet", 1);
    let mut story = RunBuilder::new(vec![trial.clone()], 1);
    story.after(5).starts(&trial, &["/commit"]);
    story.after(5).tell(Event::TrialRetried { reason: "the provider answered 529".into() });
    story.after(5).starts(&trial, &["/commit"]);
    story.after(20).tell(Event::SandboxReady { path: "/s".into(), skill: None, duration_ms: 20 });
    story.after(10).step(Step::Session {
        session_id: Some("5b1c".into()),
        model: Some("claude-sonnet-4-5".into()),
        agent_version: Some("2.1.0".into()),
        tools: Vec::new(),
        auth: None,
    });
    story.after(1).step(Step::UserMessage { index: 1, of: 1, text: "/commit".into() });
    story.after(300).says("I look at it.");
    let mut task = ToolCall::new("c1", "Agent", json!({ "description": "look" }), "m");
    task.raw_name = "Task".into();
    story.after(10).step(Step::ToolCall(task));
    let look =
        ToolCall { parent: Some("c1".into()), ..ToolCall::new("c2", "Bash", json!({ "command": "git diff" }), "s") };
    story.after(200).step(Step::ToolCall(look));
    story.after(50).answers("c2", "no such file", true);
    story.after(50).answers("c1", "two changes", false);
    story.after(100).step(Step::ToolCall(ToolCall::new("c3", "Skill", json!({ "skill": "commit" }), "m2")));
    let tokens = Tokens { input: 214, cache_read: 1020, cache_write: 6, output: 56, reasoning: Some(12) };
    story.after(100).step(Step::Finished {
        subtype: "success".into(),
        is_error: false,
        usage: Usage { tokens: Some(tokens), cost_usd: Some(0.0123) },
        text: Some("Committed as two commits.".into()),
        result: None,
    });
    story.after(10).tell(Event::Waiting { on: "collecting".into() });
    story.after(10).tell(Event::Collected(Collected::default()));
    story.after(10).tell(Event::Waiting { on: "judge".into() });
    let mut record = passed(&trial);
    let judged = Finding { judged: true, score: Some(0.8), ..met("is-polite", "llm_judge", "it greets") };
    record.findings = vec![judged, Finding::undecided("clear", "llm_judge", 1.0, None, "the judge did not answer")];
    (record.outcome, record.reason) = (Outcome::Undecided, Some("the judge did not answer".into()));
    let asked = Tokens { input: 90, output: 9, ..Tokens::default() };
    record.judge = Some(AuxiliaryUsage::from_answer(Some(asked), Some(0.001)));
    story.after(700).ends(record);
    story.after(5).over();
    story
}

#[test]
fn a_trial_is_a_tree_of_spans_with_its_evaluations() {
    let text: Vec<String> =
        lines(&conversation().events, false).iter().map(|line| serde_json::to_string_pretty(line).unwrap()).collect();
    expect("otlp.json", &(text.join("\n") + "\n"));
}

#[test]
fn ids_are_unique_and_every_parent_exists_and_contains_its_children() {
    let lines = lines(&conversation().events, false);
    let spans = spans(&lines);
    let ids: BTreeSet<&str> = spans.iter().map(|span| span["spanId"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), spans.len());
    let time = |span: &Value, key: &str| span[key].as_str().unwrap().parse::<u64>().unwrap();
    let mut roots = 0;
    for span in &spans {
        assert!(time(span, "startTimeUnixNano") <= time(span, "endTimeUnixNano"), "{span}");
        let Some(parent) = span["parentSpanId"].as_str() else {
            roots += 1;
            continue;
        };
        let parent = spans.iter().find(|other| other["spanId"] == parent).unwrap();
        assert!(time(parent, "startTimeUnixNano") <= time(span, "startTimeUnixNano"), "{span}");
        assert!(time(parent, "endTimeUnixNano") >= time(span, "endTimeUnixNano"), "{span}");
    }
    assert_eq!(roots, 1);
    assert!(logs(&lines).iter().all(|log| ids.contains(log["spanId"].as_str().unwrap())));
}

#[test]
fn messages_arguments_and_results_are_included_only_on_request() {
    let events = conversation().events;
    let texts = ["I look at it.", "git diff", "two changes", "/commit\\\"", "Committed as two commits."];
    let (without, with) = (lines(&events, false), lines(&events, true));
    let text = |lines: &[Value]| Value::from(lines.to_vec()).to_string();
    for content in texts {
        assert!(!text(&without).contains(content), "{content}");
        assert!(text(&with).contains(content), "{content}");
    }
    assert_eq!(spans(&without).len(), spans(&with).len());
}

#[test]
fn a_run_within_a_trace_is_a_child_of_its_span() {
    let mut events = conversation().events;
    if let Event::RunStarted(info) = &mut events[0].event {
        let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        info.settings.insert(report::telemetry::TRACEPARENT.into(), header.into());
    }
    let lines = lines(&events, false);
    let run = *spans(&lines).last().unwrap();
    assert_eq!((&run["name"], &run["parentSpanId"]), (&json!("trialrun run"), &json!("00f067aa0ba902b7")));
    assert!(spans(&lines).iter().all(|span| span["traceId"] == "4bf92f3577b34da6a3ce929d0e0e4736"));
}

#[test]
fn a_resource_has_the_attributes_of_the_environment() {
    let text = reported("otlp", &conversation().events, |options| {
        options.otlp.resource = vec![("service.name".into(), "nightly".into()), ("team".into(), "bots".into())];
    });
    let line: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let resource = &line["resourceSpans"][0]["resource"];
    let of = |key| attribute(resource, key).and_then(Value::as_str);
    assert_eq!([of("service.name"), of("team"), of("service.version")], [Some("nightly"), Some("bots"), Some("0.1.0")]);
}

#[test]
fn a_run_that_was_stopped_is_aborted() {
    let mut events = conversation().events;
    events.pop();
    let lines = lines(&events, false);
    let run = *spans(&lines).last().unwrap();
    assert_eq!(attribute(run, "test.suite.run.status"), Some(&json!("aborted")));
}

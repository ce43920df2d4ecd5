//! Tests of the reception with real requests on loopback.

use std::io::Write;
use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flate2::Compression;
use flate2::write::GzEncoder;
use model::{Ending, Step};
use serde_json::{Value, json};

use super::decoding::inflate;
use super::inbox::{Inbox, ProgramState};
use super::mailbox::Mailbox;
use super::receiver::{Receiver, Receivers};
use super::report::{Missing, SpanReport};
use super::settings::{TraceKeys, TraceSettings};
use crate::Description;
use crate::executor::{Executor, TraceTarget};
use crate::http_client::HttpClients;
use crate::subprocess::Subprocess;
use crate::tests::harness::{AgentHarness, Bare, TestRun, case, configured, new_run};

const WAIT: TraceSettings = TraceSettings { wait: Duration::from_secs(20), port: None, one_at_a_time: false };
const SHORT: TraceSettings = TraceSettings { wait: Duration::from_millis(1), port: None, one_at_a_time: false };

fn receiver() -> Arc<Receiver> {
    Receivers::default().receiver(None).unwrap()
}

fn run() -> TestRun {
    AgentHarness::for_case(case("a", &["go"])).begun()
}

/// Time at which all spans begin, in nanoseconds since 1970.
static NOW: LazyLock<u128> = LazyLock::new(|| SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos());

/// Returns a span of the trace in `traceparent` that ends in an hour. Those with a higher `id` are parts of the others.
fn span(traceparent: &str, id: u8, attributes: &Value) -> Value {
    let trace = traceparent.split('-').nth(1).unwrap();
    let (start, end) = (*NOW + u128::from(id), *NOW + 3_600_000_000_000 - u128::from(id));
    let attributes = attributes.as_object().unwrap().iter();
    let attributes: Vec<Value> =
        attributes.map(|(key, value)| json!({"key": key, "value": {"stringValue": value}})).collect();
    json!({"traceId": trace, "spanId": format!("{id:016x}"), "name": "work", "attributes": attributes,
        "startTimeUnixNano": start.to_string(), "endTimeUnixNano": end.to_string()})
}

fn tool(traceparent: &str, id: u8, name: &str) -> Value {
    let attributes = json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name,
        "gen_ai.tool.call.arguments": "{}", "gen_ai.tool.call.result": "done"});
    span(traceparent, id, &attributes)
}

fn answered(traceparent: &str, id: u8) -> Value {
    span(traceparent, id, &json!({"gen_ai.operation.name": "chat", "gen_ai.response.finish_reasons": "stop"}))
}

fn body(spans: &[Value]) -> Vec<u8> {
    json!({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).to_string().into_bytes()
}

/// Sends a request as JSON, and returns the status of the answer.
async fn post(address: &str, body: Vec<u8>, headers: &[(&str, &str)]) -> u16 {
    let client = HttpClients::default().client(false, &AgentHarness::for_case(case("a", &["go"])).host).unwrap();
    let kind = headers.iter().find(|(name, _)| *name == "content-type").map_or("application/json", |(_, kind)| kind);
    let request = client.post(address).header("content-type", kind).body(body);
    let others = headers.iter().filter(|(name, _)| *name != "content-type");
    let request = others.fold(request, |request, (name, value)| request.header(*name, *value));
    request.send().await.unwrap().status().as_u16()
}

async fn send(endpoint: &str, spans: &[Value]) {
    assert_eq!(post(&format!("{endpoint}/v1/traces"), body(spans), &[]).await, 200);
}

fn endpoint_of(inbox: &Inbox) -> String {
    let trial = AgentHarness::for_case(case("a", &["go"])).session_context().trial;
    let variables = inbox.variables(&trial);
    variables.into_iter().find(|(name, _)| name == "OTEL_EXPORTER_OTLP_ENDPOINT").unwrap().1
}

/// Collects the spans of the reply, and records them like those of an answer that lists no calls. Returns the names of
/// the calls, and what is missing.
async fn collected(inbox: &mut Inbox, run: &mut TestRun, program: ProgramState) -> (Vec<String>, Option<String>) {
    let before = run.turn.trace().calls.len();
    let report = inbox.collect(program, &mut run.turn).await.unwrap();
    let answer = super::AnswerCalls { text: Some("Done."), are_listed: false, tools: Vec::new() };
    answer.record(Some(&report), &mut run.turn).await.unwrap();
    let trace = run.turn.trace();
    let calls = trace.calls[before..].iter().map(|traced| traced.call.name.clone()).collect();
    (calls, trace.replies.last().and_then(|reply| reply.calls_missing.clone()))
}

#[tokio::test]
async fn spans_of_a_process_are_its_own_whatever_their_trace_is() {
    let (receiver, mut first, mut second) = (receiver(), run(), run());
    let mut inboxes = [Inbox::of_process(Arc::clone(&receiver), WAIT), Inbox::of_process(Arc::clone(&receiver), WAIT)];
    let other = "00-11111111111111111111111111111111-2222222222222222-01";
    for (inbox, run, name) in [(0, &mut first, "find"), (1, &mut second, "look")] {
        let inbox = &mut inboxes[inbox];
        inbox.begin(&mut run.turn).await.unwrap();
        let root = span(other, 1, &json!({"name": "root"}));
        send(&endpoint_of(inbox), &[tool(other, 2, name), answered(other, 3), root]).await;
    }
    let [one, two] = &mut inboxes;
    assert_eq!(collected(two, &mut second, ProgramState::Running).await, (vec!["look".to_owned()], None));
    assert_eq!(collected(one, &mut first, ProgramState::Running).await, (vec!["find".to_owned()], None));
    let text = |step: Step| if let Step::Notice { text, .. } = step { Some(text) } else { None };
    let origin = first.steps().into_iter().find_map(text).unwrap();
    assert!(origin.contains("call of `find`: span 0000000000000002 (work)"), "{origin}");
    let gone = endpoint_of(one);
    drop(inboxes);
    assert_eq!(post(&format!("{gone}/v1/traces"), body(&[]), &[]).await, 404);
}

#[tokio::test]
async fn spans_of_a_shared_program_are_told_apart_by_their_trace() {
    let (receiver, mut first, mut second) = (receiver(), run(), run());
    let mut one = Inbox::of_shared(Arc::clone(&receiver), WAIT);
    let mut two = Inbox::of_shared(Arc::clone(&receiver), SHORT);
    let of_one = one.begin(&mut first.turn).await.unwrap();
    let of_two = two.begin(&mut second.turn).await.unwrap();
    let root = span(&of_one, 1, &json!({}));
    let endpoint = receiver.endpoint(None);
    send(&endpoint, &[tool(&of_two, 2, "look"), tool(&of_one, 3, "find"), answered(&of_one, 4), root]).await;
    assert_eq!(collected(&mut one, &mut first, ProgramState::Running).await, (vec!["find".to_owned()], None));
    let (calls, missing) = collected(&mut two, &mut second, ProgramState::Running).await;
    assert_eq!(calls, ["look"], "what is known is kept");
    assert!(missing.unwrap().contains("no model requests"));
    // A later span of a message that is over is not one of the next message.
    let next = one.begin(&mut first.turn).await.unwrap();
    assert_ne!(next, of_one);
    let root = span(&next, 1, &json!({}));
    send(&endpoint, &[tool(&of_one, 5, "late"), answered(&next, 6), root]).await;
    assert_eq!(collected(&mut one, &mut first, ProgramState::Running).await, (Vec::new(), None));
    assert!(first.turn.into_parts().2[0].starts_with("1 spans are ignored"));
}

#[tokio::test]
async fn spans_without_the_trace_belong_to_the_only_message_or_to_none() {
    let (receiver, mut first, mut second) = (receiver(), run(), run());
    let mut one = Inbox::of_shared(Arc::clone(&receiver), SHORT);
    let mut two = Inbox::of_shared(Arc::clone(&receiver), SHORT);
    let other = "00-33333333333333333333333333333333-2222222222222222-01";
    one.begin(&mut first.turn).await.unwrap();
    let endpoint = receiver.endpoint(None);
    send(&endpoint, &[tool(other, 1, "find"), answered(other, 2)]).await;
    assert_eq!(collected(&mut one, &mut first, ProgramState::Running).await, (vec!["find".to_owned()], None));
    let own = one.begin(&mut first.turn).await.unwrap();
    send(&endpoint, &[tool(other, 3, "of_another_program"), tool(&own, 4, "look"), answered(&own, 5)]).await;
    assert_eq!(collected(&mut one, &mut first, ProgramState::Running).await, (vec!["look".to_owned()], None));
    one.begin(&mut first.turn).await.unwrap();
    two.begin(&mut second.turn).await.unwrap();
    send(&endpoint, &[tool(other, 3, "find")]).await;
    for (inbox, run) in [(&mut one, &mut first), (&mut two, &mut second)] {
        let (calls, missing) = collected(inbox, run, ProgramState::Running).await;
        assert_eq!((calls.len(), missing.unwrap().contains("one_at_a_time")), (0, true));
    }
}

#[tokio::test]
async fn one_message_at_a_time_waits_for_the_spans_of_the_one_before() {
    let settings = TraceSettings { one_at_a_time: true, ..SHORT };
    let harness = AgentHarness::for_case(case("a", &["go"]));
    let (receiver, mut first, mut second) = (receiver(), harness.begun(), run());
    let mut one = Inbox::of_shared(Arc::clone(&receiver), settings);
    let mut two = Inbox::of_shared(Arc::clone(&receiver), settings);
    one.begin(&mut first.turn).await.unwrap();
    let mut waiting = Box::pin(two.begin(&mut second.turn));
    assert!(futures_pending(&mut waiting).await);
    collected(&mut one, &mut first, ProgramState::Running).await;
    waiting.await.unwrap();
    harness.stop.send_replace(true);
    assert_eq!(one.begin(&mut first.turn).await, Err(Ending::Cancelled), "the other one is not done");
}

/// Returns `true` if the future does not resolve at once.
async fn futures_pending<F: Future + Unpin>(future: &mut F) -> bool {
    tokio::select! {
        biased;
        _ = future => false,
        () = std::future::ready(()) => true,
    }
}

#[tokio::test]
async fn what_is_missing_is_said() {
    let (receiver, mut run) = (receiver(), run());
    let mut inbox = Inbox::of_process(Arc::clone(&receiver), SHORT);
    let address = format!("{}/v1/traces", endpoint_of(&inbox));
    inbox.begin(&mut run.turn).await.unwrap();
    let missing = collected(&mut inbox, &mut run, ProgramState::Ended).await.1.unwrap();
    assert_eq!(missing, "the bot sent no spans; does it export them to OTEL_EXPORTER_OTLP_ENDPOINT?");
    for (body, headers, status) in [
        (b"{".to_vec(), &[][..], 400),
        (body(&[]), &[("content-type", "text/plain")][..], 400),
        (body(&[]), &[("content-encoding", "gzip")][..], 400),
        (body(&[]), &[("origin", "http://evil.example")][..], 403),
        (vec![b' '; (20 << 20) + 1], &[][..], 413),
    ] {
        assert_eq!(post(&address, body, headers).await, status, "{headers:?}");
    }
    let report = inbox.collect(ProgramState::Ended, &mut run.turn).await.unwrap();
    let answer = super::AnswerCalls { text: None, are_listed: true, tools: vec!["find"] };
    assert!(!answer.record(Some(&report), &mut run.turn).await.unwrap(), "the calls in the answer are recorded");
    let warnings = run.turn.into_parts().2;
    assert_eq!(warnings.len(), 4, "{warnings:?}");
    assert!(warnings.iter().any(|warning| warning.contains("it has more than 20 MiB")), "{warnings:?}");
}

#[tokio::test]
async fn what_the_model_said_is_not_an_answer_of_the_bot() {
    let (receiver, mut run) = (receiver(), run());
    let mut inbox = Inbox::of_process(Arc::clone(&receiver), SHORT);
    let traceparent = inbox.begin(&mut run.turn).await.unwrap();
    let said = json!([{"role": "assistant", "content": "It was sent."}]).to_string();
    let said = json!({"gen_ai.operation.name": "chat", "gen_ai.output.messages": said});
    send(&endpoint_of(&inbox), &[tool(&traceparent, 2, "find"), span(&traceparent, 3, &said)]).await;
    let report = inbox.collect(ProgramState::Ended, &mut run.turn).await.unwrap();
    let answer = super::AnswerCalls { text: Some(""), are_listed: false, tools: Vec::new() };
    assert!(answer.record(Some(&report), &mut run.turn).await.unwrap());
    let trace = run.turn.trace();
    assert_eq!(trace.calls.len(), 1);
    assert!(trace.turns.iter().all(|turn| turn.text.is_empty()), "{:?}", trace.turns);
    let ending = run.turn.message_ends(Ending::Finished);
    assert!(matches!(&ending, Ending::GaveUp { reason } if reason.contains("neither text")), "{ending:?}");
}

#[tokio::test]
async fn what_the_spans_show_of_a_reply_that_failed_is_kept() {
    let (receiver, mut run) = (receiver(), run());
    let mut inbox = Inbox::of_process(Arc::clone(&receiver), SHORT);
    let traceparent = inbox.begin(&mut run.turn).await.unwrap();
    let counted = json!({"gen_ai.operation.name": "chat", "gen_ai.response.finish_reasons": "stop",
        "gen_ai.usage.input_tokens": "10", "gen_ai.usage.output_tokens": "2"});
    send(&endpoint_of(&inbox), &[tool(&traceparent, 2, "find"), span(&traceparent, 3, &counted)]).await;
    let usage = inbox.collect_failed(&mut run.turn).await;
    assert_eq!(usage.tokens.unwrap().total(), 12);
    assert_eq!(run.turn.trace().calls[0].call.name, "find");
    let missing = run.turn.trace().missing_calls();
    assert!(missing.unwrap().starts_with("the bot did not finish its reply"), "{missing:?}");
}

#[tokio::test]
async fn compressed_requests_and_log_records_are_received() {
    let (receiver, mut run) = (receiver(), run());
    let mut inbox = Inbox::of_process(Arc::clone(&receiver), WAIT);
    let endpoint = endpoint_of(&inbox);
    let traceparent = inbox.begin(&mut run.turn).await.unwrap();
    let call = json!({"tool_calls": [{"id": "c", "function": {"name": "find", "arguments": "{}"}}]});
    let record = json!({"traceId": traceparent.split('-').nth(1), "spanId": format!("{:016x}", 2), "eventName": "gen_ai.choice",
        "body": {"kvlistValue": {"values": [{"key": "message", "value": {"stringValue": call.to_string()}}]}}});
    let logs = json!({"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}).to_string();
    assert_eq!(post(&format!("{endpoint}/v1/metrics"), b"{}".to_vec(), &[]).await, 200);
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(&body(&[answered(&traceparent, 2), span(&traceparent, 1, &json!({}))])).unwrap();
    let address = format!("{endpoint}/v1/traces");
    assert_eq!(post(&address, gzip.finish().unwrap(), &[("content-encoding", "gzip")]).await, 200);
    // The log records may come after the spans.
    assert_eq!(post(&format!("{endpoint}/v1/logs"), logs.into_bytes(), &[]).await, 200);
    assert_eq!(collected(&mut inbox, &mut run, ProgramState::Running).await, (vec!["find".to_owned()], None));
}

#[tokio::test]
async fn more_spans_than_can_be_kept_are_not_a_complete_reply() {
    let one = spans::read_json(&body(&[tool("00-07-08-01", 1, "find")])).unwrap();
    let mailbox = Mailbox::default();
    mailbox.add(vec![one[0].clone(); 20_000], Vec::new(), 1);
    assert!(!mailbox.is_full());
    mailbox.add(one.clone(), Vec::new(), 1);
    assert!(mailbox.is_full() && mailbox.lock().spans.len() == 20_000);
    let large = Mailbox::default();
    large.add(one.clone(), Vec::new(), (64 << 20) + 1);
    assert!(large.is_full());
    let report = SpanReport::new(&one, Missing { is_full: true, ..Missing::default() });
    let answer = super::AnswerCalls { text: None, are_listed: false, tools: Vec::new() };
    let mut run = run();
    answer.record(Some(&report), &mut run.turn).await.unwrap();
    let missing = run.turn.trace().missing_calls().unwrap();
    assert!(missing.starts_with("the bot sent more spans"), "{missing}");
}

#[test]
fn a_small_request_does_not_become_a_large_one() {
    let mut bomb = GzEncoder::new(Vec::new(), Compression::fast());
    bomb.write_all(&[b' '; 1001]).unwrap();
    let bomb = bomb.finish().unwrap();
    assert_eq!(inflate("gzip", &bomb, 1001).unwrap().unwrap().len(), 1001);
    assert!(inflate("gzip", &bomb, 1000).unwrap_err().starts_with("it has more than"));
}

#[test]
fn the_configuration_is_a_word_or_a_map() {
    let read = |config: Value, keys| {
        let node = model::Node::from_json(&config, &model::Source::new("trialrun.yaml", ""));
        let mut problems = Vec::new();
        let read = TraceSettings::read(&node, keys, &mut problems);
        assert_eq!(read.is_none(), !problems.is_empty(), "{config}");
        read.ok_or_else(|| problems[0].message.clone())
    };
    let usual = TraceSettings { wait: Duration::from_secs(10), port: None, one_at_a_time: false };
    assert_eq!(read(json!("otlp"), TraceKeys::OwnProcess), Ok(usual));
    let all = json!({"type": "otlp", "wait": "3s", "port": 4320, "oneAtATime": true});
    let expected = TraceSettings { wait: Duration::from_secs(3), port: Some(4320), one_at_a_time: true };
    assert_eq!(read(all.clone(), TraceKeys::SharedProcess), Ok(expected));
    let problem = |config: Value, keys| read(config, keys).unwrap_err();
    assert!(problem(all, TraceKeys::OwnProcess).contains("unknown key"));
    for wrong in [
        json!("zipkin"),
        json!({"wait": "3s"}),
        json!({"type": "otlp", "wait": "1h"}),
        json!({"type": "otlp", "port": 70000}),
    ] {
        problem(wrong, TraceKeys::SharedProcess);
    }
}

#[tokio::test]
async fn a_program_gets_the_variables_and_the_reason_why_its_calls_are_not_known() {
    let printed = "echo $OTEL_EXPORTER_OTLP_ENDPOINT $TRACEPARENT $OTEL_BSP_SCHEDULE_DELAY $OTEL_RESOURCE_ATTRIBUTES";
    let config = json!({"type": "subprocess", "command": ["sh", "-c", printed], "mode": "oneshot",
        "env": {"OTEL_BSP_SCHEDULE_DELAY": "7"}, "traces": {"type": "otlp", "wait": "1ms"}});
    let mut harness = AgentHarness::for_case(case("a b", &["one", "two"]));
    (harness.state, harness.sandbox) = (new_run(), Some(Bare::new()));
    harness.config = Some(configured(&config, Path::new(".")));
    let played = harness.play(&Subprocess).await.unwrap();
    let answers = played.turn.trace().replies.iter().map(|reply| reply.answer.clone().unwrap());
    let answers: Vec<Vec<String>> = answers.map(|answer| answer.split(' ').map(str::to_owned).collect()).collect();
    let own = harness.state.receivers.receiver(None).unwrap().endpoint(None);
    assert!(answers[0][0].starts_with(&format!("{own}/")), "{answers:?}");
    assert_eq!(answers[0][0], answers[1][0], "the conversation has one address");
    assert_ne!(answers[0][1], answers[1][1], "each message has its own trace");
    assert_eq!((answers[0][1].len(), answers[0][2].as_str()), (55, "7"));
    assert_eq!(answers[0][3], "trialrun.trial.id=suite::a%20b%40agent%231");
    let missing = played.turn.trace().missing_calls().unwrap();
    assert!(missing.starts_with("the bot sent no spans"), "{missing}");
}

/// Returns an agent that is a function which sends these spans to the address in its message, and then answers.
fn traced(answer: &'static str, spans: fn(&str) -> Vec<Value>) -> &'static Executor {
    Executor::traced(Description::new("function", "a function"), move |call| async move {
        let TraceTarget { endpoint, traceparent } = call.traces.unwrap();
        send(&endpoint, &spans(&traceparent)).await;
        if answer.is_empty() { Err(Ending::GaveUp { reason: "no idea".to_owned() }) } else { Ok(json!(answer)) }
    })
}

#[tokio::test]
async fn a_function_is_tested_for_what_its_spans_show() {
    let mut harness = AgentHarness::for_case(case("a", &["go"]));
    harness.state = new_run();
    let bot = traced("Done.", |trace| vec![tool(trace, 2, "find"), answered(trace, 3), span(trace, 1, &json!({}))]);
    let run = harness.play(bot).await.unwrap();
    assert_eq!((run.calls(), run.answer()), (vec![("find", "done", false)], Some("Done.")));
    assert_eq!((run.turn.trace().missing_calls(), run.endings.last()), (None, Some(&Ending::Finished)));
    let failing = traced("", |trace| vec![tool(trace, 2, "find")]);
    let run = harness.play(failing).await.unwrap();
    assert_eq!(run.calls(), [("find", "done", false)], "what it did before it failed is kept");
    assert!(run.turn.trace().missing_calls().is_some());
}

use serde_json::{Value, json};

use crate::client::{Bench, asks, streaming};

#[tokio::test]
async fn an_answer_without_streaming_is_a_single_document() {
    let bench = Bench::new(json!({"steps": [{
        "text": "In $SANDBOX.", "tools": [{"name": "Bash", "input": {"command": "ls"}}],
        "usage": {"input": 5, "output": 6, "cache_read": 7, "cache_write": 8},
    }]}))
    .await;
    let received = bench.post(&asks("go")).await;
    assert_eq!((received.status, received.complete), (200, true));
    assert_eq!(received.header("content-type"), Some("application/json"));
    assert_eq!(received.header("request-id"), Some("req_0001"));
    let body = received.json();
    assert_eq!(body["content"][0]["text"], "In /box.");
    assert_eq!(body["content"][1]["input"], json!({"command": "ls"}));
    assert_eq!(body["stop_reason"], "tool_use");
    assert_eq!(body["usage"]["cache_creation_input_tokens"], 8);
    assert_eq!(bench.playback.in_flight(), None);
}

#[tokio::test]
async fn a_streamed_answer_has_every_event_in_order() {
    let bench =
        Bench::new(json!({"steps": [{"thinking": "Hm.", "text": "Four.", "usage": {"input": 9, "output": 3}}]})).await;
    let received = bench.post(&streaming("go")).await;
    assert_eq!((received.status, received.complete), (200, true));
    assert_eq!(received.header("content-type"), Some("text/event-stream; charset=utf-8"));
    let events = received.events();
    assert_eq!(events.first().unwrap()["message"]["usage"]["input_tokens"], 9);
    assert_eq!(events[events.len() - 2]["usage"]["output_tokens"], 3);
    assert_eq!(events.last().unwrap()["type"], "message_stop");
    let joined = |kind: &str, field: &str| -> String {
        events
            .iter()
            .filter(|event| event["delta"]["type"] == kind)
            .filter_map(|event| event["delta"][field].as_str())
            .collect()
    };
    assert_eq!(joined("thinking_delta", "thinking"), "Hm.");
    assert_eq!(joined("text_delta", "text"), "Four.");
    assert_eq!(bench.playback.in_flight(), None);
}

#[tokio::test]
async fn sub_agents_and_side_requests_do_not_consume_steps() {
    let bench = Bench::new(json!({
        "steps": [{"text": "m1"}, {"text": "m2"}],
        "conversations": [{"match": {"subagent": true}, "steps": [{"text": "s1"}, {"text": "s2"}]}],
    }))
    .await;
    let text = |body: Value| body["content"][0]["text"].as_str().unwrap().to_owned();
    let sub = async |id: &str| {
        let headers = format!("x-api-key: sk-test\r\nx-claude-code-agent-id: {id}\r\nx-claude-code-session-id: S");
        text(bench.send("POST /v1/messages", &headers, &asks("sub").to_string()).await.json())
    };
    let mut title = asks("a title");
    title["tools"] = json!([]);
    let mut marked = asks("sub");
    marked["system"] = json!([{"type": "text", "text": "v=1; cc_is_subagent=true;"}]);

    assert_eq!(text(bench.post(&title).await.json()), "ok");
    assert_eq!(text(bench.post(&asks("x")).await.json()), "m1");
    assert_eq!(sub("a1").await, "s1");
    assert_eq!(sub("a2").await, "s1");
    assert_eq!(text(bench.post(&marked).await.json()), "s1");
    assert_eq!(sub("a1").await, "s2");
    assert_eq!(text(bench.post(&asks("x")).await.json()), "m2");
    let seen = bench.admission.seen();
    assert_eq!(seen[2].conversation.agent.as_deref(), Some("a1"));
    assert_eq!(seen[2].conversation.session.as_deref(), Some("S"));
    assert_eq!(bench.playback.requests_seen(), 7);
    assert!(bench.playback.problems().is_empty());
}

#[tokio::test]
async fn a_request_after_the_last_step_is_rejected_with_a_reason() {
    let bench = Bench::new(json!({"steps": [{"text": "m1"}]})).await;
    bench.post(&asks("x")).await;
    let refused = bench.post(&streaming("x")).await.error();
    let message = "the script s.json has 1 step and this is request 2; add a step for it";
    assert_eq!(refused, (400, "invalid_request_error".into(), message.into()));
    assert_eq!(bench.playback.problems()[0].message, message);
}

#[tokio::test]
async fn script_expectations_are_checked_on_the_received_request() {
    let bench = Bench::new(json!({"steps": [{"text": "a", "expect_request": {
        "system_contains": "brief", "last_user_contains": "lines", "tools_include": ["Bash", "Read"],
    }}]}))
    .await;
    bench.post(&asks("count the lines")).await;
    let met: Vec<bool> = bench
        .playback
        .take_steps()
        .into_iter()
        .map(|step| match step {
            model::Step::RequestCheck { step: 1, met, .. } => met,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(met, [true, true, true, false]);
}

#[tokio::test]
async fn auxiliary_endpoints_respond_and_unsupported_ones_are_rejected() {
    let bench = Bench::new(json!({"steps": [{"text": "m1"}]})).await;
    let key = "x-api-key: sk-test";
    let head = bench.send("HEAD /", "x: y", "").await;
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    let counted = bench.send("POST /v1/messages/count_tokens", key, &asks("x").to_string()).await;
    assert!(counted.json()["input_tokens"].as_u64().unwrap() > 1);
    for line in ["GET /v1/messages", "GET /v1/models", "POST /v1/complete"] {
        let error = bench.send(line, key, "{}").await.error();
        assert_eq!(error, (404, "not_found_error".into(), format!("no such endpoint: {line}")));
    }
    let invalid = bench.send("POST /v1/messages", key, "{").await.error();
    assert_eq!((invalid.0, invalid.1.as_str()), (400, "invalid_request_error"));
    assert_eq!(bench.playback.requests_seen(), 0);
}

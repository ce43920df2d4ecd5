use serde_json::{Value, json};

use crate::client::Bench;

const KEY: &str = "authorization: Bearer sk-test";

fn responses(items: &Value, stream: bool) -> String {
    let tools =
        json!([{"type": "function", "name": "exec_command", "parameters": {}}, {"type": "custom", "name": "patch"}]);
    json!({"model": "m1", "instructions": "Be brief.", "input": items, "tools": tools, "stream": stream}).to_string()
}

fn chat(messages: &Value, stream: bool) -> String {
    let tools = json!([{"type": "function", "function": {"name": "bash", "parameters": {}}}]);
    let mut body = json!({"model": "m1", "messages": messages, "tools": tools, "stream": stream});
    if stream {
        body["stream_options"] = json!({"include_usage": true});
    }
    body.to_string()
}

#[tokio::test]
async fn a_websocket_is_rejected_so_that_the_client_falls_back_at_once() {
    let bench = Bench::new(json!({"steps": [{"text": "m1"}]})).await;
    let upgrade = "upgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: eA==";
    for headers in [upgrade.to_owned(), format!("{upgrade}\r\n{KEY}")] {
        let refused = bench.send("GET /v1/responses", &headers, "").await;
        assert_eq!((refused.status, refused.header("upgrade")), (426, Some("HTTP/1.1")));
    }
    assert_eq!(bench.send("GET /v1/nothing", &format!("{upgrade}\r\n{KEY}"), "").await.status, 404);
    assert_eq!(bench.send("GET /v1/responses", KEY, "").await.status, 404);
    assert_eq!(bench.playback.requests_seen(), 0);
}

#[tokio::test]
async fn a_script_answers_in_the_responses_format() {
    let bench = Bench::new(json!({"steps": [
        {"thinking": "Hm.", "text": "I look.", "tools": [
            {"name": "exec_command", "input": {"cmd": "ls"}}, {"name": "patch", "input": "*** in $SANDBOX"},
        ], "usage": {"input": 5, "cache_read": 6, "output": 7, "reasoning": 2}},
        {"text": "Done.", "expect_request": {
            "tool_result_contains": ["a.txt", "patched"], "system_contains": "Be brief.", "tools_include": "patch",
        }},
    ]}))
    .await;
    let asked = json!([{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}]);
    let first = bench.send("POST /v1/responses", KEY, &responses(&asked, true)).await;
    assert_eq!((first.status, first.complete), (200, true));
    let events = first.events();
    let done: Vec<_> = events.iter().filter(|event| event["type"] == "response.output_item.done").collect();
    let kinds: Vec<_> = done.iter().map(|event| event["item"]["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["reasoning", "message", "function_call", "custom_tool_call"]);
    assert_eq!(done[2]["item"]["arguments"], r#"{"cmd":"ls"}"#);
    assert_eq!(done[3]["item"]["input"], "*** in /box");
    let usage = &events.last().unwrap()["response"]["usage"];
    assert_eq!((&usage["input_tokens"], &usage["input_tokens_details"]["cached_tokens"]), (&json!(11), &json!(6)));
    assert_eq!(usage["output_tokens_details"]["reasoning_tokens"], 2);

    let mut items = asked.as_array().unwrap().clone();
    items.extend(done.iter().map(|event| event["item"].clone()));
    let id = |at: usize| done[at]["item"]["call_id"].clone();
    items.push(json!({"type": "function_call_output", "call_id": id(2), "output": "a.txt"}));
    items.push(json!({"type": "custom_tool_call_output", "call_id": id(3), "output": "patched"}));
    let second = bench.send("POST /v1/responses", KEY, &responses(&Value::Array(items), false)).await.json();
    assert_eq!(second["output"][0]["content"][0]["text"], "Done.");
    let met = |step: &model::Step| matches!(step, model::Step::RequestCheck { met: true, .. });
    assert!(bench.playback.take_steps().iter().all(met));
}

#[tokio::test]
async fn a_script_answers_in_the_chat_completions_format() {
    let bench = Bench::new(json!({"steps": [
        {"thinking": "Hm.", "text": "I look.", "tools": [{"name": "bash", "input": {"command": "ls"}}],
         "usage": {"input": 5, "cache_read": 6, "output": 7}},
        {"text": "Done.", "expect_request": {"tool_result_contains": "a.txt", "system_contains": "Be brief."}},
    ]}))
    .await;
    let mut messages = json!([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "go"}]);
    let first = bench.send("POST /v1/chat/completions", KEY, &chat(&messages, true)).await;
    assert_eq!((first.status, first.complete), (200, true));
    assert!(first.body.ends_with("data: [DONE]\n\n"), "{}", first.body);
    let events = first.events();
    let deltas =
        |pointer: &str| -> String { events.iter().filter_map(|event| event.pointer(pointer)?.as_str()).collect() };
    assert_eq!(deltas("/choices/0/delta/content"), "I look.");
    assert_eq!(deltas("/choices/0/delta/reasoning_content"), "Hm.");
    assert_eq!(deltas("/choices/0/delta/tool_calls/0/function/arguments"), r#"{"command":"ls"}"#);
    let last = events.last().unwrap();
    assert_eq!((&last["choices"], &last["usage"]["prompt_tokens"]), (&json!([]), &json!(11)));

    let call = json!({"id": "c", "type": "function", "function": {"name": "bash", "arguments": "{}"}});
    let history = messages.as_array_mut().unwrap();
    history.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
    history.push(json!({"role": "tool", "tool_call_id": "c", "content": "a.txt"}));
    let second = bench.send("POST /v1/chat/completions", KEY, &chat(&messages, false)).await.json();
    assert_eq!(second["choices"][0]["message"]["content"], "Done.");
    let met = |step: &model::Step| matches!(step, model::Step::RequestCheck { met: true, .. });
    assert!(bench.playback.take_steps().iter().all(met));
}

#[tokio::test]
async fn faults_and_rejections_have_the_format_of_each_vendor() {
    for (path, body) in [
        ("/v1/responses", responses(&json!("go"), true)),
        ("/v1/chat/completions", chat(&json!([{"role": "user", "content": "go"}]), true)),
    ] {
        let line = format!("POST {path}");
        let bench = Bench::new(json!({"steps": [
            {"fault": {"kind": "http", "status": 429}}, {"fault": {"kind": "cut"}, "text": "some words"},
            {"fault": {"kind": "error_event", "message": "as told"}},
        ]}))
        .await;
        let limited = bench.send(&line, KEY, &body).await;
        assert_eq!((limited.status, &limited.json()["error"]["code"]), (429, &json!("rate_limit_exceeded")), "{path}");
        assert!(!bench.send(&line, KEY, &body).await.complete, "{path}");
        assert!(bench.send(&line, KEY, &body).await.body.contains("as told"), "{path}");
        let over = bench.send(&line, KEY, &body).await;
        assert_eq!(over.status, 400, "{path}");
        assert!(over.json()["error"]["message"].as_str().unwrap().contains("has 3 steps"), "{path}");
        let stranger = bench.send(&line, "authorization: Bearer sk-other", &body).await;
        assert_eq!((stranger.status, &stranger.json()["error"]["code"]), (401, &json!("invalid_api_key")), "{path}");
    }
}

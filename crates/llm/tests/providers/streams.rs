//! Responses in the vendors' formats: the same content in each format, as a stream and as a single document.

use serde_json::{Value, json};
use trialrun_llm::{Block, Reply, StopReason};

/// Text of all responses.
pub const SAID: &str = "Grüße 😀";

fn events(events: &[(&str, Value)]) -> String {
    events.iter().map(|(name, data)| format!("event: {name}\ndata: {data}\n\n")).collect()
}

fn chunks(chunks: &[Value]) -> String {
    chunks.iter().map(|data| format!("data: {data}\n\n")).chain(["data: [DONE]\n\n".to_owned()]).collect()
}

/// Returns the stream of `provider` and its content type.
pub fn stream(provider: &str) -> (String, &'static str) {
    match provider {
        "anthropic" => (anthropic(), "text/event-stream; charset=utf-8"),
        "openai-responses" => (responses(), "text/event-stream; charset=utf-8"),
        "google" => (google(), "text/event-stream"),
        "ollama" => (ollama(), "application/x-ndjson"),
        _ => (chat(), "text/event-stream"),
    }
}

fn anthropic() -> String {
    let mut text = events(&[
        (
            "message_start",
            json!({"type": "message_start", "message": {
                "id": "msg_1", "type": "message", "role": "assistant", "model": "m1", "content": [], "stop_reason": null,
                "stop_sequence": null, "usage": {"input_tokens": 12, "cache_creation_input_tokens": 3,
                "cache_read_input_tokens": 40, "output_tokens": 1},
            }}),
        ),
        (
            "content_block_start",
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        ),
        ("ping", json!({"type": "ping"})),
        (
            "content_block_delta",
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Grüße "}}),
        ),
        (
            "content_block_delta",
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "😀"}}),
        ),
        ("content_block_stop", json!({"type": "content_block_stop", "index": 0})),
        (
            "content_block_start",
            json!({"type": "content_block_start", "index": 1,
            "content_block": {"type": "tool_use", "id": "call_1", "name": "Bash", "input": {}}}),
        ),
        (
            "content_block_delta",
            json!({"type": "content_block_delta", "index": 1,
            "delta": {"type": "input_json_delta", "partial_json": "{\"command\": \"l"}}),
        ),
        (
            "content_block_delta",
            json!({"type": "content_block_delta", "index": 1,
            "delta": {"type": "input_json_delta", "partial_json": "s\"}"}}),
        ),
        ("content_block_stop", json!({"type": "content_block_stop", "index": 1})),
    ]);
    text.push_str(&events(&[
        (
            "message_delta",
            json!({"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": null},
            "usage": {"output_tokens": 25}}),
        ),
        ("message_stop", json!({"type": "message_stop"})),
    ]));
    text
}

fn response(output: &Value, usage: &Value) -> Value {
    json!({"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "error": null,
        "incomplete_details": null, "model": "m1", "output": output, "usage": usage})
}

fn items() -> Value {
    json!([
        {"id": "msg_1", "type": "message", "status": "completed", "role": "assistant",
            "content": [{"type": "output_text", "text": SAID, "annotations": [], "logprobs": []}]},
        {"id": "fc_1", "type": "function_call", "status": "completed", "call_id": "call_1", "name": "Bash",
            "arguments": "{\"command\": \"ls\"}"},
    ])
}

fn responses_usage() -> Value {
    json!({"input_tokens": 55, "input_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 3}, "output_tokens": 25,
        "output_tokens_details": {"reasoning_tokens": 9}, "total_tokens": 80})
}

fn responses() -> String {
    let begun = response(&json!([]), &Value::Null);
    let items = items();
    events(&[
        ("response.created", json!({"type": "response.created", "sequence_number": 0, "response": begun})),
        (
            "response.output_item.added",
            json!({"type": "response.output_item.added", "sequence_number": 1,
            "output_index": 0, "item": {"id": "msg_1", "type": "message", "content": []}}),
        ),
        (
            "response.output_text.delta",
            json!({"type": "response.output_text.delta", "sequence_number": 2,
            "item_id": "msg_1", "output_index": 0, "content_index": 0, "delta": "Grüße "}),
        ),
        (
            "response.output_item.done",
            json!({"type": "response.output_item.done", "sequence_number": 3,
            "output_index": 0, "item": items[0]}),
        ),
        (
            "response.output_item.done",
            json!({"type": "response.output_item.done", "sequence_number": 4,
            "output_index": 1, "item": items[1]}),
        ),
        (
            "response.completed",
            json!({"type": "response.completed", "sequence_number": 5,
            "response": response(&items, &responses_usage())}),
        ),
    ])
}

fn chat_usage() -> Value {
    json!({"prompt_tokens": 55, "completion_tokens": 25, "total_tokens": 80,
        "prompt_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 3},
        "completion_tokens_details": {"reasoning_tokens": 9}})
}

fn chat() -> String {
    let chunk = |delta: Value, stop: Value| {
        json!({"id": "chatcmpl_1", "object": "chat.completion.chunk", "created": 1, "model": "m1",
            "choices": [{"index": 0, "delta": delta, "finish_reason": stop}], "usage": null})
    };
    let call = |delta: Value| chunk(json!({"tool_calls": [delta]}), Value::Null);
    chunks(&[
        chunk(json!({"role": "assistant", "content": ""}), Value::Null),
        chunk(json!({"content": "Grüße "}), Value::Null),
        chunk(json!({"content": "😀"}), Value::Null),
        call(json!({"index": 0, "id": "call_1", "type": "function", "function": {"name": "Bash", "arguments": ""}})),
        call(json!({"index": 0, "function": {"arguments": "{\"command\": "}})),
        call(json!({"index": 0, "function": {"arguments": "\"ls\"}"}})),
        chunk(json!({}), json!("tool_calls")),
        json!({"id": "chatcmpl_1", "model": "m1", "choices": [], "usage": chat_usage()}),
    ])
}

fn google_piece(parts: &Value, stop: Option<&str>) -> Value {
    let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": parts}});
    if let Some(stop) = stop {
        candidate["finishReason"] = json!(stop);
    }
    json!({"candidates": [candidate], "modelVersion": "m1", "responseId": "r1", "usageMetadata": {
        "promptTokenCount": 52, "cachedContentTokenCount": 40, "toolUsePromptTokenCount": 3, "candidatesTokenCount": 16,
        "thoughtsTokenCount": 9, "totalTokenCount": 80}})
}

fn google_call() -> Value {
    json!({"functionCall": {"id": "call_1", "name": "Bash", "args": {"command": "ls"}}})
}

fn google() -> String {
    let pieces = [
        google_piece(&json!([{"text": "Grüße "}]), None),
        google_piece(&json!([{"text": "😀"}]), None),
        google_piece(&json!([google_call()]), None),
        google_piece(&json!([{"text": ""}]), Some("STOP")),
    ];
    pieces.iter().map(|data| format!("data: {data}\n\n")).collect()
}

fn ollama() -> String {
    let line = |message: Value| json!({"model": "m1", "created_at": "2026-01-01T00:00:00Z", "message": message, "done": false});
    let lines = [
        line(json!({"role": "assistant", "content": "Grüße "})),
        line(json!({"role": "assistant", "content": "😀"})),
        line(json!({"role": "assistant", "content": "",
            "tool_calls": [{"id": "call_1", "function": {"name": "Bash", "arguments": {"command": "ls"}}}]})),
        json!({"model": "m1", "created_at": "2026-01-01T00:00:01Z", "message": {"role": "assistant", "content": ""},
            "done": true, "done_reason": "stop", "total_duration": 5, "prompt_eval_count": 55, "eval_count": 25}),
    ];
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Returns the same content as a single document.
pub fn document(provider: &str) -> Value {
    match provider {
        "anthropic" => json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "m1",
            "content": [
                {"type": "text", "text": SAID},
                {"type": "tool_use", "id": "call_1", "name": "Bash", "input": {"command": "ls"}},
            ],
            "stop_reason": "tool_use", "stop_sequence": null,
            "usage": {"input_tokens": 12, "cache_creation_input_tokens": 3, "cache_read_input_tokens": 40, "output_tokens": 25},
        }),
        "openai-responses" => response(&items(), &responses_usage()),
        "google" => google_piece(&json!([{"text": SAID}, google_call()]), Some("STOP")),
        "ollama" => json!({
            "model": "m1", "message": {"role": "assistant", "content": SAID,
                "tool_calls": [{"id": "call_1", "function": {"name": "Bash", "arguments": {"command": "ls"}}}]},
            "done": true, "done_reason": "stop", "prompt_eval_count": 55, "eval_count": 25,
        }),
        _ => json!({
            "id": "chatcmpl_1", "object": "chat.completion", "created": 1, "model": "m1",
            "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
                "role": "assistant", "content": SAID, "refusal": null,
                "tool_calls": [{"id": "call_1", "type": "function",
                    "function": {"name": "Bash", "arguments": "{\"command\": \"ls\"}"}}],
            }}],
            "usage": chat_usage(),
        }),
    }
}

/// Asserts that `reply` has the common content.
pub fn check(provider: &str, reply: &Reply) {
    let call = Block::ToolUse { id: "call_1".into(), name: "Bash".into(), input: json!({"command": "ls"}) };
    assert_eq!(reply.content, [Block::Text { text: SAID.into() }, call], "{provider}");
    assert_eq!((&reply.stop_reason, reply.model.as_str()), (&StopReason::ToolUse, "m1"), "{provider}");
    assert!(!reply.message_id.is_empty(), "{provider}");
    let tokens = reply.tokens.unwrap();
    assert_eq!((tokens.output, tokens.total()), (25, 80), "{provider}");
    match provider {
        "ollama" => {}
        // It does not report tokens that are written to a cache.
        "google" => assert_eq!((tokens.input, tokens.cache_read), (15, 40)),
        _ => assert_eq!((tokens.input, tokens.cache_read, tokens.cache_write), (12, 40, 3), "{provider}"),
    }
    let reasons = !["anthropic", "ollama"].contains(&provider);
    assert_eq!(tokens.reasoning, reasons.then_some(9), "{provider}");
}

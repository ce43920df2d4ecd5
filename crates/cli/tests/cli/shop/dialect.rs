//! Formats of the bot's answers, and its faults, as pieces of HTTP responses.

use serde_json::{Value, json};

use super::answer::Answer;

type Pieces = Vec<Vec<u8>>;

/// Returns `answer` in the format called `dialect`; an unknown name means the bot's native format.
pub fn speak(dialect: &str, answer: &Answer) -> Pieces {
    let usage = json!({ "input_tokens": 12, "output_tokens": 7 });
    match dialect {
        "openai" => whole(&json!({
            "choices": [{ "message": { "role": "assistant", "content": answer.text, "tool_calls": openai_calls(answer) } }],
            "usage": { "prompt_tokens": 12, "completion_tokens": 7 },
        })),
        "anthropic" => {
            let used =
                calls(answer, |name, input, _| json!({ "type": "tool_use", "id": name, "name": name, "input": input }));
            let content: Vec<Value> =
                used.into_iter().chain([json!({ "type": "text", "text": answer.text })]).collect();
            whole(&json!({ "role": "assistant", "content": content, "usage": usage }))
        }
        "stream/openai" => openai_stream(answer),
        "stream/anthropic" => anthropic_stream(answer),
        "stream/ui" => ui_stream(answer),
        "stream/data" => data_stream(answer),
        "stream/text" => chunked("text/plain; charset=utf-8", words(&answer.text).map(str::to_owned).collect()),
        _ => {
            let called =
                calls(answer, |name, input, result| json!({ "name": name, "arguments": input, "result": result }));
            whole(&json!({ "message": answer.text, "tool_calls": called, "usage": usage }))
        }
    }
}

/// Returns the response for a fault; the connection ends afterwards.
pub fn fault(name: &str) -> Pieces {
    let plain = |status: &str, extra: &str, text: &str| {
        vec![format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n{extra}\r\n{text}", text.len()).into_bytes()]
    };
    match name {
        "error" => plain("500 Internal Server Error", "", "{\"error\": \"the database is down\"}"),
        "unreadable" => plain("422 Unprocessable Entity", "", "{\"detail\": \"field required: query\"}"),
        "busy" => plain("429 Too Many Requests", "retry-after: 1\r\n", "slow down"),
        "empty" => plain("200 OK", "", ""),
        "garbage" => vec![b"\x16\x03\x01 this is no HTTP\r\n\r\n".to_vec()],
        "redirect" => plain("302 Found", "location: /api/chat\r\n", ""),
        "cut" => vec![b"HTTP/1.1 200 OK\r\ncontent-length: 400\r\n\r\n{\"message\": \"I am sor".to_vec()],
        _ => Vec::new(),
    }
}

/// Returns a complete response with a JSON body.
pub fn whole(body: &Value) -> Pieces {
    let body = body.to_string();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
    vec![(head + &body).into_bytes()]
}

fn chunked(kind: &str, parts: Vec<String>) -> Pieces {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n");
    let chunk = |part: String| format!("{:x}\r\n{part}\r\n", part.len()).into_bytes();
    let parts = parts.into_iter().filter(|part| !part.is_empty()).map(chunk);
    std::iter::once(head.into_bytes()).chain(parts).chain([b"0\r\n\r\n".to_vec()]).collect()
}

fn events(events: impl IntoIterator<Item = (Option<&'static str>, String)>) -> Pieces {
    let frame = |(name, data): (Option<&str>, String)| match name {
        Some(name) => format!("event: {name}\ndata: {data}\n\n"),
        None => format!("data: {data}\n\n"),
    };
    chunked("text/event-stream", events.into_iter().map(frame).collect())
}

/// Returns the words of `text`, each with the spaces that follow it.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(' ')
}

fn calls(answer: &Answer, form: impl Fn(&str, &Value, &Value) -> Value) -> Vec<Value> {
    answer.calls.iter().map(|(name, input, result)| form(name, input, result)).collect()
}

fn openai_calls(answer: &Answer) -> Vec<Value> {
    calls(
        answer,
        |name, input, _| json!({ "id": name, "type": "function", "function": { "name": name, "arguments": input.to_string() } }),
    )
}

fn openai_stream(answer: &Answer) -> Pieces {
    let chunk = |delta: Value| (None, json!({ "choices": [{ "index": 0, "delta": delta }] }).to_string());
    let called = openai_calls(answer).into_iter().enumerate().map(|(index, mut call)| {
        call["index"] = json!(index);
        chunk(json!({ "tool_calls": [call] }))
    });
    let said = words(&answer.text).map(|word| chunk(json!({ "content": word })));
    let usage = json!({ "choices": [], "usage": { "prompt_tokens": 12, "completion_tokens": 7 } });
    events(called.chain(said).chain([(None, usage.to_string()), (None, "[DONE]".to_owned())]))
}

fn anthropic_stream(answer: &Answer) -> Pieces {
    let event = |name: &'static str, mut data: Value| {
        data["type"] = json!(name);
        (Some(name), data.to_string())
    };
    let mut sent =
        vec![event("message_start", json!({ "message": { "role": "assistant", "usage": { "input_tokens": 12 } } }))];
    for (index, (name, input, _)) in answer.calls.iter().enumerate() {
        let block = json!({ "type": "tool_use", "id": name, "name": name, "input": {} });
        sent.push(event("content_block_start", json!({ "index": index, "content_block": block })));
        let delta = json!({ "type": "input_json_delta", "partial_json": input.to_string() });
        sent.push(event("content_block_delta", json!({ "index": index, "delta": delta })));
        sent.push(event("content_block_stop", json!({ "index": index })));
    }
    let last = answer.calls.len();
    sent.push(event("content_block_start", json!({ "index": last, "content_block": { "type": "text", "text": "" } })));
    for word in words(&answer.text) {
        sent.push(event(
            "content_block_delta",
            json!({ "index": last, "delta": { "type": "text_delta", "text": word } }),
        ));
    }
    sent.push(event("content_block_stop", json!({ "index": last })));
    sent.push(event(
        "message_delta",
        json!({ "delta": { "stop_reason": "end_turn" }, "usage": { "output_tokens": 7 } }),
    ));
    sent.push(event("message_stop", json!({})));
    events(sent)
}

fn ui_stream(answer: &Answer) -> Pieces {
    let event = |data: Value| (None, data.to_string());
    let mut sent = vec![event(json!({ "type": "start" }))];
    for (name, input, result) in &answer.calls {
        sent.push(event(
            json!({ "type": "tool-input-available", "toolCallId": name, "toolName": name, "input": input }),
        ));
        sent.push(event(json!({ "type": "tool-output-available", "toolCallId": name, "output": result })));
    }
    sent.push(event(json!({ "type": "text-start", "id": "0" })));
    sent.extend(words(&answer.text).map(|word| event(json!({ "type": "text-delta", "id": "0", "delta": word }))));
    sent.push(event(json!({ "type": "text-end", "id": "0" })));
    sent.push(event(json!({ "type": "finish" })));
    sent.push((None, "[DONE]".to_owned()));
    events(sent)
}

fn data_stream(answer: &Answer) -> Pieces {
    let called = answer.calls.iter().flat_map(|(name, input, result)| {
        let call = json!({ "toolCallId": name, "toolName": name, "args": input });
        [format!("9:{call}\n"), format!("a:{}\n", json!({ "toolCallId": name, "result": result }))]
    });
    let said = words(&answer.text).map(|word| format!("0:{}\n", json!(word)));
    let usage = json!({ "finishReason": "stop", "usage": { "promptTokens": 12, "completionTokens": 7 } });
    chunked("text/plain; charset=utf-8", called.chain(said).chain([format!("d:{usage}\n")]).collect())
}

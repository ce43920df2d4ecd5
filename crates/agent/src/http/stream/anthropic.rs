//! Pieces of Anthropic's message streams.

use serde_json::{Map, Value};

use super::{End, StreamState};
use crate::answer::document;

pub(super) fn is_one(kind: &str) -> bool {
    kind == "ping" || kind.starts_with("message_") || kind.starts_with("content_block_")
}

pub(super) fn read(kind: &str, map: &Map<String, Value>, state: &mut StreamState) {
    state.answer.tells_calls = true;
    let key = || format!("block {}", map.get("index").and_then(Value::as_u64).unwrap_or(0));
    let delta = map.get("delta");
    let text = |name: &str| delta.and_then(|delta| delta.get(name)).and_then(Value::as_str);
    match kind {
        "message_start" => {
            state.owes_an_end();
            if let Some(message) = map.get("message").and_then(Value::as_object) {
                state.answer.count.read_from(message);
            }
        }
        "content_block_start" => {
            state.owes_an_end();
            if let Some(block) = map.get("content_block").and_then(Value::as_object) {
                start(&key(), block, state);
            }
        }
        "content_block_delta" => match (text("text"), text("partial_json")) {
            (Some(more), _) => state.answer.append_default_text(more),
            (None, Some(more)) => {
                if let Some(call) = state.answer.call_mut(&key()) {
                    call.write(more);
                }
            }
            (None, None) => {}
        },
        "message_delta" => state.answer.count.read_from(map),
        "message_stop" => state.end = End::Over,
        _ => {}
    }
}

fn start(key: &str, block: &Map<String, Value>, state: &mut StreamState) {
    if block.get("type").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("tool_use")) {
        let before = state.answer.pieces().len();
        document::block(block, &mut state.answer);
        state.answer.name(key, before);
        if let Some(call) = state.answer.call_mut(key) {
            // An empty input is filled by the following pieces.
            call.input = call.input.take().filter(|input| input.as_object().is_none_or(|input| !input.is_empty()));
        }
        return;
    }
    let is_empty = block.get("text").and_then(Value::as_str) == Some("");
    if !is_empty {
        document::block(block, &mut state.answer);
    }
}

//! Pieces of the AI SDK's UI message streams.

use serde_json::{Map, Value};

use super::{End, StreamState};
use crate::transcript::ReportedCall;

const KINDS: [&str; 9] = [
    "start",
    "start-step",
    "finish-step",
    "finish",
    "file",
    "message-metadata",
    "text-start",
    "text-delta",
    "text-end",
];

pub(super) fn is_one(kind: &str) -> bool {
    let begins = ["tool-", "reasoning-", "source-", "data-"].iter().any(|start| kind.starts_with(start));
    begins || KINDS.contains(&kind)
}

pub(super) fn read(kind: &str, map: &Map<String, Value>, state: &mut StreamState) {
    let text = |key: &str| map.get(key).and_then(Value::as_str).unwrap_or_default();
    state.answer.tells_calls = true;
    let id = text("toolCallId");
    if let Some(metadata) = map.get("messageMetadata").and_then(Value::as_object) {
        state.answer.count.read_from(metadata);
    }
    match kind {
        "start-step" => state.answer.next_turn(),
        "finish" => {
            state.answer.count.read_from(map);
            state.end = End::Over;
        }
        "text-delta" => state.answer.append_default_text(
            map.get("delta").or_else(|| map.get("textDelta")).and_then(Value::as_str).unwrap_or_default(),
        ),
        "tool-input-start" => begin(id, text("toolName"), state),
        "tool-input-delta" => {
            if let Some(call) = state.answer.call_mut(id) {
                call.write(text("inputTextDelta"));
            }
        }
        "tool-input-available" | "tool-input-error" => {
            begin(id, text("toolName"), state);
            if let Some(call) = state.answer.call_mut(id) {
                call.input = map.get("input").cloned();
            }
        }
        "tool-output-available" => state.answer.result(id, map.get("output").unwrap_or(&Value::Null), false),
        "tool-output-error" => state.answer.result(id, map.get("errorText").unwrap_or(&Value::Null), true),
        _ => {}
    }
    state.owes_an_end();
}

/// Adds the call, unless it already exists.
fn begin(id: &str, name: &str, state: &mut StreamState) {
    if state.answer.call_mut(id).is_none() {
        let call = ReportedCall::new(Some(id.to_owned()), name);
        state.answer.call(Some(id), call);
    }
}

//! Pieces of the AI SDK's streams of UI messages.

use serde_json::{Map, Value};

use super::{End, Told};
use crate::answer::Call;

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

pub(super) fn read(kind: &str, map: &Map<String, Value>, told: &mut Told) {
    let text = |key: &str| map.get(key).and_then(Value::as_str).unwrap_or_default();
    let id = text("toolCallId");
    if let Some(metadata) = map.get("messageMetadata").and_then(Value::as_object) {
        told.answer.count.look(metadata);
    }
    match kind {
        "start-step" => told.answer.next_turn(),
        "finish" => {
            told.answer.count.look(map);
            told.end = End::Over;
        }
        "text-delta" => told
            .answer
            .hear(map.get("delta").or_else(|| map.get("textDelta")).and_then(Value::as_str).unwrap_or_default()),
        "tool-input-start" => begin(id, text("toolName"), told),
        "tool-input-delta" => {
            if let Some(call) = told.answer.called(id) {
                call.write(text("inputTextDelta"));
            }
        }
        "tool-input-available" | "tool-input-error" => {
            begin(id, text("toolName"), told);
            if let Some(call) = told.answer.called(id) {
                call.input = map.get("input").cloned();
            }
        }
        "tool-output-available" => told.answer.result(id, map.get("output").unwrap_or(&Value::Null), false),
        "tool-output-error" => told.answer.result(id, map.get("errorText").unwrap_or(&Value::Null), true),
        _ => {}
    }
    told.owes_an_end();
}

/// Adds the call, unless it already exists.
fn begin(id: &str, name: &str, told: &mut Told) {
    if told.answer.called(id).is_none() {
        let call = Call::new(Some(id.to_owned()), name);
        told.answer.call(Some(id), call);
    }
}

//! Pieces of Responses API streams.

use serde_json::{Map, Value};

use super::{End, StreamState};
use crate::answer::document;

pub(super) fn read(kind: &str, map: &Map<String, Value>, state: &mut StreamState) {
    state.answer.tells_calls = true;
    state.owes_an_end();
    match kind {
        "response.output_text.delta" | "response.refusal.delta" => {
            if let Some(more) = map.get("delta").and_then(Value::as_str) {
                state.streamed += 1;
                state.answer.append_default_text(more);
            }
        }
        "response.output_item.done" => {
            let item = map.get("item").and_then(Value::as_object);
            // A message that arrived in pieces is not added again.
            let is_said = |item: &Map<String, Value>| {
                item.get("type").is_some_and(|kind| kind == "message") && state.streamed > 0
            };
            if let Some(item) = item.filter(|item| !is_said(item)) {
                document::item(item, &mut state.answer);
            }
        }
        "response.completed" => {
            if let Some(response) = map.get("response").and_then(Value::as_object) {
                state.answer.count.read_from(response);
                if !state.answer.has_text() && !state.answer.has_calls() {
                    document::read(&Value::Object(response.clone()), &mut state.answer);
                }
            }
            state.end = End::Over;
        }
        _ => {}
    }
}

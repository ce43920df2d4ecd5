//! Pieces of streams of the Responses API.

use serde_json::{Map, Value};

use super::{End, Told};
use crate::answer::document;

pub(super) fn read(kind: &str, map: &Map<String, Value>, told: &mut Told) {
    told.owes_an_end();
    match kind {
        "response.output_text.delta" | "response.refusal.delta" => {
            if let Some(more) = map.get("delta").and_then(Value::as_str) {
                told.streamed += 1;
                told.answer.hear(more);
            }
        }
        "response.output_item.done" => {
            let item = map.get("item").and_then(Value::as_object);
            // A message that arrived in pieces is not added again.
            let is_said =
                |item: &Map<String, Value>| item.get("type").is_some_and(|kind| kind == "message") && told.streamed > 0;
            if let Some(item) = item.filter(|item| !is_said(item)) {
                document::item(item, &mut told.answer);
            }
        }
        "response.completed" => {
            if let Some(response) = map.get("response").and_then(Value::as_object) {
                told.answer.count.look(response);
                if !told.answer.has_text() && !told.answer.has_calls() {
                    document::read(&Value::Object(response.clone()), &mut told.answer);
                }
            }
            told.end = End::Over;
        }
        _ => {}
    }
}

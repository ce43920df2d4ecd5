//! Pieces of chat completions streams.

use serde_json::{Map, Value};

use super::{End, StreamState};
use crate::answer::document;
use crate::transcript::ReportedCall;

pub(super) fn read(map: &Map<String, Value>, state: &mut StreamState) {
    state.answer.tells_calls = true;
    state.owes_an_end();
    state.answer.count.read_from(map);
    let Some(choice) = map.get("choices").and_then(|choices| choices.get(0)) else { return };
    if let Some(delta) = choice.get("delta").and_then(Value::as_object) {
        self::delta(delta, state);
    } else if choice.get("message").is_some() {
        document::read(&Value::Object(map.clone()), &mut state.answer);
    }
    if choice.get("finish_reason").is_some_and(|reason| !reason.is_null()) {
        // Usage and a final marker may follow, but both are optional.
        state.end = End::Reached;
    }
}

fn delta(delta: &Map<String, Value>, state: &mut StreamState) {
    if let Some(text) = delta.get("content").or_else(|| delta.get("refusal")).and_then(Value::as_str) {
        state.answer.append_default_text(text);
    }
    let calls = delta.get("tool_calls").and_then(Value::as_array);
    for (index, piece) in calls.into_iter().flatten().enumerate() {
        let index = piece.get("index").and_then(Value::as_u64).unwrap_or(index as u64);
        call(&format!("index {index}"), piece, state);
    }
}

fn call(key: &str, piece: &Value, state: &mut StreamState) {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned);
    let function = piece.get("function");
    let id = text(piece.get("id"));
    let name = text(function.and_then(|function| function.get("name")));
    let known = state.answer.call_mut(key);
    // Some servers use the same index for every call, and distinguish calls only by their ids.
    let is_new = known.is_none_or(|call| id.is_some() && name.is_some() && call.id != id);
    if is_new {
        state.answer.call(Some(key), ReportedCall::new(id, name.unwrap_or_default()));
    }
    let arguments = function.and_then(|function| function.get("arguments"));
    let Some(call) = state.answer.call_mut(key) else { return };
    match arguments {
        Some(Value::String(more)) => call.write(more),
        Some(whole @ Value::Object(_)) => call.input = Some(whole.clone()),
        _ => {}
    }
}

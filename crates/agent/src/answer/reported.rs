//! Reads an answer that a program or module returns as a map, with any of the common field names.

use serde_json::{Map, Value};

use super::document::{CALLS, TEXTS};
use super::usage::{Count, USAGE_FIELDS};
use super::{Answer, MISSING_NAME, Piece, document};
use crate::transcript::{ReportedCall, ReportedTurn, given, of_answer};

/// Another name for the text field.
const OUTPUT: &str = "output";
/// Another name for the field that lists calls.
const TOOLS: &str = "tools";
/// Fields that describe an answer but are not part of its content.
const METADATA_FIELDS: [&str; 5] = ["conversation_id", "conversationId", "error", "latency_ms", "latencyMs"];

/// Content of a reported answer.
#[derive(Debug, Default)]
pub(crate) struct Reported {
    pub(crate) text: Option<String>,
    /// The calls and the text.
    pub(crate) turns: Vec<ReportedTurn>,
    pub(crate) count: Count,
    /// True if the answer says which tools were called, and all of it is understood.
    pub(crate) tells_calls: bool,
    /// Error reported by the agent.
    pub(crate) error: Option<String>,
    /// The whole map, if it contains more than text, calls and usage.
    pub(crate) result: Option<Value>,
    /// Warnings about irregularities in the answer.
    pub(crate) warnings: Vec<String>,
}

impl Reported {
    /// Creates an answer that consists of text only.
    pub(crate) fn from_text(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { turns: of_answer(Vec::new(), Some(&text)), text: Some(text), ..Self::default() }
    }

    /// Reads `map`. Returns `None` if it has no text, no call and no error.
    pub(crate) fn read(map: Map<String, Value>) -> Option<Self> {
        let document = Value::Object(map);
        let mut answer = Answer::default();
        document::read(&document, &mut answer);
        let Value::Object(map) = document else { return None };
        if let Some(text) = map.get(OUTPUT).and_then(Value::as_str).filter(|_| !answer.has_text()) {
            answer.append_text(text);
        }
        if let Some(calls) = map.get(TOOLS).filter(|calls| calls.is_array()) {
            answer.tells_calls = true;
            answer.add_calls(calls, TOOLS);
        }
        let error = document::error(&map);
        if !answer.has_text() && !answer.has_calls() && error.is_none() {
            return None;
        }
        let (text, count, tells_calls) = (answer.text(), answer.count, answer.knows_calls());
        let turns = of_answer(calls(&mut answer), text.as_deref());
        let result = extra_result(map, text.as_deref());
        Some(Self { text, turns, count, tells_calls, error, result, warnings: answer.warnings })
    }
}

/// Returns the whole `map` if it contains keys other than the known ones. Its text is added as `output` if that is
/// missing. If `output` is a string, null or a list of items, it counts as a known key; any other value counts as an
/// extra key.
fn extra_result(mut map: Map<String, Value>, text: Option<&str>) -> Option<Value> {
    let is_known = |key: &str| {
        key == TOOLS || [&TEXTS[..], &CALLS, &USAGE_FIELDS, &METADATA_FIELDS].iter().any(|keys| keys.contains(&key))
    };
    // Items of the Responses API are known, because the text and the calls were read from them.
    let is_item = |item: &Value| item.get("type").is_some_and(Value::is_string);
    let is_extra = |(key, value): (&String, &Value)| match value {
        Value::Null | Value::String(_) if key == OUTPUT => false,
        Value::Array(items) if key == OUTPUT => !items.iter().all(is_item),
        _ => !is_known(key),
    };
    if !map.iter().any(is_extra) {
        return None;
    }
    if given(&map, OUTPUT).is_none()
        && let Some(text) = text
    {
        map.insert(OUTPUT.to_owned(), text.into());
    }
    Some(Value::Object(map))
}

/// Takes the calls of an answer and warns about those without a name.
fn calls(answer: &mut Answer) -> Vec<ReportedCall> {
    let mut calls = Vec::new();
    for piece in std::mem::take(&mut answer.pieces) {
        match piece {
            Piece::Call(call) if call.name.is_empty() => answer.add_warning(MISSING_NAME.to_owned()),
            Piece::Call(call) => calls.push(call),
            Piece::Text(_) | Piece::Turn => {}
        }
    }
    calls
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> Option<Reported> {
        let Value::Object(map) = value else { panic!("a map") };
        Reported::read(map)
    }

    #[test]
    fn the_first_present_text_field_is_used() {
        for value in [
            json!({"message": "hi", "text": "no"}),
            json!({"message": null, "text": "hi"}),
            json!({"content": "hi"}),
            json!({"response": "hi"}),
            json!({"message": {"role": "assistant", "content": "hi"}}),
            json!({"content": [{"type": "text", "text": "h"}, {"type": "text", "text": "i"}]}),
        ] {
            let answer = read(value.clone()).unwrap();
            assert_eq!((answer.text.as_deref(), &answer.result), (Some("hi"), &None), "{value}");
        }
        for empty in [json!({}), json!({"reply": "hi"}), json!({"message": null, "usage": {"input": 1}})] {
            assert!(read(empty.clone()).is_none(), "{empty}");
        }
    }

    #[test]
    fn calls_in_other_forms_are_read_and_those_that_cannot_be_read_hide_calls() {
        for call in [
            json!({"type": "tool-call", "toolCallId": "c", "toolName": "get", "input": {"a": 1}}),
            json!({"type": "function_call", "call_id": "c", "name": "get", "arguments": "{\"a\":1}"}),
            json!({"type": "toolCall", "id": "c", "name": "get", "arguments": {"a": 1}}),
        ] {
            let answer = read(json!({"content": [call, {"type": "text", "text": "hi"}]})).unwrap();
            assert_eq!((answer.turns[0].calls[0].name.as_str(), answer.tells_calls), ("get", true), "{call}");
        }
        for hidden in [
            json!({"text": "hi", "tool_calls": [{"args": {}}]}),
            json!({"content": [{"type": "function_call", "arguments": "{}"}, {"type": "text", "text": "hi"}]}),
            json!({"output": [
                {"type": "function_call_output", "call_id": "c", "output": "1"},
                {"type": "message", "content": [{"type": "output_text", "text": "hi"}]},
            ]}),
        ] {
            let answer = read(hidden.clone()).unwrap();
            assert!(!answer.tells_calls && !answer.warnings.is_empty(), "{hidden}");
        }
    }

    #[test]
    fn the_output_is_read_from_any_text_key_and_other_keys_are_kept() {
        for name in ["text", "message", "content", "response", "output"] {
            for text in ["hi", ""] {
                let result = read(json!({name: text, "mood": 1})).unwrap().result.unwrap();
                assert_eq!((&result["output"], &result["mood"]), (&json!(text), &json!(1)), "{name}");
            }
        }
        let result = |value: Value| read(value).unwrap().result;
        let null = result(json!({"text": "hi", "output": null, "x": 1}));
        assert_eq!(null, Some(json!({"text": "hi", "output": "hi", "x": 1})));
        let value = json!({"text": "hi", "output": {"n": 1}});
        assert_eq!(result(value.clone()), Some(value), "another value is kept unchanged");
        let without_text = json!({"toolCalls": [{"name": "a"}], "x": 1});
        assert_eq!(result(without_text.clone()), Some(without_text));
        let items = json!({"output": [{"type": "message", "content": [{"type": "output_text", "text": "hi"}]}]});
        assert_eq!(result(items), None);
    }

    #[test]
    fn calls_usage_and_errors_are_read_in_every_form() {
        let answer = read(json!({
            "text": "done",
            "toolCalls": [
                {"name": "a", "arguments": {"x": 1}, "result": 2},
                {"function": {"name": "b", "arguments": "{\"y\":1}"}},
                {"id": 3},
            ],
        }))
        .unwrap();
        let calls: Vec<_> = answer.turns.iter().flat_map(|turn| &turn.calls).collect();
        assert_eq!((calls[0].input(), calls[0].result.as_deref()), (json!({"x": 1}), Some("2")));
        assert_eq!((calls[1].name.as_str(), calls[1].input()), ("b", json!({"y": 1})));
        assert_eq!(answer.warnings, ["`toolCalls[2]` has no `name`"]);
        for error in [json!("no"), json!({"message": "no", "code": 3})] {
            assert_eq!(read(json!({"error": error})).unwrap().error.as_deref(), Some("no"));
        }
        for valid in [json!({"text": "x", "error": null}), json!({"text": "x", "error": false})] {
            assert_eq!(read(valid).unwrap().error, None);
        }
    }
}

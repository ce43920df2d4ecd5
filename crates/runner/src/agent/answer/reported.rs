//! An answer that a program or a module gives as a map, in the words that are in use for its parts.

use model::Usage;
use serde_json::{Map, Value};

use super::document::{CALLS, TEXTS};
use super::usage::PLACES;
use super::{Answer, NAMELESS, Piece, document};
use crate::agent::transcript::{CallGiven, TurnGiven, spread};

/// Another place for its text.
const OUTPUT: &str = "output";
/// Another place for its calls.
const TOOLS: &str = "tools";
/// What says something about an answer, but is none of it.
const BESIDE: [&str; 5] = ["conversation_id", "conversationId", "error", "latency_ms", "latencyMs"];

/// What an answer says.
#[derive(Debug, Default)]
pub(in crate::agent) struct Reported {
    pub(in crate::agent) text: Option<String>,
    /// The calls and the text.
    pub(in crate::agent) turns: Vec<TurnGiven>,
    pub(in crate::agent) usage: Usage,
    /// What the agent says went wrong.
    pub(in crate::agent) error: Option<String>,
    /// The whole of it, where it is more than text, calls and usage.
    pub(in crate::agent) result: Option<Value>,
    /// What is odd about it.
    pub(in crate::agent) doubts: Vec<String>,
}

impl Reported {
    /// An answer that is nothing but text.
    pub(in crate::agent) fn of_text(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { turns: spread(Vec::new(), Some(&text), None), text: Some(text), ..Self::default() }
    }

    /// Reads `map`. An answer without a text, a call and an error says nothing, and is none.
    pub(in crate::agent) fn read(map: Map<String, Value>) -> Option<Self> {
        let document = Value::Object(map);
        let mut answer = Answer::default();
        document::read(&document, &mut answer);
        let Value::Object(map) = document else { return None };
        if let Some(text) = map.get(OUTPUT).and_then(Value::as_str).filter(|_| !answer.has_text()) {
            answer.say(text);
        }
        if let Some(calls) = map.get(TOOLS).filter(|calls| calls.is_array()) {
            answer.listed(calls, TOOLS);
        }
        let error = document::error(&map);
        if !answer.has_text() && !answer.has_calls() && error.is_none() {
            return None;
        }
        let (text, usage) = (answer.text(), answer.count.usage());
        let is_part = |key: &str| {
            key == OUTPUT
                || key == TOOLS
                || [&TEXTS[..], &CALLS, &PLACES, &BESIDE].iter().any(|keys| keys.contains(&key))
        };
        let has_more = map.keys().any(|key| !is_part(key));
        let turns = spread(calls(&mut answer), text.as_deref(), None);
        let result = has_more.then_some(Value::Object(map));
        Some(Self { text, turns, usage, error, result, doubts: answer.doubts })
    }
}

/// The calls of an answer; those without a name are told as odd.
fn calls(answer: &mut Answer) -> Vec<CallGiven> {
    let mut calls = Vec::new();
    for piece in std::mem::take(&mut answer.pieces) {
        match piece {
            Piece::Call(call) if call.name.is_empty() => answer.doubt(NAMELESS.to_owned()),
            Piece::Call(call) => calls.push(call.into()),
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
    fn the_text_is_the_first_that_there_is() {
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
        for nothing in [json!({}), json!({"reply": "hi"}), json!({"message": null, "usage": {"input": 1}})] {
            assert!(read(nothing.clone()).is_none(), "{nothing}");
        }
        assert_eq!(read(json!({"text": "", "x": 1})).unwrap().result, Some(json!({"text": "", "x": 1})));
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
        assert_eq!((calls[0].input.clone(), calls[0].result.as_deref()), (json!({"x": 1}), Some("2")));
        assert_eq!((calls[1].name.as_str(), calls[1].input.clone()), ("b", json!({"y": 1})));
        assert_eq!(answer.doubts, ["`toolCalls[2]` has no `name`"]);
        for error in [json!("no"), json!({"message": "no", "code": 3})] {
            assert_eq!(read(json!({"error": error})).unwrap().error.as_deref(), Some("no"));
        }
        for fine in [json!({"text": "x", "error": null}), json!({"text": "x", "error": false})] {
            assert_eq!(read(fine).unwrap().error, None);
        }
    }
}

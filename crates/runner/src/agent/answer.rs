//! An answer that a program or a module gives as a map, in the words that are in use for its parts.

use model::{Tokens, Usage};
use serde_json::{Map, Value};

use super::transcript::{CallGiven, TOKENS, TurnGiven, as_text, content, given, spread};

/// Where an answer's text may be, the first that holds one counts.
const TEXT: [&str; 5] = ["message", "text", "content", "response", "output"];
/// Where its calls may be.
const CALLS: [&str; 3] = ["tool_calls", "toolCalls", "tools"];
/// Where its usage may be.
const USAGE: [&str; 3] = ["usage", "token_usage", "tokenUsage"];
/// What says something about an answer, but is none of it.
const BESIDE: [&str; 5] = ["conversation_id", "conversationId", "error", "latency_ms", "latencyMs"];

/// What an answer says.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) text: Option<String>,
    /// The calls and the text.
    pub(super) turns: Vec<TurnGiven>,
    pub(super) usage: Usage,
    /// What the agent says went wrong.
    pub(super) error: Option<String>,
    /// The whole of it, where it is more than text, calls and usage.
    pub(super) result: Option<Value>,
    /// What is odd about it.
    pub(super) doubts: Vec<String>,
}

impl Answer {
    /// An answer that is nothing but text.
    pub(super) fn of_text(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { turns: spread(Vec::new(), Some(&text), None), text: Some(text), ..Self::default() }
    }

    /// Reads `map`. An answer without a text, a call and an error says nothing, and is none.
    pub(super) fn read(map: Map<String, Value>) -> Option<Self> {
        let error = given(&map, "error").filter(|error| **error != Value::Bool(false)).map(words_of_error);
        let text = text(&map);
        let mut doubts = Vec::new();
        let calls = calls(&map, &mut doubts);
        if text.is_none() && calls.is_empty() && error.is_none() {
            return None;
        }
        let turns = spread(calls, text.as_deref(), None);
        let usage = USAGE.iter().find_map(|key| map.get(*key)?.as_object()).map(usage).unwrap_or_default();
        let is_part = |key: &str| [&TEXT[..], &CALLS, &USAGE, &BESIDE].concat().contains(&key);
        let has_more = map.keys().any(|key| !is_part(key));
        Some(Self { text, turns, usage, error, result: has_more.then_some(Value::Object(map)), doubts })
    }
}

/// The first text; a message may be a map with a text of its own, and content may be a list of blocks.
fn text(map: &Map<String, Value>) -> Option<String> {
    let plain = TEXT.iter().find_map(|key| map.get(*key)?.as_str());
    let within = || map.get("message").and_then(Value::as_object).and_then(text);
    let blocks =
        || map.get("content").filter(|content| content.is_array()).map(content).filter(|text| !text.is_empty());
    plain.map(str::to_owned).or_else(within).or_else(blocks)
}

fn calls(map: &Map<String, Value>, doubts: &mut Vec<String>) -> Vec<CallGiven> {
    let mut calls = Vec::new();
    for (key, written) in CALLS.iter().filter_map(|key| Some((key, map.get(*key)?.as_array()?))) {
        for (at, call) in written.iter().enumerate() {
            match call.as_object().and_then(CallGiven::read) {
                Some(call) => calls.push(call),
                None => doubts.push(format!("`{key}[{at}]` has no `name`")),
            }
        }
    }
    calls
}

fn words_of_error(error: &Value) -> String {
    let message = error.get("message").and_then(Value::as_str);
    message.map_or_else(|| as_text(error), str::to_owned)
}

/// What an answer says it took. Where prompts are counted whole, what a cache had is taken out of them.
pub(super) fn usage(given: &Map<String, Value>) -> Usage {
    let known = TOKENS.map(|names| names.iter().find_map(|name| given.get(*name)?.as_u64()));
    let [mut input, mut output, mut cache_read, cache_write, mut reasoning] = known;
    let whole = |key: &str| given.get(key).and_then(Value::as_u64);
    let detail = |of: &str, key: &str| given.get(of)?.get(key)?.as_u64();
    if input.is_none()
        && let Some(prompt) = whole("prompt_tokens").or_else(|| whole("promptTokens"))
    {
        let cached = detail("prompt_tokens_details", "cached_tokens");
        input = Some(prompt.saturating_sub(cached.unwrap_or(0)));
        cache_read = cache_read.or(cached);
    }
    output = output.or_else(|| whole("completion_tokens")).or_else(|| whole("completionTokens"));
    reasoning = reasoning.or_else(|| detail("completion_tokens_details", "reasoning_tokens"));
    let is_known = [input, output, cache_read, cache_write, reasoning].iter().any(Option::is_some);
    let tokens = is_known.then(|| Tokens {
        input: input.unwrap_or(0),
        output: output.unwrap_or(0),
        cache_read: cache_read.unwrap_or(0),
        cache_write: cache_write.unwrap_or(0),
        reasoning,
    });
    let cost = given.get("cost_usd").or_else(|| given.get("costUsd")).and_then(Value::as_f64);
    Usage { tokens, cost_usd: cost.filter(|cost| cost.is_finite() && *cost >= 0.0) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> Option<Answer> {
        let Value::Object(map) = value else { panic!("a map") };
        Answer::read(map)
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

    #[test]
    fn usage_is_read_in_every_vendors_words() {
        let tokens = |given: Value| usage(given.as_object().unwrap()).tokens;
        let expected = Some(Tokens { input: 3, output: 4, ..Tokens::default() });
        for given in [
            json!({"input": 3, "output": 4, "total": 7}),
            json!({"input_tokens": 3, "output_tokens": 4}),
            json!({"prompt_tokens": 3, "completion_tokens": 4}),
        ] {
            assert_eq!(tokens(given), expected);
        }
        let cached =
            json!({"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 7}, "completion_tokens": 4});
        assert_eq!(tokens(cached), Some(Tokens { input: 3, cache_read: 7, output: 4, ..Tokens::default() }));
        assert_eq!(tokens(json!({"total": 7, "input": -1})), None);
        assert_eq!(usage(json!({"cost_usd": 0.5}).as_object().unwrap()).cost_usd, Some(0.5));
    }
}

//! What a module gave back.

use model::{Tokens, Usage};
use script::Value;
use serde_json::{Map, Value as Json};

use super::super::transcript::{self, CallGiven, TurnGiven, as_text, given, spread};

/// What a module gave back, read.
pub(super) struct Given {
    /// What it says it did.
    pub(super) turns: Vec<TurnGiven>,
    /// Its answer.
    pub(super) text: Option<String>,
    /// The whole of it, where text is not enough.
    pub(super) result: Option<Json>,
    pub(super) usage: Usage,
    /// What is odd about it.
    pub(super) doubts: Vec<String>,
}

impl Given {
    /// Reads `value`; `None` if it is nothing. `known` are the messages that were given before, and are these afterwards:
    /// who gives the whole conversation each time does not do everything again.
    pub(super) fn read(value: &Value, known: &mut Vec<Json>) -> Option<Self> {
        let map = match value.to_json() {
            Json::Null => return None,
            Json::Object(map) => map,
            // Whatever else it is, it is the answer.
            output => Map::from_iter([("output".to_owned(), output)]),
        };
        let text = given(&map, "output").map(as_text);
        let (mut turns, doubts) = match map.get("messages") {
            Some(Json::Array(messages)) => {
                let new = messages.strip_prefix(known.as_slice()).unwrap_or(messages).to_vec();
                known.clone_from(messages);
                transcript::turns(&Json::Array(new))
            }
            Some(other) => transcript::turns(other),
            None => Default::default(),
        };
        if turns.is_empty() {
            turns = spread(calls(&map), text.as_deref(), None);
        }
        let usage = usage(&map);
        Some(Self { turns, text, usage, doubts, result: whole(map) })
    }
}

/// The calls that stand beside the answer instead of in messages.
fn calls(map: &Map<String, Json>) -> Vec<CallGiven> {
    let listed = ["tools", "tool_calls"].into_iter().filter_map(|key| map.get(key)?.as_array()).flatten();
    listed.filter_map(|call| CallGiven::read(call.as_object()?)).collect()
}

/// All of `map`, unless it is an answer that text carries.
fn whole(map: Map<String, Json>) -> Option<Json> {
    let is_plain = map.get("output").is_some_and(Json::is_string);
    let has_more = map.keys().any(|key| key != "output" && key != "usage");
    (!is_plain || has_more).then_some(Json::Object(map))
}

fn usage(map: &Map<String, Json>) -> Usage {
    let Some(Json::Object(given)) = map.get("usage") else { return Usage::default() };
    let [input, output, cache_read, cache_write, reasoning] =
        transcript::TOKENS.map(|names| names.iter().find_map(|name| given.get(*name)?.as_u64()));
    let is_known = [input, output, cache_read, cache_write, reasoning].iter().any(Option::is_some);
    let tokens = is_known.then(|| Tokens {
        input: input.unwrap_or(0),
        output: output.unwrap_or(0),
        cache_read: cache_read.unwrap_or(0),
        cache_write: cache_write.unwrap_or(0),
        reasoning,
    });
    Usage { tokens, cost_usd: given.get("cost_usd").and_then(Json::as_f64) }
}

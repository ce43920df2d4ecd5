//! What a module gave back.

use model::{Usage, nearest};
use script::Value;
use serde_json::{Map, Value as Json};

use super::super::transcript::{self, CallGiven, TurnGiven, as_text, given, spread};
use crate::answer::document::TEXTS;
use crate::answer::usage::usage;

/// What has a meaning in a map that `execute` returns.
const KEYS: [&str; 5] = ["output", "messages", "tools", "tool_calls", "usage"];

/// What a module gave back, read.
pub(super) struct Given {
    /// What it says it did.
    pub(super) turns: Vec<TurnGiven>,
    /// Its answer.
    pub(super) text: Option<String>,
    /// The whole of it, unless it is a text.
    pub(super) result: Option<Json>,
    pub(super) usage: Usage,
    /// What is odd about it.
    pub(super) doubts: Vec<String>,
}

impl Given {
    /// Reads `value`; `None` if it is nothing. `known` are the messages that were given before, and are these afterwards:
    /// who gives the whole conversation each time does not do everything again.
    pub(super) fn read(value: &Value, known: &mut Vec<Json>) -> Option<Self> {
        let (map, is_text) = match value.to_json() {
            Json::Null => return None,
            Json::Object(map) => (map, false),
            // Whatever else it is, it is the answer.
            output => {
                let is_text = output.is_string();
                (Map::from_iter([("output".to_owned(), output)]), is_text)
            }
        };
        let text = given(&map, "output").map(as_text);
        let (mut turns, mut doubts) = match map.get("messages") {
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
        doubts.extend(odd_keys(&map));
        let usage = map.get("usage").and_then(Json::as_object).map(usage).unwrap_or_default();
        Some(Self { turns, text, usage, doubts, result: (!is_text).then(|| whole(map)) })
    }
}

/// Keys without a meaning that look as if one was meant: nobody would be told that the answer is not one.
fn odd_keys(map: &Map<String, Json>) -> impl Iterator<Item = String> {
    let unused = || KEYS.into_iter().filter(|known| !map.contains_key(*known));
    let is_silent = !map.contains_key("output") && !map.contains_key("messages");
    let others = map.keys().filter(|key| !KEYS.contains(&key.as_str()));
    others.filter_map(move |key| {
        let meant = nearest(key, unused()).or((is_silent && TEXTS.contains(&key.as_str())).then_some("output"))?;
        Some(format!("`{key}` has no meaning of its own there; did you mean `{meant}`?"))
    })
}

/// The calls that stand beside the answer instead of in messages.
fn calls(map: &Map<String, Json>) -> Vec<CallGiven> {
    let listed = ["tools", "tool_calls"].into_iter().filter_map(|key| map.get(key)?.as_array()).flatten();
    listed.filter_map(|call| CallGiven::read(call.as_object()?)).collect()
}

/// All of `map`. Without messages and calls, `messages` is null: the module did not say what happened before its answer.
fn whole(mut map: Map<String, Json>) -> Json {
    let tells_calls = ["messages", "tools", "tool_calls"].iter().any(|key| map.contains_key(*key));
    if !tells_calls {
        map.insert("messages".to_owned(), Json::Null);
    }
    Json::Object(map)
}

//! Reads the return values of a module.

use model::nearest;
use script::Value;
use serde_json::{Map, Value as Json};

use super::super::transcript::{self, ReportedCall, ReportedTurn, as_text, given, of_answer};
use crate::answer::document::TEXTS;
use crate::answer::usage::{Count, usage};

/// Known keys of a map that `execute` returns.
const KEYS: [&str; 5] = ["output", "messages", "tools", "tool_calls", "usage"];

/// Keys that say which tools were called.
const CALLS: [&str; 3] = ["messages", "tools", "tool_calls"];

/// A parsed return value of a module.
pub(super) struct ReturnValue {
    /// Turns reported by the module.
    pub(super) turns: Vec<ReportedTurn>,
    /// The agent's answer.
    pub(super) text: Option<String>,
    /// The whole return value.
    pub(super) result: Json,
    pub(super) count: Count,
    /// True if it says which tools were called, and all of it is understood.
    pub(super) tells_calls: bool,
    /// Warnings about irregularities in it.
    pub(super) warnings: Vec<String>,
    /// True if it has no answer: the map is empty, or has a misspelt key instead of an answer.
    pub(super) is_empty: bool,
}

impl ReturnValue {
    /// Reads `value`; returns `None` if it is null. `known` holds the messages returned before and is replaced by the
    /// current ones, so that a module that returns the whole conversation each time does not repeat its steps.
    pub(super) fn read(value: &Value, known: &mut Vec<Json>) -> Option<Self> {
        let map = match value.to_json() {
            Json::Null => return None,
            Json::Object(map) => map,
            // Any other value is itself the answer.
            output => Map::from_iter([("output".to_owned(), output)]),
        };
        let text = given(&map, "output").map(as_text);
        let (mut turns, mut warnings) = match map.get("messages") {
            Some(Json::Array(messages)) => {
                let new = messages.strip_prefix(known.as_slice()).unwrap_or(messages).to_vec();
                known.clone_from(messages);
                transcript::turns(&Json::Array(new))
            }
            Some(other) => transcript::turns(other),
            None => Default::default(),
        };
        if turns.is_empty() {
            turns = of_answer(calls(&map, &mut warnings), text.as_deref());
        }
        let odd: Vec<String> = odd_keys(&map).collect();
        let lists_calls = CALLS.iter().any(|key| given(&map, key).is_some());
        let tells_calls = lists_calls && warnings.is_empty();
        let has_answer = ["output", "messages", "tools", "tool_calls"].iter().any(|key| map.contains_key(*key));
        let is_empty = !has_answer && (map.is_empty() || !odd.is_empty());
        warnings.extend(odd);
        let count = map.get("usage").and_then(Json::as_object).map(usage).unwrap_or_default();
        Some(Self { turns, text, count, tells_calls, warnings, is_empty, result: whole(map, lists_calls) })
    }
}

/// Returns warnings about unknown keys that resemble a known one. Without a warning, the wrong result would go
/// unnoticed.
fn odd_keys(map: &Map<String, Json>) -> impl Iterator<Item = String> {
    let unused = || KEYS.into_iter().filter(|known| !map.contains_key(*known));
    let is_silent = !map.contains_key("output") && !map.contains_key("messages");
    let others = map.keys().filter(|key| !KEYS.contains(&key.as_str()));
    others.filter_map(move |key| {
        let meant = nearest(key, unused()).or((is_silent && TEXTS.contains(&key.as_str())).then_some("output"))?;
        Some(format!("`{key}` is not a known key; did you mean `{meant}`?"))
    })
}

/// Returns the calls that are listed next to the answer rather than in messages, and warns about those without a name.
fn calls(map: &Map<String, Json>, warnings: &mut Vec<String>) -> Vec<ReportedCall> {
    let mut calls = Vec::new();
    for key in ["tools", "tool_calls"] {
        let Some(listed) = given(map, key) else { continue };
        if !listed.is_array() {
            warnings.push(format!("`{key}` is not a list"));
        }
        for (index, call) in listed.as_array().into_iter().flatten().enumerate() {
            match call.as_object().and_then(ReportedCall::read) {
                Some(call) => calls.push(call),
                None => warnings.push(format!("`{key}[{index}]` has no `name`")),
            }
        }
    }
    calls
}

/// Returns the whole `map`. Without messages and calls, `messages` is null: the module did not report what happened
/// before its answer.
fn whole(mut map: Map<String, Json>, lists_calls: bool) -> Json {
    if !lists_calls {
        map.insert("messages".to_owned(), Json::Null);
    }
    Json::Object(map)
}

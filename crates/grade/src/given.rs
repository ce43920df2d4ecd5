//! The agent's result as expectations see it: `output`, `messages`, `tools`, `state`, `usage` and any other key.

use std::collections::BTreeSet;

use model::{Evidence, Node, NodeKind, Trace};
use serde_json::{Map, Value, json};

/// Keys that are computed from the trace if the agent does not return them itself.
const MADE: [&str; 4] = ["messages", "tools", "state", "usage"];

/// Computed keys that an expectation reads.
#[derive(Debug, Clone)]
pub(crate) enum ResultKeys {
    /// All of them, because the keys that it reads cannot be determined.
    All,
    /// Only these keys.
    Keys(BTreeSet<&'static str>),
}

impl ResultKeys {
    /// Returns the keys that `node` reads.
    pub fn by(node: &Node) -> Self {
        let NodeKind::Map(entries) = &node.kind else { return Self::All };
        let mut keys = BTreeSet::new();
        for (key, _) in entries {
            let head = key.value.split(['.', '[']).next().unwrap_or_default();
            if key.value.starts_with('/') || (key.value.starts_with('$') && !expect::is_meta(&key.value)) {
                return Self::All;
            }
            keys.extend(MADE.iter().find(|made| **made == head));
        }
        if keys.contains("tools") {
            keys.insert("messages");
        }
        Self::Keys(keys)
    }

    fn has(&self, key: &str) -> bool {
        match self {
            Self::All => true,
            Self::Keys(keys) => keys.contains(key),
        }
    }
}

/// Returns the answer alone. A missing answer is not null.
pub(crate) fn output(trace: &Trace) -> Option<Value> {
    match &trace.result {
        Some(result) => result.get("output").cloned(),
        None => trace.answer.clone().map(Value::String),
    }
}

/// Returns the whole result, with the computed keys that are wanted.
pub(crate) fn all(evidence: &Evidence, wanted: &ResultKeys) -> Value {
    let trace = &evidence.trace;
    let mut given = match trace.result.as_deref() {
        Some(Value::Object(result)) => result.clone(),
        Some(other) => return other.clone(),
        None => trace.answer.iter().map(|answer| ("output".to_owned(), Value::from(answer.as_str()))).collect(),
    };
    // A result without a conversation has no messages, and `messages: null` says that the conversation is unknown.
    // This must not be replaced by an empty list, which would mean that no call was made. Calls reported with an
    // earlier answer are still known.
    let is_unknown = given.get("messages").is_some_and(Value::is_null) && trace.calls.is_empty();
    if given.get("messages").is_some_and(Value::is_null) {
        given.remove("messages");
    }
    let acted = !is_unknown && (!trace.turns.is_empty() || !trace.user_messages.is_empty());
    for key in MADE.iter().filter(|key| wanted.has(key) && acted) {
        if !given.contains_key(*key) {
            given.insert((*key).to_owned(), build(key, evidence));
        }
    }
    Value::Object(given)
}

fn build(key: &str, evidence: &Evidence) -> Value {
    let trace = &evidence.trace;
    match key {
        "messages" => messages(trace),
        "tools" => (0..trace.calls.len()).map(|call| self::call(trace, call)).collect(),
        "state" => json!({
            "files_changed": evidence.collected.files_changed,
            "repository": evidence.collected.repository,
        }),
        _ => json!(trace.usage.tokens),
    }
}

/// Returns the conversation: the user's messages and the agent's own turns, with their tool calls.
fn messages(trace: &Trace) -> Value {
    let mut messages = Vec::new();
    let spoken = trace.user_messages.len().max(1);
    for number in 0..=spoken {
        if let Some(text) = number.checked_sub(1).and_then(|index| trace.user_messages.get(index)) {
            messages.push(json!({"role": "user", "content": text}));
        }
        for turn in trace.turns.iter().filter(|turn| turn.parent.is_none() && turn.user_message == number) {
            let mut message = Map::new();
            message.insert("role".into(), "assistant".into());
            message.insert("content".into(), turn.text.as_str().into());
            if !turn.calls.is_empty() {
                message.insert("tools".into(), turn.calls.iter().map(|at| call(trace, *at)).collect());
            }
            messages.push(Value::Object(message));
        }
    }
    Value::Array(messages)
}

fn call(trace: &Trace, index: usize) -> Value {
    let Some(traced) = trace.calls.get(index) else { return Value::Null };
    let mut call = Map::new();
    call.insert("name".into(), traced.call.name.as_str().into());
    call.insert("args".into(), traced.call.input.clone());
    if let Some(result) = &traced.result {
        call.insert("result".into(), result.content.as_str().into());
        call.insert("is_error".into(), result.is_error.into());
    }
    Value::Object(call)
}

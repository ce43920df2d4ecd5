//! Reads a session as `opencode export` writes it.

use model::{Ending, Source, Span, Tokens, Usage};
use serde_json::{Map, Value};

use super::event::{fault, steps, sub_agent};
use crate::conversation::Conversation;
use crate::json::{items, owned, text};

/// Types of parts that [`steps`] reads, or that belong to no call.
const PARTS: [&str; 12] = [
    "agent",
    "compaction",
    "file",
    "patch",
    "reasoning",
    "retry",
    "snapshot",
    "step-finish",
    "step-start",
    "subtask",
    "text",
    "tool",
];

/// Returns `true` if `document` is an exported session.
pub(crate) fn is_document(document: &Map<String, Value>) -> bool {
    let is_id = |id: &Value| id.as_str().is_some_and(|id| id.starts_with("ses_"));
    document.get("info").and_then(|info| info.get("id")).is_some_and(is_id)
        && document.get("messages").is_some_and(Value::is_array)
}

/// Reads the session.
pub(crate) fn read(source: &Source, document: &Value) -> Conversation {
    let info = document.get("info").unwrap_or(&Value::Null);
    let mut read = Conversation::of_agent("opencode");
    (read.session_id, read.agent_version) = (owned(info, "id"), owned(info, "version"));
    let begun = info.pointer("/time/created").and_then(Value::as_i64);
    let begun = begun.and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
    (read.origin.directory, read.origin.begun_at) = (owned(info, "directory"), begun.map(|at| at.to_string()));
    let mut ending = aborted("the file has no message of a user");
    for message in items(document, "messages") {
        let info = message.get("info").unwrap_or(&Value::Null);
        match text(info, "role") {
            Some("user") => {
                if let Some(said) = said(message) {
                    read.user(said);
                    ending = aborted("the session ends before the agent has answered the last message");
                }
            }
            Some("assistant") => {
                read.model = owned(info, "modelID").or(read.model.take());
                answer(&mut read, source, message);
                ending = ended(info);
            }
            _ => read.is_incomplete(source, Span::default(), "a message has an unknown role".to_owned()),
        }
    }
    read.ending = ending;
    read.close();
    read
}

fn aborted(reason: &str) -> Ending {
    Ending::Aborted { reason: reason.to_owned() }
}

/// Returns the user's own text in a message; `None` if OpenCode wrote all of it.
fn said(message: &Value) -> Option<String> {
    let is_own = |part: &&Value| part.get("synthetic") != Some(&Value::Bool(true));
    let parts = items(message, "parts").iter().filter(|part| text(part, "type") == Some("text")).filter(is_own);
    let texts: Vec<&str> = parts.filter_map(|part| text(part, "text")).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

/// Reads a message of the model.
fn answer(read: &mut Conversation, source: &Source, message: &Value) {
    let info = message.get("info").unwrap_or(&Value::Null);
    for part in items(message, "parts") {
        let kind = text(part, "type").unwrap_or_default();
        let is_damaged = kind == "tool" && (text(part, "callID").is_none() || text(part, "tool").is_none());
        if is_damaged || !PARTS.contains(&kind) {
            let what = format!("a part of the type `{kind}` is not understood");
            let at = read.position(source, text(part, "id").unwrap_or_default());
            read.is_incomplete(source, at, what);
        } else if sub_agent(part).is_some() {
            let what = "the steps of a sub-agent are in a session of its own, which is not in the file";
            let at = read.position(source, text(part, "id").unwrap_or_default());
            read.is_incomplete(source, at, what.to_owned());
        }
        steps(part, None).into_iter().for_each(|step| read.push(step));
    }
    let cost_usd = info.get("cost").and_then(Value::as_f64).filter(|cost| *cost > 0.0);
    read.spend(read.message(), Usage { tokens: tokens(info), cost_usd });
}

/// Returns the usage of a message. The counts do not overlap, and output does not include reasoning.
fn tokens(info: &Value) -> Option<Tokens> {
    let count = |path: &str| info.pointer(path).and_then(Value::as_u64);
    let part = |path: &str| count(path).unwrap_or(0);
    count("/tokens/input").or(count("/tokens/output"))?;
    let reasoning = part("/tokens/reasoning");
    Some(Tokens {
        input: part("/tokens/input"),
        cache_read: part("/tokens/cache/read"),
        cache_write: part("/tokens/cache/write"),
        output: part("/tokens/output") + reasoning,
        reasoning: Some(reasoning),
    })
}

/// Returns the ending if this message of the model is the last one.
fn ended(info: &Value) -> Ending {
    if let Some(error) = info.get("error").filter(|error| !error.is_null()) {
        return fault(error);
    }
    match text(info, "finish") {
        Some("tool-calls") => aborted("the session ends before the agent has answered"),
        Some("length") => Ending::GaveUp { reason: "its answer is longer than the model's limit".to_owned() },
        Some("content-filter") => Ending::GaveUp { reason: "the model refused to answer".to_owned() },
        None if info.pointer("/time/completed").is_none() => {
            aborted("the session ends before the agent has answered the last message")
        }
        _ => Ending::Finished,
    }
}

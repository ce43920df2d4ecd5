//! Google's Agent Development Kit: `gcp.vertex.agent.*`, with the requests and answers of the model as they were sent.

use serde_json::Value;

use crate::chat_message::{ChatMessage, arguments_of, content_text, items, parsed};
use crate::reading::{Attributes, Kind, Reading};
use crate::span::Span;

pub(super) fn read(span: &Span) -> Option<Reading> {
    let attributes = Attributes(&span.attributes);
    let prefix = "gcp.vertex.agent.";
    if !span.attributes.keys().any(|name| name.starts_with(prefix)) {
        return None;
    }
    let arguments = attributes.value(&["gcp.vertex.agent.tool_call_args"]).filter(|value| is_recorded(value));
    let result = attributes.value(&["gcp.vertex.agent.tool_response"]).filter(|value| is_recorded(value));
    let answer = attributes.value(&["gcp.vertex.agent.llm_response"]).and_then(parsed);
    let request = attributes.value(&["gcp.vertex.agent.llm_request"]).and_then(parsed);
    let mut reading = Reading { kind: Some(Kind::Part), ..Reading::default() };
    if let Some(answer) = answer.filter(|answer| answer.get("content").is_some()) {
        reading.kind = Some(Kind::Model);
        reading.output = answer.get("content").map(ChatMessage::read);
        reading.finish.extend(answer.get("finish_reason").and_then(Value::as_str).map(str::to_owned));
    }
    let contents = request.as_ref().and_then(|request| request.get("contents"));
    reading.hear(contents.and_then(items).unwrap_or_default().into_iter().map(ChatMessage::read).collect());
    reading.arguments = arguments.map(arguments_of);
    reading.result = result.map(content_text);
    if arguments.is_some() || result.is_some() {
        reading.kind = Some(Kind::Tool);
    }
    Some(reading)
}

/// Returns `true` unless the value stands for one that is not recorded, or that does not exist.
fn is_recorded(value: &Value) -> bool {
    !matches!(value.as_str(), Some("" | "{}" | "N/A" | "<not specified>"))
}

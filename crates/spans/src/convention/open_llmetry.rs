//! OpenLLMetry: `traceloop.*`, and messages in numbered attributes, `gen_ai.prompt.N.*` and `gen_ai.completion.N.*`.

use serde_json::Value;

use crate::chat_message::{ChatMessage, arguments_of, content_text, items, messages, parsed};
use crate::reading::{Attributes, Kind, Reading};
use crate::span::Span;

pub(super) fn read(span: &Span) -> Option<Reading> {
    let attributes = Attributes(&span.attributes);
    let has_messages = span.attributes.keys().any(|name| is_numbered(name));
    let kind = match attributes.text(&["traceloop.span.kind"]) {
        _ if has_messages => Kind::Model,
        Some("tool") => Kind::Tool,
        Some("agent") => Kind::Agent,
        Some(_) => Kind::Part,
        None if matches!(attributes.text(&["llm.request.type"]), Some("chat" | "completion")) => Kind::Model,
        None => return None,
    };
    let mut reading = Reading { kind: Some(kind), ..Reading::default() };
    match kind {
        Kind::Model => {
            let answers = attributes.tree("gen_ai.completion");
            let numbered = answers.as_ref().and_then(items).unwrap_or_default();
            let finish = numbered.iter().filter_map(|answer| answer.get("finish_reason")?.as_str());
            reading.finish = finish.map(str::to_owned).collect();
            reading.output = answers.as_ref().map(messages).and_then(ChatMessage::joined);
            reading.hear(attributes.tree("gen_ai.prompt").as_ref().map(messages).unwrap_or_default());
        }
        Kind::Tool | Kind::Agent => {
            let name = attributes.string(&["traceloop.entity.name"]);
            reading.name = name.or_else(|| span.name.rsplit_once('.').map(|(name, _)| name.to_owned()));
        }
        Kind::Part => {}
    }
    if kind == Kind::Tool {
        reading.arguments = attributes.value(&["traceloop.entity.input"]).map(arguments);
        reading.result = attributes.value(&["traceloop.entity.output"]).map(result);
    }
    Some(reading)
}

/// Returns `true` for the name of an attribute of a numbered message.
fn is_numbered(name: &str) -> bool {
    let rest = name.strip_prefix("gen_ai.prompt.").or_else(|| name.strip_prefix("gen_ai.completion."));
    rest.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
}

/// Returns the arguments in the input of a tool: those of a Python function by their names, or those that LangChain
/// gives to a tool.
fn arguments(input: &Value) -> Value {
    let whole = arguments_of(input);
    let named = |key: &str| whole.get(key).filter(|inner| inner.as_object().is_some_and(|map| !map.is_empty()));
    if let Some(inputs) = named("inputs").or_else(|| named("kwargs")) {
        return inputs.clone();
    }
    match whole.get("input_str").and_then(Value::as_str) {
        Some(text) => arguments_of(&text.into()),
        None => whole,
    }
}

/// Returns the text in the output of a tool. LangChain's is the message that the model gets.
fn result(output: &Value) -> String {
    let whole = parsed(output).unwrap_or_else(|| output.clone());
    let inner = whole.get("output").unwrap_or(&whole);
    let message = inner.get("kwargs").unwrap_or(inner);
    match message.get("content").filter(|_| message.get("tool_call_id").is_some()) {
        Some(content) => content_text(content),
        // The text of a string result is JSON, too.
        None => match inner.as_str().map(serde_json::from_str::<String>) {
            Some(Ok(text)) => text,
            _ => content_text(inner),
        },
    }
}

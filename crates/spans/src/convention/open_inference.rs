//! OpenInference: `openinference.span.kind`, `llm.*`, `tool.*`.

use serde_json::Value;

use crate::chat_message::{ChatMessage, arguments_of, content_text, messages, parsed};
use crate::reading::{Attributes, Count, Kind, Reading};
use crate::span::Span;

pub(super) fn read(span: &Span) -> Option<Reading> {
    let attributes = Attributes(&span.attributes);
    let kind = match attributes.text(&["openinference.span.kind"])?.to_ascii_uppercase().as_str() {
        "LLM" => Kind::Model,
        "TOOL" => Kind::Tool,
        "AGENT" => Kind::Agent,
        _ => Kind::Part,
    };
    let reading = Reading { kind: Some(kind), ..Reading::default() };
    Some(match kind {
        Kind::Model => model(&attributes, reading),
        Kind::Tool => tool(span, &attributes, reading),
        Kind::Agent => {
            Reading { name: attributes.string(&["agent.name"]).or_else(|| Some(span.name.clone())), ..reading }
        }
        Kind::Part => reading,
    })
}

fn model(attributes: &Attributes<'_>, mut reading: Reading) -> Reading {
    let of = |name: &str| attributes.count(&[&format!("llm.token_count.{name}")]);
    let tokens = Count {
        input: of("prompt"),
        output: of("completion"),
        cache_read: of("prompt_details.cache_read"),
        cache_write: of("prompt_details.cache_write"),
        reasoning: of("completion_details.reasoning"),
    };
    reading.hear(attributes.tree("llm.input_messages").as_ref().map(messages).unwrap_or_default());
    let finish = attributes.string(&["llm.finish_reason", "llm.response.finish_reason"]);
    Reading {
        model: attributes.string(&["llm.model_name"]),
        tokens,
        cost_usd: attributes.number(&["llm.cost.total"]),
        output: attributes.tree("llm.output_messages").as_ref().map(messages).and_then(ChatMessage::joined),
        finish: finish.into_iter().collect(),
        ..reading
    }
}

fn tool(span: &Span, attributes: &Attributes<'_>, reading: Reading) -> Reading {
    let output = attributes.value(&["output.value"]);
    // Frameworks wrap a result into the message that the model gets.
    let parsed_output = output.and_then(parsed);
    let inner = |value| ["kwargs", "data"].iter().find_map(|key| Value::get(value, key)).unwrap_or(value);
    let message = parsed_output.as_ref().map(inner);
    let message = message.filter(|value| value.get("tool_call_id").is_some());
    let of_message = |key: &str| message.and_then(|message| message.get(key));
    let result = match of_message("content") {
        Some(content) => Some(content_text(content)),
        None => output.map(content_text),
    };
    let arguments = attributes.value(&["tool_call.function.arguments", "input.value", "tool.parameters"]);
    Reading {
        name: attributes.string(&["tool.name", "tool_call.function.name"]).or_else(|| Some(span.name.clone())),
        call_id: attributes
            .string(&["tool_call.id", "tool.id"])
            .or_else(|| of_message("tool_call_id").and_then(Value::as_str).map(str::to_owned)),
        arguments: arguments.map(arguments_of),
        result,
        failed: of_message("status").and_then(Value::as_str) == Some("error"),
        ..reading
    }
}

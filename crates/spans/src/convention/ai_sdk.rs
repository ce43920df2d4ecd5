//! The AI SDK of Vercel: `ai.*`.

use serde_json::Value;

use super::gen_ai::{count, finish_reasons};
use crate::chat_message::{ChatMessage, arguments_of, content_text, messages, parsed};
use crate::reading::{Attributes, Count, Kind, Reading};
use crate::span::Span;

pub(super) fn read(span: &Span) -> Option<Reading> {
    let attributes = Attributes(&span.attributes);
    let operation = attributes.text(&["ai.operationId"])?;
    let kind = match operation.rsplit('.').next() {
        Some("doGenerate" | "doStream") => Kind::Model,
        Some("toolCall") => Kind::Tool,
        Some("generateText" | "streamText" | "generateObject" | "streamObject") => Kind::Agent,
        _ => Kind::Part,
    };
    let reading = Reading { kind: Some(kind), ..Reading::default() };
    Some(match kind {
        Kind::Model => model(&attributes, reading),
        Kind::Tool => Reading {
            name: attributes.string(&["ai.toolCall.name"]),
            call_id: attributes.string(&["ai.toolCall.id"]),
            arguments: attributes.value(&["ai.toolCall.args", "ai.toolCall.input"]).map(arguments_of),
            result: attributes.value(&["ai.toolCall.result", "ai.toolCall.output"]).map(result),
            ..reading
        },
        Kind::Agent => Reading { name: attributes.string(&["ai.telemetry.functionId"]), ..reading },
        Kind::Part => reading,
    })
}

fn model(attributes: &Attributes<'_>, mut reading: Reading) -> Reading {
    let of = |names: &[&str]| attributes.count(names);
    let general = count(attributes);
    let tokens = Count {
        input: general.input.or_else(|| of(&["ai.usage.inputTokens", "ai.usage.promptTokens"])),
        output: general.output.or_else(|| of(&["ai.usage.outputTokens", "ai.usage.completionTokens"])),
        cache_read: of(&["ai.usage.cachedInputTokens", "ai.usage.inputTokenDetails.cacheReadTokens"]),
        reasoning: of(&["ai.usage.reasoningTokens", "ai.usage.outputTokenDetails.reasoningTokens"]),
        ..general
    };
    let mut finish = finish_reasons(attributes.value(&["ai.response.finishReason"]));
    if finish.is_empty() {
        finish = finish_reasons(attributes.value(&["gen_ai.response.finish_reasons"]));
    }
    let text = attributes.string(&["ai.response.text"]);
    let calls = attributes.value(&["ai.response.toolCalls"]);
    let output = (text.is_some() || calls.is_some()).then(|| {
        let mut output = ChatMessage { text: text.unwrap_or_default(), ..ChatMessage::default() };
        output.thinking = attributes.string(&["ai.response.reasoning"]).unwrap_or_default();
        let calls = calls.map(|calls| parsed(calls).unwrap_or_else(|| calls.clone()));
        let listed = calls.as_ref().and_then(Value::as_array).into_iter().flatten();
        output.calls.extend(listed.filter_map(|call| crate::chat_message::call(call.as_object()?)));
        output
    });
    reading.hear(attributes.value(&["ai.prompt.messages"]).map(messages).unwrap_or_default());
    let model = attributes.string(&["ai.response.model", "ai.model.id"]);
    Reading { model, tokens, output, finish, ..reading }
}

/// Returns the text of a result, which is JSON, also if it is a string.
fn result(value: &Value) -> String {
    match value.as_str().map(serde_json::from_str::<String>) {
        Some(Ok(text)) => text,
        _ => content_text(value),
    }
}

//! OpenTelemetry's semantic conventions for generative AI, `gen_ai.*`: the current form, in which messages are attributes
//! or an event, the earlier one with an event for each message, and the first one with one for the prompt and one for
//! the completion.

use serde_json::Value;

use crate::chat_message::{ChatMessage, arguments_of, content_text, messages, parsed};
use crate::reading::{Attributes, Count, Kind, Reading};
use crate::span::Span;

const INPUT: [&str; 1] = ["gen_ai.input.messages"];
const OUTPUT: [&str; 1] = ["gen_ai.output.messages"];

/// Names under which Pydantic AI reports the sum of the tokens of an agent.
const SUM_OF_INPUT: &str = "gen_ai.aggregated_usage.input_tokens";
const SUM_OF_OUTPUT: &str = "gen_ai.aggregated_usage.output_tokens";

pub(super) fn read(span: &Span) -> Option<Reading> {
    let attributes = Attributes(&span.attributes);
    let kind = kind(span, &attributes)?;
    let reading = Reading { kind: Some(kind), ..Reading::default() };
    Some(match kind {
        Kind::Model => model(span, &attributes, reading),
        Kind::Tool => Reading {
            name: attributes.string(&["gen_ai.tool.name", "tool_name"]).or_else(|| last_word(&span.name)),
            call_id: attributes.string(&["gen_ai.tool.call.id"]),
            arguments: attributes.value(&["gen_ai.tool.call.arguments", "tool_arguments"]).map(arguments_of),
            result: attributes.value(&["gen_ai.tool.call.result", "tool_response"]).map(content_text),
            ..reading
        },
        Kind::Agent => Reading {
            name: attributes.string(&["gen_ai.agent.name", "agent_name"]).or_else(|| last_word(&span.name)),
            tokens: count(&attributes),
            ..reading
        },
        Kind::Part => reading,
    })
}

fn kind(span: &Span, attributes: &Attributes<'_>) -> Option<Kind> {
    match attributes.text(&["gen_ai.operation.name"]) {
        Some("chat" | "text_completion" | "generate_content" | "responses") => return Some(Kind::Model),
        Some("execute_tool") => return Some(Kind::Tool),
        Some("invoke_agent" | "invoke_workflow") => return Some(Kind::Agent),
        Some(_) => return Some(Kind::Part),
        None => {}
    }
    let has = |name: &str| span.attributes.contains_key(name);
    if has("gen_ai.tool.name") || has("gen_ai.tool.call.id") {
        return Some(Kind::Tool);
    }
    if has("gen_ai.request.model") || has("gen_ai.response.model") {
        return Some(Kind::Model);
    }
    if has("gen_ai.agent.name") {
        return Some(Kind::Agent);
    }
    span.attributes.keys().any(|name| name.starts_with("gen_ai.")).then_some(Kind::Part)
}

fn model(span: &Span, attributes: &Attributes<'_>, mut reading: Reading) -> Reading {
    let mut output = attributes.value(&OUTPUT).map(messages).unwrap_or_default();
    let mut input = attributes.value(&INPUT).map(messages).unwrap_or_default();
    let mut finish = finish_reasons(attributes.value(&["gen_ai.response.finish_reasons"]));
    for event in &span.events {
        event_messages(&event.name, &event.attributes, &mut input, &mut output);
    }
    // One library writes the list of the events as an attribute.
    let listed = attributes.value(&["events"]).and_then(parsed);
    for event in listed.as_ref().and_then(Value::as_array).into_iter().flatten() {
        if let (Some(name), Some(map)) = (event.get("event.name").and_then(Value::as_str), event.as_object()) {
            event_messages(name, map, &mut input, &mut output);
        }
    }
    for choice in span.events.iter().filter(|event| event.name == "gen_ai.choice") {
        finish.extend(Attributes(&choice.attributes).string(&["finish_reason"]));
    }
    reading.hear(input);
    Reading {
        model: attributes.string(&["gen_ai.response.model", "gen_ai.request.model"]),
        response_id: attributes.string(&["gen_ai.response.id"]),
        tokens: count(attributes),
        cost_usd: attributes.number(&["operation.cost", "gen_ai.usage.cost"]),
        output: ChatMessage::joined(output),
        finish,
        ..reading
    }
}

/// Adds the messages of an event to those of the request or of the answer.
fn event_messages(
    name: &str,
    attributes: &serde_json::Map<String, Value>,
    input: &mut Vec<ChatMessage>,
    output: &mut Vec<ChatMessage>,
) {
    let whole = || Value::Object(attributes.clone());
    let read = Attributes(attributes);
    match name {
        "gen_ai.choice" | "gen_ai.assistant.choice" => output.push(ChatMessage::read(&whole())),
        "gen_ai.tool.message" | "gen_ai.user.message" => {
            let mut map = attributes.clone();
            let role = if name == "gen_ai.tool.message" { "tool" } else { "user" };
            map.insert("role".to_owned(), role.into());
            input.push(ChatMessage::read(&Value::Object(map)));
        }
        "gen_ai.content.prompt" => input.extend(read.value(&["gen_ai.prompt"]).map(messages).unwrap_or_default()),
        "gen_ai.content.completion" => {
            output.extend(read.value(&["gen_ai.completion"]).map(messages).unwrap_or_default());
        }
        _ => {
            input.extend(read.value(&INPUT).map(messages).unwrap_or_default());
            output.extend(read.value(&OUTPUT).map(messages).unwrap_or_default());
        }
    }
}

pub(super) fn count(attributes: &Attributes<'_>) -> Count {
    let of = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| format!("gen_ai.usage.{name}")).collect();
        attributes.count(&names.iter().map(String::as_str).collect::<Vec<_>>())
    };
    Count {
        input: of(&["input_tokens", "prompt_tokens"]).or_else(|| attributes.count(&[SUM_OF_INPUT])),
        output: of(&["output_tokens", "completion_tokens"]).or_else(|| attributes.count(&[SUM_OF_OUTPUT])),
        cache_read: of(&["cache_read.input_tokens", "cache_read_input_tokens", "details.cache_read_tokens"]),
        cache_write: of(&["cache_creation.input_tokens", "cache_creation_input_tokens", "details.cache_write_tokens"]),
        reasoning: of(&["reasoning.output_tokens", "reasoning_tokens", "details.reasoning_tokens"]),
    }
}

/// Reads the reasons for which a model stopped: a list, or its JSON text, or one reason.
pub(super) fn finish_reasons(value: Option<&Value>) -> Vec<String> {
    let Some(value) = value else { return Vec::new() };
    let parsed = parsed(value);
    match parsed.as_ref().unwrap_or(value) {
        Value::Array(reasons) => reasons.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Value::String(reason) => vec![reason.clone()],
        _ => Vec::new(),
    }
}

/// Returns the name after the operation in the name of a span: `execute_tool find_order`.
fn last_word(name: &str) -> Option<String> {
    let (_, last) = name.split_once(' ')?;
    Some(last.to_owned())
}

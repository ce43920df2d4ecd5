//! Messages of a conversation with a model, in any of the forms in which spans contain them: those of the conventions,
//! and those of the vendors' own interfaces.

use model::foreign_json;
use serde_json::{Map, Value};

/// Maximum depth of parts within parts.
const MAX_DEPTH: usize = 8;

/// Keys under which a message or a part is found that is wrapped in another object.
const WRAPPERS: [&str; 5] = ["message", "message_content", "tool_call", "kwargs", "content_block"];

/// Content of one or more messages.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ChatMessage {
    pub(crate) role: Option<String>,
    pub(crate) text: String,
    pub(crate) thinking: String,
    /// Calls that the model asked for.
    pub(crate) calls: Vec<AskedCall>,
    /// Results that were sent to the model.
    pub(crate) results: Vec<GivenResult>,
}

/// Call that a model asked for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AskedCall {
    pub(crate) id: Option<String>,
    pub(crate) name: String,
    /// Arguments; `None` if they are not recorded.
    pub(crate) arguments: Option<Value>,
}

/// Result of a call, as the model got it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct GivenResult {
    pub(crate) id: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) content: String,
    pub(crate) is_error: bool,
}

/// Returns the messages in `value`: a list, a map with numbers as keys, one message, or the JSON text of these.
pub(crate) fn messages(value: &Value) -> Vec<ChatMessage> {
    let parsed = parsed(value);
    let value = parsed.as_ref().unwrap_or(value);
    match items(value) {
        Some(items) => items.into_iter().map(ChatMessage::read).collect(),
        None if value.is_object() || value.is_string() => vec![ChatMessage::read(value)],
        None => Vec::new(),
    }
}

impl ChatMessage {
    /// Reads a message.
    pub(crate) fn read(value: &Value) -> Self {
        let mut message = Self::default();
        message.add(value, 0);
        message
    }

    /// Joins the messages of an answer.
    pub(crate) fn joined(messages: Vec<Self>) -> Option<Self> {
        messages.into_iter().reduce(|mut whole, more| {
            for (whole, more) in [(&mut whole.text, &more.text), (&mut whole.thinking, &more.thinking)] {
                if !whole.is_empty() && !more.is_empty() {
                    whole.push('\n');
                }
                whole.push_str(more);
            }
            whole.calls.extend(more.calls);
            whole.results.extend(more.results);
            whole
        })
    }

    fn add(&mut self, value: &Value, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        match (value, items(value)) {
            (_, Some(items)) => items.into_iter().for_each(|item| self.add(item, depth + 1)),
            (Value::String(text), None) => self.text.push_str(text),
            (Value::Object(map), None) => self.add_map(map, depth),
            _ => {}
        }
    }

    fn add_map(&mut self, map: &Map<String, Value>, depth: usize) {
        let text = |key: &str| map.get(key).and_then(Value::as_str);
        if let Some(role) = text("role") {
            self.role.get_or_insert_with(|| role.to_owned());
        }
        let role = text("role").unwrap_or_default();
        let is_result =
            matches!(text("type"), Some("tool_call_response" | "tool_result" | "tool-result" | "function_call_output"))
                || matches!(role, "tool" | "function") && (map.contains_key("tool_call_id") || map.contains_key("id"))
                || (map.contains_key("tool_call_id") && !map.contains_key("tool_calls"));
        if is_result {
            return self.results.push(result(map));
        }
        match text("type") {
            Some("tool_call" | "tool_use" | "server_tool_use" | "tool-call" | "function_call") => {
                return self.calls.extend(call(map));
            }
            Some("reasoning" | "thinking") => {
                let written = ["content", "text", "thinking", "reasoning"].iter().find_map(|key| text(key));
                return self.thinking.push_str(written.unwrap_or_default());
            }
            Some("blob" | "uri" | "file" | "image" | "image_url" | "input_image" | "audio" | "input_audio") => return,
            _ => {}
        }
        if let Some(Value::Object(inner)) = map.get("function_call").or_else(|| map.get("functionCall")) {
            self.calls.extend(call(inner));
        }
        if let Some(Value::Object(inner)) = map.get("function_response").or_else(|| map.get("functionResponse")) {
            self.results.push(result(inner));
        }
        for key in ["tool_calls", "toolCalls"] {
            let written = map.get(key).map(|written| parsed(written).unwrap_or_else(|| written.clone()));
            for written in written.as_ref().and_then(items).into_iter().flatten() {
                let inner = written.get("tool_call").unwrap_or(written);
                self.calls.extend(inner.as_object().and_then(call));
            }
        }
        let reasoning = text("reasoning_content").or_else(|| text("reasoning"));
        self.thinking.push_str(reasoning.unwrap_or_default());
        let content =
            ["content", "contents", "parts", "text"].iter().find_map(|key| map.get(*key).filter(|it| !it.is_null()));
        if let Some(content) = content {
            // Some libraries write lists of parts as JSON text.
            match parsed(content).filter(is_parts) {
                Some(parts) => self.add(&parts, depth + 1),
                None => self.add(content, depth + 1),
            }
        }
        for key in WRAPPERS {
            match map.get(key) {
                Some(inner @ Value::Object(_)) => self.add(inner, depth + 1),
                Some(inner @ Value::String(_)) if key == "message" && content.is_none() => match parsed(inner) {
                    Some(inner @ Value::Object(_)) => self.add(&inner, depth + 1),
                    _ => self.add(inner, depth + 1),
                },
                _ => {}
            }
        }
    }
}

/// Returns `true` if a value is a list of parts of a message.
fn is_parts(value: &Value) -> bool {
    value.as_array().is_some_and(|parts| !parts.is_empty() && parts.iter().all(|part| part.get("type").is_some()))
}

/// Reads a call in any form.
pub(crate) fn call(map: &Map<String, Value>) -> Option<AskedCall> {
    let function = map.get("function").and_then(Value::as_object).unwrap_or(map);
    let first = |keys: &[&str]| keys.iter().find_map(|key| function.get(*key).or_else(|| map.get(*key)));
    let text = |keys: &[&str]| first(keys).and_then(Value::as_str).filter(|text| !text.is_empty());
    let arguments = first(&["arguments", "args", "input", "parameters"]).filter(|written| !written.is_null());
    Some(AskedCall {
        id: text(&["call_id", "id", "toolCallId", "tool_call_id"]).map(str::to_owned),
        name: text(&["name", "toolName", "tool_name"])?.to_owned(),
        arguments: arguments.map(arguments_of),
    })
}

/// Returns arguments as a value: JSON text is parsed, and empty text means that there are none.
pub(crate) fn arguments_of(written: &Value) -> Value {
    match written.as_str() {
        Some(text) if text.trim().is_empty() => Value::Object(Map::new()),
        _ => parsed(written).unwrap_or_else(|| written.clone()),
    }
}

/// Reads a result in any form.
fn result(map: &Map<String, Value>) -> GivenResult {
    let first = |keys: &[&str]| keys.iter().find_map(|key| map.get(*key).filter(|value| !value.is_null()));
    let text = |keys: &[&str]| first(keys).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned);
    let is_true = |key: &str| map.get(key).and_then(Value::as_bool) == Some(true);
    GivenResult {
        id: text(&["tool_call_id", "tool_use_id", "toolCallId", "call_id", "id"]),
        name: text(&["name", "toolName", "tool_name"]),
        content: first(&["content", "response", "result", "output", "contents"]).map(content_text).unwrap_or_default(),
        is_error: is_true("is_error")
            || is_true("isError")
            || map.get("status").and_then(Value::as_str) == Some("error"),
    }
}

/// Returns the text of a result: its text parts, or anything else as JSON.
pub(crate) fn content_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Array(parts) if is_parts(value) => {
            let text = |part: &Value| part.get("text").and_then(Value::as_str).map(str::to_owned);
            parts.iter().map(|part| text(part).unwrap_or_else(|| part.to_string())).collect()
        }
        Value::Object(map) => match map.get("value").filter(|_| map.get("type").is_some_and(is_output)) {
            Some(value) => content_text(value),
            None => value.to_string(),
        },
        _ => value.to_string(),
    }
}

/// Returns `true` for the type of an output in the form of the AI SDK, `{type, value}`.
fn is_output(kind: &Value) -> bool {
    matches!(kind.as_str(), Some("text" | "json" | "error-text" | "error-json" | "content"))
}

/// Returns the items of a list, or of a map with numbers as keys, in order.
pub(crate) fn items(value: &Value) -> Option<Vec<&Value>> {
    match value {
        Value::Array(items) => Some(items.iter().collect()),
        Value::Object(map) if !map.is_empty() => {
            let numbered = map.iter().map(|(key, value)| Some((key.parse::<u32>().ok()?, value)));
            let mut numbered: Vec<_> = numbered.collect::<Option<_>>()?;
            numbered.sort_by_key(|(number, _)| *number);
            Some(numbered.into_iter().map(|(_, value)| value).collect())
        }
        _ => None,
    }
}

/// Parses text that is a JSON object or list.
pub(crate) fn parsed(value: &Value) -> Option<Value> {
    let text = value.as_str().filter(|text| text.trim_start().starts_with(['{', '[']))?;
    foreign_json::parse(text).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns the text, the calls as `id:name(arguments)` and the results as `id=content`, with `!` for errors.
    fn shown(value: &Value) -> (String, Vec<String>, Vec<String>) {
        let message = ChatMessage::joined(messages(value)).unwrap_or_default();
        let call = |call: &AskedCall| {
            let arguments = call.arguments.as_ref().map_or_else(|| "?".to_owned(), Value::to_string);
            format!("{}:{}({arguments})", call.id.as_deref().unwrap_or("-"), call.name)
        };
        let result = |result: &GivenResult| {
            let mark = if result.is_error { "!" } else { "" };
            format!("{}={}{mark}", result.id.as_deref().unwrap_or("-"), result.content)
        };
        (message.text, message.calls.iter().map(call).collect(), message.results.iter().map(result).collect())
    }

    #[test]
    fn an_answer_with_a_call_is_read_in_every_form() {
        let arguments = r#"{"id":7}"#;
        let function = json!({"name": "find", "arguments": arguments});
        for form in [
            json!({"role": "assistant", "content": "Wait.", "tool_calls": [{"id": "c", "type": "function", "function": function}]}),
            json!([{"role": "assistant", "parts": [{"type": "text", "content": "Wait."},
                {"type": "tool_call", "id": "c", "name": "find", "arguments": {"id": 7}}], "finish_reason": "tool_call"}]),
            json!({"content": [{"type": "text", "text": "Wait."}, {"type": "tool_use", "id": "c", "name": "find", "input": {"id": 7}}]}),
            json!({"role": "assistant", "content": [{"type": "text", "text": "Wait."},
                {"type": "tool-call", "toolCallId": "c", "toolName": "find", "args": {"id": 7}}]}),
            json!({"content": "Wait.", "toolCalls": [{"toolCallId": "c", "toolName": "find", "input": arguments}]}),
            json!({"0": {"role": "assistant", "content": "Wait.", "tool_calls": {"0": {"id": "c", "name": "find", "arguments": arguments}}}}),
            json!({"0": {"message": {"role": "assistant", "contents": {"0": {"message_content": {"type": "text", "text": "Wait."}}},
                "tool_calls": {"0": {"tool_call": {"id": "c", "function": function}}}}}}),
            json!({"parts": [{"text": "Wait."}, {"function_call": {"id": "c", "name": "find", "args": {"id": 7}}}], "role": "model"}),
            json!([{"type": "message", "content": [{"type": "output_text", "text": "Wait."}]},
                {"type": "function_call", "call_id": "c", "name": "find", "arguments": arguments}]),
            json!({"index": 0, "finish_reason": "tool_calls",
                "message": {"role": "assistant", "content": "Wait.", "tool_calls": [{"id": "c", "function": function}]}}),
            json!({"message": json!({"content": "Wait.", "tool_calls": [{"id": "c", "function": function}]}).to_string()}),
        ] {
            let expected = ("Wait.".to_owned(), vec![r#"c:find({"id":7})"#.to_owned()], Vec::new());
            assert_eq!(shown(&form), expected, "{form}");
            assert_eq!(shown(&Value::String(form.to_string())), expected, "as text: {form}");
        }
    }

    #[test]
    fn results_are_read_in_every_form() {
        for form in [
            json!({"role": "tool", "tool_call_id": "c", "content": "sent"}),
            json!({"role": "tool", "parts": [{"type": "tool_call_response", "id": "c", "response": "sent"}]}),
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "sent"}]}]}),
            json!({"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c", "output": {"type": "text", "value": "sent"}}]}),
            json!({"0": {"message": {"role": "tool", "content": "sent", "tool_call_id": "c"}}}),
            json!({"parts": [{"function_response": {"id": "c", "name": "find", "response": "sent"}}], "role": "user"}),
            json!({"type": "function_call_output", "call_id": "c", "output": "sent"}),
            json!({"id": "c", "role": "tool", "content": "sent"}),
        ] {
            assert_eq!(shown(&form).2, ["c=sent"], "{form}");
        }
        let failed =
            json!({"content": [{"type": "tool_result", "tool_use_id": "c", "content": "no", "is_error": true}]});
        assert_eq!(shown(&failed).2, ["c=no!"]);
    }

    #[test]
    fn arguments_that_are_not_recorded_are_unknown_and_empty_text_means_none() {
        let called = |call: Value| shown(&json!({"tool_calls": [call]})).1;
        assert_eq!(called(json!({"id": "c", "function": {"name": "find"}})), ["c:find(?)"]);
        assert_eq!(called(json!({"name": "find", "arguments": ""})), ["-:find({})"]);
        assert_eq!(called(json!({"name": "find", "arguments": "{\"id\": "})), [r#"-:find("{\"id\": ")"#]);
        assert_eq!(called(json!({"id": "c"})), [""; 0]);
    }
}

//! Reads an answer that is a single JSON document, in any of the forms that bots use.

use serde_json::{Map, Value};

use super::{Answer, MISSING_NAME};
use crate::transcript::content_block::ContentBlock;
use crate::transcript::{ReportedCall, given};

/// Fields that may hold an answer's text. The first one that is a string is used.
pub(crate) const TEXTS: [&str; 4] = ["message", "text", "content", "response"];
/// Fields that may list tool calls.
pub(super) const CALLS: [&str; 2] = ["tool_calls", "toolCalls"];

/// Reads `document` into `answer`. Returns `true` if it contains text.
pub(crate) fn read(document: &Value, answer: &mut Answer) -> bool {
    let Some(map) = document.as_object() else { return false };
    answer.count.read_from(map);
    read_calls(map, "", answer);
    let message = map.get("choices").and_then(|choices| choices.get(0)?.get("message")?.as_object());
    if let Some(message) = message {
        answer.tells_calls = true;
        read_calls(message, "choices[0].message.", answer);
    }
    if let Some(text) = TEXTS.iter().find_map(|key| map.get(*key)?.as_str()) {
        answer.append_default_text(text);
        return true;
    }
    let nested = message.or_else(|| map.get("message")?.as_object());
    answer.tells_calls |= nested.is_some_and(|nested| nested.contains_key("role"));
    if message.is_none()
        && let Some(nested) = nested
    {
        read_calls(nested, "message.", answer);
    }
    let mut contents = nested.into_iter().chain([map]).filter_map(|holder| given(holder, "content"));
    if contents.any(|content| read_content(content, answer)) {
        return true;
    }
    let found = responses(map, answer);
    let output = ["output_text", "output"].iter().find_map(|key| map.get(*key)?.as_str());
    match output {
        Some(text) if !answer.has_text() => {
            answer.append_default_text(text);
            true
        }
        _ => found || message.is_some(),
    }
}

/// Adds the calls that `holder` lists to `answer`.
fn read_calls(holder: &Map<String, Value>, prefix: &str, answer: &mut Answer) {
    for key in CALLS {
        if let Some(calls) = given(holder, key) {
            answer.tells_calls = true;
            answer.add_calls(calls, &format!("{prefix}{key}"));
        }
    }
}

/// Reads a message's content: text, or a list of blocks. Returns `true` if it contains text.
fn read_content(content: &Value, answer: &mut Answer) -> bool {
    match content {
        Value::String(text) => {
            answer.append_default_text(text);
            true
        }
        Value::Array(blocks) => {
            answer.tells_calls = true;
            let mut found = false;
            blocks.iter().filter_map(Value::as_object).for_each(|block| found |= self::block(block, answer));
            found
        }
        _ => false,
    }
}

/// Reads a content block. Returns `true` if its type is known.
pub(crate) fn block(block: &Map<String, Value>, answer: &mut Answer) -> bool {
    let text = |key: &str| block.get(key).and_then(Value::as_str);
    match text("type").unwrap_or("text") {
        "text" | "output_text" => match text("text") {
            Some(answer_text) => answer.append_default_text(answer_text),
            None => return false,
        },
        "refusal" => answer.append_default_text(text("refusal").unwrap_or_default()),
        kind if kind.ends_with("tool_use") => {
            let mut call = ReportedCall::new(text("id").map(str::to_owned), text("name").unwrap_or_default());
            call.input = block.get("input").cloned();
            answer.call(text("id"), call);
        }
        kind if kind.ends_with("tool_result") => {
            let is_error = block.get("is_error").and_then(Value::as_bool).unwrap_or(false);
            let content = block.get("content").unwrap_or(&Value::Null);
            answer.result(text("tool_use_id").unwrap_or_default(), &join_texts(content), is_error);
        }
        "thinking" | "redacted_thinking" | "reasoning" => {}
        _ => return call_of(block, answer),
    }
    true
}

/// Reads a call, or the result of one, in the form of another API. Returns `true` if it is one.
fn call_of(block: &Map<String, Value>, answer: &mut Answer) -> bool {
    match ContentBlock::read(block) {
        ContentBlock::Call(call) => {
            let id = call.id.clone();
            answer.call(id.as_deref(), call);
        }
        ContentBlock::Result(result) => {
            answer.result(result.id.or(result.name).unwrap_or_default(), &result.content.into(), result.is_error);
        }
        ContentBlock::NamelessCall => answer.add_warning(MISSING_NAME.to_owned()),
        ContentBlock::Text(_) | ContentBlock::Other | ContentBlock::Unknown(_) => return false,
    }
    true
}

/// Joins a result that is a list containing only strings; returns any other result unchanged.
fn join_texts(content: &Value) -> Value {
    let texts = content.as_array().and_then(|blocks| {
        blocks.iter().map(|block| block.get("text").and_then(Value::as_str)).collect::<Option<Vec<_>>>()
    });
    texts.map_or_else(|| content.clone(), |texts| Value::from(texts.concat()))
}

/// Reads the items of a Responses API response. Returns `true` if any item has a known type.
fn responses(map: &Map<String, Value>, answer: &mut Answer) -> bool {
    let items = map.get("output").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    answer.tells_calls |= !items.is_empty();
    let mut found = false;
    items.iter().filter_map(Value::as_object).for_each(|item| found |= self::item(item, answer));
    found
}

/// Reads one item of such a response. Returns `true` if its type is known.
pub(crate) fn item(item: &Map<String, Value>, answer: &mut Answer) -> bool {
    let text = |key: &str| item.get(key).and_then(Value::as_str);
    match text("type").unwrap_or_default() {
        "message" => item.get("content").is_some_and(|content| read_content(content, answer)),
        "function_call" | "custom_tool_call" | "mcp_call" => {
            let mut call = ReportedCall::new(text("call_id").map(str::to_owned), text("name").unwrap_or_default());
            call.write(text("arguments").or_else(|| text("input")).unwrap_or_default());
            call.result = text("output").map(str::to_owned);
            if let Some(error) = text("error") {
                (call.result, call.is_error) = (Some(error.to_owned()), true);
            }
            answer.call(text("call_id").or_else(|| text("id")), call);
            true
        }
        "function_call_output" | "custom_tool_call_output" => {
            answer.result(text("call_id").unwrap_or_default(), item.get("output").unwrap_or(&Value::Null), false);
            true
        }
        "reasoning" => true,
        _ => call_of(item, answer),
    }
}

/// Returns the error in the `error` field of `document`.
pub(crate) fn error(document: &Map<String, Value>) -> Option<String> {
    let error =
        document.get("error").filter(|error| !matches!(error, Value::Null | Value::Bool(false)) && **error != "")?;
    let message = error.as_str().or_else(|| error.get("message")?.as_str());
    Some(message.map_or_else(|| error.to_string(), str::to_owned))
}

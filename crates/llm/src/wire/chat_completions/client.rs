//! Client side of Chat Completions.

use std::collections::BTreeMap;

use model::foreign_json;
use serde_json::{Map, Value, json};

use super::{SCHEMA, calls, stop_reason, tokens};
use crate::message::texts;
use crate::schema::is_strict;
use crate::wire::parts::{add, arguments, function_json, put, put_list, system, text};
use crate::wire::{Assemble, BadResponse, Dialect, Progress, ReportedError};
use crate::{Block, Message, Reply, Request, Role, StopReason, ToolSpec};

/// Client side of Chat Completions.
pub(crate) struct Client {
    /// Name of the field for the token limit. The vendor renamed it, and others use the old name.
    pub(crate) limit: &'static str,
    /// True if a stream reports the usage only on request.
    pub(crate) requests_usage: bool,
}

impl Dialect for Client {
    fn ask(&self, request: &Request, stream: bool) -> Map<String, Value> {
        let mut body = Map::new();
        body.insert("model".into(), json!(request.model));
        body.insert("messages".into(), Value::Array(messages(request)));
        put_list(&mut body, "tools", request.tools.iter().map(tool).collect());
        put(&mut body, self.limit, request.max_tokens);
        put(&mut body, "temperature", request.temperature);
        put(&mut body, "reasoning_effort", request.effort.as_deref());
        if let Some(wanted) = &request.response_schema {
            let strict = is_strict(&wanted.schema);
            let schema = json!({"name": wanted.name, "schema": wanted.schema, "strict": strict});
            body.insert("response_format".into(), json!({"type": SCHEMA, SCHEMA: schema}));
        }
        if stream {
            body.insert("stream".into(), json!(true));
        }
        if stream && self.requests_usage {
            body.insert("stream_options".into(), json!({"include_usage": true}));
        }
        add(&mut body, &request.extra);
        body
    }

    fn reply(&self, request: &Request, document: Value) -> Result<Reply, BadResponse> {
        failed(&document)?;
        let Some(choice) = document.pointer("/choices/0") else { return Err(BadResponse::lacks("`choices`")) };
        let mut gathered = PartialReply::from_request(request);
        let Some(message) = choice.get("message") else { return Err(BadResponse::lacks("`message` in its choice")) };
        gathered.message(message, true)?;
        gathered.about(&document);
        gathered.stop = text(choice, "finish_reason").map(str::to_owned).or(Some("stop".into()));
        Box::new(gathered).finish().ok_or_else(|| BadResponse::lacks("end"))
    }

    fn assemble(&self, request: &Request) -> Box<dyn Assemble> {
        Box::new(PartialReply::from_request(request))
    }
}

/// Returns the error of a response with a success status.
fn failed(document: &Value) -> Result<(), BadResponse> {
    let is_error = document.get("error").is_some_and(|error| !error.is_null());
    match ReportedError::from_document(document).filter(|_| is_error) {
        Some(error) => Err(BadResponse::Reported(error)),
        None => Ok(()),
    }
}

fn messages(request: &Request) -> Vec<Value> {
    let mut all = Vec::new();
    all.extend(system(request).map(|system| json!({"role": "system", "content": system})));
    for message in &request.messages {
        match message.role {
            Role::System => all.push(json!({"role": "system", "content": message.spoken()})),
            Role::Assistant => all.push(assistant(message)),
            Role::User => user(message, &mut all),
        }
    }
    all
}

fn assistant(message: &Message) -> Value {
    let calls = calls(&message.content);
    let answer_text = message.spoken();
    let content = if answer_text.is_empty() && !calls.is_empty() { Value::Null } else { Value::String(answer_text) };
    let mut written = json!({"role": "assistant", "content": content});
    if !calls.is_empty() {
        written["tool_calls"] = Value::Array(calls);
    }
    written
}

/// Adds the tool results first, one message each, because the format requires them directly after the calls.
fn user(message: &Message, all: &mut Vec<Value>) {
    let mut parts = Vec::new();
    for block in &message.content {
        match block {
            Block::ToolResult { id, content, .. } => {
                all.push(json!({"role": "tool", "tool_call_id": id, "content": texts(content)}));
            }
            Block::Text { text } => parts.push(json!({"type": "text", "text": text})),
            Block::Other(value) => parts.push(value.clone()),
            Block::Thinking { .. } | Block::ToolUse { .. } => {}
        }
    }
    match parts.as_slice() {
        [] => {}
        // Servers that do not support parts support plain text.
        [only] if text(only, "type") == Some("text") => all.push(json!({"role": "user", "content": only["text"]})),
        _ => all.push(json!({"role": "user", "content": parts})),
    }
}

fn tool(tool: &ToolSpec) -> Value {
    json!({"type": "function", "function": function_json(tool, "parameters")})
}

/// A response that is being received.
#[derive(Default)]
struct PartialReply {
    id: String,
    model: String,
    thinking: String,
    answer_text: String,
    refused: String,
    calls: BTreeMap<u64, Call>,
    stop: Option<String>,
    usage: Value,
}

/// A call that is being received.
#[derive(Default)]
struct Call {
    id: String,
    name: String,
    arguments: String,
}

impl PartialReply {
    fn from_request(request: &Request) -> Self {
        Self { model: request.model.clone(), ..Self::default() }
    }

    /// Reads the fields other than the choices.
    fn about(&mut self, document: &Value) {
        if let Some(id) = text(document, "id").filter(|id| !id.is_empty()) {
            id.clone_into(&mut self.id);
        }
        if let Some(model) = text(document, "model").filter(|model| !model.is_empty()) {
            model.clone_into(&mut self.model);
        }
        // Some servers send it with every piece, as a running total.
        if let Some(usage) = document.get("usage").filter(|usage| usage.is_object()) {
            self.usage = usage.clone();
        }
    }

    /// Reads a complete message, or a piece of one.
    fn message(&mut self, message: &Value, is_whole: bool) -> Result<(), BadResponse> {
        match message.get("content") {
            Some(Value::String(answer_text)) => foreign_json::append(&mut self.answer_text, answer_text),
            Some(Value::Array(parts)) => {
                parts
                    .iter()
                    .filter_map(|part| text(part, "text"))
                    .for_each(|answer_text| foreign_json::append(&mut self.answer_text, answer_text));
            }
            Some(Value::Null) | None => {}
            Some(_) => return Err(BadResponse::Unreadable("`content` is neither text nor a list".into())),
        }
        let thought = text(message, "reasoning_content").or(text(message, "reasoning"));
        foreign_json::append(&mut self.thinking, thought.unwrap_or_default());
        foreign_json::append(&mut self.refused, text(message, "refusal").unwrap_or_default());
        for (index, piece) in message.get("tool_calls").and_then(Value::as_array).into_iter().flatten().enumerate() {
            self.call(is_whole.then_some(index as u64), piece);
        }
        if let Some(piece) = message.get("function_call").filter(|piece| !piece.is_null()) {
            self.call(None, &json!({"function": piece}));
        }
        Ok(())
    }

    /// Reads a call, or a piece of one. `at` is the index among complete calls.
    fn call(&mut self, at: Option<u64>, piece: &Value) {
        let index = at.or_else(|| piece.get("index").and_then(Value::as_u64));
        let id = text(piece, "id").unwrap_or_default();
        // If there is no index, a piece with a new id starts a call.
        let last = self.calls.keys().next_back().copied();
        let index = index.unwrap_or_else(|| match last {
            Some(last) if id.is_empty() || self.calls.get(&last).is_some_and(|call| call.id == id) => last,
            Some(last) => last + 1,
            None => 0,
        });
        let call = self.calls.entry(index).or_default();
        if call.id.is_empty() {
            id.clone_into(&mut call.id);
        }
        let function = piece.get("function").unwrap_or(&Value::Null);
        if call.name.is_empty() {
            text(function, "name").unwrap_or_default().clone_into(&mut call.name);
        }
        match function.get("arguments") {
            Some(Value::String(more)) => foreign_json::append(&mut call.arguments, more),
            Some(Value::Null) | None => {}
            Some(object) => call.arguments = object.to_string(),
        }
    }
}

impl Assemble for PartialReply {
    fn take(&mut self, chunk: Value) -> Result<Progress, BadResponse> {
        failed(&chunk)?;
        if !chunk.is_object() {
            return Err(BadResponse::Unreadable("a piece of the response is not an object".into()));
        }
        self.about(&chunk);
        // The piece with the usage has no choice.
        let Some(choice) = chunk.pointer("/choices/0") else { return Ok(Progress::More) };
        if let Some(delta) = choice.get("delta").or(choice.get("message")) {
            self.message(delta, false)?;
        }
        if let Some(stop) = text(choice, "finish_reason") {
            self.stop = Some(stop.to_owned());
        }
        // The usage follows the end of the message, and the end marker follows the usage.
        Ok(Progress::More)
    }

    fn so_far(&self) -> Option<Reply> {
        let mut content = Vec::new();
        if !self.thinking.is_empty() {
            content.push(Block::Thinking { text: self.thinking.clone(), signature: None });
        }
        let has_refused = !self.refused.is_empty();
        let answer_text = if has_refused && self.answer_text.is_empty() { &self.refused } else { &self.answer_text };
        if !answer_text.is_empty() {
            content.push(Block::Text { text: answer_text.clone() });
        }
        let calls = self.calls.values().filter(|call| !call.name.is_empty());
        content.extend(calls.map(|call| Block::ToolUse {
            id: call.id.clone(),
            name: call.name.clone(),
            input: arguments(&call.arguments),
        }));
        let calls_tools = content.iter().any(|block| matches!(block, Block::ToolUse { .. }));
        let stop = self.stop.as_deref().unwrap_or_default();
        Some(Reply {
            message_id: self.id.clone(),
            model: self.model.clone(),
            content,
            stop_reason: if has_refused { StopReason::Refusal } else { stop_reason(stop, calls_tools) },
            tokens: tokens(&self.usage),
            cost_usd: self.usage.get("cost").and_then(Value::as_f64),
        })
    }

    fn finish(self: Box<Self>) -> Option<Reply> {
        if self.stop.is_some() { self.so_far() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ResponseSchema;

    const CLIENT: Client = Client { limit: "max_completion_tokens", requests_usage: true };

    fn gathered(chunks: &[Value]) -> Option<Reply> {
        let mut gathered = CLIENT.assemble(&Request::default());
        for chunk in chunks {
            gathered.take(chunk.clone()).unwrap();
        }
        gathered.finish()
    }

    fn delta(delta: &Value) -> Value {
        json!({"id": "c1", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
    }

    #[test]
    fn calls_are_assembled_with_and_without_an_index() {
        let end = json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]});
        let with = [
            delta(&json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "x", "arguments": "{\"k\":"}}]})),
            delta(&json!({"tool_calls": [{"index": 0, "function": {"arguments": "1}"}}]})),
            delta(&json!({"tool_calls": [{"index": 1, "id": "b", "function": {"name": "y", "arguments": ""}}]})),
            end.clone(),
        ];
        let without = [
            delta(&json!({"tool_calls": [{"id": "a", "function": {"name": "x", "arguments": "{\"k\":1}"}}]})),
            delta(&json!({"tool_calls": [{"id": "b", "function": {"name": "y", "arguments": {}}}]})),
            end,
        ];
        let expected = [
            Block::ToolUse { id: "a".into(), name: "x".into(), input: json!({"k": 1}) },
            Block::ToolUse { id: "b".into(), name: "y".into(), input: json!({}) },
        ];
        assert_eq!(gathered(&with).unwrap().content, expected);
        assert_eq!(gathered(&without).unwrap().content, expected);
    }

    #[test]
    fn an_answer_is_complete_once_it_has_a_stop_reason() {
        let chunks = [delta(&json!({"content": "Hel"})), delta(&json!({"content": "lo"}))];
        assert_eq!(gathered(&chunks), None);
        let mut whole = chunks.to_vec();
        whole.push(json!({"choices": [{"delta": {}, "finish_reason": "length"}]}));
        whole.push(json!({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2, "cost": 0.5}}));
        let reply = gathered(&whole).unwrap();
        assert_eq!((reply.text().as_str(), &reply.stop_reason), ("Hello", &StopReason::MaxTokens));
        assert_eq!((reply.tokens.unwrap().total(), reply.cost_usd), (5, Some(0.5)));
    }

    #[test]
    fn arguments_that_are_not_json_stay_text() {
        let document = json!({"choices": [{"message": {"tool_calls": [
            {"id": "a", "function": {"name": "x", "arguments": "{oops"}},
        ]}, "finish_reason": "stop"}]});
        let reply = CLIENT.reply(&Request::default(), document).unwrap();
        assert_eq!(reply.content, [Block::ToolUse { id: "a".into(), name: "x".into(), input: json!("{oops") }]);
        assert_eq!((reply.stop_reason, reply.tokens), (StopReason::ToolUse, None));
    }

    #[test]
    fn a_refusal_is_distinguished_from_an_answer() {
        let document = json!({"choices": [{"message": {"content": null, "refusal": "No."}, "finish_reason": "stop"}]});
        let reply = CLIENT.reply(&Request::default(), document).unwrap();
        assert_eq!((reply.text().as_str(), reply.stop_reason), ("No.", StopReason::Refusal));
    }

    #[test]
    fn an_error_in_a_successful_response_is_an_error() {
        let document = json!({"error": {"message": "busy", "code": 502}});
        let reported = ReportedError { codes: vec!["502".into()], message: "busy".into() };
        assert_eq!(CLIENT.reply(&Request::default(), document), Err(BadResponse::Reported(reported)));
        assert_eq!(CLIENT.reply(&Request::default(), json!({"choices": []})), Err(BadResponse::lacks("`choices`")));
    }

    #[test]
    fn a_schema_is_strict_only_if_supported() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        let wanted = ResponseSchema { name: "v".into(), schema };
        let request = Request { response_schema: Some(wanted), max_tokens: Some(9), ..Request::default() };
        let body = Value::Object(CLIENT.ask(&request, false));
        assert_eq!(body["response_format"]["json_schema"]["strict"], json!(false));
        assert_eq!(body["max_completion_tokens"], json!(9));
    }
}

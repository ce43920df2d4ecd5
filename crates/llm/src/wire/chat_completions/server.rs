//! Server side of Chat Completions.

use serde_json::{Map, Value, json};

use super::{SCHEMA, calls, stop_word, usage};
use crate::wire::parts::{
    ErrorCodes, arguments, function, halves, model, rejection, take_list, take_number, take_stream, take_text,
    take_tools, take_whole, text, used,
};
use crate::wire::{Incoming, Rejection, SseEvent, SseStream, Wire};
use crate::{Block, Conversation, Message, Reply, Request, ResponseSchema, Role, ToolSpec};

/// Vendor's error codes by status.
const ERRORS: ErrorCodes = ErrorCodes(&[
    (400, "invalid_request_error"),
    (401, "invalid_api_key"),
    (403, "permission_error"),
    (404, "model_not_found"),
    (429, "rate_limit_exceeded"),
    (500, "server_error"),
    (503, "server_overloaded"),
]);

/// Chat Completions.
pub(in crate::wire) struct ChatCompletions;

impl Wire for ChatCompletions {
    fn name(&self) -> &'static str {
        "openai"
    }

    fn path(&self) -> &'static str {
        "/v1/chat/completions"
    }

    fn read_fields<'h>(
        &self,
        _header: &dyn Fn(&str) -> Option<&'h str>,
        mut fields: Map<String, Value>,
    ) -> Result<Incoming, Rejection> {
        let model = model(&mut fields)?;
        let mut request = Request { model, conversation: Conversation::default(), ..Request::default() };
        for (index, value) in take_list(&mut fields, "messages")?.into_iter().enumerate() {
            read_message(&mut request, value, index)?;
        }
        request.tools = take_tools(&mut fields)?.into_iter().map(tool).collect::<Result<_, _>>()?;
        let stream = take_stream(&mut fields);
        fields.remove("stream_options");
        let old = take_whole(&mut fields, "max_tokens");
        request.max_tokens = take_whole(&mut fields, "max_completion_tokens").or(old);
        request.temperature = take_number(&mut fields, "temperature");
        request.effort = take_text(&mut fields, "reasoning_effort");
        request.response_schema = schema(&mut fields);
        request.extra = fields;
        Ok(Incoming { request, stream })
    }

    fn whole(&self, reply: &Reply) -> Value {
        let mut message = json!({"role": "assistant", "content": content_of(reply), "refusal": null});
        if let Some(thought) = thought(reply) {
            message["reasoning_content"] = json!(thought);
        }
        let calls = calls(&reply.content);
        if !calls.is_empty() {
            message["tool_calls"] = Value::Array(calls);
        }
        json!({
            "id": reply.message_id,
            "object": "chat.completion",
            "created": 0,
            "model": reply.model,
            "choices": [{
                "index": 0, "message": message, "logprobs": null, "finish_reason": stop_word(&reply.stop_reason),
            }],
            "usage": usage(&used(reply)),
        })
    }

    fn stream(&self, reply: &Reply) -> SseStream {
        let piece = |delta: Value| chunk(reply, delta, Value::Null);
        let mut content: Vec<SseEvent> = Vec::new();
        for thought in thought(reply).iter().flat_map(|text| halves(text)) {
            content.push(piece(json!({"reasoning_content": thought})));
        }
        for part in content_of(reply).as_str().into_iter().flat_map(halves) {
            content.push(piece(json!({"content": part})));
        }
        for (index, mut call) in calls(&reply.content).into_iter().enumerate() {
            let arguments = call["function"]["arguments"].as_str().unwrap_or_default().to_owned();
            call["index"] = json!(index);
            call["function"]["arguments"] = json!("");
            content.push(piece(json!({"tool_calls": [call]})));
            for part in halves(&arguments) {
                content.push(piece(json!({"tool_calls": [{"index": index, "function": {"arguments": part}}]})));
            }
        }
        let mut last = document(reply, json!([]));
        last["usage"] = usage(&used(reply));
        SseStream {
            opening: vec![piece(json!({"role": "assistant", "content": ""}))],
            content,
            closing: vec![
                chunk(reply, json!({}), json!(stop_word(&reply.stop_reason))),
                event(&last),
                SseEvent { event: None, data: "[DONE]".into() },
            ],
        }
    }

    fn error(&self, status: u16, kind: Option<&str>, message: &str) -> Value {
        ERRORS.openai_error(status, kind, message)
    }

    fn error_event(&self, kind: Option<&str>, message: &str) -> SseEvent {
        event(&self.error(self.status_of(kind), kind, message))
    }

    fn status_of(&self, kind: Option<&str>) -> u16 {
        ERRORS.status(kind)
    }
}

/// Adds one message in the wire format to `request`. Tool results become part of the user's next message.
fn read_message(request: &mut Request, value: Value, index: usize) -> Result<(), Rejection> {
    let Value::Object(mut fields) = value else {
        return Err(rejection(format!("messages.{index}: an object is required")));
    };
    let content = content(fields.remove("content").unwrap_or_default(), index)?;
    let role = fields.get("role").and_then(Value::as_str).unwrap_or_default();
    match role {
        "system" | "developer" if request.messages.is_empty() => {
            let texts = content.into_iter().filter_map(|block| match block {
                Block::Text { text } => Some(text),
                _ => None,
            });
            request.system.extend(texts);
        }
        "system" | "developer" => request.messages.push(Message { role: Role::System, content }),
        "user" => match request.messages.last_mut() {
            Some(last) if last.role == Role::User && ends_with_result(last) => last.content.extend(content),
            _ => request.messages.push(Message { role: Role::User, content }),
        },
        "assistant" => request.messages.push(assistant(&fields, content)),
        "tool" => {
            let id = fields.get("tool_call_id").and_then(Value::as_str).unwrap_or_default().to_owned();
            let result = Block::ToolResult { id, content, is_error: false };
            match request.messages.last_mut() {
                Some(last) if last.role == Role::User && ends_with_result(last) => last.content.push(result),
                _ => request.messages.push(Message { role: Role::User, content: vec![result] }),
            }
        }
        _ => {
            return Err(rejection(format!(
                "messages.{index}.role: `system`, `developer`, `user`, `assistant` or `tool` is required"
            )));
        }
    }
    Ok(())
}

fn ends_with_result(message: &Message) -> bool {
    matches!(message.content.last(), Some(Block::ToolResult { .. }))
}

fn assistant(fields: &Map<String, Value>, blocks: Vec<Block>) -> Message {
    let mut content = Vec::new();
    if let Some(thought) = fields.get("reasoning_content").and_then(Value::as_str) {
        content.push(Block::Thinking { text: thought.to_owned(), signature: None });
    }
    content.extend(blocks.into_iter().filter(|block| !matches!(block, Block::Text { text } if text.is_empty())));
    for call in fields.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
        content.push(match call.get("function") {
            Some(function) => Block::ToolUse {
                id: text(call, "id").unwrap_or_default().to_owned(),
                name: text(function, "name").unwrap_or_default().to_owned(),
                input: arguments(text(function, "arguments").unwrap_or_default()),
            },
            None => Block::Other(call.clone()),
        });
    }
    Message { role: Role::Assistant, content }
}

/// Reads a string or a list of parts.
fn content(value: Value, index: usize) -> Result<Vec<Block>, Rejection> {
    match value {
        Value::String(text) => Ok(vec![Block::Text { text }]),
        Value::Array(parts) => Ok(parts
            .into_iter()
            .map(|part| match (text(&part, "type"), text(&part, "text")) {
                (Some("text"), Some(text)) => Block::Text { text: text.to_owned() },
                _ => Block::Other(part),
            })
            .collect()),
        Value::Null => Ok(Vec::new()),
        _ => Err(rejection(format!("messages.{index}.content: a string or a list is required"))),
    }
}

fn tool(value: Value) -> Result<ToolSpec, Rejection> {
    let Value::Object(mut outer) = value else { return Err(rejection("tools: a list of objects is required")) };
    let Some(Value::Object(extra)) = outer.remove("function") else {
        // A tool that the vendor runs itself.
        let name = text(&Value::Object(outer.clone()), "type").unwrap_or_default().to_owned();
        return Ok(ToolSpec { name, extra: outer, ..ToolSpec::default() });
    };
    function(extra, "parameters")
}

fn schema(fields: &mut Map<String, Value>) -> Option<ResponseSchema> {
    let format = fields.get("response_format")?.get(SCHEMA)?;
    let schema = ResponseSchema {
        name: text(format, "name").unwrap_or_default().to_owned(),
        schema: format.get("schema").cloned()?,
    };
    fields.remove("response_format");
    Some(schema)
}

/// Returns the text of a reply; null if there is none.
fn content_of(reply: &Reply) -> Value {
    let text = reply.text();
    if text.is_empty() { Value::Null } else { Value::String(text) }
}

fn thought(reply: &Reply) -> Option<String> {
    let texts = reply.content.iter().filter_map(|block| match block {
        Block::Thinking { text, .. } => Some(text.as_str()),
        _ => None,
    });
    Some(texts.collect::<String>()).filter(|text| !text.is_empty())
}

fn document(reply: &Reply, choices: Value) -> Value {
    let mut document = json!({
        "id": reply.message_id, "object": "chat.completion.chunk", "created": 0, "model": reply.model,
    });
    document["choices"] = choices;
    document
}

fn chunk(reply: &Reply, delta: Value, stop: Value) -> SseEvent {
    let mut choice = json!({"index": 0});
    choice["delta"] = delta;
    choice["finish_reason"] = stop;
    event(&document(reply, Value::Array(vec![choice])))
}

fn event(data: &Value) -> SseEvent {
    SseEvent { event: None, data: data.to_string() }
}

#[cfg(test)]
mod tests {
    use model::Tokens;

    use super::super::Client;
    use super::*;
    use crate::StopReason;
    use crate::wire::Dialect;

    const CLIENT: Client = Client { limit: "max_tokens", requests_usage: true };

    fn request() -> Request {
        let result = |id: &str, text: &str| Block::ToolResult {
            id: id.into(),
            content: vec![Block::Text { text: text.into() }],
            is_error: false,
        };
        Request {
            model: "m".into(),
            system: vec!["Be brief.".into()],
            messages: vec![
                Message::text(Role::User, "Go."),
                Message {
                    role: Role::Assistant,
                    content: vec![
                        Block::Text { text: "I look.".into() },
                        Block::ToolUse { id: "a".into(), name: "Bash".into(), input: json!({"command": "ls"}) },
                        Block::ToolUse { id: "b".into(), name: "Bash".into(), input: json!("{oops") },
                    ],
                },
                Message { role: Role::User, content: vec![result("a", "x"), result("b", "y")] },
                Message::text(Role::System, "Hurry."),
                Message::text(Role::User, "And?"),
            ],
            tools: vec![ToolSpec {
                name: "Bash".into(),
                description: Some("Runs.".into()),
                input_schema: json!({"type": "object"}),
                ..ToolSpec::default()
            }],
            max_tokens: Some(100),
            temperature: Some(0.5),
            effort: Some("low".into()),
            response_schema: Some(ResponseSchema { name: "v".into(), schema: json!({"type": "object"}) }),
            extra: [("seed".to_owned(), json!(7))].into_iter().collect(),
            ..Request::default()
        }
    }

    #[test]
    fn requests_written_by_the_client_are_read_by_the_server() {
        for stream in [true, false] {
            let body = Value::Object(CLIENT.ask(&request(), stream)).to_string();
            let read = ChatCompletions.read(&|_| None, body.as_bytes()).unwrap();
            assert_eq!((read.stream, read.request), (stream, request()));
        }
    }

    #[test]
    fn replies_written_by_the_server_are_read_by_the_client() {
        let reply = Reply {
            message_id: "c1".into(),
            model: "m".into(),
            content: vec![
                Block::Thinking { text: "Hm.".into(), signature: None },
                Block::Text { text: "Füße".into() },
                Block::ToolUse { id: "a".into(), name: "Bash".into(), input: json!({"command": "ls"}) },
                Block::ToolUse { id: "b".into(), name: "Now".into(), input: json!({}) },
            ],
            stop_reason: StopReason::ToolUse,
            tokens: Some(Tokens { input: 5, cache_read: 6, cache_write: 7, output: 8, reasoning: Some(2) }),
            ..Reply::default()
        };
        let asked = Request { model: "m".into(), ..Request::default() };
        assert_eq!(CLIENT.reply(&asked, ChatCompletions.whole(&reply)).unwrap(), reply);
        let SseStream { opening, content, closing } = ChatCompletions.stream(&reply);
        let mut gathered = CLIENT.assemble(&asked);
        let events = [opening, content, closing].concat();
        for event in events.iter().filter(|event| event.data != "[DONE]") {
            gathered.take(serde_json::from_str(&event.data).unwrap()).unwrap();
        }
        assert_eq!(gathered.finish().unwrap(), reply);
    }

    #[test]
    fn an_invalid_request_is_rejected_with_a_reason() {
        let message = |body: &str| ChatCompletions.read(&|_| None, body.as_bytes()).unwrap_err().message;
        assert_eq!(message("{}"), "model: a string is required");
        assert_eq!(message(r#"{"model": "m"}"#), "messages: a list is required");
        assert!(message(r#"{"model": "m", "messages": [{"role": "x"}]}"#).starts_with("messages.0.role"));
        assert!(
            message(r#"{"model": "m", "messages": [{"role": "user", "content": 1}]}"#)
                .starts_with("messages.0.content")
        );
        assert!(message(r#"{"model": "m", "messages": [], "tools": [{"function": {}}]}"#).contains("`name`"));
    }

    #[test]
    fn errors_have_the_vendors_format() {
        assert_eq!(ChatCompletions.error(429, None, "m")["error"]["code"], "rate_limit_exceeded");
        assert_eq!(ChatCompletions.error(418, None, "m")["error"]["type"], "invalid_request_error");
        assert_eq!(ChatCompletions.status_of(Some("model_not_found")), 404);
        assert_eq!(ChatCompletions.status_of(None), 500);
    }
}

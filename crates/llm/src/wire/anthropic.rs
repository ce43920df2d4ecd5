//! Anthropic Messages: `POST /v1/messages`.

mod client;

use model::Tokens;
use serde_json::{Map, Value, json};

use super::parts::{
    ErrorCodes, estimate, function, halves, model, rejection, take_list, take_stream, take_tools, used, written,
};
use super::{Incoming, Rejection, SseEvent, SseStream, Wire};
use crate::{Block, Conversation, ConversationRole, Message, Reply, Request, Role, StopReason, ToolSpec};

/// The vendor's error types by status.
const ERRORS: ErrorCodes = ErrorCodes(&[
    (400, "invalid_request_error"),
    (401, "authentication_error"),
    (402, "billing_error"),
    (403, "permission_error"),
    (404, "not_found_error"),
    (413, "request_too_large"),
    (429, "rate_limit_error"),
    (500, "api_error"),
    (504, "timeout_error"),
    (529, "overloaded_error"),
]);

/// Default error type within a stream: the only one that the vendor is known to send there in practice.
const STREAM_ERROR: &str = "overloaded_error";

pub(crate) use client::Client;

/// Anthropic Messages.
pub(super) struct Messages;

impl Wire for Messages {
    fn name(&self) -> &'static str {
        "anthropic"
    }

    fn path(&self) -> &'static str {
        "/v1/messages"
    }

    fn read_fields<'h>(
        &self,
        header: &dyn Fn(&str) -> Option<&'h str>,
        mut fields: Map<String, Value>,
    ) -> Result<Incoming, Rejection> {
        let model = model(&mut fields)?;
        let messages = take_list(&mut fields, "messages")?;
        let system = match fields.remove("system") {
            Some(system) => content(system, "system")?.into_iter().filter_map(text_of).collect(),
            None => Vec::new(),
        };
        let tools = take_tools(&mut fields)?.into_iter().map(tool).collect::<Result<_, _>>()?;
        let messages =
            messages.into_iter().enumerate().map(|(index, value)| message(value, index)).collect::<Result<_, _>>()?;
        let stream = take_stream(&mut fields);
        let max_tokens = fields.remove("max_tokens").and_then(|value| value.as_u64());
        let conversation = conversation(header, &system);
        let request =
            Request { model, system, messages, tools, max_tokens, conversation, extra: fields, ..Request::default() };
        Ok(Incoming { request, stream })
    }

    fn whole(&self, reply: &Reply) -> Value {
        let content: Vec<Value> = reply.content.iter().filter_map(block_json).collect();
        message_json(reply, &content, Some(stop_word(&reply.stop_reason)), used(reply).output)
    }

    fn stream(&self, reply: &Reply) -> SseStream {
        // Output is counted as it is generated: the first event reports at most one token, the last one the total.
        let first = used(reply).output.min(1);
        let start = json!({
            "type": "message_start",
            "message": message_json(reply, &[], None, first),
        });
        let content = reply.content.iter().filter_map(|block| Some((block_json(block)?, block)));
        let content = content.enumerate().flat_map(|(index, (whole, block))| block_events(index, whole, block));
        let delta = json!({
            "type": "message_delta",
            "delta": {"stop_reason": stop_word(&reply.stop_reason), "stop_sequence": null},
            "usage": {"output_tokens": used(reply).output},
        });
        SseStream {
            opening: vec![event("message_start", &start)],
            content: content.collect(),
            closing: vec![event("message_delta", &delta), event("message_stop", &json!({"type": "message_stop"}))],
        }
    }

    fn error(&self, status: u16, kind: Option<&str>, message: &str) -> Value {
        json!({"type": "error", "error": {"type": ERRORS.code(status, kind), "message": message}})
    }

    fn error_event(&self, kind: Option<&str>, message: &str) -> SseEvent {
        event("error", &self.error(self.status_of(kind), Some(kind.unwrap_or(STREAM_ERROR)), message))
    }

    fn status_of(&self, kind: Option<&str>) -> u16 {
        ERRORS.status(kind.or(Some(STREAM_ERROR)))
    }

    fn aside(&self, method: &str, path: &str, body: &[u8]) -> Option<Result<Value, Rejection>> {
        if (method, path) != ("POST", "/v1/messages/count_tokens") {
            return None;
        }
        Some(self.read(&|_| None, body).map(|incoming| json!({"input_tokens": estimate(&incoming.request)})))
    }
}

/// Identifies the requests of a sub-agent by a header with its id, or by the first piece of their system prompt.
fn conversation<'h>(header: &dyn Fn(&str) -> Option<&'h str>, system: &[String]) -> Conversation {
    let agent = header("x-claude-code-agent-id").map(str::to_owned);
    let marked = system.first().is_some_and(|text| text.contains("cc_is_subagent=true"));
    let role = if agent.is_some() || marked { ConversationRole::Subagent } else { ConversationRole::Unmarked };
    Conversation { role, agent, session: header("x-claude-code-session-id").map(str::to_owned) }
}

fn message(value: Value, index: usize) -> Result<Message, Rejection> {
    let Value::Object(mut fields) = value else {
        return Err(rejection(format!("messages.{index}: an object is required")));
    };
    let role = match fields.get("role").and_then(Value::as_str) {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("system") => Role::System,
        _ => return Err(rejection(format!("messages.{index}.role: `user`, `assistant` or `system` is required"))),
    };
    let Some(content_value) = fields.remove("content") else {
        return Err(rejection(format!("messages.{index}.content: a string or a list is required")));
    };
    Ok(Message { role, content: content(content_value, &format!("messages.{index}.content"))? })
}

/// Reads a string or a list of blocks.
fn content(value: Value, place: &str) -> Result<Vec<Block>, Rejection> {
    match value {
        Value::String(text) => Ok(vec![Block::Text { text }]),
        Value::Array(blocks) => Ok(blocks.into_iter().map(block).collect()),
        _ => Err(rejection(format!("{place}: a string or a list is required"))),
    }
}

/// Reads a block. An invalid block is kept unchanged, like one of an unknown type.
pub(super) fn block(value: Value) -> Block {
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let known = match value.get("type").and_then(Value::as_str) {
        Some("text") => text("text").map(|text| Block::Text { text }),
        Some("thinking") => {
            text("thinking").map(|thought| Block::Thinking { text: thought, signature: text("signature") })
        }
        Some("tool_use") => text("id").zip(text("name")).map(|(id, name)| Block::ToolUse {
            id,
            name,
            input: value.get("input").cloned().unwrap_or_default(),
        }),
        Some("tool_result") => text("tool_use_id").map(|id| {
            let content_value =
                value.get("content").cloned().and_then(|content_value| content(content_value, "content").ok());
            let is_error = value.get("is_error").and_then(Value::as_bool).unwrap_or(false);
            Block::ToolResult { id, content: content_value.unwrap_or_default(), is_error }
        }),
        _ => None,
    };
    known.unwrap_or(Block::Other(value))
}

fn text_of(block: Block) -> Option<String> {
    match block {
        Block::Text { text } => Some(text),
        _ => None,
    }
}

fn tool(value: Value) -> Result<ToolSpec, Rejection> {
    let Value::Object(fields) = value else { return Err(rejection("tools: a list of objects is required")) };
    function(fields, "input_schema")
}

/// Formats a reply, or its beginning, with `output` tokens.
fn message_json(reply: &Reply, content: &[Value], stop_reason: Option<&str>, output: u64) -> Value {
    json!({
        "id": reply.message_id,
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": null,
        "usage": usage(&used(reply), output),
    })
}

/// Formats a block of a reply; `None` for blocks that a model does not send.
fn block_json(block: &Block) -> Option<Value> {
    match block {
        Block::Text { text } => Some(json!({"type": "text", "text": text})),
        Block::Thinking { text, signature } => {
            Some(json!({"type": "thinking", "thinking": text, "signature": seal(signature.as_deref())}))
        }
        Block::ToolUse { id, name, input } => Some(json!({"type": "tool_use", "id": id, "name": name, "input": input})),
        Block::Other(value) => Some(value.clone()),
        Block::ToolResult { .. } => None,
    }
}

/// Clients require a signature on reasoning but never check it.
fn seal(signature: Option<&str>) -> &str {
    signature.unwrap_or("dHJpYWxydW4=")
}

fn block_events(index: usize, whole: Value, block: &Block) -> Vec<SseEvent> {
    let (begun, deltas) = match block {
        Block::Text { text } => {
            let begun = json!({"type": "text", "text": ""});
            let deltas = halves(text).map(|part| json!({"type": "text_delta", "text": part})).collect();
            (begun, deltas)
        }
        Block::Thinking { text, signature } => {
            let begun = json!({"type": "thinking", "thinking": "", "signature": ""});
            let mut deltas: Vec<_> =
                halves(text).map(|part| json!({"type": "thinking_delta", "thinking": part})).collect();
            deltas.push(json!({"type": "signature_delta", "signature": seal(signature.as_deref())}));
            (begun, deltas)
        }
        Block::ToolUse { id, name, input } => {
            let begun = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
            let input = written(input);
            let deltas = halves(&input).map(|part| json!({"type": "input_json_delta", "partial_json": part})).collect();
            (begun, deltas)
        }
        Block::ToolResult { .. } | Block::Other(_) => (whole, Vec::new()),
    };
    let start = json!({"type": "content_block_start", "index": index, "content_block": begun});
    let stop = json!({"type": "content_block_stop", "index": index});
    let mut events = vec![event("content_block_start", &start)];
    events.extend(deltas.iter().map(|delta| {
        let delta = json!({"type": "content_block_delta", "index": index, "delta": delta});
        event("content_block_delta", &delta)
    }));
    events.push(event("content_block_stop", &stop));
    events
}

fn event(name: &'static str, data: &Value) -> SseEvent {
    SseEvent { event: Some(name), data: data.to_string() }
}

fn usage(tokens: &Tokens, output: u64) -> Value {
    json!({
        "input_tokens": tokens.input,
        "cache_creation_input_tokens": tokens.cache_write,
        "cache_read_input_tokens": tokens.cache_read,
        "cache_creation": {"ephemeral_5m_input_tokens": tokens.cache_write, "ephemeral_1h_input_tokens": 0},
        "output_tokens": output,
        "service_tier": "standard",
    })
}

fn stop_word(reason: &StopReason) -> &str {
    match reason {
        StopReason::EndTurn => "end_turn",
        StopReason::ToolUse => "tool_use",
        StopReason::MaxTokens => "max_tokens",
        StopReason::StopSequence => "stop_sequence",
        StopReason::Refusal => "refusal",
        StopReason::Paused => "pause_turn",
        StopReason::Other(word) => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &Value) -> Result<Incoming, Rejection> {
        Messages.read(&|_| None, body.to_string().as_bytes())
    }

    fn reply() -> Reply {
        Reply {
            message_id: "msg_1".into(),
            model: "m1".into(),
            content: vec![
                Block::Thinking { text: "Hm.".into(), signature: None },
                Block::Text { text: "Füße".into() },
                Block::ToolUse { id: "t1".into(), name: "Bash".into(), input: json!({"command": "ls"}) },
            ],
            stop_reason: StopReason::ToolUse,
            tokens: Some(Tokens { input: 5, cache_read: 6, cache_write: 7, output: 8, reasoning: None }),
            ..Reply::default()
        }
    }

    #[test]
    fn a_request_is_read_and_unknown_fields_are_kept() {
        let body = json!({
            "model": "m1", "max_tokens": 100, "stream": true, "temperature": 0.5,
            "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
            "messages": [
                {"role": "user", "content": "Hello."},
                {"role": "system", "content": "Skills: none."},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "Hm.", "signature": "s"},
                    {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}},
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "a b"}], "is_error": true},
                    {"type": "tool_result", "tool_use_id": "t2", "content": "plain"},
                    {"type": "image", "source": {}},
                ]},
            ],
            "tools": [{"name": "Bash", "description": "Runs.", "input_schema": {"type": "object"}, "strict": true}],
        });
        let Incoming { request, stream } = read(&body).unwrap();
        assert!(stream);
        assert_eq!(request.system, ["Be brief."]);
        assert_eq!(request.max_tokens, Some(100));
        assert_eq!(Value::Object(request.extra.clone()), json!({"temperature": 0.5}));
        assert_eq!(Value::Object(request.tools[0].extra.clone()), json!({"strict": true}));
        assert_eq!(request.first_user_text().as_deref(), Some("Hello."));
        assert_eq!(request.system_text(), "Be brief.\nSkills: none.");
        assert_eq!(request.fresh_tool_results(), ["a b", "plain"]);
        let results = &request.messages[3].content;
        assert!(matches!(&results[0], Block::ToolResult { is_error: true, .. }));
        assert!(matches!(&results[1], Block::ToolResult { is_error: false, .. }));
        assert_eq!(results[2], Block::Other(json!({"type": "image", "source": {}})));
        assert_eq!(request.conversation, Conversation::default());
    }

    #[test]
    fn a_sub_agent_is_identified_by_its_header_or_its_system_prompt() {
        let body = json!({"model": "m", "messages": []}).to_string();
        let header = |name: &str| (name == "x-claude-code-agent-id").then_some("a7");
        let by_header = Messages.read(&header, body.as_bytes()).unwrap().request.conversation;
        assert_eq!(by_header, Conversation::subagent(Some("a7".into())));
        let system =
            json!({"model": "m", "messages": [], "system": [{"type": "text", "text": "x; cc_is_subagent=true;"}]});
        assert_eq!(read(&system).unwrap().request.conversation, Conversation::subagent(None));
    }

    #[test]
    fn an_invalid_request_is_rejected_with_a_reason() {
        let message = |body: &[u8]| Messages.read(&|_| None, body).unwrap_err().message;
        assert!(message(b"{").starts_with("the request body is not valid JSON"));
        assert_eq!(message(b"[]"), "the request body must be a JSON object");
        assert_eq!(message(b"{}"), "model: a string is required");
        assert_eq!(message(br#"{"model": "m"}"#), "messages: a list is required");
        assert_eq!(
            message(br#"{"model": "m", "messages": [{"role": "tool", "content": ""}]}"#),
            "messages.0.role: `user`, `assistant` or `system` is required"
        );
    }

    #[test]
    fn a_document_and_a_stream_contain_the_same_reply() {
        let whole = Messages.whole(&reply());
        let SseStream { opening, content, closing } = Messages.stream(&reply());
        let events: Vec<Value> = [opening, content, closing]
            .concat()
            .iter()
            .map(|event| {
                let data: Value = serde_json::from_str(&event.data).unwrap();
                assert_eq!(data["type"].as_str(), event.event);
                data
            })
            .collect();
        let joined = |index: u64, kind: &str, field: &str| -> String {
            let of_block = events.iter().filter(|event| event["index"] == index && event["delta"]["type"] == kind);
            of_block.filter_map(|event| event["delta"][field].as_str()).collect()
        };
        assert_eq!(joined(0, "thinking_delta", "thinking"), whole["content"][0]["thinking"]);
        assert_eq!(joined(0, "signature_delta", "signature"), whole["content"][0]["signature"]);
        assert_eq!(joined(1, "text_delta", "text"), "Füße");
        let input: Value = serde_json::from_str(&joined(2, "input_json_delta", "partial_json")).unwrap();
        assert_eq!(input, whole["content"][2]["input"]);

        let starts = events.iter().filter(|event| event["type"] == "content_block_start").count();
        let stops = events.iter().filter(|event| event["type"] == "content_block_stop").count();
        assert_eq!((starts, stops), (3, 3));
        assert_eq!(events[0]["message"]["usage"]["cache_read_input_tokens"], 6);
        assert_eq!(events[0]["message"]["usage"]["output_tokens"], 1);
        assert_eq!(whole["usage"]["output_tokens"], 8);
        let end = &events[events.len() - 2];
        assert_eq!((&end["delta"]["stop_reason"], &end["usage"]["output_tokens"]), (&json!("tool_use"), &json!(8)));
        assert_eq!(events[events.len() - 1], json!({"type": "message_stop"}));
    }

    #[test]
    fn errors_have_the_vendors_format() {
        let kind = |status, kind| Messages.error(status, kind, "m")["error"]["type"].as_str().unwrap().to_owned();
        assert_eq!(kind(429, None), "rate_limit_error");
        assert_eq!(kind(529, None), "overloaded_error");
        assert_eq!(kind(503, None), "api_error");
        assert_eq!(kind(418, None), "invalid_request_error");
        assert_eq!(kind(500, Some("own")), "own");
        assert_eq!(Messages.status_of(Some("rate_limit_error")), 429);
        assert_eq!(Messages.status_of(None), 529);
        let event = Messages.error_event(None, "busy").to_string();
        assert!(event.starts_with("event: error\ndata: {") && event.ends_with("}\n\n"), "{event}");
    }

    #[test]
    fn token_counts_are_estimated_and_other_paths_are_not_handled() {
        let body = json!({"model": "m", "messages": [{"role": "user", "content": "x".repeat(399)}]}).to_string();
        let counted = Messages.aside("POST", "/v1/messages/count_tokens", body.as_bytes()).unwrap().unwrap();
        assert_eq!(counted, json!({"input_tokens": 100}));
        assert!(Messages.aside("POST", "/v1/messages/count_tokens", b"{").unwrap().is_err());
        assert!(Messages.aside("GET", "/v1/messages/count_tokens", b"").is_none());
    }
}

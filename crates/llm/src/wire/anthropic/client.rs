//! Client side of Anthropic Messages.

use std::collections::BTreeMap;

use model::{Tokens, foreign_json};
use serde_json::{Map, Value, json};

use crate::wire::parts::{add, arguments, function_json, put, put_list, text, whole};
use crate::wire::{Assemble, BadResponse, Dialect, Progress, ReportedError};
use crate::{Block, Message, Reply, Request, ResponseSchema, Role, StopReason};

/// Default maximum number of tokens in a reply. The vendor requires one, and some old models do not accept a large
/// one.
const MAX_TOKENS: u64 = 32_000;
const MAX_TOKENS_OF_OLD_MODELS: &[(&str, u64)] =
    &[("claude-3-5", 8_192), ("claude-3-opus", 4_096), ("claude-3-sonnet", 4_096), ("claude-3-haiku", 4_096)];

/// Client side of Anthropic Messages.
pub(crate) struct Client;

impl Dialect for Client {
    fn ask(&self, request: &Request, stream: bool) -> Map<String, Value> {
        let mut body = Map::new();
        body.insert("model".into(), json!(request.model));
        body.insert("max_tokens".into(), json!(request.max_tokens.unwrap_or_else(|| most_tokens(&request.model))));
        // A conversation with tools will continue, so it is worth caching its contents so far at the vendor.
        let is_long = !request.tools.is_empty();
        let mut system = system(request);
        let mut messages = messages(&request.messages);
        if is_long {
            mark(system.last_mut());
            let last = messages.last_mut().and_then(|message| message.get_mut("content"));
            mark(last.and_then(Value::as_array_mut).and_then(|blocks| blocks.last_mut()));
        }
        put_list(&mut body, "system", system);
        body.insert("messages".into(), Value::Array(messages));
        let mut tools: Vec<Value> =
            request.tools.iter().map(|tool| Value::Object(function_json(tool, "input_schema"))).collect();
        if let Some(schema) = &request.response_schema {
            // The reply is a call to a tool whose arguments follow the schema.
            tools.push(json!({"name": schema.name, "description": "Gives the answer.", "input_schema": schema.schema}));
            let choice = if request.tools.is_empty() {
                json!({"type": "tool", "name": schema.name})
            } else {
                json!({"type": "any"})
            };
            body.insert("tool_choice".into(), choice);
        }
        put_list(&mut body, "tools", tools);
        put(&mut body, "temperature", request.temperature);
        put(&mut body, "output_config", request.effort.as_ref().map(|effort| json!({"effort": effort})));
        put(&mut body, "stream", stream.then_some(true));
        add(&mut body, &request.extra);
        body
    }

    fn reply(&self, request: &Request, document: Value) -> Result<Reply, BadResponse> {
        if text(&document, "type") == Some("error") {
            return Err(BadResponse::Reported(ReportedError::from_document(&document).unwrap_or_default()));
        }
        let Some(Value::Array(content)) = document.get("content") else { return Err(BadResponse::lacks("`content`")) };
        let reply = Reply {
            message_id: text(&document, "id").unwrap_or_default().to_owned(),
            model: text(&document, "model").unwrap_or(&request.model).to_owned(),
            content: content.iter().cloned().map(super::block).collect(),
            stop_reason: stop_reason(text(&document, "stop_reason")),
            tokens: document.get("usage").and_then(tokens),
            cost_usd: None,
        };
        Ok(unwrapped(reply, request.response_schema.as_ref()))
    }

    fn assemble(&self, request: &Request) -> Box<dyn Assemble> {
        Box::new(PartialReply {
            asked: request.model.clone(),
            schema: request.response_schema.clone(),
            ..PartialReply::default()
        })
    }
}

fn most_tokens(model: &str) -> u64 {
    MAX_TOKENS_OF_OLD_MODELS.iter().find(|(name, _)| model.starts_with(name)).map_or(MAX_TOKENS, |(_, most)| *most)
}

/// Formats the system prompt as blocks, followed by the harness's messages within the conversation.
fn system(request: &Request) -> Vec<Value> {
    let within = request.messages.iter().filter(|message| message.role == Role::System).map(Message::spoken);
    let texts = request.system.iter().cloned().chain(within).filter(|text| !text.trim().is_empty());
    texts.map(|text| json!({"type": "text", "text": text})).collect()
}

/// Marks the end of the part to be cached.
fn mark(block: Option<&mut Value>) {
    if let Some(block) = block.and_then(Value::as_object_mut)
        && !matches!(block.get("type").and_then(Value::as_str), Some("thinking" | "redacted_thinking"))
    {
        block.insert("cache_control".into(), json!({"type": "ephemeral"}));
    }
}

fn messages(messages: &[Message]) -> Vec<Value> {
    let mut written: Vec<Value> = Vec::new();
    for message in messages {
        let role = match message.role {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::System => continue,
        };
        let content: Vec<Value> = message.content.iter().filter_map(block_json).collect();
        if !content.is_empty() {
            written.push(json!({"role": role, "content": content}));
        }
    }
    written
}

/// Formats a block of a request; `None` for blocks that the vendor rejects, such as empty text.
fn block_json(block: &Block) -> Option<Value> {
    match block {
        Block::Text { text } if text.trim().is_empty() => None,
        Block::Text { text } => Some(json!({"type": "text", "text": text})),
        // Reasoning without a signature did not come from the vendor.
        Block::Thinking { signature: None, .. } => None,
        Block::Thinking { text, signature: Some(signature) } => {
            Some(json!({"type": "thinking", "thinking": text, "signature": signature}))
        }
        Block::ToolUse { id, name, input } => {
            let input = if input.is_object() { input.clone() } else { json!({"unreadable": input}) };
            Some(json!({"type": "tool_use", "id": id, "name": name, "input": input}))
        }
        Block::ToolResult { id, content, is_error } => {
            let content: Vec<Value> = content.iter().filter_map(block_json).collect();
            let mut result = json!({"type": "tool_result", "tool_use_id": id, "content": content});
            if *is_error {
                result["is_error"] = json!(true);
            }
            Some(result)
        }
        Block::Other(value) => Some(value.clone()),
    }
}

fn stop_reason(word: Option<&str>) -> StopReason {
    match word {
        Some("end_turn") | None => StopReason::EndTurn,
        Some("tool_use") => StopReason::ToolUse,
        Some("max_tokens" | "model_context_window_exceeded") => StopReason::MaxTokens,
        Some("stop_sequence") => StopReason::StopSequence,
        Some("refusal") => StopReason::Refusal,
        Some("pause_turn") => StopReason::Paused,
        Some(word) => StopReason::Other(word.to_owned()),
    }
}

/// Reads the usage. In this format, the three kinds of input do not overlap, and the output includes the reasoning.
fn tokens(usage: &Value) -> Option<Tokens> {
    let of = |key: &str| whole(usage, &[key]);
    Some(Tokens {
        input: of("input_tokens")?,
        cache_read: of("cache_read_input_tokens").unwrap_or(0),
        cache_write: of("cache_creation_input_tokens").unwrap_or(0),
        output: of("output_tokens")?,
        reasoning: whole(usage, &["output_tokens_details", "thinking_tokens"]),
    })
}

/// Converts the call to the schema's tool to a reply whose text is the arguments.
fn unwrapped(mut reply: Reply, schema: Option<&ResponseSchema>) -> Reply {
    let is_answer = |block: &Block| matches!(block, Block::ToolUse { name, .. } if schema.is_some_and(|schema| *name == schema.name));
    if !reply.content.iter().any(is_answer) {
        return reply;
    }
    // Text around the call is not part of the response.
    reply.content.retain(|block| !matches!(block, Block::Text { .. }));
    for block in &mut reply.content {
        if is_answer(block)
            && let Block::ToolUse { input, .. } = block
        {
            *block = Block::Text { text: input.to_string() };
        }
    }
    if reply.stop_reason == StopReason::ToolUse && !reply.calls_tools() {
        reply.stop_reason = StopReason::EndTurn;
    }
    reply
}

/// A message that is being received.
#[derive(Default)]
struct PartialReply {
    asked: String,
    schema: Option<ResponseSchema>,
    /// Fields of the first event, updated by later ones.
    message: Map<String, Value>,
    usage: Map<String, Value>,
    blocks: BTreeMap<u64, Piece>,
    complete: bool,
}

/// Block that is being received.
#[derive(Clone)]
struct Piece {
    begun: Value,
    /// Concatenated deltas: text, reasoning, or arguments as text.
    text: String,
    signature: String,
}

impl Assemble for PartialReply {
    fn take(&mut self, event: Value) -> Result<Progress, BadResponse> {
        match text(&event, "type") {
            Some("message_start") => {
                let Some(Value::Object(message)) = event.get("message") else {
                    return Err(BadResponse::lacks("`message` in its first event"));
                };
                self.message = message.clone();
                self.count(message.get("usage"));
            }
            Some("content_block_start") => {
                let begun = event.get("content_block").cloned().unwrap_or_default();
                let content = text(&begun, "text").or(text(&begun, "thinking")).unwrap_or_default().to_owned();
                let signature = text(&begun, "signature").unwrap_or_default().to_owned();
                self.blocks.insert(index(&event)?, Piece { begun, text: content, signature });
            }
            Some("content_block_delta") => self.delta(&event)?,
            Some("message_delta") => {
                for (key, value) in event.get("delta").and_then(Value::as_object).into_iter().flatten() {
                    self.message.insert(key.clone(), value.clone());
                }
                self.count(event.get("usage"));
            }
            Some("message_stop") => {
                self.complete = true;
                return Ok(Progress::Complete);
            }
            Some("error") => {
                return Err(BadResponse::Reported(ReportedError::from_document(&event).unwrap_or_default()));
            }
            // `ping`, `content_block_stop` and any future events.
            _ => {}
        }
        Ok(Progress::More)
    }

    fn so_far(&self) -> Option<Reply> {
        let word = |key: &str| self.message.get(key).and_then(Value::as_str);
        let reply = Reply {
            message_id: word("id").unwrap_or_default().to_owned(),
            model: word("model").unwrap_or(&self.asked).to_owned(),
            content: self.blocks.values().cloned().map(Piece::whole).collect(),
            stop_reason: stop_reason(word("stop_reason")),
            tokens: tokens(&Value::Object(self.usage.clone())),
            cost_usd: None,
        };
        Some(unwrapped(reply, self.schema.as_ref()))
    }

    fn finish(self: Box<Self>) -> Option<Reply> {
        if self.complete { self.so_far() } else { None }
    }
}

impl PartialReply {
    /// Replaces the numbers from earlier events with those from later ones, because each is a total.
    fn count(&mut self, usage: Option<&Value>) {
        let entries = usage.and_then(Value::as_object).into_iter().flatten();
        for (key, value) in entries.filter(|(_, value)| !value.is_null()) {
            self.usage.insert(key.clone(), value.clone());
        }
    }

    fn delta(&mut self, event: &Value) -> Result<(), BadResponse> {
        let Some(piece) = self.blocks.get_mut(&index(event)?) else {
            return Err(BadResponse::Unreadable("a piece belongs to a block that has not started".into()));
        };
        let delta = event.get("delta").unwrap_or(&Value::Null);
        let content = ["text", "thinking", "partial_json"].iter().find_map(|key| text(delta, key));
        foreign_json::append(&mut piece.text, content.unwrap_or_default());
        piece.signature.push_str(text(delta, "signature").unwrap_or_default());
        Ok(())
    }
}

fn index(event: &Value) -> Result<u64, BadResponse> {
    event.get("index").and_then(Value::as_u64).ok_or_else(|| BadResponse::lacks("`index` in one of its events"))
}

impl Piece {
    fn whole(self) -> Block {
        let Self { mut begun, text, signature } = self;
        match begun.get("type").and_then(Value::as_str) {
            Some("text") => begun["text"] = json!(text),
            Some("thinking") => {
                begun["thinking"] = json!(text);
                begun["signature"] = json!(signature);
            }
            Some(_) if begun.get("input").is_some() && !text.is_empty() => begun["input"] = arguments(&text),
            _ => {}
        }
        super::block(begun)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ToolSpec;
    use crate::wire::{SseStream, Wire};

    fn request() -> Request {
        Request {
            model: "claude-x".into(),
            system: vec!["Be brief.".into()],
            messages: vec![
                Message::text(Role::User, "Go."),
                Message {
                    role: Role::Assistant,
                    content: vec![
                        Block::Thinking { text: "Hm.".into(), signature: Some("s".into()) },
                        Block::ToolUse { id: "t1".into(), name: "Bash".into(), input: json!({"command": "ls"}) },
                    ],
                },
                Message {
                    role: Role::User,
                    content: vec![Block::ToolResult {
                        id: "t1".into(),
                        content: vec![Block::Text { text: "no".into() }],
                        is_error: true,
                    }],
                },
            ],
            tools: vec![ToolSpec {
                name: "Bash".into(),
                description: Some("Runs.".into()),
                input_schema: json!({"type": "object"}),
                ..ToolSpec::default()
            }],
            max_tokens: Some(100),
            ..Request::default()
        }
    }

    fn served(reply: &Reply) -> (Reply, Reply) {
        let asked = Request { model: "m".into(), ..Request::default() };
        let whole = Client.reply(&asked, super::super::Messages.whole(reply)).unwrap();
        let SseStream { opening, content, closing } = super::super::Messages.stream(reply);
        let mut gathered = Client.assemble(&asked);
        let events = [opening, content, closing].concat();
        for (index, event) in events.iter().enumerate() {
            let progress = gathered.take(serde_json::from_str(&event.data).unwrap()).unwrap();
            assert_eq!(progress == Progress::Complete, index + 1 == events.len());
        }
        (whole, gathered.finish().unwrap())
    }

    #[test]
    fn requests_written_by_the_client_are_read_by_the_server() {
        let body = Value::Object(Client.ask(&request(), true));
        let read = super::super::Messages.read(&|_| None, body.to_string().as_bytes()).unwrap();
        assert!(read.stream);
        assert_eq!(read.request, request());
        assert_eq!(body["messages"][2]["content"][0]["cache_control"], json!({"type": "ephemeral"}));
    }

    #[test]
    fn replies_written_by_the_server_are_read_by_the_client() {
        let reply = Reply {
            message_id: "msg_1".into(),
            model: "m".into(),
            content: vec![
                Block::Thinking { text: "Hm.".into(), signature: Some("seal".into()) },
                Block::Text { text: "Füße".into() },
                Block::ToolUse { id: "t1".into(), name: "Bash".into(), input: json!({"command": "ls"}) },
                Block::ToolUse { id: "t2".into(), name: "Now".into(), input: json!({}) },
                Block::Other(json!({"type": "new_kind", "x": 1})),
            ],
            stop_reason: StopReason::ToolUse,
            tokens: Some(Tokens { input: 5, cache_read: 6, cache_write: 7, output: 8, reasoning: None }),
            ..Reply::default()
        };
        let (whole, streamed) = served(&reply);
        assert_eq!(whole, reply);
        assert_eq!(streamed, reply);
    }

    #[test]
    fn a_structured_answer_is_read_from_the_tool_arguments() {
        let schema = ResponseSchema { name: "verdict".into(), schema: json!({"type": "object"}) };
        let asked = Request { model: "m".into(), response_schema: Some(schema), ..Request::default() };
        let body = Value::Object(Client.ask(&asked, false));
        assert_eq!(body["tool_choice"], json!({"type": "tool", "name": "verdict"}));
        let document = json!({
            "id": "i", "content": [
                {"type": "text", "text": "Here it is:"},
                {"type": "tool_use", "id": "t", "name": "verdict", "input": {"ok": true}},
            ],
            "stop_reason": "tool_use", "usage": {"input_tokens": 1, "output_tokens": 2},
        });
        let reply = Client.reply(&asked, document).unwrap();
        assert_eq!((reply.text().as_str(), reply.stop_reason), (r#"{"ok":true}"#, StopReason::EndTurn));
    }

    #[test]
    fn empty_texts_and_foreign_reasoning_are_not_sent() {
        let messages = vec![
            Message::text(Role::User, "a"),
            Message {
                role: Role::Assistant,
                content: vec![
                    Block::Thinking { text: "x".into(), signature: None },
                    Block::Text { text: String::new() },
                ],
            },
            Message::text(Role::System, "rules"),
        ];
        let body = Value::Object(Client.ask(&Request { messages, ..Request::default() }, false));
        assert_eq!(body["messages"].as_array().map(Vec::len), Some(1));
        assert_eq!(body["system"], json!([{"type": "text", "text": "rules"}]));
        assert_eq!(most_tokens("claude-3-haiku-20240307"), 4_096);
    }

    #[test]
    fn errors_and_malformed_messages_are_reported() {
        let asked = Request::default();
        assert_eq!(Client.reply(&asked, json!({})), Err(BadResponse::lacks("`content`")));
        let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}});
        let reported = ReportedError { codes: vec!["overloaded_error".into()], message: "busy".into() };
        assert_eq!(Client.reply(&asked, error.clone()), Err(BadResponse::Reported(reported.clone())));
        assert_eq!(Client.assemble(&asked).take(error), Err(BadResponse::Reported(reported)));
        let lost = json!({"type": "content_block_delta", "index": 3, "delta": {"text": "x"}});
        assert!(matches!(Client.assemble(&asked).take(lost), Err(BadResponse::Unreadable(_))));
    }
}

//! Client side of Gemini.

use model::foreign_json;
use serde_json::{Map, Value, json};

use super::{blocks, call, stop_reason, tokens};
use crate::message::texts;
use crate::wire::parts::{add, function_json, put, put_list, text};
use crate::wire::{Assemble, BadResponse, Dialect, Progress, ReportedError};
use crate::{Block, Message, Reply, Request, Role, StopReason, ToolSpec};

/// Client side of Gemini.
pub(crate) struct Client;

impl Dialect for Client {
    fn target(&self, request: &Request, stream: bool) -> String {
        let model = request.model.strip_prefix("models/").unwrap_or(&request.model);
        let method = if stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
        format!("/{model}:{method}")
    }

    fn ask(&self, request: &Request, _stream: bool) -> Map<String, Value> {
        let mut body = Map::new();
        let system: Vec<Value> =
            request.system.iter().filter(|text| !text.trim().is_empty()).map(|text| json!({"text": text})).collect();
        if !system.is_empty() {
            body.insert("systemInstruction".into(), json!({"parts": system}));
        }
        body.insert("contents".into(), Value::Array(contents(&request.messages)));
        put_list(&mut body, "tools", tools(&request.tools));
        let set = request.extra.get("generationConfig").and_then(Value::as_object);
        let mut settings = set.cloned().unwrap_or_default();
        put(&mut settings, "maxOutputTokens", request.max_tokens);
        put(&mut settings, "temperature", request.temperature);
        if let Some(effort) = &request.effort {
            // Older models take a number of tokens instead of a level.
            let thinking = match effort.parse::<i64>() {
                Ok(budget) => json!({"thinkingBudget": budget}),
                Err(_) => json!({"thinkingLevel": effort}),
            };
            settings.insert("thinkingConfig".into(), thinking);
        }
        if let Some(wanted) = &request.response_schema {
            settings.insert("responseMimeType".into(), json!("application/json"));
            settings.insert("responseJsonSchema".into(), wanted.schema.clone());
        }
        if !settings.is_empty() {
            body.insert("generationConfig".into(), Value::Object(settings));
        }
        add(&mut body, &request.extra);
        body
    }

    fn reply(&self, request: &Request, document: Value) -> Result<Reply, BadResponse> {
        let mut partial = PartialReply::from_request(request);
        // Without `alt=sse`, a stream is a list of its pieces.
        let pieces = match document {
            Value::Array(pieces) => pieces,
            document => vec![document],
        };
        for piece in pieces {
            partial.take(piece)?;
        }
        Box::new(partial).finish().ok_or_else(|| BadResponse::lacks("`finishReason`"))
    }

    fn assemble(&self, request: &Request) -> Box<dyn Assemble> {
        Box::new(PartialReply::from_request(request))
    }
}

fn contents(messages: &[Message]) -> Vec<Value> {
    let mut written: Vec<Value> = Vec::new();
    // Results must name their tool, and only the call contains the name.
    let mut names: Vec<(&str, &str)> = Vec::new();
    for message in messages {
        for block in &message.content {
            if let Block::ToolUse { id, name, .. } = block {
                names.push((id, name));
            }
        }
        let role = if message.role == Role::Assistant { "model" } else { "user" };
        let parts = parts(message, &names);
        if !parts.is_empty() {
            written.push(json!({"role": role, "parts": parts}));
        }
    }
    written
}

fn parts(message: &Message, names: &[(&str, &str)]) -> Vec<Value> {
    let mut parts = Vec::new();
    // A signature belongs to the part that follows it.
    let mut signature: Option<&str> = None;
    for block in &message.content {
        let mut part = match block {
            Block::Thinking { signature: sealed, .. } => {
                signature = sealed.as_deref().or(signature);
                continue;
            }
            Block::Text { text } if text.is_empty() => continue,
            Block::Text { text } => json!({"text": text}),
            Block::ToolUse { id, name, input } => call(id, name, input),
            Block::ToolResult { id, content, is_error } => {
                let name = names.iter().rev().find(|(known, _)| known == id).map_or("", |(_, name)| name);
                let key = if *is_error { "error" } else { "output" };
                json!({"functionResponse": {"id": id, "name": name, "response": {key: texts(content)}}})
            }
            Block::Other(value) => value.clone(),
        };
        if let Some(signature) = signature.take().filter(|_| part.is_object()) {
            part["thoughtSignature"] = json!(signature);
        }
        parts.push(part);
    }
    parts.extend(signature.map(|signature| json!({"text": "", "thoughtSignature": signature})));
    parts
}

/// Formats the tools: functions, and tools that the vendor runs itself.
fn tools(specs: &[ToolSpec]) -> Vec<Value> {
    let (functions, own): (Vec<_>, Vec<_>) = specs.iter().partition(|spec| !spec.input_schema.is_null());
    let functions: Vec<Value> =
        functions.into_iter().map(|spec| Value::Object(function_json(spec, "parametersJsonSchema"))).collect();
    let functions = (!functions.is_empty()).then(|| json!({"functionDeclarations": functions}));
    let own = own.into_iter().map(|spec| Value::Object(spec.extra.clone()));
    functions.into_iter().chain(own).collect()
}

/// A response that is being received.
#[derive(Default)]
struct PartialReply {
    id: String,
    model: String,
    content: Vec<Block>,
    stop: Option<String>,
    usage: Value,
}

impl PartialReply {
    fn from_request(request: &Request) -> Self {
        Self { model: request.model.clone(), ..Self::default() }
    }

    /// Adds a block. Texts arrive in pieces.
    fn add(&mut self, block: Block) {
        match (self.content.last_mut(), block) {
            (Some(Block::Text { text }), Block::Text { text: more }) => foreign_json::append(text, &more),
            (Some(Block::Thinking { text, signature }), Block::Thinking { text: more, signature: sealed })
                if signature.is_none() =>
            {
                foreign_json::append(text, &more);
                *signature = sealed;
            }
            (_, block) => self.content.push(block),
        }
    }
}

impl Assemble for PartialReply {
    fn take(&mut self, piece: Value) -> Result<Progress, BadResponse> {
        let is_error = piece.get("error").is_some_and(|error| !error.is_null());
        if let Some(error) = ReportedError::from_document(&piece).filter(|_| is_error) {
            return Err(BadResponse::Reported(error));
        }
        let candidate = piece.pointer("/candidates/0");
        let blocked = piece.pointer("/promptFeedback/blockReason").and_then(Value::as_str);
        let usage = piece.get("usageMetadata").filter(|usage| usage.is_object());
        if candidate.is_none() && blocked.is_none() && usage.is_none() {
            return Err(BadResponse::lacks("`candidates`"));
        }
        if let Some(id) = text(&piece, "responseId") {
            id.clone_into(&mut self.id);
        }
        if let Some(model) = text(&piece, "modelVersion") {
            model.clone_into(&mut self.model);
        }
        if let Some(usage) = usage {
            self.usage = usage.clone();
        }
        let parts = candidate.and_then(|candidate| candidate.pointer("/content/parts")).and_then(Value::as_array);
        for block in parts.into_iter().flatten().flat_map(blocks) {
            self.add(block);
        }
        let ended = candidate.and_then(|candidate| text(candidate, "finishReason"));
        // The prompt itself was refused.
        let Some(word) = ended.or(blocked.filter(|_| candidate.is_none()).map(|_| "SAFETY")) else {
            return Ok(Progress::More);
        };
        self.stop = Some(word.to_owned());
        Ok(Progress::Complete)
    }

    fn so_far(&self) -> Option<Reply> {
        let mut reply = Reply {
            message_id: self.id.clone(),
            model: self.model.clone(),
            content: self.content.clone(),
            tokens: tokens(&self.usage),
            ..Reply::default()
        };
        reply.stop_reason =
            self.stop.as_deref().map_or(StopReason::EndTurn, |word| stop_reason(word, reply.calls_tools()));
        Some(reply)
    }

    fn finish(self: Box<Self>) -> Option<Reply> {
        self.stop.as_ref()?;
        self.so_far()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ResponseSchema;

    #[test]
    fn a_conversation_is_sent_in_the_wire_format() {
        let called = vec![
            Block::Thinking { text: "Hm.".into(), signature: None },
            Block::Thinking { text: String::new(), signature: Some("s".into()) },
            Block::ToolUse { id: "1".into(), name: "ls".into(), input: json!({"p": "."}) },
        ];
        let result =
            Block::ToolResult { id: "1".into(), content: vec![Block::Text { text: "a".into() }], is_error: true };
        let request = Request {
            model: "models/g".into(),
            system: vec!["Be brief.".into()],
            messages: vec![
                Message::text(Role::User, "Go."),
                Message { role: Role::Assistant, content: called },
                Message { role: Role::User, content: vec![result] },
            ],
            tools: vec![ToolSpec { name: "ls".into(), input_schema: json!({"type": "object"}), ..ToolSpec::default() }],
            max_tokens: Some(5),
            effort: Some("low".into()),
            response_schema: Some(ResponseSchema { name: "v".into(), schema: json!({"type": "object"}) }),
            extra: [("generationConfig".to_owned(), json!({"topK": 3}))].into_iter().collect(),
            ..Request::default()
        };
        assert_eq!(
            Value::Object(Client.ask(&request, true)),
            json!({
                "systemInstruction": {"parts": [{"text": "Be brief."}]},
                "contents": [
                    {"role": "user", "parts": [{"text": "Go."}]},
                    {"role": "model", "parts": [
                        {"functionCall": {"id": "1", "name": "ls", "args": {"p": "."}}, "thoughtSignature": "s"},
                    ]},
                    {"role": "user", "parts": [
                        {"functionResponse": {"id": "1", "name": "ls", "response": {"error": "a"}}},
                    ]},
                ],
                "tools": [{"functionDeclarations": [{"name": "ls", "parametersJsonSchema": {"type": "object"}}]}],
                "generationConfig": {
                    "topK": 3, "maxOutputTokens": 5, "thinkingConfig": {"thinkingLevel": "low"},
                    "responseMimeType": "application/json", "responseJsonSchema": {"type": "object"},
                },
            })
        );
        assert_eq!(Client.target(&request, true), "/g:streamGenerateContent?alt=sse");
        assert_eq!(Client.target(&request, false), "/g:generateContent");
    }

    #[test]
    fn a_blocked_prompt_is_a_refusal_and_an_unfinished_answer_is_not_complete() {
        let read = |document: Value| Client.reply(&Request::default(), document);
        let blocked = read(json!({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {}})).unwrap();
        assert_eq!((blocked.stop_reason, blocked.tokens), (StopReason::Refusal, None));
        let unfinished = json!({"candidates": [{"content": {"parts": [{"text": "a"}]}}]});
        assert_eq!(read(unfinished.clone()), Err(BadResponse::lacks("`finishReason`")));
        assert_eq!(read(json!({})), Err(BadResponse::lacks("`candidates`")));
        let end =
            json!({"candidates": [{"content": {"parts": [{"text": "b"}]}, "finishReason": "MALFORMED_FUNCTION_CALL"}]});
        let listed = read(json!([unfinished, end])).unwrap();
        assert_eq!(listed.text(), "ab");
        assert_eq!(listed.stop_reason, StopReason::Other("MALFORMED_FUNCTION_CALL".into()));
    }
}

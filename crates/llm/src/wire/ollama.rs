//! Ollama: `POST /api/chat`; a stream has one JSON document per line.

use model::{Tokens, foreign_json};
use serde_json::{Map, Value, json};

use super::parts::{add, arguments, put, put_list, system, text, whole};
use super::{Assemble, BadResponse, Dialect, Framing, Progress, ReportedError};
use crate::message::texts;
use crate::{Block, Message, Reply, Request, Role, StopReason, ToolSpec};

/// Client side of Ollama.
pub(crate) struct Client;

impl Dialect for Client {
    fn ask(&self, request: &Request, stream: bool) -> Map<String, Value> {
        let mut body = Map::new();
        body.insert("model".into(), json!(request.model));
        body.insert("messages".into(), Value::Array(messages(request)));
        // Streaming is the default.
        body.insert("stream".into(), json!(stream));
        put_list(&mut body, "tools", request.tools.iter().map(tool).collect());
        put(&mut body, "format", request.response_schema.as_ref().map(|wanted| wanted.schema.clone()));
        put(&mut body, "think", request.effort.as_deref());
        let mut options = request.extra.get("options").and_then(Value::as_object).cloned().unwrap_or_default();
        put(&mut options, "num_predict", request.max_tokens);
        put(&mut options, "temperature", request.temperature);
        if !options.is_empty() {
            body.insert("options".into(), Value::Object(options));
        }
        add(&mut body, &request.extra);
        body
    }

    fn reply(&self, request: &Request, document: Value) -> Result<Reply, BadResponse> {
        let mut gathered = PartialReply::from_request(request);
        match gathered.take(document)? {
            Progress::Complete => Box::new(gathered).finish().ok_or_else(|| BadResponse::lacks("end")),
            Progress::More => Err(BadResponse::lacks("`done`")),
        }
    }

    fn assemble(&self, request: &Request) -> Box<dyn Assemble> {
        Box::new(PartialReply::from_request(request))
    }

    fn framing(&self) -> Framing {
        Framing::Lines
    }
}

fn messages(request: &Request) -> Vec<Value> {
    let mut all = Vec::new();
    all.extend(system(request).map(|system| json!({"role": "system", "content": system})));
    // Results must name their tool, and only the call contains the name.
    let mut names: Vec<(&str, &str)> = Vec::new();
    for message in &request.messages {
        for block in &message.content {
            if let Block::ToolUse { id, name, .. } = block {
                names.push((id, name));
            }
        }
        match message.role {
            Role::System => all.push(json!({"role": "system", "content": message.spoken()})),
            Role::Assistant => all.push(assistant(message)),
            Role::User => user(message, &names, &mut all),
        }
    }
    all
}

fn assistant(message: &Message) -> Value {
    let mut written = json!({"role": "assistant", "content": message.spoken()});
    let calls: Vec<Value> = message
        .content
        .iter()
        .filter_map(|block| match block {
            Block::ToolUse { name, input, .. } => {
                let input = if input.is_object() { input.clone() } else { json!({"unreadable": input}) };
                Some(json!({"function": {"name": name, "arguments": input}}))
            }
            _ => None,
        })
        .collect();
    if !calls.is_empty() {
        written["tool_calls"] = Value::Array(calls);
    }
    written
}

fn user(message: &Message, names: &[(&str, &str)], all: &mut Vec<Value>) {
    let mut content = Vec::new();
    for block in &message.content {
        match block {
            Block::ToolResult { id, content, .. } => {
                let name = names.iter().rev().find(|(known, _)| known == id).map_or("", |(_, name)| name);
                all.push(json!({"role": "tool", "tool_name": name, "content": texts(content)}));
            }
            Block::Text { text } => content.push(text.as_str()),
            _ => {}
        }
    }
    if !content.is_empty() {
        all.push(json!({"role": "user", "content": content.join("\n")}));
    }
}

fn tool(tool: &ToolSpec) -> Value {
    let mut function = Map::new();
    function.insert("name".into(), json!(tool.name));
    function.insert("description".into(), json!(tool.description.as_deref().unwrap_or_default()));
    put(&mut function, "parameters", Some(tool.input_schema.clone()).filter(|schema| !schema.is_null()));
    json!({"type": "function", "function": function})
}

/// A response that is being received.
#[derive(Default)]
struct PartialReply {
    model: String,
    content: String,
    thought: String,
    calls: Vec<Block>,
    last: Option<Value>,
}

impl PartialReply {
    fn from_request(request: &Request) -> Self {
        Self { model: request.model.clone(), ..Self::default() }
    }
}

impl Assemble for PartialReply {
    fn take(&mut self, line: Value) -> Result<Progress, BadResponse> {
        if let Some(error) = line.get("error").filter(|error| !error.is_null()).and(ReportedError::from_document(&line))
        {
            return Err(BadResponse::Reported(error));
        }
        let Some(message) = line.get("message").filter(|message| message.is_object()) else {
            return Err(BadResponse::lacks("`message`"));
        };
        foreign_json::append(&mut self.content, text(message, "content").unwrap_or_default());
        foreign_json::append(&mut self.thought, text(message, "thinking").unwrap_or_default());
        for call in message.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            let function = call.get("function").unwrap_or(&Value::Null);
            self.calls.push(Block::ToolUse {
                id: text(call, "id").unwrap_or_default().to_owned(),
                name: text(function, "name").unwrap_or_default().to_owned(),
                input: match function.get("arguments") {
                    Some(Value::String(written)) => arguments(written),
                    Some(Value::Null) | None => json!({}),
                    Some(given) => given.clone(),
                },
            });
        }
        if let Some(model) = text(&line, "model") {
            model.clone_into(&mut self.model);
        }
        if line.get("done") == Some(&Value::Bool(true)) {
            self.last = Some(line);
            return Ok(Progress::Complete);
        }
        Ok(Progress::More)
    }

    fn finish(self: Box<Self>) -> Option<Reply> {
        let last = self.last?;
        let mut content = Vec::new();
        if !self.thought.is_empty() {
            content.push(Block::Thinking { text: self.thought, signature: None });
        }
        if !self.content.is_empty() {
            content.push(Block::Text { text: self.content });
        }
        content.extend(self.calls);
        let mut reply = Reply { model: self.model, content, ..Reply::default() };
        reply.stop_reason = match text(&last, "done_reason") {
            Some("length") => StopReason::MaxTokens,
            _ if reply.calls_tools() => StopReason::ToolUse,
            Some("stop") | None => StopReason::EndTurn,
            Some(word) => StopReason::Other(word.to_owned()),
        };
        // If the whole prompt is still in the server's cache, it is not counted at all.
        reply.tokens = whole(&last, &["eval_count"]).map(|output| Tokens {
            input: whole(&last, &["prompt_eval_count"]).unwrap_or(0),
            output,
            ..Tokens::default()
        });
        Some(reply)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ResponseSchema;

    #[test]
    fn a_conversation_is_sent_in_the_wire_format() {
        let request = Request {
            model: "llama3".into(),
            system: vec!["Be brief.".into()],
            messages: vec![
                Message::text(Role::User, "Go."),
                Message {
                    role: Role::Assistant,
                    content: vec![Block::ToolUse { id: "1".into(), name: "ls".into(), input: json!({"p": "."}) }],
                },
                Message {
                    role: Role::User,
                    content: vec![Block::ToolResult {
                        id: "1".into(),
                        content: vec![Block::Text { text: "a".into() }],
                        is_error: false,
                    }],
                },
            ],
            tools: vec![ToolSpec { name: "ls".into(), input_schema: json!({"type": "object"}), ..ToolSpec::default() }],
            max_tokens: Some(5),
            temperature: Some(0.0),
            response_schema: Some(ResponseSchema { name: "v".into(), schema: json!({"type": "object"}) }),
            extra: [("options".to_owned(), json!({"num_ctx": 8192}))].into_iter().collect(),
            ..Request::default()
        };
        let body = Value::Object(Client.ask(&request, false));
        assert_eq!(
            body,
            json!({
                "model": "llama3", "stream": false, "format": {"type": "object"},
                "messages": [
                    {"role": "system", "content": "Be brief."},
                    {"role": "user", "content": "Go."},
                    {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "ls", "arguments": {"p": "."}}}]},
                    {"role": "tool", "tool_name": "ls", "content": "a"},
                ],
                "tools": [{"type": "function", "function": {"name": "ls", "description": "", "parameters": {"type": "object"}}}],
                "options": {"num_ctx": 8192, "num_predict": 5, "temperature": 0.0},
            })
        );
    }

    #[test]
    fn lines_are_assembled_until_the_done_marker() {
        let mut gathered = Client.assemble(&Request::default());
        let line = |message: Value| json!({"model": "m", "message": message, "done": false});
        assert_eq!(gathered.take(line(json!({"thinking": "Hm."}))), Ok(Progress::More));
        gathered.take(line(json!({"content": "Hel"}))).unwrap();
        gathered
            .take(line(json!({"content": "lo", "tool_calls": [{"function": {"name": "x", "arguments": {"a": 1}}}]})))
            .unwrap();
        let last = json!({"message": {"content": ""}, "done": true, "done_reason": "stop",
            "prompt_eval_count": 7, "eval_count": 3, "total_duration": 9});
        assert_eq!(gathered.take(last), Ok(Progress::Complete));
        let reply = gathered.finish().unwrap();
        assert_eq!((reply.text().as_str(), &reply.stop_reason), ("Hello", &StopReason::ToolUse));
        assert_eq!(reply.tokens, Some(Tokens { input: 7, output: 3, ..Tokens::default() }));
    }

    #[test]
    fn an_error_in_the_middle_of_a_stream_is_an_error() {
        let mut gathered = Client.assemble(&Request::default());
        let reported = ReportedError { codes: Vec::new(), message: "out of memory".into() };
        assert_eq!(gathered.take(json!({"error": "out of memory"})), Err(BadResponse::Reported(reported)));
        assert_eq!(Client.reply(&Request::default(), json!({})), Err(BadResponse::lacks("`message`")));
        assert_eq!(Client.reply(&Request::default(), json!({"message": {}})), Err(BadResponse::lacks("`done`")));
    }
}

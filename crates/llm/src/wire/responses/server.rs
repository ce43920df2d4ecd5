//! Server side of Responses.

use serde_json::{Map, Value, json};

use super::items::to_blocks;
use super::usage;
use crate::wire::parts::{
    ErrorCodes, function, halves, model, rejection, take_number, take_stream, take_text, take_tools, take_whole, text,
    used, written,
};
use crate::wire::{Incoming, Rejection, SseEvent, SseStream, Wire};
use crate::{
    Block, Conversation, ConversationRole, Message, Reply, Request, ResponseSchema, Role, StopReason, ToolSpec,
};

/// Vendor's error codes by status.
const ERRORS: ErrorCodes = ErrorCodes(&[
    (400, "invalid_request_error"),
    (401, "invalid_api_key"),
    (403, "permission_error"),
    (404, "model_not_found"),
    (429, "rate_limit_exceeded"),
    (500, "server_error"),
    (503, "server_is_overloaded"),
]);

/// Responses.
pub(in crate::wire) struct Responses;

impl Wire for Responses {
    fn name(&self) -> &'static str {
        "openai-responses"
    }

    fn path(&self) -> &'static str {
        "/v1/responses"
    }

    fn read_fields<'h>(
        &self,
        header: &dyn Fn(&str) -> Option<&'h str>,
        mut fields: Map<String, Value>,
    ) -> Result<Incoming, Rejection> {
        let model = model(&mut fields)?;
        let mut request = Request { model, conversation: conversation(header), ..Request::default() };
        request.system.extend(take_text(&mut fields, "instructions"));
        match fields.remove("input") {
            Some(Value::String(text)) => request.messages.push(Message::text(Role::User, text)),
            Some(Value::Array(items)) => {
                for item in items {
                    read_item(&mut request, item)?;
                }
            }
            _ => return Err(rejection("input: a string or a list is required")),
        }
        for value in take_tools(&mut fields)? {
            take_tool(&mut request.tools, value, None)?;
        }
        let stream = take_stream(&mut fields);
        request.max_tokens = take_whole(&mut fields, "max_output_tokens");
        request.temperature = take_number(&mut fields, "temperature");
        request.effort = effort(&mut fields);
        request.response_schema = schema(&mut fields);
        request.extra = fields;
        Ok(Incoming { request, stream })
    }

    fn whole(&self, reply: &Reply) -> Value {
        response(reply, &items(reply))
    }

    fn stream(&self, reply: &Reply) -> SseStream {
        let mut begun = response(reply, &[]);
        begun["status"] = json!("in_progress");
        begun["usage"] = Value::Null;
        let mut events = Events::default();
        let opening = vec![
            events.next("response.created", json!({"response": begun})),
            events.next("response.in_progress", json!({"response": begun})),
        ];
        let items = items(reply);
        let content =
            items.iter().enumerate().flat_map(|(index, item)| item_events(&mut events, index, item)).collect();
        let end = if reply.stop_reason == StopReason::MaxTokens { "response.incomplete" } else { "response.completed" };
        let closing = vec![events.next(end, json!({"response": response(reply, &items)}))];
        SseStream { opening, content, closing }
    }

    fn error(&self, status: u16, kind: Option<&str>, message: &str) -> Value {
        ERRORS.openai_error(status, kind, message)
    }

    fn error_event(&self, kind: Option<&str>, message: &str) -> SseEvent {
        let error = json!({"code": kind.unwrap_or("server_error"), "message": message});
        let response =
            json!({"id": "resp_failed", "object": "response", "status": "failed", "error": error, "output": []});
        Events::default().next("response.failed", json!({"response": response}))
    }

    fn status_of(&self, kind: Option<&str>) -> u16 {
        ERRORS.status(kind)
    }
}

/// Adds one item in the wire format to `request`. Consecutive items with the same role become one message.
fn read_item(request: &mut Request, item: Value) -> Result<(), Rejection> {
    if !item.is_object() {
        return Err(rejection("input: a list of objects is required"));
    }
    // Some models receive their tools within the conversation.
    if text(&item, "type") == Some("additional_tools") {
        for value in item.get("tools").and_then(Value::as_array).into_iter().flatten() {
            take_tool(&mut request.tools, value.clone(), None)?;
        }
        return Ok(());
    }
    let is_message = matches!(text(&item, "type"), Some("message") | None);
    let (role, content) = to_blocks(plain(item));
    let is_answer = matches!(content.first(), Some(Block::ToolResult { .. }));
    match request.messages.last_mut() {
        Some(last) if last.role == role && role == Role::Assistant => last.content.extend(content),
        Some(last) if last.role == role && role == Role::User && is_answer => last.content.extend(content),
        // A user message after tool results is merged with them.
        Some(last)
            if last.role == role
                && role == Role::User
                && is_message
                && matches!(last.content.last(), Some(Block::ToolResult { .. })) =>
        {
            last.content.extend(content);
        }
        _ => request.messages.push(Message { role, content }),
    }
    Ok(())
}

/// Identifies the conversation, for clients that have sub-agents.
fn conversation<'h>(header: &dyn Fn(&str) -> Option<&'h str>) -> Conversation {
    let owned = |name: &str| header(name).map(str::to_owned);
    let role = match (header("x-codex-parent-thread-id"), header("x-openai-subagent"), header("session-id")) {
        (Some(_), _, _) => ConversationRole::Subagent,
        (None, None, Some(_)) => ConversationRole::Main,
        (None, _, _) => ConversationRole::Unmarked,
    };
    let agent = owned("thread-id").filter(|_| role == ConversationRole::Subagent);
    Conversation { role, agent, session: owned("session-id") }
}

/// Converts an item of a tool with text input to that of a function.
fn plain(mut item: Value) -> Value {
    match text(&item, "type") {
        Some("custom_tool_call") => {
            item["type"] = json!("function_call");
            item["arguments"] = item.get("input").cloned().unwrap_or_default();
        }
        Some("custom_tool_call_output") => item["type"] = json!("function_call_output"),
        _ => {}
    }
    item
}

/// Adds a tool. Tools in a namespace are called `NAMESPACE.NAME`, except those in the default namespace `functions`.
fn take_tool(tools: &mut Vec<ToolSpec>, value: Value, namespace: Option<&str>) -> Result<(), Rejection> {
    let inner = value.get("tools").and_then(Value::as_array).filter(|_| text(&value, "type") == Some("namespace"));
    if let Some(inner) = inner {
        let name = text(&value, "name").filter(|name| *name != "functions");
        return inner.iter().try_for_each(|value| take_tool(tools, value.clone(), name));
    }
    let mut tool = tool(value)?;
    if let Some(namespace) = namespace {
        tool.name = format!("{namespace}.{}", tool.name);
    }
    tools.push(tool);
    Ok(())
}

fn tool(value: Value) -> Result<ToolSpec, Rejection> {
    let Value::Object(mut extra) = value else { return Err(rejection("tools: a list of objects is required")) };
    let kind = extra.get("type").and_then(Value::as_str).unwrap_or("function").to_owned();
    if kind != "function" {
        let name = extra.get("name").and_then(Value::as_str).unwrap_or(&kind).to_owned();
        return Ok(ToolSpec { name, extra, ..ToolSpec::default() });
    }
    extra.remove("type");
    function(extra, "parameters")
}

/// Takes the effort if it is the only reasoning setting; otherwise, all of them stay.
fn effort(fields: &mut Map<String, Value>) -> Option<String> {
    let reasoning = fields.get("reasoning")?.as_object()?;
    let effort = reasoning.get("effort")?.as_str()?.to_owned();
    if reasoning.len() == 1 {
        fields.remove("reasoning");
    }
    Some(effort)
}

fn schema(fields: &mut Map<String, Value>) -> Option<ResponseSchema> {
    let settings = fields.get("text")?.as_object()?;
    let format = settings.get("format")?;
    let schema = ResponseSchema {
        name: text(format, "name").unwrap_or_default().to_owned(),
        schema: format.get("schema").cloned()?,
    };
    if settings.len() == 1 {
        fields.remove("text");
    }
    Some(schema)
}

fn response(reply: &Reply, output: &[Value]) -> Value {
    let incomplete = match reply.stop_reason {
        StopReason::MaxTokens => json!({"reason": "max_output_tokens"}),
        _ => Value::Null,
    };
    json!({
        "id": reply.message_id,
        "object": "response",
        "created_at": 0,
        "status": if incomplete.is_null() { "completed" } else { "incomplete" },
        "error": null,
        "incomplete_details": incomplete,
        "model": reply.model,
        "output": output,
        "usage": usage(&used(reply)),
    })
}

/// Formats a reply as items; their ids are derived from the reply's id and their index.
fn items(reply: &Reply) -> Vec<Value> {
    let id = |kind: &str, index: usize| format!("{kind}_{}_{index}", reply.message_id);
    let has_refused = reply.stop_reason == StopReason::Refusal;
    let item = |(index, block): (usize, &Block)| match block {
        Block::Text { text } => {
            let part = match has_refused {
                true => json!({"type": "refusal", "refusal": text}),
                false => json!({"type": "output_text", "text": text, "annotations": []}),
            };
            Some(json!({
                "type": "message", "id": id("msg", index), "status": "completed", "role": "assistant", "content": [part],
            }))
        }
        Block::Thinking { text, signature } => Some(reasoning(&id("rs", index), text, signature.as_deref())),
        Block::ToolUse { id: call, name, input } => Some(tool_call(&id("fc", index), call, name, input)),
        Block::Other(item) => Some(item.clone()),
        Block::ToolResult { .. } => None,
    };
    reply.content.iter().enumerate().filter_map(item).collect()
}

/// Formats a call to a function, or to a tool with text input.
fn tool_call(id: &str, call: &str, name: &str, input: &Value) -> Value {
    let (namespace, name) = match name.split_once('.') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, name),
    };
    let (kind, key) = match input {
        // Function arguments that are not valid JSON are text too.
        Value::String(text) if !text.starts_with("{\"") => ("custom_tool_call", "input"),
        _ => ("function_call", "arguments"),
    };
    let mut item = json!({"type": kind, "id": id, "status": "completed", "call_id": call, "name": name});
    item[key] = json!(written(input));
    if let Some(namespace) = namespace {
        item["namespace"] = json!(namespace);
    }
    item
}

fn reasoning(id: &str, thought: &str, signature: Option<&str>) -> Value {
    let sealed = signature.and_then(|signature| serde_json::from_str::<Value>(signature).ok());
    sealed.filter(|item| text(item, "type") == Some("reasoning")).unwrap_or_else(|| {
        json!({
            "type": "reasoning", "id": id, "encrypted_content": "dHJpYWxydW4=",
            "summary": [{"type": "summary_text", "text": thought}],
        })
    })
}

/// Numbers the events of a stream.
#[derive(Default)]
struct Events {
    next: u64,
}

impl Events {
    fn next(&mut self, kind: &'static str, mut data: Value) -> SseEvent {
        data["type"] = json!(kind);
        data["sequence_number"] = json!(self.next);
        self.next += 1;
        SseEvent { event: Some(kind), data: data.to_string() }
    }
}

fn item_events(events: &mut Events, index: usize, item: &Value) -> Vec<SseEvent> {
    let id = text(item, "id").unwrap_or_default();
    let mut begun = item.clone();
    if begun.get("status").is_some() {
        begun["status"] = json!("in_progress");
    }
    let mut stream_events = Vec::new();
    match text(item, "type") {
        Some("message") => {
            begun["content"] = json!([]);
            stream_events
                .push(events.next("response.output_item.added", json!({"output_index": index, "item": begun})));
            let part = item.pointer("/content/0").cloned().unwrap_or_default();
            let with =
                |key: &str, value: Value| json!({"item_id": id, "output_index": index, "content_index": 0, key: value});
            let (delta, done, key): (_, _, &str) = match text(&part, "refusal") {
                Some(_) => ("response.refusal.delta", "response.refusal.done", "refusal"),
                None => ("response.output_text.delta", "response.output_text.done", "text"),
            };
            let content = text(&part, key).unwrap_or_default();
            let mut empty = part.clone();
            empty[key] = json!("");
            stream_events.push(events.next("response.content_part.added", with("part", empty)));
            for piece in halves(content) {
                stream_events.push(events.next(delta, with("delta", json!(piece))));
            }
            stream_events.push(events.next(done, with(key, json!(content))));
            stream_events.push(events.next("response.content_part.done", with("part", part.clone())));
        }
        Some(kind @ ("function_call" | "custom_tool_call")) => {
            let (key, delta, done) = match kind {
                "function_call" => {
                    ("arguments", "response.function_call_arguments.delta", "response.function_call_arguments.done")
                }
                _ => ("input", "response.custom_tool_call_input.delta", "response.custom_tool_call_input.done"),
            };
            begun[key] = json!("");
            stream_events
                .push(events.next("response.output_item.added", json!({"output_index": index, "item": begun})));
            let written = text(item, key).unwrap_or_default();
            for piece in halves(written) {
                stream_events.push(events.next(delta, json!({"item_id": id, "output_index": index, "delta": piece})));
            }
            stream_events.push(events.next(done, json!({"item_id": id, "output_index": index, key: written})));
        }
        _ => {
            stream_events
                .push(events.next("response.output_item.added", json!({"output_index": index, "item": begun})));
        }
    }
    stream_events.push(events.next("response.output_item.done", json!({"output_index": index, "item": item})));
    stream_events
}

#[cfg(test)]
mod tests {
    use model::Tokens;

    use super::super::Client;
    use super::*;
    use crate::wire::{Dialect, Progress};

    fn request() -> Request {
        let result =
            Block::ToolResult { id: "a".into(), content: vec![Block::Text { text: "x".into() }], is_error: false };
        Request {
            model: "gpt-5".into(),
            system: vec!["Be brief.".into()],
            messages: vec![
                Message::text(Role::User, "Go."),
                Message {
                    role: Role::Assistant,
                    content: vec![
                        Block::Thinking {
                            text: "Hm.".into(),
                            signature: Some(
                                json!({"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "Hm."}]})
                                    .to_string(),
                            ),
                        },
                        Block::Text { text: "I look.".into() },
                        Block::ToolUse { id: "a".into(), name: "Bash".into(), input: json!({"command": "ls"}) },
                    ],
                },
                Message { role: Role::User, content: vec![result] },
                Message::text(Role::System, "Hurry."),
                Message::text(Role::User, "And?"),
            ],
            tools: vec![ToolSpec {
                name: "Bash".into(),
                description: Some("Runs.".into()),
                input_schema: json!({"type": "object"}),
                extra: [("strict".to_owned(), json!(false))].into_iter().collect(),
            }],
            max_tokens: Some(100),
            temperature: Some(0.5),
            effort: Some("low".into()),
            response_schema: Some(ResponseSchema { name: "v".into(), schema: json!({"type": "object"}) }),
            ..Request::default()
        }
    }

    #[test]
    fn requests_written_by_the_client_are_read_by_the_server() {
        for stream in [true, false] {
            let body = Value::Object(Client.ask(&request(), stream)).to_string();
            let mut read = Responses.read(&|_| None, body.as_bytes()).unwrap();
            let extra = std::mem::take(&mut read.request.extra);
            assert_eq!((read.stream, read.request), (stream, request()));
            assert_eq!(Value::Object(extra), json!({"store": false, "include": ["reasoning.encrypted_content"]}));
        }
    }

    #[test]
    fn replies_written_by_the_server_are_read_by_the_client() {
        let reply = Reply {
            message_id: "r1".into(),
            model: "m".into(),
            content: vec![
                Block::Thinking { text: "Hm.".into(), signature: None },
                Block::Text { text: "Füße".into() },
                Block::ToolUse { id: "a".into(), name: "Bash".into(), input: json!({"command": "ls"}) },
            ],
            stop_reason: StopReason::ToolUse,
            tokens: Some(Tokens { input: 5, cache_read: 6, cache_write: 7, output: 8, reasoning: Some(2) }),
            ..Reply::default()
        };
        let unsealed = |mut reply: Reply| {
            if let Some(Block::Thinking { signature, .. }) = reply.content.first_mut() {
                assert!(signature.take().is_some_and(|seal| seal.contains("rs_r1_0")));
            }
            reply
        };
        let asked = Request { model: "m".into(), ..Request::default() };
        assert_eq!(unsealed(Client.reply(&asked, Responses.whole(&reply)).unwrap()), reply);
        let SseStream { opening, content, closing } = Responses.stream(&reply);
        let mut gathered = Client.assemble(&asked);
        let events = [opening, content, closing].concat();
        for (index, event) in events.iter().enumerate() {
            let data: Value = serde_json::from_str(&event.data).unwrap();
            assert_eq!((data["sequence_number"].as_u64(), data["type"].as_str()), (Some(index as u64), event.event));
            assert_eq!(gathered.take(data).unwrap() == Progress::Complete, index + 1 == events.len());
        }
        assert_eq!(unsealed(gathered.finish().unwrap()), reply);
    }

    #[test]
    fn refusals_and_token_limits_survive_a_round_trip() {
        for (stop, output) in [(StopReason::Refusal, "No."), (StopReason::MaxTokens, "Once upon")] {
            let reply = Reply {
                message_id: "r".into(),
                content: vec![Block::Text { text: output.into() }],
                stop_reason: stop.clone(),
                ..Reply::default()
            };
            let read = Client.reply(&Request::default(), Responses.whole(&reply)).unwrap();
            assert_eq!((read.text().as_str(), read.stop_reason), (output, stop));
        }
    }

    #[test]
    fn tools_listed_in_the_conversation_are_available() {
        let body = json!({"model": "m", "input": [
            {"type": "additional_tools", "tools": [{"type": "function", "name": "x", "parameters": {}}]},
            {"role": "user", "content": "Go."},
        ], "tools": [{"type": "web_search"}]});
        let request = Responses.read(&|_| None, body.to_string().as_bytes()).unwrap().request;
        assert_eq!(request.tool_names().collect::<Vec<_>>(), ["x", "web_search"]);
        assert_eq!(request.last_user_text().as_deref(), Some("Go."));
    }

    #[test]
    fn namespaced_tools_and_text_tools_are_distinguished() {
        let body = json!({"model": "m", "tools": [
            {"type": "namespace", "name": "agents", "tools": [{"type": "function", "name": "spawn", "parameters": {}}]},
            {"type": "namespace", "name": "functions", "tools": [{"type": "custom", "name": "exec"}]},
        ], "input": [
            {"role": "user", "content": "Go."},
            {"type": "custom_tool_call", "call_id": "a", "name": "exec", "input": "1 + 1"},
            {"type": "custom_tool_call_output", "call_id": "a", "output": "2"},
        ]});
        let request = Responses.read(&|_| None, body.to_string().as_bytes()).unwrap().request;
        assert_eq!(request.tool_names().collect::<Vec<_>>(), ["agents.spawn", "exec"]);
        assert_eq!(request.fresh_tool_results(), ["2"]);

        let call = |name: &str, input: Value| Block::ToolUse { id: "a".into(), name: name.into(), input };
        let content = vec![call("exec", json!("2 + 2")), call("agents.spawn", json!({"n": 1}))];
        let reply = Reply { content, stop_reason: StopReason::ToolUse, ..Reply::default() };
        let output = Responses.whole(&reply)["output"].clone();
        assert_eq!((&output[0]["type"], &output[0]["input"]), (&json!("custom_tool_call"), &json!("2 + 2")));
        assert_eq!((&output[1]["namespace"], &output[1]["name"]), (&json!("agents"), &json!("spawn")));
        let events = Responses.stream(&reply).content;
        let pieces = events.iter().filter(|event| event.event == Some("response.custom_tool_call_input.delta")).count();
        assert_eq!(pieces, 2);
    }

    #[test]
    fn a_client_with_sub_agents_identifies_the_conversation() {
        let part = |headers: &[(&str, &'static str)]| {
            let find = |name: &str| headers.iter().find(|(header, _)| *header == name).map(|(_, value)| *value);
            let conversation = conversation(&find);
            (conversation.role, conversation.agent, conversation.session)
        };
        let own = [("session-id", "s"), ("thread-id", "s")];
        assert_eq!(part(&own), (ConversationRole::Main, None, Some("s".into())));
        let sub = [("session-id", "s"), ("thread-id", "t"), ("x-codex-parent-thread-id", "s")];
        assert_eq!(part(&sub), (ConversationRole::Subagent, Some("t".into()), Some("s".into())));
        let aside = [("session-id", "s"), ("x-openai-subagent", "compact")];
        assert_eq!(part(&aside).0, ConversationRole::Unmarked);
        assert_eq!(part(&[]), (ConversationRole::Unmarked, None, None));
    }

    #[test]
    fn an_invalid_request_is_rejected_with_a_reason() {
        let message = |body: &str| Responses.read(&|_| None, body.as_bytes()).unwrap_err().message;
        assert_eq!(message(r#"{"model": "m"}"#), "input: a string or a list is required");
        assert_eq!(message(r#"{"model": "m", "input": [1]}"#), "input: a list of objects is required");
        assert_eq!(message(r#"{"model": "m", "input": "", "tools": [{}]}"#), "tools: each needs a `name`");
        assert_eq!(Responses.status_of(Some("rate_limit_exceeded")), 429);
        assert!(Responses.error_event(None, "busy").data.contains("response.failed"));
    }
}

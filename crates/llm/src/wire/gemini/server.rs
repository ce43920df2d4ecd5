//! Server side of Gemini. The path names the model and the method.

use serde_json::{Map, Value, json};

use super::{blocks, call, stop_word, usage};
use crate::wire::parts::{
    ErrorCodes, estimate, function, halves, object, rejection, take_list, take_number, take_tools, take_whole, text,
    used,
};
use crate::wire::{Incoming, PATH, Rejection, SseEvent, SseStream, Wire};
use crate::{Block, Message, Reply, Request, ResponseSchema, Role, ToolSpec};

/// Vendor's error codes by status.
const ERRORS: ErrorCodes = ErrorCodes(&[
    (400, "INVALID_ARGUMENT"),
    (401, "UNAUTHENTICATED"),
    (403, "PERMISSION_DENIED"),
    (404, "NOT_FOUND"),
    (429, "RESOURCE_EXHAUSTED"),
    (500, "INTERNAL"),
    (503, "UNAVAILABLE"),
    (504, "DEADLINE_EXCEEDED"),
]);

/// Methods that answer with a message, as a document and as a stream.
const METHODS: [&str; 2] = ["generateContent", "streamGenerateContent"];

/// Gemini.
pub(in crate::wire) struct GenerateContent;

impl Wire for GenerateContent {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn path(&self) -> &'static str {
        "/v1beta/models/MODEL:generateContent"
    }

    fn serves(&self, path: &str) -> bool {
        model_in(path).is_some_and(|(_, method)| METHODS.contains(&method))
    }

    fn is_at(&self, path: &str) -> bool {
        target(path).is_some_and(|(_, method)| METHODS.contains(&method))
    }

    fn read_fields<'h>(
        &self,
        header: &dyn Fn(&str) -> Option<&'h str>,
        mut fields: Map<String, Value>,
    ) -> Result<Incoming, Rejection> {
        let whole = header(PATH).unwrap_or_default();
        let (path, query) = whole.split_once('?').unwrap_or((whole, ""));
        let Some((model, method)) = target(path) else {
            return Err(rejection("the path must name a model and a method: `/v1beta/models/MODEL:generateContent`"));
        };
        let stream = method == "streamGenerateContent";
        if stream && !query.split('&').any(|pair| pair == "alt=sse") {
            return Err(rejection("a stream must be requested with `?alt=sse`"));
        }
        let mut request = Request { model: model.to_owned(), ..Request::default() };
        if let Some(system) = fields.remove("systemInstruction").or_else(|| fields.remove("system_instruction")) {
            request.system = match system {
                Value::String(text) => vec![text],
                content => parts(&content).filter_map(|part| text(part, "text").map(str::to_owned)).collect(),
            };
        }
        let mut calls = Calls::default();
        for (index, content) in take_list(&mut fields, "contents")?.into_iter().enumerate() {
            request.messages.push(message(&content, index, &mut calls)?);
        }
        for entry in take_tools(&mut fields)? {
            add_tools(&mut request.tools, entry)?;
        }
        if let Some(Value::Object(settings)) = fields.get_mut("generationConfig") {
            request.max_tokens = take_whole(settings, "maxOutputTokens");
            request.temperature = take_number(settings, "temperature");
            let schema = settings.remove("responseJsonSchema").or_else(|| settings.remove("responseSchema"));
            request.response_schema = schema.map(|schema| ResponseSchema { name: "response".to_owned(), schema });
        }
        request.extra = fields;
        Ok(Incoming { request, stream })
    }

    fn whole(&self, reply: &Reply) -> Value {
        let parts: Vec<Value> = reply.content.iter().filter_map(part).collect();
        response(reply, &Value::Array(parts), Some(stop_word(&reply.stop_reason)))
    }

    fn stream(&self, reply: &Reply) -> SseStream {
        let piece = |part: Value, stop: Option<&str>| event(&response(reply, &json!([part]), stop));
        let empty = || json!({"text": ""});
        let content = reply.content.iter().flat_map(|block| match block {
            Block::Text { text } => halves(text).map(|half| json!({"text": half})).collect(),
            Block::Thinking { text, .. } => halves(text).map(|half| json!({"text": half, "thought": true})).collect(),
            other => part(other).into_iter().collect::<Vec<_>>(),
        });
        SseStream {
            opening: vec![piece(empty(), None)],
            content: content.map(|part| piece(part, None)).collect(),
            closing: vec![piece(empty(), Some(stop_word(&reply.stop_reason)))],
        }
    }

    fn error(&self, status: u16, kind: Option<&str>, message: &str) -> Value {
        json!({"error": {"code": status, "message": message, "status": ERRORS.code(status, kind)}})
    }

    fn error_event(&self, kind: Option<&str>, message: &str) -> SseEvent {
        event(&self.error(self.status_of(kind), kind, message))
    }

    fn status_of(&self, kind: Option<&str>) -> u16 {
        ERRORS.status(kind)
    }

    fn aside(&self, method: &str, path: &str, body: &[u8]) -> Option<Result<Value, Rejection>> {
        let (model, called) = model_in(path)?;
        if (method, called) != ("POST", "countTokens") {
            return None;
        }
        let counted = object(body).and_then(|mut fields| {
            let fields = match fields.remove("generateContentRequest") {
                Some(Value::Object(whole)) => whole,
                _ => fields,
            };
            let path = format!("/models/{model}:generateContent");
            self.read_fields(&|name| (name == PATH).then_some(path.as_str()), fields)
        });
        Some(counted.map(|incoming| json!({"totalTokens": estimate(&incoming.request)})))
    }
}

/// Returns the model and the method in a path at the vendor's address.
fn model_in(path: &str) -> Option<(&str, &str)> {
    let below = path.strip_prefix("/v1beta").or_else(|| path.strip_prefix("/v1"))?;
    target(path).filter(|_| below.starts_with("/models/"))
}

/// Returns the model and the method at the end of a path: `…/models/MODEL:METHOD`.
fn target(path: &str) -> Option<(&str, &str)> {
    let (_, last) = path.rsplit_once("/models/")?;
    last.rsplit_once(':').filter(|(model, _)| !model.is_empty())
}

/// Ids of the calls whose results have not been seen. Clients may leave out the ids of calls and results; such results
/// have the order of the calls.
#[derive(Default)]
struct Calls {
    open: Vec<(String, String)>,
    count: usize,
}

impl Calls {
    fn begin(&mut self, id: &mut String, name: &str) {
        self.count += 1;
        if id.is_empty() {
            *id = format!("call_{}", self.count);
        }
        self.open.push((id.clone(), name.to_owned()));
    }

    fn end(&mut self, id: Option<&str>, name: &str) -> String {
        let at = self.open.iter().position(|(open, tool)| id.map_or(tool == name, |id| open == id));
        let open = at.map(|at| self.open.remove(at).0);
        open.or(id.map(str::to_owned)).unwrap_or_default()
    }
}

fn parts(content: &Value) -> impl Iterator<Item = &Value> {
    content.get("parts").and_then(Value::as_array).into_iter().flatten()
}

fn message(content: &Value, index: usize, calls: &mut Calls) -> Result<Message, Rejection> {
    let role = match text(content, "role") {
        Some("user" | "function") | None if content.is_object() => Role::User,
        Some("model") => Role::Assistant,
        _ => return Err(rejection(format!("contents.{index}.role: `user` or `model` is required"))),
    };
    let mut read = Vec::new();
    for part in parts(content) {
        if let Some(result) = part.get("functionResponse") {
            read.push(tool_result(result, calls));
            continue;
        }
        for mut block in blocks(part) {
            if let Block::ToolUse { id, name, .. } = &mut block {
                calls.begin(id, name);
            }
            read.push(block);
        }
    }
    Ok(Message { role, content: read })
}

/// Reads the result of a call. Clients put it under `output` or `error`; anything else is the result as a whole.
fn tool_result(result: &Value, calls: &mut Calls) -> Block {
    let response = result.get("response").unwrap_or(&Value::Null);
    let id = calls.end(text(result, "id").filter(|id| !id.is_empty()), text(result, "name").unwrap_or_default());
    let (value, is_error) = match (response.get("output"), response.get("error")) {
        (Some(output), _) => (output, false),
        (None, Some(error)) => (error, true),
        (None, None) => (response, false),
    };
    let said = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut content = vec![Block::Text { text: said }];
    content.extend(parts(result).cloned().map(Block::Other));
    Block::ToolResult { id, content, is_error }
}

/// Adds the functions of an entry, or the tool that the vendor runs itself.
fn add_tools(tools: &mut Vec<ToolSpec>, entry: Value) -> Result<(), Rejection> {
    let Value::Object(mut entry) = entry else { return Err(rejection("tools: a list of objects is required")) };
    let declared = entry.remove("functionDeclarations").or_else(|| entry.remove("function_declarations"));
    for declared in declared.as_ref().and_then(Value::as_array).into_iter().flatten() {
        let Value::Object(fields) = declared.clone() else {
            return Err(rejection("functionDeclarations: a list of objects is required"));
        };
        let key = if fields.contains_key("parametersJsonSchema") { "parametersJsonSchema" } else { "parameters" };
        let mut tool = function(fields, key)?;
        if tool.input_schema.is_null() {
            tool.input_schema = json!({"type": "object"});
        }
        tools.push(tool);
    }
    tools.extend(entry.into_iter().map(|(name, settings)| ToolSpec {
        name: name.clone(),
        extra: Map::from_iter([(name, settings)]),
        ..ToolSpec::default()
    }));
    Ok(())
}

/// Formats a block of a reply; `None` for blocks that a model does not send.
fn part(block: &Block) -> Option<Value> {
    match block {
        Block::Text { text } => Some(json!({"text": text})),
        Block::Thinking { text, .. } => Some(json!({"text": text, "thought": true})),
        Block::ToolUse { id, name, input } => Some(call(id, name, input)),
        Block::Other(value) => Some(value.clone()),
        Block::ToolResult { .. } => None,
    }
}

/// Formats a response, or a piece of one.
fn response(reply: &Reply, parts: &Value, stop: Option<&str>) -> Value {
    let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
    let mut used = used(reply);
    match stop {
        Some(stop) => candidate["finishReason"] = json!(stop),
        None => (used.output, used.reasoning) = (0, None),
    }
    json!({
        "candidates": [candidate],
        "usageMetadata": usage(&used),
        "modelVersion": reply.model,
        "responseId": reply.message_id,
    })
}

fn event(data: &Value) -> SseEvent {
    SseEvent { event: None, data: data.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StopReason;
    use crate::wire::Dialect;
    use crate::wire::gemini::Client;

    fn read(path: &str, body: &Value) -> Result<Incoming, Rejection> {
        GenerateContent.read(&|name| (name == PATH).then_some(path), body.to_string().as_bytes())
    }

    const STREAM: &str = "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse";

    #[test]
    fn the_path_names_the_model_and_the_method() {
        let body = json!({"contents": [{"parts": [{"text": "Hi."}]}]});
        let Incoming { request, stream } = read(STREAM, &body).unwrap();
        assert_eq!((request.model.as_str(), stream), ("gemini-2.5-pro", true));
        let Incoming { request, stream } = read("/models/tuned/x:1:generateContent", &body).unwrap();
        assert_eq!((request.model.as_str(), stream), ("tuned/x:1", false));
        let message = |path: &str| read(path, &body).unwrap_err().message;
        assert_eq!(message("/v1beta/models/m:streamGenerateContent"), "a stream must be requested with `?alt=sse`");
        assert!(message("/v1beta/models").starts_with("the path must name a model"));
        for (path, expected) in [
            ("/v1beta/models/m:generateContent", [true, true]),
            ("/v1/models/m:streamGenerateContent", [true, true]),
            ("/v1/projects/p/publishers/google/models/m:generateContent", [false, true]),
            ("/models/m:generateContent", [false, true]),
            ("/v1beta/models/m:countTokens", [false, false]),
            ("/v1beta/models/m", [false, false]),
        ] {
            assert_eq!([GenerateContent.serves(path), GenerateContent.is_at(path)], expected, "{path}");
        }
    }

    #[test]
    fn a_request_of_the_client_is_read_by_the_server() {
        let result = |id: &str, text: &str, is_error| Block::ToolResult {
            id: id.into(),
            content: vec![Block::Text { text: text.into() }],
            is_error,
        };
        let use_of = |id: &str| Block::ToolUse { id: id.into(), name: "Bash".into(), input: json!({"command": "ls"}) };
        let sealed = Block::Thinking { text: String::new(), signature: Some("s".into()) };
        let request = Request {
            model: "m".into(),
            system: vec!["Be brief.".into()],
            messages: vec![
                Message::text(Role::User, "Go."),
                Message { role: Role::Assistant, content: vec![sealed, use_of("a"), use_of("b")] },
                Message { role: Role::User, content: vec![result("a", "x", false), result("b", "y", true)] },
            ],
            tools: vec![ToolSpec {
                name: "Bash".into(),
                description: Some("Runs.".into()),
                input_schema: json!({"type": "object"}),
                ..ToolSpec::default()
            }],
            max_tokens: Some(100),
            temperature: Some(0.5),
            response_schema: Some(ResponseSchema { name: "response".into(), schema: json!({"type": "object"}) }),
            ..Request::default()
        };
        let path = format!("/v1beta/models{}", Client.target(&request, false));
        let mut incoming = read(&path, &Value::Object(Client.ask(&request, false))).unwrap();
        assert_eq!(
            incoming.request.extra.remove("generationConfig"),
            Some(json!({"responseMimeType": "application/json"}))
        );
        assert_eq!(incoming, Incoming { request, stream: false });
    }

    #[test]
    fn results_without_ids_belong_to_the_calls_in_their_order() {
        let call = |n: u64| json!({"functionCall": {"name": "read", "args": {"n": n}}});
        let result = |text: &str| json!({"functionResponse": {"name": "read", "response": {"content": text}}});
        let body = json!({"contents": [
            {"role": "model", "parts": [call(1), call(2)]},
            {"role": "user", "parts": [result("x"), result("y"), result("none")]},
        ], "tools": [{"functionDeclarations": [{"name": "read"}], "googleSearch": {}}]});
        let request = read(STREAM, &body).unwrap().request;
        let ids = |message: &Message| -> Vec<String> {
            let id = |block: &Block| match block {
                Block::ToolUse { id, .. } | Block::ToolResult { id, .. } => id.clone(),
                other => panic!("{other:?}"),
            };
            message.content.iter().map(id).collect()
        };
        assert_eq!(ids(&request.messages[0]), ["call_1", "call_2"]);
        assert_eq!(ids(&request.messages[1]), ["call_1", "call_2", ""]);
        assert_eq!(request.fresh_tool_results()[0], r#"{"content":"x"}"#);
        assert_eq!(request.tool_names().collect::<Vec<_>>(), ["read", "googleSearch"]);
        assert_eq!(request.tools[1].input_schema, Value::Null);
    }

    #[test]
    fn a_document_and_a_stream_contain_the_same_reply() {
        let reply = Reply {
            message_id: "r1".into(),
            model: "m".into(),
            content: vec![
                Block::Thinking { text: "Hm.".into(), signature: None },
                Block::Text { text: "Füße".into() },
                Block::ToolUse { id: "t1".into(), name: "Bash".into(), input: json!({"command": "ls"}) },
            ],
            stop_reason: StopReason::ToolUse,
            tokens: Some(model::Tokens { input: 5, cache_read: 6, cache_write: 0, output: 8, reasoning: Some(3) }),
            cost_usd: None,
        };
        assert_eq!(Client.reply(&Request::default(), GenerateContent.whole(&reply)).unwrap(), reply);
        let SseStream { opening, content, closing } = GenerateContent.stream(&reply);
        let mut partial = Client.assemble(&Request::default());
        for event in [opening, content, closing].concat() {
            partial.take(serde_json::from_str(&event.data).unwrap()).unwrap();
        }
        assert_eq!(partial.finish().unwrap(), reply);
    }

    #[test]
    fn errors_and_counts_have_the_vendors_format() {
        let error = GenerateContent.error(429, None, "slow down");
        assert_eq!(error, json!({"error": {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED"}}));
        assert_eq!(GenerateContent.status_of(Some("UNAVAILABLE")), 503);
        let count = |body: Value| {
            let body = body.to_string();
            GenerateContent.aside("POST", "/v1beta/models/m:countTokens", body.as_bytes()).unwrap()
        };
        let contents = json!([{"parts": [{"text": "x".repeat(399)}]}]);
        assert_eq!(count(json!({"contents": contents})), Ok(json!({"totalTokens": 100})));
        assert_eq!(count(json!({"generateContentRequest": {"contents": contents}})), Ok(json!({"totalTokens": 100})));
        assert!(count(json!({})).is_err());
        assert!(GenerateContent.aside("GET", "/v1beta/models/m:countTokens", b"").is_none());
        assert!(GenerateContent.aside("POST", "/v1beta/models/m:embedContent", b"{}").is_none());
    }
}

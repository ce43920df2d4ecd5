//! Messages of the Model Context Protocol, as a mocked server reads and writes them: JSON-RPC, one message a line. The
//! server speaks the versions with `initialize` and the one without it (2026-07-28).

use model::{MockedServer, MockedTool};
use serde_json::{Map, Value, json};

use crate::engine::Answer;

/// Versions with `initialize`, newest first.
const WITH_SESSION: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// The version without sessions.
const WITHOUT_SESSION: &str = "2026-07-28";

/// Key of the version in the metadata of a request.
const VERSION_KEY: &str = "/params/_meta/io.modelcontextprotocol~1protocolVersion";

/// Codes of errors.
const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
const INTERNAL_ERROR: i64 = -32603;
const UNSUPPORTED_VERSION: i64 = -32022;

/// A message that a client sent.
#[derive(Debug, Clone, PartialEq)]
pub enum Received {
    /// The answer is this message.
    Reply(Value),
    /// It is a call to a tool, which [`Answer`] answers.
    Call(ToolRequest),
    /// It needs no answer.
    Nothing,
}

/// A call to a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolRequest {
    /// Id of the request.
    pub id: Value,
    /// Name of the tool.
    pub tool: String,
    /// Arguments.
    pub arguments: Value,
}

/// Reads one line that a client of `server` sent. `name` is the name of the server.
pub fn receive(name: &str, server: &MockedServer, line: &str) -> Received {
    let Ok(message) = serde_json::from_str::<Value>(line) else {
        return Received::Reply(error(&Value::Null, PARSE_ERROR, "the message is not valid JSON"));
    };
    let (id, method) = (message.get("id"), message.get("method").and_then(Value::as_str));
    let (Some(id), Some(method)) = (id, method) else {
        // Notifications and responses need no answer.
        let is_known =
            message.get("method").is_some() || message.get("result").is_some() || message.get("error").is_some();
        return match is_known {
            true => Received::Nothing,
            false => Received::Reply(error(id.unwrap_or(&Value::Null), INVALID_REQUEST, "the message has no method")),
        };
    };
    let version = message.pointer(VERSION_KEY).and_then(Value::as_str);
    let is_unsupported = |version: &&str| *version != WITHOUT_SESSION && !WITH_SESSION.contains(version);
    if let Some(version) = version.filter(is_unsupported) {
        let data = json!({"requested": version, "supported": versions()});
        let mut refused = error(id, UNSUPPORTED_VERSION, "this protocol version is not supported");
        refused["error"]["data"] = data;
        return Received::Reply(refused);
    }
    let reply = |result: Value| Received::Reply(result_of(id, result));
    match method {
        "initialize" => {
            let wanted = message.pointer("/params/protocolVersion").and_then(Value::as_str).unwrap_or_default();
            let version = WITH_SESSION.iter().find(|known| **known == wanted).unwrap_or(&WITH_SESSION[0]);
            reply(about(name, server, json!({"protocolVersion": version})))
        }
        "server/discover" => {
            reply(about(name, server, json!({"supportedVersions": versions(), "ttlMs": 0, "cacheScope": "private"})))
        }
        "ping" | "logging/setLevel" => reply(json!({})),
        "tools/list" => {
            let tools: Vec<Value> = server.tools.iter().map(listed).collect();
            reply(json!({"tools": tools, "ttlMs": 0, "cacheScope": "private"}))
        }
        "tools/call" => match message.pointer("/params/name").and_then(Value::as_str) {
            Some(tool) => {
                let arguments = message.pointer("/params/arguments").cloned().unwrap_or_else(|| json!({}));
                Received::Call(ToolRequest { id: id.clone(), tool: tool.to_owned(), arguments })
            }
            None => Received::Reply(error(id, INVALID_PARAMS, "`name` is missing")),
        },
        other => Received::Reply(error(id, METHOD_NOT_FOUND, &format!("`{other}` is not a method of this server"))),
    }
}

/// Returns the response to a call.
pub fn response(request: &ToolRequest, answer: &Answer) -> Value {
    let content = json!([{"type": "text", "text": answer.call.output}]);
    result_of(&request.id, json!({"content": content, "isError": answer.is_error()}))
}

/// Returns the response that is an internal error of the protocol.
pub fn internal_error(request: &ToolRequest) -> Value {
    error(&request.id, INTERNAL_ERROR, "internal error")
}

fn versions() -> Vec<&'static str> {
    std::iter::once(WITHOUT_SESSION).chain(WITH_SESSION).collect()
}

/// Adds to a result what a server says about itself.
fn about(name: &str, server: &MockedServer, mut result: Value) -> Value {
    result["capabilities"] = json!({"tools": {}});
    result["serverInfo"] = json!({"name": name, "version": "1.0.0"});
    if let Some(instructions) = &server.instructions {
        result["instructions"] = json!(instructions);
    }
    result
}

fn listed(tool: &MockedTool) -> Value {
    let schema = tool.input_schema.clone().unwrap_or_else(|| Map::from_iter([("type".to_owned(), json!("object"))]));
    let mut listed = json!({"name": tool.name, "inputSchema": schema});
    if !tool.description.is_empty() {
        listed["description"] = json!(tool.description);
    }
    listed
}

fn result_of(id: &Value, mut result: Value) -> Value {
    // Versions with sessions ignore it.
    result["resultType"] = json!("complete");
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

fn error(id: &Value, code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> MockedServer {
        let schema = json!({"type": "object", "properties": {"id": {"type": "number"}}});
        let tool = MockedTool {
            name: "get".into(),
            description: "Returns an issue.".into(),
            input_schema: schema.as_object().cloned(),
            ..MockedTool::default()
        };
        MockedServer { instructions: Some("Ask before you close.".into()), tools: vec![tool] }
    }

    fn reply(message: &Value) -> Value {
        match receive("issues", &server(), &message.to_string()) {
            Received::Reply(reply) => reply,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn both_eras_of_the_protocol_are_spoken() {
        let asked =
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}});
        let opened = reply(&asked);
        assert_eq!(opened["result"]["protocolVersion"], "2025-06-18");
        assert_eq!(opened["result"]["serverInfo"]["name"], "issues");
        assert_eq!(opened["result"]["instructions"], "Ask before you close.");
        let meta = |version: &str| json!({"_meta": {"io.modelcontextprotocol/protocolVersion": version}});
        let discovered = reply(&json!({"id": "a", "method": "server/discover", "params": meta(WITHOUT_SESSION)}));
        assert_eq!(discovered["result"]["supportedVersions"][0], WITHOUT_SESSION);
        assert_eq!(discovered["result"]["resultType"], "complete");
        let refused = reply(&json!({"id": 2, "method": "tools/list", "params": meta("2099-01-01")}));
        assert_eq!(refused["error"]["code"], UNSUPPORTED_VERSION);
        let listed = reply(&json!({"id": 3, "method": "tools/list"}));
        assert_eq!(listed["result"]["tools"][0]["inputSchema"]["properties"]["id"]["type"], "number");
    }

    #[test]
    fn calls_are_returned_and_wrong_messages_are_refused() {
        let called = json!({"id": 4, "method": "tools/call", "params": {"name": "get", "arguments": {"id": 7}}});
        let Received::Call(request) = receive("issues", &server(), &called.to_string()) else { panic!("a call") };
        assert_eq!((request.tool.as_str(), request.arguments), ("get", json!({"id": 7})));
        let nothing = json!({"method": "notifications/initialized"});
        assert_eq!(receive("issues", &server(), &nothing.to_string()), Received::Nothing);
        for (message, code) in [
            (json!({"id": 5, "method": "resources/list"}), METHOD_NOT_FOUND),
            (json!({"id": 6, "method": "tools/call", "params": {}}), INVALID_PARAMS),
            (json!({"id": 7}), INVALID_REQUEST),
            (json!([]), INVALID_REQUEST),
        ] {
            assert_eq!(reply(&message)["error"]["code"], code, "{message}");
        }
        let Received::Reply(refused) = receive("issues", &server(), "{") else { panic!("a reply") };
        assert_eq!(refused["error"]["code"], PARSE_ERROR);
    }
}

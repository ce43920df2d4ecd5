//! What comes from Claude Code's stdout: events, a JSON object a line, understood as steps. Unknown ones are ignored;
//! the caller keeps every line as it came.

use std::collections::HashSet;

use model::{Effect, Step, Tokens, ToolCall, ToolResult};
use serde_json::Value;

use super::control::Request;
use super::meter::{self, Meter};
use super::slash::Slash;

/// The name of the model in messages that no model wrote.
const SYNTHETIC: &str = "<synthetic>";

/// What a line says.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Heard {
    /// The agent did something.
    Step(Step),
    /// The CLI asks its host something and waits.
    Asked(Request),
    /// The CLI refuses a request of its host.
    Refused {
        /// Which one.
        request: String,
        /// Why.
        because: String,
    },
    /// A request of the agent's own is answered, and used this. Only told where it was asked for.
    Used(Tokens),
    /// Something that looks wrong.
    Warning(String),
    /// The user's message is dealt with.
    Done(Done),
}

/// How dealing with a user's message ended, in the CLI's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Done {
    /// With an answer.
    Answered,
    /// At the limit of turns.
    OutOfTurns,
    /// At a limit of money.
    OutOfMoney,
    /// With an error that is the agent's.
    GaveUp(String),
    /// Because the model could not be reached or did not answer well.
    ProviderFailed(String),
    /// Because somebody interrupted it.
    Interrupted(String),
}

/// Understands one process's events.
#[derive(Debug, Default)]
pub(super) struct Interpreter {
    auth: Option<String>,
    session_id: Option<String>,
    meter: Meter,
    /// Calls whose refusal was told already.
    refused: HashSet<String>,
    /// What kind of error the last message was that no model wrote.
    fault: Option<String>,
    /// What the answer has used that is on its way.
    on_the_way: Tokens,
    /// The skill that the user's message asks for.
    slash: Slash,
}

impl Interpreter {
    /// For a new process whose sign-in is called `auth`.
    pub(super) fn new(auth: impl Into<String>) -> Self {
        Self { auth: Some(auth.into()), ..Self::default() }
    }

    /// The id of the session, once it is known.
    pub(super) fn session_id(&self) -> Option<&str> {
        self.session_id.as_deref()
    }

    /// Notes that the refusal of a call was told, so that it is not told again.
    pub(super) fn refused(&mut self, call_id: &str) {
        self.refused.insert(call_id.to_owned());
    }

    /// The user's message is about to be sent.
    pub(super) fn asked(&mut self, message: &str) {
        self.slash = Slash::of(message);
    }

    /// What `line` says; nothing for a line that is unknown or no JSON.
    pub(super) fn read(&mut self, line: &str) -> Vec<Heard> {
        let Ok(line) = serde_json::from_str::<Value>(line) else { return Vec::new() };
        match text(&line, "type").unwrap_or_default() {
            "system" => self.system(&line),
            "assistant" => self.assistant(&line),
            "user" => tool_results(&line).map(|result| Heard::Step(Step::ToolResult(result))).collect(),
            "result" => self.result(&line),
            "stream_event" => self.meter(&line),
            "control_request" => Request::read(&line).map(Heard::Asked).into_iter().collect(),
            "control_response" => refusal(&line).into_iter().collect(),
            _ => Vec::new(),
        }
    }

    fn system(&mut self, line: &Value) -> Vec<Heard> {
        match text(line, "subtype").unwrap_or_default() {
            "init" => self.init(line),
            "api_retry" => vec![Heard::Step(Step::Retry {
                attempt: line.get("attempt").and_then(Value::as_u64).unwrap_or(0),
                status: line.get("error_status").and_then(Value::as_u64).and_then(|status| status.try_into().ok()),
                error: owned(line, "error").unwrap_or_else(|| "unknown".into()),
                delay_ms: line.get("retry_delay_ms").and_then(Value::as_f64).map(|delay| delay as u64),
            })],
            "permission_denied" => {
                let call_id = owned(line, "tool_use_id");
                let message = owned(line, "message").unwrap_or_default();
                self.denial(text(line, "tool_name"), call_id, message).into_iter().collect()
            }
            "informational" => text(line, "content").map(notice).into_iter().collect(),
            _ => Vec::new(),
        }
    }

    /// `init` comes with every user message; the session is told when it is a new one.
    fn init(&mut self, line: &Value) -> Vec<Heard> {
        self.slash.offered(line);
        let session_id = owned(line, "session_id");
        if self.session_id.is_some() && self.session_id == session_id {
            return Vec::new();
        }
        self.session_id.clone_from(&session_id);
        let strings = |key: &str| -> Vec<String> {
            let items = line.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let servers = line.get("mcp_servers").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let failed = servers.iter().filter(|server| text(server, "status") == Some("failed"));
        let warnings = failed
            .filter_map(|server| text(server, "name"))
            .map(|name| Heard::Warning(format!("the MCP server `{name}` of the agent's settings did not start")));
        let session = Step::Session {
            session_id,
            model: owned(line, "model"),
            agent_version: owned(line, "claude_code_version"),
            tools: strings("tools"),
            auth: self.auth.clone(),
        };
        std::iter::once(Heard::Step(session)).chain(warnings).collect()
    }

    /// One line for each block; lines of one message have the same id.
    fn assistant(&mut self, line: &Value) -> Vec<Heard> {
        let Some(message) = line.get("message") else { return Vec::new() };
        let blocks = message.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        if text(message, "model") == Some(SYNTHETIC) {
            self.fault = owned(line, "error");
            return blocks.iter().filter_map(|block| text(block, "text")).map(notice).collect();
        }
        self.fault = None;
        let id = text(message, "id").unwrap_or_default();
        let parent = owned(line, "parent_tool_use_id");
        let invoked = self.slash.take(id).into_iter().flatten();
        let said = blocks.iter().filter_map(|block| step(block, id, parent.as_ref()));
        invoked.chain(said).map(Heard::Step).collect()
    }

    /// Counts an answer while it comes. A sub-agent's own are in the result alone.
    fn meter(&mut self, line: &Value) -> Vec<Heard> {
        let event = line.get("event").unwrap_or(&Value::Null);
        if owned(line, "parent_tool_use_id").is_some() {
            return Vec::new();
        }
        match text(event, "type").unwrap_or_default() {
            "message_start" => {
                self.on_the_way = event.pointer("/message/usage").and_then(meter::plain).unwrap_or_default();
                Vec::new()
            }
            "message_delta" => {
                // What it tells is the sum so far; what it leaves out is as it was.
                let output = event.pointer("/usage/output_tokens").and_then(Value::as_u64);
                self.on_the_way.output = output.unwrap_or(self.on_the_way.output);
                Vec::new()
            }
            "message_stop" => vec![Heard::Used(std::mem::take(&mut self.on_the_way))],
            _ => Vec::new(),
        }
    }

    fn result(&mut self, line: &Value) -> Vec<Heard> {
        let mut heard = Vec::new();
        let denials = line.get("permission_denials").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        for denial in denials {
            heard.extend(self.denial(text(denial, "tool_name"), owned(denial, "tool_use_id"), String::new()));
        }
        let is_error = line.get("is_error").and_then(Value::as_bool).unwrap_or(false);
        heard.push(Heard::Step(Step::Finished {
            subtype: owned(line, "subtype").unwrap_or_default(),
            is_error,
            usage: self.meter.read(line),
            text: owned(line, "result").filter(|text| !text.is_empty()),
            result: None,
        }));
        heard.push(Heard::Done(self.done(line, is_error)));
        self.fault = None;
        heard
    }

    fn done(&self, line: &Value, is_error: bool) -> Done {
        let said = || {
            let errors = line.get("errors").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let errors: Vec<&str> = errors.iter().filter_map(Value::as_str).collect();
            match (text(line, "result").filter(|text| !text.is_empty()), errors.is_empty()) {
                (Some(text), _) => text.to_owned(),
                (None, false) => errors.join("; "),
                (None, true) => text(line, "subtype").unwrap_or("no reason given").to_owned(),
            }
        };
        let reason = text(line, "terminal_reason").unwrap_or_default();
        match text(line, "subtype").unwrap_or_default() {
            "error_max_turns" => return Done::OutOfTurns,
            "error_max_budget_usd" => return Done::OutOfMoney,
            "error_during_execution" if reason.starts_with("aborted") => return Done::Interrupted(said()),
            _ if !is_error => return Done::Answered,
            _ => {}
        }
        let status = line.get("api_error_status").and_then(Value::as_u64);
        let refused = text(line, "stop_reason") == Some("refusal");
        // A conversation that has outgrown its model, an answer that never ends and a refusal are the agent's doing.
        let own_doing = refused
            || self.fault.as_deref() == Some("max_output_tokens")
            || text(line, "result").is_some_and(|text| text.starts_with("Prompt is too long"));
        if !own_doing && (self.fault.is_some() || status.is_some() || reason == "api_error") {
            Done::ProviderFailed(said())
        } else {
            Done::GaveUp(said())
        }
    }

    fn denial(&mut self, tool: Option<&str>, call_id: Option<String>, message: String) -> Option<Heard> {
        if let Some(id) = &call_id
            && !self.refused.insert(id.clone())
        {
            return None;
        }
        let tool = tool.unwrap_or_default().to_owned();
        // Asking the user is not a permission that somebody failed to get.
        (model::tool::effect(&tool) != Effect::Ask)
            .then(|| Heard::Step(Step::PermissionDenied { tool, call_id, message }))
    }
}

/// What a block of a model message is.
fn step(block: &Value, message: &str, parent: Option<&String>) -> Option<Step> {
    let (message, parent) = (message.to_owned(), parent.cloned());
    match text(block, "type")? {
        "text" => {
            let text = owned(block, "text").filter(|text| !text.is_empty())?;
            Some(Step::Text { message, text, parent })
        }
        "thinking" => Some(Step::Thinking { message, text: owned(block, "thinking").unwrap_or_default(), parent }),
        "redacted_thinking" => Some(Step::Thinking { message, text: String::new(), parent }),
        "tool_use" | "server_tool_use" => {
            let input = block.get("input").filter(|input| !input.is_null()).cloned();
            let input = input.unwrap_or_else(|| Value::Object(serde_json::Map::new()));
            let mut call = ToolCall::new(text(block, "id")?, text(block, "name")?, input, message);
            call.parent = parent;
            Some(Step::ToolCall(call))
        }
        _ => None,
    }
}

/// The answers of tools in a user message.
fn tool_results(line: &Value) -> impl Iterator<Item = ToolResult> {
    let blocks = line.pointer("/message/content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    blocks.iter().filter(|block| text(block, "type") == Some("tool_result")).filter_map(|block| {
        Some(ToolResult {
            id: owned(block, "tool_use_id")?,
            content: content(block.get("content").unwrap_or(&Value::Null)),
            is_error: block.get("is_error").and_then(Value::as_bool).unwrap_or(false),
        })
    })
}

/// A tool's answer as text. Pictures are named, not shown.
fn content(content: &Value) -> String {
    match content {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let part = |block: &Value| match text(block, "type") {
                Some("text") => owned(block, "text").unwrap_or_default(),
                Some(kind @ ("image" | "document")) => format!("[{kind}]"),
                _ => block.to_string(),
            };
            blocks.iter().map(part).collect::<Vec<_>>().join("\n")
        }
        other => other.to_string(),
    }
}

fn refusal(line: &Value) -> Option<Heard> {
    let response = line.get("response")?;
    (text(response, "subtype")? == "error").then(|| Heard::Refused {
        request: owned(response, "request_id").unwrap_or_default(),
        because: owned(response, "error").unwrap_or_default(),
    })
}

fn notice(text: &str) -> Heard {
    Heard::Step(Step::Notice { from: "agent".into(), text: text.to_owned() })
}

fn text<'a>(from: &'a Value, key: &str) -> Option<&'a str> {
    from.get(key).and_then(Value::as_str)
}

fn owned(from: &Value, key: &str) -> Option<String> {
    text(from, key).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(lines: &[Value]) -> Vec<Heard> {
        let mut interpreter = Interpreter::new("scripted");
        lines.iter().flat_map(|line| interpreter.read(&line.to_string())).collect()
    }

    fn done(result: &Value) -> Option<Done> {
        let mut result = result.clone();
        result["type"] = json!("result");
        read(&[result]).into_iter().find_map(|heard| match heard {
            Heard::Done(done) => Some(done),
            _ => None,
        })
    }

    #[test]
    fn a_session_is_told_once_though_init_comes_with_every_message() {
        let init = json!({"type": "system", "subtype": "init", "session_id": "s", "model": "m", "tools": ["Bash"],
            "claude_code_version": "2.1.330", "mcp_servers": [{"name": "db", "status": "failed"}]});
        let heard = read(&[init.clone(), init]);
        assert_eq!(heard.len(), 2);
        let Heard::Step(Step::Session { session_id, agent_version, tools, auth, .. }) = &heard[0] else {
            panic!("{heard:?}")
        };
        assert_eq!(session_id.as_deref(), Some("s"));
        assert_eq!(agent_version.as_deref(), Some("2.1.330"));
        assert_eq!(auth.as_deref(), Some("scripted"));
        assert_eq!(tools, &["Bash"]);
        assert!(matches!(&heard[1], Heard::Warning(warning) if warning.contains("`db`")));
    }

    #[test]
    fn is_error_goes_before_subtype() {
        let because = |text: &str| text.to_owned();
        let cases = [
            (json!({"subtype": "success", "is_error": false, "result": "hi"}), Done::Answered),
            (
                json!({"subtype": "success", "is_error": true, "api_error_status": 529, "result": "API Error: 529"}),
                Done::ProviderFailed(because("API Error: 529")),
            ),
            (
                json!({"subtype": "success", "is_error": true, "terminal_reason": "api_error", "result": "cut"}),
                Done::ProviderFailed(because("cut")),
            ),
            (
                json!({"subtype": "success", "is_error": true, "stop_reason": "refusal", "terminal_reason": "api_error",
                       "result": "no"}),
                Done::GaveUp(because("no")),
            ),
            (
                json!({"subtype": "success", "is_error": true, "api_error_status": 400,
                       "result": "Prompt is too long"}),
                Done::GaveUp(because("Prompt is too long")),
            ),
            (json!({"subtype": "error_max_turns", "is_error": true}), Done::OutOfTurns),
            (json!({"subtype": "error_max_budget_usd", "is_error": true}), Done::OutOfMoney),
            (
                json!({"subtype": "error_during_execution", "is_error": true, "terminal_reason": "aborted_tools",
                       "errors": ["a", "b"]}),
                Done::Interrupted(because("a; b")),
            ),
            (
                json!({"subtype": "error_during_execution", "is_error": true, "errors": ["broke"]}),
                Done::GaveUp(because("broke")),
            ),
        ];
        for (result, expected) in cases {
            assert_eq!(done(&result), Some(expected), "{result}");
        }
    }

    #[test]
    fn a_message_that_no_model_wrote_is_no_turn_and_says_what_failed() {
        let mut interpreter = Interpreter::new("scripted");
        let error = json!({"type": "assistant", "error": "max_output_tokens",
            "message": {"id": "x", "model": "<synthetic>", "content": [{"type": "text", "text": "too long"}]}});
        let heard = interpreter.read(&error.to_string());
        assert_eq!(heard, [Heard::Step(Step::Notice { from: "agent".into(), text: "too long".into() })]);
        let result = json!({"type": "result", "subtype": "success", "is_error": true, "result": "too long",
            "terminal_reason": "api_error"});
        let heard = interpreter.read(&result.to_string());
        assert_eq!(heard.last(), Some(&Heard::Done(Done::GaveUp("too long".into()))));
    }

    #[test]
    fn a_refusal_is_told_once() {
        let mut interpreter = Interpreter::new("scripted");
        interpreter.refused("t1");
        let result = json!({"type": "result", "subtype": "success", "is_error": false, "permission_denials": [
            {"tool_name": "Bash", "tool_use_id": "t1"},
            {"tool_name": "Write", "tool_use_id": "t2"},
            {"tool_name": "AskUserQuestion", "tool_use_id": "t3"},
        ]});
        let heard = interpreter.read(&result.to_string());
        let denied: Vec<_> = heard
            .iter()
            .filter_map(|heard| match heard {
                Heard::Step(Step::PermissionDenied { tool, .. }) => Some(tool.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(denied, ["Write"]);
    }

    #[test]
    fn a_sub_agents_call_carries_its_parent() {
        let heard =
            read(&[json!({"type": "assistant", "parent_tool_use_id": "t1", "message": {"id": "m2", "model": "m",
            "content": [{"type": "tool_use", "id": "t2", "name": "Bash", "input": {"command": "ls"}}]}})]);
        let Heard::Step(Step::ToolCall(call)) = &heard[0] else { panic!("{heard:?}") };
        assert_eq!((call.parent.as_deref(), call.message.as_str()), (Some("t1"), "m2"));
        assert_eq!(call.effect, Effect::Shell);
    }

    #[test]
    fn a_tools_answer_is_text_whatever_it_is_made_of() {
        let block = json!([{"type": "text", "text": "a"}, {"type": "image", "source": {"data": "AAAA"}}, {"n": 1}]);
        assert_eq!(content(&block), "a\n[image]\n{\"n\":1}");
        assert_eq!(content(&Value::Null), "");
    }

    #[test]
    fn what_is_not_known_is_ignored() {
        let mut interpreter = Interpreter::new("scripted");
        for line in [
            "",
            "not json",
            "[]",
            "null",
            "{\"type\":\"rate_limit_event\"}",
            "{\"type\":\"assistant\"}",
            "{\"type\":\"user\",\"message\":{\"content\":\"text\"}}",
            "{\"type\":\"system\",\"subtype\":\"new\"}",
            "{\"type\":\"control_request\"}",
            "{\"type\":\"control_response\"}",
        ] {
            assert_eq!(interpreter.read(line), [], "{line}");
        }
    }
}

//! Reads events on Claude Code's stdout, one JSON object per line, as steps. Unknown events are ignored. A known event
//! that cannot be read is reported, because the agent may have acted in it. The caller keeps every line unchanged.

use std::collections::{HashMap, HashSet};

use model::{Effect, Step, Tokens, ToolCall, ToolResult};
use serde_json::Value;

use super::control::Request;
use super::meter::{self, UsageMeter};
use super::skill_name::SkillName;
use super::slash::Slash;
use crate::json::{arguments, items, owned, text, texts};
use crate::lines::Content;
use crate::turn::SILENT;

/// Name of the model in messages that were not written by a model.
pub(super) const SYNTHETIC: &str = "<synthetic>";

/// Meaning of a line.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum CliEvent {
    /// A step of the agent.
    Step(Step),
    /// The CLI sent a request to its host and is waiting for the response.
    Request(Request),
    /// The CLI rejected a request from its host.
    Refused {
        /// Id of the request.
        request: String,
        /// Reason for the rejection.
        reason: String,
    },
    /// A request of the main agent was answered and used these tokens. Reported only if usage must be known during the
    /// turn.
    Used(Tokens),
    /// A warning about something unusual.
    Warning(String),
    /// A line that should be an event but cannot be read; with a description.
    Unreadable(&'static str),
    /// An event with more levels than can be read.
    TooDeep,
    /// The user's message has been processed.
    Done(Done),
}

/// Ending for a user message, as the CLI reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Done {
    /// The agent answered.
    Answered,
    /// The limit of turns was reached.
    OutOfTurns,
    /// A cost limit was reached. trialrun never sets one.
    OutOfMoney,
    /// An error that is the agent's fault.
    GaveUp(String),
    /// An error that is not the agent's fault: the CLI could not reach its model, or reported an unknown ending.
    Broken(String),
    /// The model could not be reached or did not answer properly.
    ProviderFailed(String),
    /// The processing was interrupted.
    Interrupted(String),
}

/// Interprets the events of a process.
#[derive(Debug, Default)]
pub(super) struct Interpreter {
    auth: Option<String>,
    session_id: Option<String>,
    meter: UsageMeter,
    /// Calls whose denial was already recorded.
    refused: HashSet<String>,
    /// Kind of error in the last message that was not written by a model.
    fault: Option<String>,
    /// Tokens used so far by the response in progress.
    on_the_way: Tokens,
    /// Skill requested by the user's message.
    slash: Slash,
    /// Name of the skill under test.
    skill: SkillName,
    /// True once the model has responded at all to the user's message.
    has_answered: bool,
    /// True once such a response contained text or a call.
    has_acted: bool,
    /// Number of responses of the main agent that have begun, as far as they are reported while they arrive.
    responses: u64,
    /// Ids of messages of the main agent, with the number of the response in which each appeared first.
    messages: HashMap<String, u64>,
}

impl Interpreter {
    /// Creates an interpreter for a new process with the sign-in named `auth`, and with the skill named `plugin` in a
    /// plug-in of the same name.
    pub(super) fn new(auth: impl Into<String>, plugin: Option<&str>) -> Self {
        Self { auth: Some(auth.into()), skill: SkillName::new(plugin), ..Self::default() }
    }

    /// Returns the id of the session, once it is known.
    pub(super) fn session_id(&self) -> Option<&str> {
        self.session_id.as_deref()
    }

    /// Marks the denial of a call as recorded, so that it is not recorded again.
    pub(super) fn refused(&mut self, call_id: &str) {
        self.refused.insert(call_id.to_owned());
    }

    /// Prepares for a user message that is about to be sent.
    pub(super) fn asked(&mut self, message: &str) {
        self.slash = Slash::from_message(message);
        (self.has_answered, self.has_acted) = (false, false);
    }

    /// Interprets `line`; returns nothing for an unknown event or other output.
    pub(super) fn read(&mut self, line: &str) -> Vec<CliEvent> {
        let line = match Content::parse(line) {
            Content::Event(line) => line,
            Content::Other => return Vec::new(),
            Content::Damaged => return vec![CliEvent::Unreadable("a line that is not valid JSON")],
            Content::TooDeep => return vec![CliEvent::TooDeep],
        };
        let mut events = match text(&line, "type").unwrap_or_default() {
            "system" => self.system(&line),
            "assistant" => self.assistant(&line),
            "user" => results(&line),
            "result" => self.result(&line),
            "stream_event" => self.meter(&line),
            "control_request" => {
                vec![Request::read(&line).map_or(CliEvent::Unreadable("a request without an id"), CliEvent::Request)]
            }
            "control_response" => refusal(&line).into_iter().collect(),
            _ => Vec::new(),
        };
        for event in &mut events {
            if let CliEvent::Step(step) = event {
                self.skill.settle(step);
            }
        }
        events
    }

    fn system(&mut self, line: &Value) -> Vec<CliEvent> {
        match text(line, "subtype").unwrap_or_default() {
            "init" => self.init(line),
            "api_retry" => vec![CliEvent::Step(Step::Retry {
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

    /// Reads `init`, which comes with every user message; the session is recorded only when it is a new one.
    fn init(&mut self, line: &Value) -> Vec<CliEvent> {
        self.slash.offered(line);
        let session_id = owned(line, "session_id");
        if self.session_id.is_some() && self.session_id == session_id {
            return Vec::new();
        }
        self.session_id.clone_from(&session_id);
        let strings = |key: &str| -> Vec<String> {
            items(line, key).iter().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let failed = items(line, "mcp_servers").iter().filter(|server| text(server, "status") == Some("failed"));
        let warnings = failed
            .filter_map(|server| text(server, "name"))
            .map(|name| CliEvent::Warning(format!("the MCP server `{name}` of the agent's settings did not start")));
        let session = Step::Session {
            session_id,
            model: owned(line, "model"),
            agent_version: owned(line, "claude_code_version"),
            tools: strings("tools"),
            auth: self.auth.clone(),
        };
        std::iter::once(CliEvent::Step(session)).chain(warnings).collect()
    }

    /// Reads a line with blocks of a message. Lines of the same message have the same id.
    fn assistant(&mut self, line: &Value) -> Vec<CliEvent> {
        let message = line.get("message").unwrap_or(&Value::Null);
        let Some(blocks) = message.get("content").and_then(Value::as_array) else {
            return vec![CliEvent::Unreadable("a model message without content")];
        };
        if text(message, "model") == Some(SYNTHETIC) {
            self.fault = owned(line, "error");
            return blocks.iter().filter_map(|block| text(block, "text")).map(notice).collect();
        }
        self.fault = None;
        self.has_answered = true;
        self.has_acted |=
            blocks.iter().any(|block| is_call(block) || text(block, "text").is_some_and(|it| !it.is_empty()));
        let parent = owned(line, "parent_tool_use_id");
        let id = self.message_id(text(message, "id").unwrap_or_default(), parent.is_none());
        let id = id.as_str();
        let invoked = self.slash.take(id).into_iter().flatten().map(CliEvent::Step);
        let events = blocks.iter().filter_map(|block| match step(block, id, parent.as_ref()) {
            Some(step) => Some(CliEvent::Step(step)),
            None => is_call(block).then_some(CliEvent::Unreadable("a tool call without an id or a name")),
        });
        invoked.chain(events).collect()
    }

    /// Returns an id for the message that its provider calls `id`. Some providers give all their messages the same id.
    /// Such messages can be told apart only while they arrive, because the results of calls may be printed before the
    /// rest of their message.
    fn message_id(&mut self, id: &str, is_own: bool) -> String {
        if !is_own || self.responses == 0 {
            return id.to_owned();
        }
        let first = *self.messages.entry(id.to_owned()).or_insert(self.responses);
        if first == self.responses { id.to_owned() } else { format!("{id}#{}", self.responses) }
    }

    /// Counts the tokens of a response while it arrives. Those of a sub-agent are reported only in the result.
    fn meter(&mut self, line: &Value) -> Vec<CliEvent> {
        let event = line.get("event").unwrap_or(&Value::Null);
        if owned(line, "parent_tool_use_id").is_some() {
            return Vec::new();
        }
        match text(event, "type").unwrap_or_default() {
            "message_start" => {
                self.responses += 1;
                self.on_the_way = event.pointer("/message/usage").and_then(meter::parse_usage).unwrap_or_default();
                Vec::new()
            }
            "message_delta" => {
                // The reported number is the total so far; if it is missing, nothing changed.
                let output = event.pointer("/usage/output_tokens").and_then(Value::as_u64);
                self.on_the_way.output = output.unwrap_or(self.on_the_way.output);
                Vec::new()
            }
            "message_stop" => vec![CliEvent::Used(std::mem::take(&mut self.on_the_way))],
            _ => Vec::new(),
        }
    }

    fn result(&mut self, line: &Value) -> Vec<CliEvent> {
        let mut events = Vec::new();
        for denial in items(line, "permission_denials") {
            events.extend(self.denial(text(denial, "tool_name"), owned(denial, "tool_use_id"), String::new()));
        }
        let usage = self.meter.read(line);
        // The CLI does not print a message without content, but counts its tokens.
        self.has_answered |= usage.tokens.is_some_and(|tokens| tokens.output > 0);
        let done = self.done(line);
        events.push(CliEvent::Step(Step::Finished {
            subtype: owned(line, "subtype").unwrap_or_default(),
            is_error: done != Done::Answered,
            usage,
            text: owned(line, "result").filter(|text| !text.is_empty()),
            result: None,
        }));
        events.push(CliEvent::Done(done));
        self.fault = None;
        events
    }

    /// Returns the ending for a message. It was answered only if `subtype`, `is_error` and `result` all say so.
    fn done(&self, line: &Value) -> Done {
        let message = || {
            let errors: Vec<&str> = items(line, "errors").iter().filter_map(Value::as_str).collect();
            match (text(line, "result").filter(|text| !text.is_empty()), errors.is_empty()) {
                (Some(text), _) => text.to_owned(),
                (None, false) => errors.join("; "),
                (None, true) => text(line, "subtype").unwrap_or("no reason given").to_owned(),
            }
        };
        let reason = text(line, "terminal_reason").unwrap_or_default();
        let is_error = match line.get("is_error") {
            None => Some(false),
            Some(message) => message.as_bool(),
        };
        match (text(line, "subtype").unwrap_or_default(), is_error) {
            ("error_max_turns", _) => return Done::OutOfTurns,
            ("error_max_budget_usd", _) => return Done::OutOfMoney,
            ("error_during_execution", _) if reason.starts_with("aborted") => return Done::Interrupted(message()),
            ("success", Some(false)) if text(line, "result") == Some("") && !self.has_answered => {
                return Done::Broken("its `result` says `success`, but the model said nothing".to_owned());
            }
            ("success", Some(false)) if text(line, "result") == Some("") && !self.has_acted => {
                return Done::GaveUp(SILENT.to_owned());
            }
            ("success", Some(false)) if text(line, "result").is_some() => return Done::Answered,
            ("success", Some(true)) | ("error_during_execution" | "error_max_structured_output_retries", _) => {}
            ("success", _) => return Done::Broken("its `result` cannot be read".to_owned()),
            ("", _) => return Done::Broken("its `result` does not say how it ended".to_owned()),
            (unknown, _) => return Done::Broken(format!("its `result` says `{unknown}`: {}", message())),
        }
        let status = line.get("api_error_status").and_then(Value::as_u64);
        let refused = text(line, "stop_reason") == Some("refusal");
        // A conversation too long for its model, an answer that reaches its token limit and a refusal are the agent's
        // fault.
        let own_doing = refused
            || self.fault.as_deref() == Some("max_output_tokens")
            || text(line, "result").is_some_and(|text| {
                let status = status.and_then(|status| u16::try_from(status).ok());
                text.starts_with("Prompt is too long") || llm::is_agents_doing(status, text)
            });
        if !own_doing && (self.fault.is_some() || status.is_some() || reason == "api_error") {
            Done::ProviderFailed(message())
        } else if own_doing || self.has_answered {
            Done::GaveUp(message())
        } else {
            Done::Broken(message())
        }
    }

    fn denial(&mut self, tool: Option<&str>, call_id: Option<String>, message: String) -> Option<CliEvent> {
        if let Some(id) = &call_id
            && !self.refused.insert(id.clone())
        {
            return None;
        }
        let tool = tool.unwrap_or_default().to_owned();
        // Asking the user does not count as a denied permission.
        (model::tool::effect(&tool) != Effect::Ask)
            .then(|| CliEvent::Step(Step::PermissionDenied { tool, call_id, message }))
    }
}

/// Reads a block of a model message as a step.
pub(super) fn step(block: &Value, message: &str, parent: Option<&String>) -> Option<Step> {
    let (message, parent) = (message.to_owned(), parent.cloned());
    match text(block, "type")? {
        "text" => {
            let text = owned(block, "text").filter(|text| !text.is_empty())?;
            Some(Step::Text { message, text, parent })
        }
        "thinking" => Some(Step::Thinking { message, text: owned(block, "thinking").unwrap_or_default(), parent }),
        "redacted_thinking" => Some(Step::Thinking { message, text: String::new(), parent }),
        "tool_use" | "server_tool_use" => {
            let mut call = ToolCall::new(text(block, "id")?, text(block, "name")?, arguments(block, "input"), message);
            call.parent = parent;
            Some(Step::ToolCall(call))
        }
        _ => None,
    }
}

/// Returns `true` if a block of a model message calls a tool.
fn is_call(block: &Value) -> bool {
    matches!(text(block, "type"), Some("tool_use" | "server_tool_use"))
}

/// Reads the results of tools, which arrive as user messages.
fn results(line: &Value) -> Vec<CliEvent> {
    let results = items(&line["message"], "content").iter().filter(|block| text(block, "type") == Some("tool_result"));
    results
        .map(|block| match tool_result(block) {
            Some(result) => CliEvent::Step(Step::ToolResult(result)),
            None => CliEvent::Unreadable("a result of a tool without the id of its call"),
        })
        .collect()
}

/// Returns the result of a tool; `None` if it does not name its call.
pub(super) fn tool_result(block: &Value) -> Option<ToolResult> {
    Some(ToolResult {
        id: owned(block, "tool_use_id")?,
        content: texts(block.get("content").unwrap_or(&Value::Null)),
        is_error: block.get("is_error").and_then(Value::as_bool).unwrap_or(false),
    })
}

fn refusal(line: &Value) -> Option<CliEvent> {
    let response = line.get("response")?;
    (text(response, "subtype")? == "error").then(|| CliEvent::Refused {
        request: owned(response, "request_id").unwrap_or_default(),
        reason: owned(response, "error").unwrap_or_default(),
    })
}

fn notice(text: &str) -> CliEvent {
    CliEvent::Step(Step::Notice { from: "agent".into(), text: text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn interpreter() -> Interpreter {
        Interpreter::new("scripted", None)
    }

    fn read(lines: &[Value]) -> Vec<CliEvent> {
        let mut interpreter = interpreter();
        lines.iter().flat_map(|line| interpreter.read(&line.to_string())).collect()
    }

    /// Returns the ending for a message that the model has answered.
    fn done(result: &Value) -> Option<Done> {
        let called = json!([{"type": "tool_use", "id": "c", "name": "Bash", "input": {}}]);
        ended(&[message(&called)], result)
    }

    fn message(content: &Value) -> Value {
        json!({"type": "assistant", "message": {"id": "m", "model": "m", "content": content}})
    }

    fn ended(before: &[Value], result: &Value) -> Option<Done> {
        let mut result = result.clone();
        result["type"] = json!("result");
        let lines: Vec<Value> = before.iter().cloned().chain([result]).collect();
        read(&lines).into_iter().find_map(|event| match event {
            CliEvent::Done(done) => Some(done),
            _ => None,
        })
    }

    #[test]
    fn a_success_without_model_output_is_not_an_answer() {
        let result = |text: &str| json!({"subtype": "success", "is_error": false, "result": text, "num_turns": 0});
        let broken = Done::Broken("its `result` says `success`, but the model said nothing".to_owned());
        assert_eq!(ended(&[], &result("")), Some(broken));
        assert_eq!(ended(&[], &result("$0.00")), Some(Done::Answered), "a command of the CLI's own");
        assert_eq!(done(&result("")), Some(Done::Answered), "the model answered with a call, say");
        let mut used = result("");
        used["usage"] = json!({"input_tokens": 200, "output_tokens": 20});
        assert_eq!(ended(&[], &used), Some(Done::GaveUp(SILENT.to_owned())), "an empty message is only counted");
        let thought = message(&json!([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": ""}]));
        assert_eq!(ended(&[thought], &result("")), Some(Done::GaveUp(SILENT.to_owned())));
    }

    #[test]
    fn messages_with_the_same_id_are_told_apart_while_they_arrive() {
        let begins = json!({"type": "stream_event", "event": {"type": "message_start", "message": {}}});
        let text = |text: &str| message(&json!([{"type": "text", "text": text}]));
        let turns = |lines: &[Value]| {
            let steps: Vec<Step> = read(lines)
                .into_iter()
                .filter_map(|event| if let CliEvent::Step(step) = event { Some(step) } else { None })
                .collect();
            model::Trace::of(&steps).turn_count()
        };
        assert_eq!(turns(&[begins.clone(), text("a"), text("b"), begins, text("c"), text("d")]), 2);
        assert_eq!(turns(&[text("a"), text("b")]), 1, "one message in two lines");
    }

    #[test]
    fn a_session_is_recorded_once_although_every_message_has_an_init() {
        let init = json!({"type": "system", "subtype": "init", "session_id": "s", "model": "m", "tools": ["Bash"],
            "claude_code_version": "2.1.330", "mcp_servers": [{"name": "db", "status": "failed"}]});
        let events = read(&[init.clone(), init]);
        assert_eq!(events.len(), 2);
        let CliEvent::Step(Step::Session { session_id, agent_version, tools, auth, .. }) = &events[0] else {
            panic!("{events:?}")
        };
        assert_eq!(session_id.as_deref(), Some("s"));
        assert_eq!(agent_version.as_deref(), Some("2.1.330"));
        assert_eq!(auth.as_deref(), Some("scripted"));
        assert_eq!(tools, &["Bash"]);
        assert!(matches!(&events[1], CliEvent::Warning(warning) if warning.contains("`db`")));
    }

    #[test]
    fn is_error_takes_precedence_over_subtype() {
        let reason = |text: &str| text.to_owned();
        let cases = [
            (json!({"subtype": "success", "is_error": false, "result": "hi"}), Done::Answered),
            (
                json!({"subtype": "success", "is_error": true, "api_error_status": 529, "result": "API Error: 529"}),
                Done::ProviderFailed(reason("API Error: 529")),
            ),
            (
                json!({"subtype": "success", "is_error": true, "terminal_reason": "api_error", "result": "cut"}),
                Done::ProviderFailed(reason("cut")),
            ),
            (
                json!({"subtype": "success", "is_error": true, "stop_reason": "refusal", "terminal_reason": "api_error",
                       "result": "no"}),
                Done::GaveUp(reason("no")),
            ),
            (
                json!({"subtype": "success", "is_error": true, "api_error_status": 400,
                       "result": "Prompt is too long"}),
                Done::GaveUp(reason("Prompt is too long")),
            ),
            (json!({"subtype": "error_max_turns", "is_error": true}), Done::OutOfTurns),
            (json!({"subtype": "error_max_budget_usd", "is_error": true}), Done::OutOfMoney),
            (
                json!({"subtype": "error_during_execution", "is_error": true, "terminal_reason": "aborted_tools",
                       "errors": ["a", "b"]}),
                Done::Interrupted(reason("a; b")),
            ),
            (
                json!({"subtype": "error_during_execution", "is_error": true, "errors": ["broke"]}),
                Done::GaveUp(reason("broke")),
            ),
        ];
        for (result, expected) in cases {
            assert_eq!(done(&result), Some(expected), "{result}");
        }
    }

    #[test]
    fn an_unknown_or_unreadable_ending_is_not_an_answer() {
        for result in [
            json!({}),
            json!({"subtype": "success"}),
            json!({"subtype": "success", "is_error": false, "result": {"text": "hi"}}),
            json!({"subtype": "success", "is_error": "no", "result": "hi"}),
            json!({"subtype": 7, "is_error": false, "result": "hi"}),
            json!({"subtype": "error_foo", "result": "hi"}),
            json!({"subtype": "error_foo", "is_error": false, "result": "hi"}),
        ] {
            assert!(matches!(done(&result), Some(Done::Broken(_))), "{result}: {:?}", done(&result));
        }
        for subtype in ["error_during_execution", "error_max_structured_output_retries"] {
            let result = json!({"subtype": subtype, "is_error": false, "errors": ["broke"]});
            assert_eq!(done(&result), Some(Done::GaveUp("broke".into())));
            assert_eq!(ended(&[], &result), Some(Done::Broken("broke".into())), "the model was never asked");
        }
        let refused = json!({"subtype": "success", "is_error": true, "result": "Prompt is too long"});
        assert_eq!(ended(&[], &refused), Some(Done::GaveUp("Prompt is too long".into())));
    }

    #[test]
    fn a_message_without_a_model_is_not_a_turn_and_contains_the_failure() {
        let mut interpreter = interpreter();
        let error = json!({"type": "assistant", "error": "max_output_tokens",
            "message": {"id": "x", "model": "<synthetic>", "content": [{"type": "text", "text": "too long"}]}});
        let events = interpreter.read(&error.to_string());
        assert_eq!(events, [CliEvent::Step(Step::Notice { from: "agent".into(), text: "too long".into() })]);
        let result = json!({"type": "result", "subtype": "success", "is_error": true, "result": "too long",
            "terminal_reason": "api_error"});
        let events = interpreter.read(&result.to_string());
        assert_eq!(events.last(), Some(&CliEvent::Done(Done::GaveUp("too long".into()))));
    }

    #[test]
    fn a_denial_is_recorded_once() {
        let mut interpreter = interpreter();
        interpreter.refused("t1");
        let result = json!({"type": "result", "subtype": "success", "is_error": false, "permission_denials": [
            {"tool_name": "Bash", "tool_use_id": "t1"},
            {"tool_name": "Write", "tool_use_id": "t2"},
            {"tool_name": "AskUserQuestion", "tool_use_id": "t3"},
        ]});
        let events = interpreter.read(&result.to_string());
        let denied: Vec<_> = events
            .iter()
            .filter_map(|event| match event {
                CliEvent::Step(Step::PermissionDenied { tool, .. }) => Some(tool.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(denied, ["Write"]);
    }

    #[test]
    fn the_skill_under_test_has_the_same_name_in_every_exposure() {
        let call = |skill: &str| {
            json!({"type": "assistant", "message": {"id": "m", "model": "m", "content": [
                {"type": "tool_use", "id": "t", "name": "Skill", "input": {"skill": skill, "args": "x"}}]}})
        };
        let answered = json!({"type": "user", "message": {"content": [
            {"type": "tool_result", "tool_use_id": "t", "content": "Launching skill: sk:sk"}]}});
        let named = |plugin: Option<&str>, skill: &str| {
            let mut interpreter = Interpreter::new("subscription", plugin);
            let events: Vec<CliEvent> =
                [call(skill), answered.clone()].iter().flat_map(|line| interpreter.read(&line.to_string())).collect();
            let [CliEvent::Step(Step::ToolCall(call)), CliEvent::Step(Step::ToolResult(result))] = &events[..] else {
                panic!("{events:?}")
            };
            (call.input["skill"].as_str().unwrap_or_default().to_owned(), result.content.clone())
        };
        let own = ("sk".to_owned(), "Launching skill: sk".to_owned());
        assert_eq!(named(Some("sk"), "sk:sk"), own);
        assert_eq!(named(Some("sk"), "/sk:sk").0, "/sk");
        assert_eq!(named(Some("sk"), "sk").0, "sk");
        assert_eq!(named(Some("other"), "sk:sk"), ("sk:sk".into(), "Launching skill: sk:sk".into()), "the user's own");
        assert_eq!(named(None, "sk:sk").0, "sk:sk");
    }

    #[test]
    fn a_sub_agents_call_carries_its_parent() {
        let events =
            read(&[json!({"type": "assistant", "parent_tool_use_id": "t1", "message": {"id": "m2", "model": "m",
            "content": [{"type": "tool_use", "id": "t2", "name": "Bash", "input": {"command": "ls"}}]}})]);
        let CliEvent::Step(Step::ToolCall(call)) = &events[0] else { panic!("{events:?}") };
        assert_eq!((call.parent.as_deref(), call.message.as_str()), (Some("t1"), "m2"));
        assert_eq!(call.effect, Effect::Shell);
    }

    #[test]
    fn every_tool_result_becomes_text() {
        let block = json!([{"type": "text", "text": "a"}, {"type": "image", "source": {"data": "AAAA"}}, {"n": 1}]);
        assert_eq!(texts(&block), "a\n[image]\n{\"n\":1}");
        assert_eq!(texts(&Value::Null), "");
    }

    #[test]
    fn unknown_events_are_ignored_and_unreadable_ones_are_reported() {
        let mut interpreter = interpreter();
        for line in [
            "",
            "not json",
            "[]",
            "null",
            "{\"type\":\"rate_limit_event\"}",
            "{\"type\":\"user\",\"message\":{\"content\":\"text\"}}",
            "{\"type\":\"system\",\"subtype\":\"new\"}",
            "{\"type\":\"control_response\"}",
        ] {
            assert_eq!(interpreter.read(line), [], "{line}");
        }
        for line in [
            "{\"type\":\"assistant\"",
            "{\"type\":\"assistant\"}",
            "{\"type\":\"assistant\",\"message\":{\"content\":\"text\"}}",
            "{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"tool_use\",\"id\":\"t\"}]}}",
            "{\"type\":\"user\",\"message\":{\"content\":[{\"type\":\"tool_result\"}]}}",
            "{\"type\":\"control_request\"}",
        ] {
            assert!(matches!(interpreter.read(line)[..], [CliEvent::Unreadable(_)]), "{line}");
        }
    }
}

//! Reads events on OpenCode's stdout, one JSON object per line, as steps. No event marks the start or the end of a
//! session, so the ending is determined after the last event. Unknown events are ignored. A known event that cannot be
//! read is reported, because it may contain an action of the agent. The caller keeps every line unchanged.

use model::{Ending, Step, Tokens, Usage, foreign_json};
use serde_json::Value;

use super::tool;
use crate::lines::Content;
use crate::turn::{INTERRUPTED, SILENT};

/// Data about a session that OpenCode does not report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SessionInfo {
    /// Requested model.
    pub(super) model: Option<String>,
    /// Version of OpenCode.
    pub(super) version: Option<String>,
    /// Name of the sign-in.
    pub(super) auth: String,
}

/// Meaning of a line.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum OpenCodeEvent {
    /// A step of the agent.
    Step(Step),
    /// A message from the model begins.
    Started,
    /// A message from the model is complete.
    Complete {
        /// True if another message follows, because the model called tools.
        goes_on: bool,
        /// Usage of the message.
        tokens: Tokens,
    },
    /// A line that should be an event but cannot be read; with a description.
    Unreadable(&'static str),
    /// An event with more levels than can be read.
    TooDeep,
}

/// Session of a sub-agent. The events report only the call that started it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SubAgent {
    /// Id of the call.
    pub(super) call: String,
    /// Id of the session.
    pub(super) session: String,
}

/// Interprets the events of one user message.
#[derive(Debug, Default)]
pub(super) struct Interpreter {
    info: SessionInfo,
    /// Session that has already been recorded.
    session_id: Option<String>,
    message: Option<Message>,
    /// Texts of the last message.
    answer: Vec<String>,
    /// True if the model wrote text or called a tool in any message.
    has_acted: bool,
    tokens: Option<Tokens>,
    cost_usd: f64,
    /// Reason why the last complete message ended.
    reason: Option<String>,
    /// Reason why a call of the last message was denied.
    refusal: Option<String>,
    fault: Option<Ending>,
    sub_agents: Vec<SubAgent>,
}

/// An incomplete message from the model. Its parts are reported in the order in which they finish; sorting by their
/// ids gives the order in which the model wrote them.
#[derive(Debug)]
struct Message {
    id: String,
    parts: Vec<(String, Vec<Step>)>,
}

impl Interpreter {
    /// Creates an interpreter for a user message. `session_id` is the session to continue.
    pub(super) fn new(info: SessionInfo, session_id: Option<String>) -> Self {
        Self { info, session_id, ..Self::default() }
    }

    /// Returns the id of the session, once it is known.
    pub(super) fn session_id(&self) -> Option<&str> {
        self.session_id.as_deref()
    }

    /// Interprets `line`; returns nothing for an unknown event or other output.
    pub(super) fn read(&mut self, line: &str) -> Vec<OpenCodeEvent> {
        let line = match Content::parse(line) {
            Content::Event(line) => line,
            Content::Other => return Vec::new(),
            Content::Damaged => return vec![OpenCodeEvent::Unreadable("an event that is not valid JSON")],
            Content::TooDeep => return vec![OpenCodeEvent::TooDeep],
        };
        let mut events: Vec<OpenCodeEvent> = self.session(&line).into_iter().collect();
        let part = line.get("part").unwrap_or(&Value::Null);
        if let Some(what) = defect(text(&line, "type"), part) {
            events.push(OpenCodeEvent::Unreadable(what));
            return events;
        }
        match text(&line, "type") {
            "step_start" => events.extend(self.begin(text(part, "messageID"))),
            "text" | "reasoning" | "tool_use" => self.add(part),
            "step_finish" => events.extend(self.complete(part)),
            "error" => self.fault = Some(fault(line.get("error").unwrap_or(&Value::Null))),
            _ => {}
        }
        events
    }

    /// Takes the sub-agents whose sessions have not been read yet.
    pub(super) fn take_sub_agents(&mut self) -> Vec<SubAgent> {
        std::mem::take(&mut self.sub_agents)
    }

    /// Reads a sub-agent's steps from its session as exported by OpenCode; returns `None` if the export is not a
    /// session.
    pub(super) fn read_sub_agent(&mut self, agent: &SubAgent, export: &str) -> Option<Vec<Step>> {
        let export: Value = foreign_json::parse(export).ok()?;
        let messages = export.get("messages")?.as_array()?.iter();
        let answers =
            messages.filter(|message| message.pointer("/info/role").and_then(Value::as_str) == Some("assistant"));
        let mut events = Vec::new();
        for part in answers.filter_map(|message| message.get("parts")?.as_array()).flatten() {
            if text(part, "type") == "step-finish" {
                self.meter(part);
            }
            self.sub_agents.extend(sub_agent(part));
            events.extend(steps(part, Some(&agent.call)));
        }
        Some(events)
    }

    /// Returns the remaining steps, including the final one, and the ending; [`Ending::Aborted`] if the output has no
    /// ending. Must be called after the last event.
    pub(super) fn end(&mut self) -> (Vec<Step>, Ending) {
        let mut steps = self.flush();
        let done = self.done();
        let answered = done == Ending::Finished;
        let cost_usd = self.tokens.and(Some(self.cost_usd).filter(|cost| *cost > 0.0));
        steps.push(Step::Finished {
            subtype: if answered { "success" } else { "error" }.to_owned(),
            is_error: !answered,
            usage: Usage { tokens: self.tokens, cost_usd },
            text: Some(self.answer.join("\n")).filter(|text| answered && !text.is_empty()),
            result: None,
        });
        (steps, done)
    }

    /// Returns the step that records the session, once.
    fn session(&mut self, line: &Value) -> Option<OpenCodeEvent> {
        let id = text(line, "sessionID");
        if id.is_empty() || self.session_id.is_some() {
            return None;
        }
        self.session_id = Some(id.to_owned());
        Some(OpenCodeEvent::Step(Step::Session {
            session_id: Some(id.to_owned()),
            model: self.info.model.clone(),
            agent_version: self.info.version.clone(),
            tools: Vec::new(),
            auth: Some(self.info.auth.clone()),
        }))
    }

    /// Begins a message. If the request for a message is retried, the message begins again with the same id.
    fn begin(&mut self, id: &str) -> Vec<OpenCodeEvent> {
        if self.message.as_ref().is_some_and(|message| message.id == id) {
            return Vec::new();
        }
        let mut events: Vec<OpenCodeEvent> = self.flush().into_iter().map(OpenCodeEvent::Step).collect();
        self.answer.clear();
        self.refusal = None;
        self.message = Some(Message { id: id.to_owned(), parts: Vec::new() });
        events.push(OpenCodeEvent::Started);
        events
    }

    fn complete(&mut self, part: &Value) -> Vec<OpenCodeEvent> {
        let events = self.flush().into_iter().map(OpenCodeEvent::Step);
        let tokens = self.meter(part);
        let reason = text(part, "reason").to_owned();
        let goes_on = reason == "tool-calls";
        self.reason = Some(reason);
        // An earlier error was overcome.
        self.fault = None;
        events.chain([OpenCodeEvent::Complete { goes_on, tokens }]).collect()
    }

    /// Counts the usage of a message. The counts do not overlap, and output does not include reasoning.
    fn meter(&mut self, part: &Value) -> Tokens {
        let count = |path: &str| part.pointer(path).and_then(Value::as_u64).unwrap_or(0);
        let reasoning = count("/tokens/reasoning");
        let tokens = Tokens {
            input: count("/tokens/input"),
            cache_read: count("/tokens/cache/read"),
            cache_write: count("/tokens/cache/write"),
            output: count("/tokens/output") + reasoning,
            reasoning: Some(reasoning),
        };
        // If usage has no numbers, it is unknown, not zero.
        let is_reported =
            ["/tokens/input", "/tokens/output"].iter().any(|path| part.pointer(path).is_some_and(Value::is_u64));
        if is_reported {
            *self.tokens.get_or_insert_default() += tokens;
        }
        self.cost_usd += part.get("cost").and_then(Value::as_f64).unwrap_or(0.0);
        tokens
    }

    /// Keeps a part until its message is complete.
    fn add(&mut self, part: &Value) {
        let steps = steps(part, None);
        for step in &steps {
            match step {
                Step::Text { text, .. } if !text.is_empty() => {
                    self.answer.push(text.clone());
                    self.has_acted = true;
                }
                Step::ToolCall(_) => self.has_acted = true,
                Step::PermissionDenied { tool, message, .. } => self.refusal = Some(format!("{tool}: {message}")),
                _ => {}
            }
        }
        self.sub_agents.extend(sub_agent(part));
        let id = text(part, "messageID");
        let message = self.message.get_or_insert_with(|| Message { id: id.to_owned(), parts: Vec::new() });
        message.parts.push((text(part, "id").to_owned(), steps));
    }

    /// Returns the steps of the incomplete message, in the order in which the model wrote them.
    fn flush(&mut self) -> Vec<Step> {
        let Some(mut message) = self.message.take() else { return Vec::new() };
        message.parts.sort_by(|(a, _), (b, _)| a.cmp(b));
        message.parts.into_iter().flat_map(|(_, steps)| steps).collect()
    }

    fn done(&self) -> Ending {
        if let Some(fault) = &self.fault {
            return fault.clone();
        }
        match (self.reason.as_deref(), &self.refusal) {
            (None, _) => Ending::Aborted { reason: "OpenCode produced no output".to_owned() },
            (Some("tool-calls"), Some(refusal)) => {
                Ending::GaveUp { reason: format!("it stopped because a call was not permitted ({refusal})") }
            }
            (Some("tool-calls"), None) => {
                Ending::Aborted { reason: "OpenCode had called tools and did not continue".to_owned() }
            }
            (Some("length"), _) => Ending::GaveUp { reason: "its answer is longer than the model's limit".to_owned() },
            (Some("content-filter"), _) => Ending::GaveUp { reason: "the model refused to answer".to_owned() },
            (Some("error"), _) => {
                Ending::ProviderFailed { reason: "the model's answer ended with an error".to_owned() }
            }
            // Providers that report none of the usual reasons have `other` or `unknown`.
            (Some("stop" | "other" | "unknown"), _) if self.has_acted => Ending::Finished,
            (Some("stop" | "other" | "unknown"), _) if self.tokens.is_some_and(|tokens| tokens.total() > 0) => {
                Ending::GaveUp { reason: SILENT.to_owned() }
            }
            (Some("stop" | "other" | "unknown"), _) => Ending::Aborted { reason: "the model said nothing".to_owned() },
            (Some(""), _) => Ending::Aborted { reason: "OpenCode's last message does not say how it ended".to_owned() },
            (Some(reason), _) => Ending::Aborted { reason: format!("OpenCode's last message ended with `{reason}`") },
        }
    }
}

/// Describes what is missing in a known event that does not say what the agent did; `None` if it is complete.
fn defect(event: &str, part: &Value) -> Option<&'static str> {
    let is = |kind: &str| text(part, "type") == kind;
    let lacks = |key: &str| part.get(key).and_then(Value::as_str).is_none();
    match event {
        "step_start" if lacks("messageID") => Some("a message without an id"),
        "text" if !is("text") || lacks("text") => Some("a text part without text"),
        "reasoning" if !is("reasoning") || lacks("text") => Some("a reasoning part without text"),
        "tool_use" if !is("tool") || text(part, "callID").is_empty() || text(part, "tool").is_empty() => {
            Some("a tool call without an id or a name")
        }
        "tool_use" if part.pointer("/state/status").and_then(Value::as_str).is_none() => {
            Some("a tool call without its state")
        }
        _ => None,
    }
}

/// Reads a part of a message as steps. `parent` is the call that started the sub-agent, if there is one.
pub(super) fn steps(part: &Value, parent: Option<&String>) -> Vec<Step> {
    let (message, content) = (text(part, "messageID"), text(part, "text"));
    match text(part, "type") {
        "text" => vec![Step::Text { message: message.to_owned(), text: content.to_owned(), parent: parent.cloned() }],
        "reasoning" => {
            vec![Step::Thinking { message: message.to_owned(), text: content.to_owned(), parent: parent.cloned() }]
        }
        "tool" => calls(part, message, parent),
        _ => Vec::new(),
    }
}

fn calls(part: &Value, message: &str, parent: Option<&String>) -> Vec<Step> {
    let mut steps = Vec::new();
    for (mut call, result) in tool::read(part, message) {
        call.parent = parent.cloned();
        let (tool, id) = (call.name.clone(), call.id.clone());
        steps.push(Step::ToolCall(call));
        let refusal = tool::refusal(&result);
        steps.extend(refusal.map(|message| Step::PermissionDenied { tool, call_id: Some(id), message }));
        steps.push(Step::ToolResult(result));
    }
    steps
}

/// Returns the sub-agent that a call has started.
pub(super) fn sub_agent(part: &Value) -> Option<SubAgent> {
    let session = part.pointer("/state/metadata/sessionId").and_then(Value::as_str)?;
    let is_task = text(part, "tool") == "task";
    is_task.then(|| SubAgent { call: text(part, "callID").to_owned(), session: session.to_owned() })
}

/// Returns the ending for an error, depending on who is at fault.
pub(super) fn fault(error: &Value) -> Ending {
    let name = text(error, "name");
    let data = error.get("data").unwrap_or(&Value::Null);
    let message = match text(data, "message") {
        "" => name,
        message => message,
    };
    let status = data.get("statusCode").and_then(Value::as_u64);
    let all = format!("{message} {}", text(data, "responseBody"));
    let is_own_doing = llm::is_agents_doing(status.and_then(|status| u16::try_from(status).ok()), &all);
    let message = match status {
        Some(status) => format!("HTTP {status}: {message}"),
        None => message.to_owned(),
    };
    match name {
        // A conversation too long for its model and an answer that reaches its token limit are the agent's fault.
        "ContextOverflowError" | "MessageOutputLengthError" | "ContentFilterError" | "StructuredOutputError" => {
            Ending::GaveUp { reason: message }
        }
        "MessageAbortedError" => Ending::Aborted { reason: format!("{INTERRUPTED}{message}") },
        _ if is_own_doing => Ending::GaveUp { reason: message },
        // A failure of OpenCode itself, without details.
        "UnknownError" if data.get("ref").is_some() => Ending::Aborted { reason: message },
        _ => Ending::ProviderFailed { reason: message },
    }
}

/// Returns the text under `key`, or an empty string if there is none.
fn text<'a>(from: &'a Value, key: &str) -> &'a str {
    from.get(key).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn part(kind: &str, id: &str, message: &str, rest: &Value) -> String {
        let types =
            [("text", "text"), ("tool_use", "tool"), ("step_start", "step-start"), ("step_finish", "step-finish")];
        let own = types.iter().find(|(event, _)| *event == kind).map(|(_, own)| *own);
        let mut part = json!({"id": id, "messageID": message, "type": own});
        for (key, value) in rest.as_object().unwrap() {
            part[key] = value.clone();
        }
        json!({"type": kind, "sessionID": "ses_1", "part": part}).to_string()
    }

    fn finish(message: &str, reason: &str) -> String {
        let tokens = json!({"input": 80, "output": 7, "reasoning": 3, "cache": {"write": 4, "read": 20}});
        part("step_finish", "z", message, &json!({"reason": reason, "tokens": tokens, "cost": 0.5}))
    }

    /// Returns the model's message `id`: its text, and its end for `reason`.
    fn answer(id: &str, reason: &str) -> [String; 2] {
        [part("text", "p", id, &json!({"text": "hi"})), finish(id, reason)]
    }

    fn ended(lines: &[String]) -> (Vec<Step>, Ending) {
        let mut interpreter = Interpreter::new(SessionInfo::default(), Some("ses_1".into()));
        for line in lines {
            interpreter.read(line);
        }
        interpreter.end()
    }

    #[test]
    fn the_steps_of_a_message_are_sorted_by_part_id() {
        let mut interpreter = Interpreter::new(SessionInfo::default(), None);
        let call = |id: &str| {
            part(
                "tool_use",
                id,
                "m1",
                &json!({"tool": "bash", "callID": id, "state": {"status": "completed", "input": {}}}),
            )
        };
        assert!(matches!(
            interpreter.read(&part("step_start", "p0", "m1", &json!({})))[..],
            [OpenCodeEvent::Step(_), OpenCodeEvent::Started]
        ));
        for line in [call("p3"), call("p2"), part("text", "p1", "m1", &json!({"text": "Look:"}))] {
            assert_eq!(interpreter.read(&line), []);
        }
        let events = interpreter.read(&finish("m1", "tool-calls"));
        let order: Vec<&str> = events
            .iter()
            .filter_map(|event| match event {
                OpenCodeEvent::Step(Step::Text { text, .. }) => Some(text.as_str()),
                OpenCodeEvent::Step(Step::ToolCall(call)) => Some(call.id.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(order, ["Look:", "p2", "p3"]);
        let tokens = Tokens { input: 80, cache_read: 20, cache_write: 4, output: 10, reasoning: Some(3) };
        assert_eq!(events.last(), Some(&OpenCodeEvent::Complete { goes_on: true, tokens }));
    }

    #[test]
    fn output_tokens_include_reasoning_and_a_session_without_messages_has_no_usage() {
        let (steps, done) = ended(&[answer("m1", "tool-calls"), answer("m2", "stop")].concat());
        let Some(Step::Finished { usage, .. }) = steps.last() else { panic!("{steps:?}") };
        let tokens = Tokens { input: 160, cache_read: 40, cache_write: 8, output: 20, reasoning: Some(6) };
        assert_eq!((usage.tokens, usage.cost_usd, done), (Some(tokens), Some(1.0), Ending::Finished));
        let (steps, done) = ended(&[]);
        let Some(Step::Finished { usage, is_error: true, .. }) = steps.last() else { panic!("{steps:?}") };
        assert_eq!(
            (*usage, done),
            (Usage::default(), Ending::Aborted { reason: "OpenCode produced no output".into() })
        );
    }

    #[test]
    fn the_answer_is_the_text_of_the_last_message() {
        let say = |id: &str, message: &str, text: &str| part("text", id, message, &json!({ "text": text }));
        let begin = |message: &str| part("step_start", "a", message, &json!({}));
        let (steps, _) = ended(&[
            begin("m1"),
            say("p1", "m1", "first"),
            finish("m1", "tool-calls"),
            begin("m2"),
            say("p2", "m2", "one"),
            say("p3", "m2", "two"),
            finish("m2", "stop"),
        ]);
        assert!(
            matches!(steps.last(), Some(Step::Finished { text: Some(text), .. }) if text == "one\ntwo"),
            "{steps:?}"
        );
    }

    #[test]
    fn the_fault_for_an_ending_follows_from_its_reason_and_the_last_error() {
        let error = |error: Value| json!({"type": "error", "sessionID": "ses_1", "error": error}).to_string();
        let done = |lines: &[String]| ended(lines).1;
        let overflow = error(json!({"name": "ContextOverflowError", "data": {"message": "too long"}}));
        assert_eq!(done(std::slice::from_ref(&overflow)), Ending::GaveUp { reason: "too long".into() });
        let [text, stop] = answer("m1", "stop");
        assert_eq!(done(&[overflow, text, stop]), Ending::Finished, "it has made room");
        let api = error(json!({"name": "APIError", "data": {"message": "no", "statusCode": 503}}));
        assert_eq!(done(&[finish("m1", "tool-calls"), api]), Ending::ProviderFailed { reason: "HTTP 503: no".into() });
        assert_eq!(
            done(&[error(json!({"name": "ProviderAuthError"}))]),
            Ending::ProviderFailed { reason: "ProviderAuthError".into() }
        );
        let own = error(json!({"name": "UnknownError", "data": {"message": "see the log", "ref": "err_1"}}));
        assert_eq!(done(&[own]), Ending::Aborted { reason: "see the log".into() });
        for (reason, expected) in [("length", "longer"), ("content-filter", "refused")] {
            assert!(
                matches!(done(&[finish("m1", reason)]), Ending::GaveUp { reason } if reason.contains(expected)),
                "{reason}"
            );
        }
        assert!(matches!(done(&[finish("m1", "tool-calls")]), Ending::Aborted { .. }));
        assert_eq!(done(&answer("m1", "other")), Ending::Finished);
        assert!(matches!(done(&answer("m1", "new")), Ending::Aborted { reason } if reason.contains("`new`")));
    }

    #[test]
    fn a_completed_message_without_a_text_or_a_call_is_not_an_answer() {
        let done = |line: String| ended(&[line]).1;
        assert!(matches!(done(finish("m1", "stop")), Ending::GaveUp { reason } if reason.contains("neither text nor")));
        let unused = part("step_finish", "z", "m1", &json!({"reason": "stop"}));
        assert!(matches!(done(unused), Ending::Aborted { reason } if reason.contains("said nothing")));
        for finish in [json!({"reason": 7}), json!({})] {
            let [text, _] = answer("m1", "stop");
            let (_, done) = ended(&[text, part("step_finish", "z", "m1", &finish)]);
            assert!(matches!(done, Ending::Aborted { reason } if reason.contains("does not say how it ended")));
        }
    }

    #[test]
    fn an_event_without_its_required_fields_cannot_be_read() {
        let called = |state: Value| json!({"tool": "bash", "callID": "c", "state": state});
        let empty = json!({});
        for line in [
            part("text", "p", "m1", &empty),
            part("text", "p", "m1", &json!({"text": ["a"]})),
            part("tool_use", "p", "m1", &called(json!({}))),
            part("tool_use", "p", "m1", &called(Value::Null)),
            json!({"type": "tool_use", "part": {"callID": "c", "tool": "bash"}}).to_string(),
            json!({"type": "step_start", "part": 5}).to_string(),
            json!({"type": "text"}).to_string(),
        ] {
            let mut interpreter = Interpreter::new(SessionInfo::default(), Some("ses_1".into()));
            assert!(matches!(interpreter.read(&line)[..], [OpenCodeEvent::Unreadable(_)]), "{line}");
        }
    }

    #[test]
    fn the_work_of_a_sub_agent_is_read_from_its_session_and_counted() {
        let mut interpreter = Interpreter::new(SessionInfo::default(), Some("ses_1".into()));
        let state = json!({"status": "completed", "input": {}, "metadata": {"sessionId": "ses_2"}});
        interpreter.read(&part("tool_use", "p1", "m1", &json!({"tool": "task", "callID": "c1", "state": state})));
        interpreter.read(&finish("m1", "stop"));
        let agents = interpreter.take_sub_agents();
        assert_eq!(agents, [SubAgent { call: "c1".into(), session: "ses_2".into() }]);
        let finished: Value = serde_json::from_str(&finish("m2", "stop")).unwrap();
        let export = json!({"info": {"id": "ses_2"}, "messages": [
            {"info": {"role": "user"}, "parts": [{"type": "text", "text": "do it", "messageID": "m0"}]},
            {"info": {"role": "assistant"}, "parts": [
                {"type": "step-start", "messageID": "m2"},
                {"type": "tool", "tool": "bash", "callID": "c2", "messageID": "m2",
                 "state": {"status": "completed", "input": {"command": "ls"}, "metadata": {"exit": 0}}},
                finished["part"],
            ]},
        ]});
        let steps = interpreter.read_sub_agent(&agents[0], &export.to_string()).unwrap();
        assert!(
            matches!(&steps[..], [Step::ToolCall(call), Step::ToolResult(_)]
            if call.name == "Bash" && call.parent.as_deref() == Some("c1")),
            "{steps:?}"
        );
        let (steps, _) = interpreter.end();
        let Some(Step::Finished { usage, .. }) = steps.last() else { panic!("{steps:?}") };
        assert_eq!(usage.tokens.map(|tokens| tokens.total()), Some(2 * 114));
        assert_eq!(interpreter.read_sub_agent(&agents[0], "Session not found"), None);
    }

    #[test]
    fn unknown_events_are_ignored() {
        let mut interpreter = Interpreter::default();
        for line in ["", "not json", "[]", "null", "{\"type\":\"new\"}"] {
            assert_eq!(interpreter.read(line), [], "{line}");
        }
        for line in ["{\"type\":\"tool_use\"}", "{\"type\":\"tool_u"] {
            assert!(matches!(interpreter.read(line)[..], [OpenCodeEvent::Unreadable(_)]), "{line}");
        }
        assert!(matches!(
            interpreter.read("{\"type\":\"step_finish\"}").last(),
            Some(OpenCodeEvent::Complete { goes_on: false, .. })
        ));
    }
}

//! Trace of an agent, built from its steps. Live and recorded runs use the same builder.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use crate::{
    EgressAttempt, MockCall, MockNames, PermissionRequest, Question, Step, ToolCall, ToolResult, Unreported, Usage,
};

/// Trace of an agent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trace {
    /// First session id that the agent reported.
    pub session_id: Option<String>,
    /// Model that the agent reports.
    pub model: Option<String>,
    /// Version of the agent.
    pub agent_version: Option<String>,
    /// How the agent was signed in.
    pub auth: Option<String>,
    /// Tools that it reported.
    pub tools: Vec<String>,
    /// Messages of the user.
    pub user_messages: Vec<String>,
    /// Agent's reply to each message from the user, in order. Text before the first message belongs to no reply.
    pub replies: Vec<TracedReply>,
    /// Model turns in order, including those of sub-agents.
    pub turns: Vec<TracedTurn>,
    /// Tool calls in order.
    pub calls: Vec<TracedCall>,
    /// Questions in order.
    pub questions: Vec<Question>,
    /// Requests for permission in order; absent if the agent does not report them.
    pub permissions: Option<Vec<TracedPermission>>,
    /// Agent's last answer; absent if it gave none.
    pub answer: Option<String>,
    /// Agent's whole last result, if it is more than text. It may be large and is shared with its reply.
    pub result: Option<Arc<Value>>,
    /// Usage over all messages, as far as it was reported.
    pub usage: Usage,
    /// Figures that a message did not report.
    pub unreported: Unreported,
    /// Checks of requests by a scripted model: step, met, reason.
    pub request_checks: Vec<(usize, bool, String)>,
    /// Hosts that processes in the sandbox tried to reach.
    pub egress: Vec<EgressAttempt>,
    /// MCP servers and mocks of the trial; absent if there are none.
    pub mocks: Option<MockNames>,
    /// Calls that the mocks received, in order.
    pub mock_calls: Vec<MockCall>,
    index: HashMap<String, usize>,
    /// Turns by model message and sub-agent.
    messages: HashMap<(String, Option<String>), usize>,
    /// Number of turns that do not belong to a sub-agent.
    own_turns: usize,
}

/// Agent's reply to one message from the user.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TracedReply {
    /// Answer; absent if it gave none.
    pub answer: Option<String>,
    /// Whole result, if it is more than text.
    pub result: Option<Arc<Value>>,
    /// Usage for this reply, as far as it was reported.
    pub usage: Usage,
    /// Figures that were not reported for this reply.
    pub unreported: Unreported,
    /// Time from the message to the end of the reply, in milliseconds, if it was measured.
    pub latency_ms: Option<u64>,
    /// Time from the message to the first token of the reply, in milliseconds, if it was streamed.
    pub first_token_ms: Option<u64>,
    /// True if the reply does not report which tools were called.
    pub calls_unreported: bool,
    /// What is missing that would show which tools were called, if anything.
    pub calls_missing: Option<String>,
}

/// One model message.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TracedTurn {
    /// Id of the model message.
    pub message: String,
    /// Texts, concatenated without a separator.
    pub text: String,
    /// Reasoning.
    pub thinking: String,
    /// Indices into [`Trace::calls`].
    pub calls: Vec<usize>,
    /// Id of the call that started the sub-agent, if it is a sub-agent's turn.
    pub parent: Option<String>,
    /// Number of the user message that it answers, from 1.
    pub user_message: usize,
}

/// Tool call with its result.
#[derive(Debug, Clone, PartialEq)]
pub struct TracedCall {
    /// Call.
    pub call: ToolCall,
    /// Result, if there was one.
    pub result: Option<ToolResult>,
    /// Index into [`Trace::turns`].
    pub turn: usize,
}

/// Request for permission.
#[derive(Debug, Clone, PartialEq)]
pub struct TracedPermission {
    /// Request.
    pub request: PermissionRequest,
    /// Number of calls that were recorded before the decision.
    pub calls: usize,
}

impl Trace {
    /// Builds the trace of `steps`.
    pub fn of<'a>(steps: impl IntoIterator<Item = &'a Step>) -> Self {
        let mut trace = Self::default();
        for step in steps {
            trace.push(step);
        }
        trace
    }

    /// Adds the next step.
    pub fn push(&mut self, step: &Step) {
        match step {
            Step::Session { session_id, model, agent_version, tools, auth } => {
                let keep = |old: &mut Option<String>, new: &Option<String>| {
                    if old.is_none() {
                        old.clone_from(new);
                    }
                };
                keep(&mut self.session_id, session_id);
                keep(&mut self.model, model);
                keep(&mut self.agent_version, agent_version);
                keep(&mut self.auth, auth);
                if self.tools.is_empty() {
                    self.tools.clone_from(tools);
                }
            }
            Step::UserMessage { text, .. } => {
                self.user_messages.push(text.clone());
                self.replies.push(TracedReply::default());
            }
            Step::Text { message, text, parent } => {
                let turn = self.turn(message, parent.as_ref());
                self.turns[turn].text.push_str(text);
            }
            Step::Thinking { message, text, parent } => {
                let turn = self.turn(message, parent.as_ref());
                self.turns[turn].thinking.push_str(text);
            }
            Step::ToolCall(call) => {
                let turn = self.turn(&call.message, call.parent.as_ref());
                self.turns[turn].calls.push(self.calls.len());
                self.index.insert(call.id.clone(), self.calls.len());
                self.calls.push(TracedCall { call: call.clone(), result: None, turn });
            }
            Step::ToolResult(result) => {
                if let Some(&at) = self.index.get(&result.id) {
                    self.calls[at].result = Some(result.clone());
                }
            }
            Step::Question(question) => self.questions.push(question.clone()),
            Step::PermissionsReported => {
                self.permissions.get_or_insert_default();
            }
            Step::PermissionAsked(request) => {
                let calls = self.calls.len();
                self.permissions.get_or_insert_default().push(TracedPermission { request: request.clone(), calls });
            }
            Step::RequestCheck { step, met, reason } => self.request_checks.push((*step, *met, reason.clone())),
            Step::Egress(attempt) => self.egress.push(attempt.clone()),
            Step::Mocks(names) => self.mocks = Some(names.clone()),
            Step::MockCall(call) => self.mock_calls.push(call.clone()),
            Step::Finished { usage, text, result, .. } => {
                self.usage += *usage;
                self.unreported |= Unreported::of(usage);
                let has_text = text.as_ref().is_some_and(|text| !text.is_empty());
                // The result of an earlier answer does not belong to a later answer that is only text.
                let gave = has_text || result.is_some();
                let result = result.clone().map(Arc::new);
                if gave {
                    self.result.clone_from(&result);
                }
                if has_text {
                    self.answer.clone_from(text);
                }
                if let Some(reply) = self.replies.last_mut() {
                    reply.usage += *usage;
                    reply.unreported |= Unreported::of(usage);
                    if gave {
                        reply.result = result;
                    }
                    if has_text {
                        reply.answer.clone_from(text);
                    }
                }
            }
            Step::CallsUnreported => {
                if let Some(reply) = self.replies.last_mut() {
                    reply.calls_unreported = true;
                }
            }
            Step::TokensUnreported => {
                self.unreported.tokens = true;
                if let Some(reply) = self.replies.last_mut() {
                    reply.unreported.tokens = true;
                }
            }
            Step::CallsMissing { reason } => {
                if let Some(reply) = self.replies.last_mut() {
                    reply.calls_unreported = true;
                    reply.calls_missing.get_or_insert_with(|| reason.clone());
                }
            }
            Step::Replied { latency_ms, first_token_ms } => {
                if let Some(reply) = self.replies.last_mut() {
                    (reply.latency_ms, reply.first_token_ms) = (Some(*latency_ms), *first_token_ms);
                }
            }
            Step::PermissionDenied { .. } | Step::Retry { .. } | Step::Notice { .. } | Step::Fault(_) => {}
        }
    }

    /// Returns the number of the agent's own turns, excluding those of sub-agents.
    pub fn turn_count(&self) -> usize {
        self.own_turns
    }

    /// Returns `true` if a reply does not report which tools were called, so that there may be calls that are not in
    /// [`Self::calls`].
    pub fn has_unreported_calls(&self) -> bool {
        self.replies.iter().any(|reply| reply.calls_unreported)
    }

    /// Returns what is missing that would show which tools were called, if anything.
    pub fn missing_calls(&self) -> Option<&str> {
        self.replies.iter().find_map(|reply| reply.calls_missing.as_deref())
    }

    /// Returns `true` if the last reply has any content: visible text, a tool call, a question, or a
    /// value.
    pub fn has_answered(&self) -> bool {
        let is_said = |text: &str| !crate::text::is_blank(text);
        let Some(reply) = self.replies.last() else { return false };
        let turns = self.turns.iter().rev().take_while(|turn| turn.user_message == self.user_messages.len());
        reply.answer.as_deref().is_some_and(is_said)
            || reply.result.as_deref().is_some_and(has_content)
            || turns.into_iter().any(|turn| !turn.calls.is_empty() || is_said(&turn.text))
            || !self.questions.is_empty()
    }

    /// Returns the part of the trace between the user's message `number` (from 1) and the next one, as a separate
    /// trace. `None` if there is no such message.
    pub fn reply(&self, number: usize) -> Option<Self> {
        let at = number.checked_sub(1)?;
        let reply = self.replies.get(at)?;
        let mut part = Self {
            session_id: self.session_id.clone(),
            model: self.model.clone(),
            agent_version: self.agent_version.clone(),
            auth: self.auth.clone(),
            tools: self.tools.clone(),
            user_messages: vec![self.user_messages.get(at)?.clone()],
            replies: vec![reply.clone()],
            answer: reply.answer.clone(),
            result: reply.result.clone(),
            usage: reply.usage,
            unreported: reply.unreported,
            // Which reply caused them is not known.
            egress: self.egress.clone(),
            mocks: self.mocks.clone(),
            mock_calls: self.mock_calls.iter().filter(|call| call.user_message == number).cloned().collect(),
            ..Self::default()
        };
        for turn in self.turns.iter().filter(|turn| turn.user_message == number) {
            let calls = part.calls.len()..part.calls.len() + turn.calls.len();
            for &call in &turn.calls {
                let mut traced = self.calls[call].clone();
                traced.turn = part.turns.len();
                part.index.insert(traced.call.id.clone(), part.calls.len());
                part.calls.push(traced);
            }
            part.own_turns += usize::from(turn.parent.is_none());
            part.turns.push(TracedTurn { calls: calls.collect(), user_message: 1, ..turn.clone() });
        }
        let asked = |question: &&Question| question.call_id.as_ref().is_some_and(|id| part.index.contains_key(id));
        part.questions = self.questions.iter().filter(asked).cloned().collect();
        Some(part)
    }

    /// Returns the index of the turn that belongs to that model message. A message whose steps are interleaved with a
    /// sub-agent's is still one turn. If an id is repeated after another message from the user, it is another turn.
    fn turn(&mut self, message: &str, parent: Option<&String>) -> usize {
        let asked = self.user_messages.len();
        let is_it =
            |turn: &TracedTurn| turn.message == message && turn.parent.as_ref() == parent && turn.user_message == asked;
        if self.turns.last().is_some_and(is_it) {
            return self.turns.len() - 1;
        }
        let key = (message.to_owned(), parent.cloned());
        if let Some(&known) = self.messages.get(&key)
            && is_it(&self.turns[known])
        {
            return known;
        }
        self.turns.push(TracedTurn {
            message: message.to_owned(),
            parent: parent.cloned(),
            user_message: self.user_messages.len(),
            ..TracedTurn::default()
        });
        self.own_turns += usize::from(parent.is_none());
        self.messages.insert(key, self.turns.len() - 1);
        self.turns.len() - 1
    }
}

/// Returns `true` if a result has content: in its output, or without one, in anything but the conversation and its usage.
fn has_content(result: &Value) -> bool {
    let is_content = |value: &Value| match value {
        Value::Null => false,
        Value::String(text) => !crate::text::is_blank(text),
        _ => true,
    };
    match result {
        Value::Object(entries) => match entries.get("output") {
            Some(output) => is_content(output),
            None => entries.iter().any(|(key, value)| key != "messages" && key != "usage" && is_content(value)),
        },
        other => is_content(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_reply_covers_everything_done_for_one_user_message() {
        let asked = |index: usize| Step::UserMessage { index, of: 2, text: format!("message {index}") };
        let call = |id: &str, message: &str| Step::ToolCall(ToolCall::new(id, "Bash", json!({}), message));
        let text = |message: &str| Step::Text { message: message.into(), text: message.into(), parent: None };
        let finished = |text: &str| Step::Finished {
            subtype: "success".into(),
            is_error: false,
            usage: Usage { tokens: None, cost_usd: Some(0.5) },
            text: Some(text.into()),
            result: None,
        };
        let replied = Step::Replied { latency_ms: 7, first_token_ms: Some(2) };
        let trace = Trace::of(&[
            asked(1),
            call("c1", "m1"),
            finished("one"),
            asked(2),
            text("m2"),
            call("c2", "m2"),
            finished("two"),
            replied,
        ]);
        let second = trace.reply(2).unwrap();
        assert_eq!((second.answer.as_deref(), second.usage.cost_usd), (Some("two"), Some(0.5)));
        assert_eq!((second.user_messages.as_slice(), second.turn_count()), (&["message 2".to_owned()][..], 1));
        assert_eq!((second.calls[0].call.id.as_str(), second.turns[0].calls.as_slice()), ("c2", &[0][..]));
        assert_eq!((second.replies[0].latency_ms, second.replies[0].first_token_ms), (Some(7), Some(2)));
        assert_eq!(trace.reply(1).unwrap().calls[0].call.id, "c1");
        assert_eq!((trace.reply(0), trace.reply(3)), (None, None));
    }

    #[test]
    fn a_text_answer_does_not_inherit_the_previous_result() {
        let finished = |text: Option<&str>, result: Option<Value>| Step::Finished {
            subtype: "success".into(),
            is_error: false,
            usage: Usage::default(),
            text: text.map(str::to_owned),
            result,
        };
        let whole = json!({"output": "one", "mood": "fine"});
        let mut trace = Trace::of(&[finished(Some("one"), Some(whole.clone())), finished(None, None)]);
        assert_eq!(
            (trace.answer.as_deref(), trace.result.as_deref()),
            (Some("one"), Some(&whole)),
            "nothing was given"
        );
        trace.push(&finished(Some("two"), None));
        assert_eq!((trace.answer.as_deref(), trace.result.as_deref()), (Some("two"), None));
    }

    #[test]
    fn parts_of_one_message_are_one_turn_and_sub_agent_turns_do_not_count() {
        let text = |message: &str, parent: Option<&str>| Step::Text {
            message: message.into(),
            text: "a".into(),
            parent: parent.map(str::to_owned),
        };
        let trace = Trace::of(&[
            text("m1", None),
            Step::ToolCall(ToolCall::new("c1", "Bash", json!({}), "m1")),
            text("s1", Some("c1")),
            text("m1", None),
            Step::ToolResult(ToolResult { id: "c1".into(), content: "ok".into(), is_error: false }),
            Step::ToolResult(ToolResult { id: "unknown".into(), content: String::new(), is_error: true }),
            text("m2", None),
        ]);
        assert_eq!(trace.turn_count(), 2);
        assert_eq!(trace.turns[0].text, "aa");
        assert_eq!(trace.calls[0].result.as_ref().map(|result| result.content.as_str()), Some("ok"));
    }

    #[test]
    fn an_id_that_is_repeated_for_another_message_is_another_turn() {
        let asked = |index: usize| Step::UserMessage { index, of: 2, text: "go".into() };
        let text = || Step::Text { message: "m".into(), text: "x".into(), parent: None };
        let trace = Trace::of(&[asked(1), text(), text(), asked(2), text()]);
        let turns: Vec<_> = trace.turns.iter().map(|turn| (turn.user_message, turn.text.as_str())).collect();
        assert_eq!((turns, trace.turn_count()), (vec![(1, "xx"), (2, "x")], 2));
    }

    #[test]
    fn a_reply_needs_content_to_be_an_answer() {
        let asked = || Step::UserMessage { index: 1, of: 1, text: "go".into() };
        let text = |text: &str| Step::Text { message: "m".into(), text: text.into(), parent: None };
        let finished = |result: Option<Value>| Step::Finished {
            subtype: "success".into(),
            is_error: false,
            usage: Usage::default(),
            text: Some(" ".into()),
            result,
        };
        let answered = |steps: &[Step]| {
            let mut trace = Trace::of(&[asked()]);
            steps.iter().for_each(|step| trace.push(step));
            trace.has_answered()
        };
        assert!(answered(&[text("x")]));
        assert!(answered(&[Step::ToolCall(ToolCall::new("c", "Bash", json!({}), "m"))]));
        for result in [json!({"output": {}}), json!({"output": 0}), json!({"state": 1}), json!([])] {
            assert!(answered(&[finished(Some(result.clone()))]), "{result}");
        }
        assert!(!answered(&[]) && !answered(&[text(" \n")]) && !answered(&[finished(None)]));
        for result in [json!({"output": " ", "state": 1}), json!({"messages": [], "usage": {}}), json!(null)] {
            assert!(!answered(&[finished(Some(result.clone()))]), "{result}");
        }
        let next = Step::UserMessage { index: 2, of: 2, text: "on".into() };
        assert!(!answered(&[text("x"), next]), "only the last reply counts");
    }

    #[test]
    fn arguments_that_could_not_be_read_are_shown_as_they_were_written() {
        let call = ToolCall::new("c", "get_weather", json!("{\"city\": \"Par"), "m");
        assert_eq!(call.summary(), "get_weather(\"{\\\"city\\\": \\\"Par\")");
        assert_eq!(call.key_argument().as_deref(), Some("{\"city\": \"Par"));
        assert!(!call.has_readable_arguments());
        assert_eq!(ToolCall::new("c", "now", json!({}), "m").summary(), "now()");
    }
}

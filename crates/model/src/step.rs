//! Steps taken by an agent.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Effect, EgressAttempt, FaultOccurrence, MockCall, MockNames, Touch, Usage};

/// One event of a session. A trace is built only from steps, both live and from the record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Step {
    /// The agent opened, or reopened, its session.
    Session {
        /// Session id assigned by the agent; only the first one of a trial counts.
        session_id: Option<String>,
        /// Model that the agent reports.
        model: Option<String>,
        /// Version of the agent.
        agent_version: Option<String>,
        /// Tools that the agent reports.
        #[serde(default)]
        tools: Vec<String>,
        /// How the agent is signed in, without secrets.
        auth: Option<String>,
    },
    /// The user sent a message.
    UserMessage {
        /// Number of the message, from 1.
        index: usize,
        /// Total number of messages.
        of: usize,
        /// Text of the message.
        text: String,
    },
    /// The model wrote text.
    Text {
        /// Model message to which it belongs; text and calls in one message are one turn.
        message: String,
        /// Text.
        text: String,
        /// Id of the call that started the sub-agent, if a sub-agent wrote it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
    },
    /// The model produced reasoning.
    Thinking {
        /// Model message to which it belongs.
        message: String,
        /// Reasoning text; may be empty if the vendor hides it.
        text: String,
        /// Id of the call that started the sub-agent, if a sub-agent produced it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
    },
    /// The model called a tool.
    ToolCall(ToolCall),
    /// A tool returned a result.
    ToolResult(ToolResult),
    /// The agent asked the user a question; includes the answer.
    Question(Question),
    /// The agent asks for its permissions here, so every request from now on is a [`Step::PermissionAsked`].
    PermissionsReported,
    /// The agent asked for permission to make a call; includes the decision.
    PermissionAsked(PermissionRequest),
    /// The agent was denied a tool.
    PermissionDenied {
        /// Name of the tool.
        tool: String,
        /// Id of the call.
        call_id: Option<String>,
        /// Reason.
        message: String,
    },
    /// The agent retries a request to its provider.
    Retry {
        /// Number of the attempt, from 1.
        attempt: u64,
        /// HTTP status, if there was a response.
        status: Option<u16>,
        /// Description of the error.
        error: String,
        /// Delay before the retry, in milliseconds.
        delay_ms: Option<u64>,
    },
    /// A scripted model checked a request of the agent.
    RequestCheck {
        /// Step of the script, from 1.
        step: usize,
        /// True if the request met the script's expectation.
        met: bool,
        /// Expected value and, if it was not met, the actual value.
        #[serde(rename = "because")]
        reason: String,
    },
    /// A process in the sandbox tried to reach a host. Recorded once for each host, port, way and verdict.
    Egress(EgressAttempt),
    /// A fault of the case occurred.
    Fault(FaultOccurrence),
    /// The agent can use these MCP servers and mocks.
    Mocks(MockNames),
    /// A mock was called. The trace of an agent has its own view of the call.
    MockCall(MockCall),
    /// A line of the agent's stderr, or a notice of the harness about the session.
    Notice {
        /// `stderr`, `agent` or `harness`.
        from: String,
        /// Text of the line.
        text: String,
    },
    /// The reply in progress does not report which tools were called, so there may be calls that are not recorded.
    CallsUnreported,
    /// The agent reports only a part of the tokens of the reply in progress, so there may be more than its usage says.
    TokensUnreported,
    /// What would show the calls of the reply in progress is missing, so it is not known which tools were called. Unlike
    /// [`Step::CallsUnreported`], this says nothing about the agent.
    CallsMissing {
        /// What is missing.
        #[serde(rename = "because")]
        reason: String,
    },
    /// The agent has finished its reply to one user message, successfully or not.
    Finished {
        /// Agent's own result type, such as `success`.
        subtype: String,
        /// True if the agent reports an error.
        is_error: bool,
        /// Usage for this message.
        usage: Usage,
        /// Agent's answer.
        text: Option<String>,
        /// Whole result, if it is more than text: `output`, `messages` and any other key.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::present::deserialize")]
        result: Option<Value>,
    },
    /// Latency of the reply to the user's last message. Follows the reply, for agents that measure it.
    Replied {
        /// Time from the message to the end of the reply, in milliseconds.
        latency_ms: u64,
        /// Time from the message to the first token of the reply, in milliseconds, if it was streamed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        first_token_ms: Option<u64>,
    },
}

/// Tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Id assigned by the agent.
    pub id: String,
    /// Canonical name; `raw_name` if there is none.
    pub name: String,
    /// Agent's own name for the tool.
    pub raw_name: String,
    /// Arguments.
    pub input: Value,
    /// Model message to which it belongs.
    pub message: String,
    /// Id of the call that started the sub-agent, if a sub-agent made this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Effect of the call.
    pub effect: Effect,
    /// Paths in the call's arguments; filled in by the runner.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub touches: Vec<Touch>,
}

impl ToolCall {
    /// Creates a call to a tool whose own name is the canonical one.
    pub fn new(id: impl Into<String>, name: impl Into<String>, input: Value, message: impl Into<String>) -> Self {
        let name = name.into();
        Self {
            id: id.into(),
            raw_name: name.clone(),
            effect: crate::tool::effect(&name),
            name,
            input,
            message: message.into(),
            parent: None,
            touches: Vec::new(),
        }
    }

    /// Returns `true` if the arguments could be read. Arguments that are not a JSON object are kept as the agent wrote
    /// them.
    pub fn has_readable_arguments(&self) -> bool {
        matches!(self.input, Value::Object(_) | Value::Null)
    }

    /// Returns the command that the call ran: a line for a shell, or a list of a program and its arguments.
    pub fn command(&self) -> Option<&Value> {
        let is_shell = self.effect == Effect::Shell;
        is_shell.then(|| self.input.get("command").or_else(|| self.input.get("cmd"))).flatten()
    }

    /// Returns `Name(key="value", …)` with the first two arguments, each cut to 50 characters. Arguments that could not
    /// be read are shown as they were written.
    pub fn summary(&self) -> String {
        let shown = |value: &Value| crate::text::shortened(&value.to_string(), 50);
        let arguments = match &self.input {
            Value::Object(input) => {
                let first = input.iter().take(2).map(|(key, value)| format!("{key}={}", shown(value)));
                first.collect::<Vec<_>>().join(", ")
            }
            Value::Null => String::new(),
            unreadable => shown(unreadable),
        };
        format!("{}({arguments})", self.name)
    }

    /// Returns the most descriptive argument as one line of text, or arguments that could not be read as a whole.
    pub fn key_argument(&self) -> Option<String> {
        if !self.has_readable_arguments() {
            let text = self.input.as_str().map_or_else(|| self.input.to_string(), str::to_owned);
            return Some(crate::text::folded(&text));
        }
        let input = self.input.as_object()?;
        let named = crate::tool::find(&self.name).and_then(|tool| tool.key_argument).and_then(|key| input.get(key));
        let question = || input.get("questions")?.get(0)?.get("question");
        let value = named.or_else(question).or_else(|| input.values().find(|value| value.is_string()))?;
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Some(crate::text::folded(&text))
    }
}

/// Result of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// Id of the call.
    pub id: String,
    /// Result as text.
    pub content: String,
    /// True if it is an error.
    pub is_error: bool,
}

/// Request of the agent for permission to make a call.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PermissionRequest {
    /// Id of the call.
    pub call_id: String,
    /// Name of the tool.
    pub tool: String,
    /// Text of the request.
    pub title: String,
    /// True if the call was allowed.
    pub granted: bool,
    /// Rule or answer that decided.
    pub decided_by: String,
}

/// Question from the agent to its user.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Question {
    /// Id of the call that asked.
    pub call_id: Option<String>,
    /// Text of the question.
    pub question: String,
    /// Labels of the options.
    #[serde(default)]
    pub options: Vec<String>,
    /// True if several labels may be chosen.
    #[serde(default)]
    pub multi_select: bool,
    /// Answer; absent if no prepared answer matched.
    pub answer: Option<String>,
    /// Index of the entry in the case's `user_responses` that was used, from 0.
    pub response: Option<usize>,
    /// Reason why it is unknown whether an answer was prepared: a pattern could not be evaluated completely.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undecided: Option<String>,
}

//! What an agent does while it acts, one step at a time.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Effect, Touch, Usage};

/// One thing that happened in a session. A trace is built from steps alone, live and from the record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Step {
    /// The agent opened, or reopened, its session.
    Session {
        /// The agent's own id; only the first one of a trial counts.
        session_id: Option<String>,
        /// The model the agent says it uses.
        model: Option<String>,
        /// The agent's own version.
        agent_version: Option<String>,
        /// The tools it says it has.
        #[serde(default)]
        tools: Vec<String>,
        /// How it is signed in, in words that hold no secret.
        auth: Option<String>,
    },
    /// The user spoke.
    UserMessage {
        /// From 1.
        index: usize,
        /// How many there will be.
        of: usize,
        /// What was said.
        text: String,
    },
    /// The model wrote text.
    Text {
        /// The model message it belongs to; text and calls of one message are one turn.
        message: String,
        /// What it wrote.
        text: String,
        /// The call whose sub-agent wrote it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
    },
    /// The model thought aloud.
    Thinking {
        /// The model message it belongs to.
        message: String,
        /// What it thought; may be empty where the vendor hides it.
        text: String,
        /// The call whose sub-agent thought it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
    },
    /// The model called a tool.
    ToolCall(ToolCall),
    /// A tool answered.
    ToolResult(ToolResult),
    /// The agent asked the user, and this is what it was told.
    Question(Question),
    /// The agent was refused a tool.
    PermissionDenied {
        /// The tool.
        tool: String,
        /// The call.
        call_id: Option<String>,
        /// Why.
        message: String,
    },
    /// The agent tries its provider again.
    Retry {
        /// From 1.
        attempt: u64,
        /// The HTTP status, if there was an answer.
        status: Option<u16>,
        /// What went wrong.
        error: String,
        /// How long it waits, in milliseconds.
        delay_ms: Option<u64>,
    },
    /// A scripted model looked at what the agent sent.
    RequestCheck {
        /// Which step of the script, from 1.
        step: usize,
        /// Whether the request was as the script expects.
        met: bool,
        /// What was looked for and, when it was not met, what was there instead.
        because: String,
    },
    /// A line of the agent's error output, or something the harness has to say about the session.
    Notice {
        /// `stderr`, `agent` or `harness`.
        from: String,
        /// The line.
        text: String,
    },
    /// The agent has answered one user message, well or not.
    Finished {
        /// The agent's own word, such as `success`.
        subtype: String,
        /// Whether the agent calls it an error.
        is_error: bool,
        /// What it used for this message.
        usage: Usage,
        /// The agent's answer.
        text: Option<String>,
        /// The whole of what it gave, where that is more than text: `output`, `messages` and any other key.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::present::deserialize")]
        result: Option<Value>,
    },
    /// How long the reply to the user's last message took. Told after it, where an agent takes its time.
    Replied {
        /// From the message to the end of the reply.
        latency_ms: u64,
        /// From the message to the first word of the reply, where it came in pieces.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        first_token_ms: Option<u64>,
    },
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The agent's id for it.
    pub id: String,
    /// The canonical name; `raw_name` where there is none.
    pub name: String,
    /// The agent's own name.
    pub raw_name: String,
    /// The arguments.
    pub input: Value,
    /// The model message it belongs to.
    pub message: String,
    /// The call whose sub-agent made this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// What it does.
    pub effect: Effect,
    /// The paths it names; filled in by the runner.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub touches: Vec<Touch>,
}

impl ToolCall {
    /// A call of a tool whose own name is the canonical one.
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

    /// `Name(key="value", …)`: the first two arguments, each cut to 50 characters.
    pub fn summary(&self) -> String {
        let shown = |value: &Value| {
            let text = value.to_string();
            match text.char_indices().nth(50) {
                Some((end, _)) => format!("{}…", &text[..end]),
                None => text,
            }
        };
        let arguments = self.input.as_object().map(|input| {
            input.iter().take(2).map(|(key, value)| format!("{key}={}", shown(value))).collect::<Vec<_>>().join(", ")
        });
        format!("{}({})", self.name, arguments.unwrap_or_default())
    }

    /// The argument that says best what the call is about, as one line of text.
    pub fn key_argument(&self) -> Option<String> {
        let input = self.input.as_object()?;
        let named = crate::tool::find(&self.name).and_then(|tool| tool.key_argument).and_then(|key| input.get(key));
        let question = || input.get("questions")?.get(0)?.get("question");
        let value = named.or_else(question).or_else(|| input.values().find(|value| value.is_string()))?;
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

/// A tool's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call it answers.
    pub id: String,
    /// The answer as text.
    pub content: String,
    /// Whether it is an error.
    pub is_error: bool,
}

/// A question the agent asked its user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// The call that asked.
    pub call_id: Option<String>,
    /// What it asked.
    pub question: String,
    /// The labels it offers.
    #[serde(default)]
    pub options: Vec<String>,
    /// Whether several labels may be chosen.
    #[serde(default)]
    pub multi_select: bool,
    /// What it was told; absent when no prepared answer matched.
    pub answer: Option<String>,
    /// Which of the case's `user_responses` answered, from 0.
    pub response: Option<usize>,
    /// Why nobody can say whether an answer was prepared: a pattern that could not be tried to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undecided: Option<String>,
}

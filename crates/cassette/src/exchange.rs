//! Requests and answers as they are recorded.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Sender of a request. Each sender has its own conversations, so its requests are compared only with its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sender {
    /// The agent, in its own conversation.
    #[default]
    Agent,
    /// A sub-agent.
    SubAgent,
    /// The agent's program, for something else, such as a title.
    Side,
    /// The agent's program, for something that is not a message, such as a token count.
    Other,
    /// The judge.
    Judge,
    /// The simulated user.
    User,
}

impl Sender {
    /// Returns a name for users.
    pub fn name(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::SubAgent => "sub-agent",
            Self::Side => "side request",
            Self::Other => "other request",
            Self::Judge => "judge",
            Self::User => "simulated user",
        }
    }
}

/// Part of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk {
    /// Time since the previous part, or since the request, in milliseconds.
    #[serde(rename = "ms")]
    pub after_ms: u64,
    /// The text. In a recording, values that differ between runs are replaced by their names.
    pub text: String,
}

/// Answer of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Content type; empty if there was none. Other headers are not recorded.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub content_type: String,
    /// The body, in the parts in which it arrived.
    pub chunks: Vec<Chunk>,
    /// True if the connection ended before the body.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_cut: bool,
}

impl Answer {
    /// Creates an answer that arrived at once.
    pub fn whole(status: u16, content_type: &str, body: impl Into<String>) -> Self {
        let chunks = vec![Chunk { after_ms: 0, text: body.into() }];
        Self { status, content_type: content_type.to_owned(), chunks, is_cut: false }
    }

    /// Returns the whole body.
    pub fn body(&self) -> String {
        self.chunks.iter().map(|chunk| chunk.text.as_str()).collect()
    }

    /// Returns `true` if the sender can go on with the answer.
    pub(crate) fn is_success(&self) -> bool {
        !self.is_cut && (200..300).contains(&self.status)
    }
}

/// A request and the answer to it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Exchange {
    /// Sender of the request.
    pub sender: Sender,
    /// Path of the request, with the query.
    pub path: String,
    /// The request after normalisation.
    pub request: Value,
    /// The answer.
    pub answer: Answer,
}

/// The model traffic of one trial.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Recording {
    /// Description of the trial.
    pub about: RecordingInfo,
    /// Requests in the order in which they were sent, with their answers.
    pub exchanges: Vec<Exchange>,
}

/// Description of a recorded trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordingInfo {
    /// Repetition of the trial, from 1.
    pub repetition: u64,
    /// Time of the recording.
    pub recorded_at: Timestamp,
    /// Version of trialrun.
    pub trialrun: String,
    /// Version of the agent, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_version: Option<String>,
    /// Model, if the trial named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Hash of the messages, the system prompt, the skill and the settings.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub inputs: String,
}

//! Recorded requests and answers.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Sender of a request. Requests are compared only with requests from the same sender, because each sender has its own
/// conversations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sender {
    /// The agent, in its own conversation.
    #[default]
    Agent,
    /// A sub-agent.
    SubAgent,
    /// The agent's program, for its own purposes, such as generating a title.
    Side,
    /// The agent's program, for something that is not a conversation, such as counting tokens.
    Other,
    /// The judge.
    Judge,
    /// The simulated user.
    User,
}

impl Sender {
    /// Returns the name that users see.
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

/// Chunk of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk {
    /// Time since the previous chunk, or since the request, in milliseconds.
    #[serde(rename = "ms")]
    pub after_ms: u64,
    /// The text. In a recording, values that differ between runs are replaced by placeholder names.
    pub text: String,
}

/// Answer from a model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Content type; empty if the provider sent none. Other headers are not recorded.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub content_type: String,
    /// The body, in the chunks in which it arrived.
    pub chunks: Vec<Chunk>,
    /// True if the connection broke before the body was complete.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_cut: bool,
}

impl Answer {
    /// Creates an answer that arrived in one piece.
    pub fn whole(status: u16, content_type: &str, body: impl Into<String>) -> Self {
        let chunks = vec![Chunk { after_ms: 0, text: body.into() }];
        Self { status, content_type: content_type.to_owned(), chunks, is_cut: false }
    }

    /// Returns the whole body.
    pub fn body(&self) -> String {
        self.chunks.iter().map(|chunk| chunk.text.as_str()).collect()
    }

    /// Returns `true` if the sender can continue with this answer.
    pub(crate) fn is_success(&self) -> bool {
        !self.is_cut && (200..300).contains(&self.status)
    }
}

/// A request and its answer.
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
    /// Requests, in the order in which they were sent, with their answers.
    pub exchanges: Vec<Exchange>,
}

/// Description of a recorded trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordingInfo {
    /// Number of the repetition, from 1.
    pub repetition: u64,
    /// Time of the recording.
    pub recorded_at: Timestamp,
    /// Start of the trial. It identifies the trial among those with the same cassette and repetition. Recordings of
    /// earlier versions do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// Version of trialrun.
    pub trialrun: String,
    /// Version of the agent, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_version: Option<String>,
    /// Model, if the trial named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Hash of the messages, the system prompt, the skill and the settings.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub inputs: String,
}

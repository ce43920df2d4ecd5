//! What a model answers.

use model::Tokens;

use crate::Block;

/// One message of a model's.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The message's id.
    pub message_id: String,
    /// The model that answered.
    pub model: String,
    /// Text, thinking and tool calls, in order.
    pub content: Vec<Block>,
    /// Why it stopped.
    pub stop_reason: StopReason,
    /// What it used.
    pub tokens: Tokens,
}

/// Why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopReason {
    /// It said what it had to say.
    EndTurn,
    /// It waits for the results of its tool calls.
    ToolUse,
    /// The limit of the answer's tokens was reached.
    MaxTokens,
    /// It wrote a stop sequence.
    StopSequence,
    /// It declined.
    Refusal,
    /// It wants to be asked to go on.
    Paused,
    /// Something else, in the vendor's word.
    Other(String),
}

/// The names a script uses, in the order of the documentation.
pub(crate) const STOP_REASONS: &[(&str, StopReason)] = &[
    ("end_turn", StopReason::EndTurn),
    ("tool_use", StopReason::ToolUse),
    ("max_tokens", StopReason::MaxTokens),
    ("stop_sequence", StopReason::StopSequence),
    ("refusal", StopReason::Refusal),
    ("pause_turn", StopReason::Paused),
];

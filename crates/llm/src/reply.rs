//! What a model answers.

use model::Tokens;
use serde_json::{Map, Value};

use crate::Block;

/// One message of a model's.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reply {
    /// The message's id.
    pub message_id: String,
    /// The model that answered.
    pub model: String,
    /// Text, thinking and tool calls, in order.
    pub content: Vec<Block>,
    /// Why it stopped.
    pub stop_reason: StopReason,
    /// What it used; `None` where the vendor does not tell.
    pub tokens: Option<Tokens>,
    /// What it cost in US dollars, where a price is known or the vendor tells.
    pub cost_usd: Option<f64>,
    /// Fields of the vendor's that have no place above, as they were sent.
    pub extra: Map<String, Value>,
}

impl Reply {
    /// The texts of the reply, one after the other, with nothing between them.
    pub fn text(&self) -> String {
        let texts = self.content.iter().filter_map(|block| match block {
            Block::Text { text } => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    /// Whether it calls a tool.
    pub fn calls_tools(&self) -> bool {
        self.content.iter().any(|block| matches!(block, Block::ToolUse { .. }))
    }
}

/// Why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum StopReason {
    /// It said what it had to say.
    #[default]
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

//! Reply from a model.

use model::{Tokens, foreign_json};

use crate::Block;

/// Message of a model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reply {
    /// Id of the message.
    pub message_id: String,
    /// Model that answered.
    pub model: String,
    /// Text, reasoning and tool calls, in order.
    pub content: Vec<Block>,
    /// Reason why the model stopped.
    pub stop_reason: StopReason,
    /// Tokens used; `None` if the vendor does not report them.
    pub tokens: Option<Tokens>,
    /// Cost in US dollars, if a price is known or the vendor reports it.
    pub cost_usd: Option<f64>,
}

impl Reply {
    /// Returns the text blocks of the reply, concatenated without a separator.
    pub fn text(&self) -> String {
        let texts = self.content.iter().filter_map(|block| match block {
            Block::Text { text } => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    /// Returns the reply with replacements for halves of characters that the pieces of a stream left behind.
    pub(crate) fn settled(mut self) -> Self {
        for block in &mut self.content {
            match block {
                Block::Text { text } | Block::Thinking { text, .. } => foreign_json::settle(text),
                Block::ToolUse { input: value, .. } | Block::Other(value) => foreign_json::settle_value(value),
                Block::ToolResult { .. } => {}
            }
        }
        self
    }

    /// Returns `true` if it calls a tool.
    pub fn calls_tools(&self) -> bool {
        self.content.iter().any(|block| matches!(block, Block::ToolUse { .. }))
    }
}

/// Reason why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum StopReason {
    /// The reply is complete.
    #[default]
    EndTurn,
    /// The model waits for the results of its tool calls.
    ToolUse,
    /// The reply reached its token limit.
    MaxTokens,
    /// The model produced a stop sequence.
    StopSequence,
    /// The model declined.
    Refusal,
    /// The model paused and expects a request to continue.
    Paused,
    /// Any other reason, in the vendor's wording.
    Other(String),
}

/// Names used in scripts, in the order of the documentation.
pub(crate) const STOP_REASONS: &[(&str, StopReason)] = &[
    ("end_turn", StopReason::EndTurn),
    ("tool_use", StopReason::ToolUse),
    ("max_tokens", StopReason::MaxTokens),
    ("stop_sequence", StopReason::StopSequence),
    ("refusal", StopReason::Refusal),
    ("pause_turn", StopReason::Paused),
];

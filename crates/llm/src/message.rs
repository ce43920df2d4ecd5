//! Messages between an agent and its model, independent of any vendor.

use serde_json::Value;

/// Sender of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The user, and the tools, whose results are part of the user's messages.
    User,
    /// The model.
    Assistant,
    /// The harness around the model, if the vendor allows it to insert messages between the others.
    System,
}

/// Message of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Sender.
    pub role: Role,
    /// Content in order.
    pub content: Vec<Block>,
}

impl Message {
    /// Creates a message with one text block.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self { role, content: vec![Block::Text { text: text.into() }] }
    }

    /// Returns the text blocks of the message, separated by line breaks; tool results are not included.
    pub fn spoken(&self) -> String {
        texts(&self.content)
    }
}

/// Part of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// Text.
    Text {
        /// Text.
        text: String,
    },
    /// Reasoning of the model.
    Thinking {
        /// Text of the reasoning; may be empty if the vendor hides it.
        text: String,
        /// Vendor's signature, which must be sent back unchanged.
        signature: Option<String>,
    },
    /// Tool call.
    ToolUse {
        /// Id of the call.
        id: String,
        /// Name of the tool.
        name: String,
        /// Arguments.
        input: Value,
    },
    /// Result of a tool call.
    ToolResult {
        /// Id of the call.
        id: String,
        /// Content of the result.
        content: Vec<Block>,
        /// True if the result is an error.
        is_error: bool,
    },
    /// Any other block from a vendor, as it was sent.
    Other(Value),
}

impl Block {
    /// Calls `see` with every string in the block, including those in arguments and unknown blocks.
    pub(crate) fn each_text(&self, see: &mut dyn FnMut(&str)) {
        match self {
            Self::Text { text } | Self::Thinking { text, .. } => see(text),
            Self::ToolUse { name, input, .. } => {
                see(name);
                each_text(input, see);
            }
            Self::ToolResult { content, .. } => content.iter().for_each(|block| block.each_text(see)),
            Self::Other(value) => each_text(value, see),
        }
    }
}

/// Returns the text blocks among `blocks`, one per line.
pub(crate) fn texts(blocks: &[Block]) -> String {
    let texts: Vec<&str> = blocks
        .iter()
        .filter_map(|block| match block {
            Block::Text { text } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    texts.join("\n")
}

/// Calls `see` with every string, key and number in a JSON value.
pub(crate) fn each_text(value: &Value, see: &mut dyn FnMut(&str)) {
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::Number(number) => see(&number.to_string()),
        Value::String(text) => see(text),
        Value::Array(items) => items.iter().for_each(|item| each_text(item, see)),
        Value::Object(entries) => entries.iter().for_each(|(key, value)| {
            see(key);
            each_text(value, see);
        }),
    }
}

//! What is said between an agent and its model, in nobody's dialect.

use serde_json::Value;

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The user, and the tools that answer through the user's messages.
    User,
    /// The model.
    Assistant,
    /// The harness around the model, where a vendor lets it speak between messages.
    System,
}

/// One message.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said, in order.
    pub content: Vec<Block>,
}

impl Message {
    /// A message of one text.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self { role, content: vec![Block::Text { text: text.into() }] }
    }

    /// The texts of the message, one after the other with a line break between; tool results are not texts.
    pub fn spoken(&self) -> String {
        texts(&self.content)
    }
}

/// A piece of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// The model's reasoning.
    Thinking {
        /// The reasoning; may be empty where the vendor hides it.
        text: String,
        /// The vendor's seal on it, to be sent back unchanged.
        signature: Option<String>,
    },
    /// A call of a tool.
    ToolUse {
        /// The call's id.
        id: String,
        /// The tool.
        name: String,
        /// The arguments.
        input: Value,
    },
    /// A tool's answer.
    ToolResult {
        /// The call it answers.
        id: String,
        /// What it says.
        content: Vec<Block>,
        /// Whether it is an error.
        is_error: bool,
    },
    /// Anything else a vendor has, as it was sent.
    Other(Value),
}

impl Block {
    /// Shows every text in the block to `see`, the strings inside arguments and unknown blocks included.
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

/// The texts among `blocks`, a line each.
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

/// Shows every string, key and number of a JSON value to `see`.
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

//! What an agent asks of its model.

use serde_json::{Map, Value};

use crate::message::{self, Block, Message, Role};

/// One request for the next message of a conversation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Request {
    /// The model, as the agent names it.
    pub model: String,
    /// The system prompt, in the pieces it is sent in.
    pub system: Vec<String>,
    /// Everything said so far.
    pub messages: Vec<Message>,
    /// The tools the model may call.
    pub tools: Vec<ToolSpec>,
    /// The most tokens of the answer.
    pub max_tokens: Option<u64>,
    /// How much chance there is in the answer, from 0; `None` leaves it to the vendor.
    pub temperature: Option<f64>,
    /// How hard the model is to think, in the vendor's word.
    pub effort: Option<String>,
    /// What the answer has to look like, where it is to be JSON.
    pub response_schema: Option<ResponseSchema>,
    /// True if it is not sent again to a provider that let its time pass without the beginning of an answer.
    pub gives_up_on_silence: bool,
    /// Which conversation it belongs to.
    pub conversation: Conversation,
    /// Fields of the vendor's that have no place above, as they were sent.
    pub extra: Map<String, Value>,
}

impl Request {
    /// The whole system prompt: the pieces before the conversation and the system's messages within it.
    pub fn system_text(&self) -> String {
        let within = self.messages.iter().filter(|message| message.role == Role::System).map(Message::spoken);
        self.system.iter().cloned().chain(within).collect::<Vec<_>>().join("\n")
    }

    /// The text of the first message of the user's.
    pub fn first_user_text(&self) -> Option<String> {
        self.messages.iter().find(|message| message.role == Role::User).map(Message::spoken)
    }

    /// The text of every message of the user's, a line each.
    pub fn user_text(&self) -> String {
        let users = self.messages.iter().filter(|message| message.role == Role::User);
        users.map(Message::spoken).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
    }

    /// The text of the last message of the user's that has any; messages of tool results alone are passed over.
    pub fn last_user_text(&self) -> Option<String> {
        let users = self.messages.iter().rev().filter(|message| message.role == Role::User);
        users.map(Message::spoken).find(|text| !text.is_empty())
    }

    /// The tool results that the model has not answered yet, as text.
    pub fn fresh_tool_results(&self) -> Vec<String> {
        let since = self.messages.iter().rposition(|message| message.role == Role::Assistant).map_or(0, |at| at + 1);
        let blocks = self.messages[since..].iter().flat_map(|message| &message.content);
        blocks
            .filter_map(|block| match block {
                Block::ToolResult { content, .. } => Some(message::texts(content)),
                _ => None,
            })
            .collect()
    }

    /// The names of the tools, in order.
    pub fn tool_names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|tool| tool.name.as_str())
    }

    /// Shows every text of the request to `see`.
    pub(crate) fn each_text(&self, see: &mut dyn FnMut(&str)) {
        see(&self.model);
        self.system.iter().for_each(|text| see(text));
        self.messages.iter().flat_map(|message| &message.content).for_each(|block| block.each_text(see));
        for tool in &self.tools {
            see(&tool.name);
            tool.description.iter().for_each(|text| see(text));
            message::each_text(&tool.input_schema, see);
            tool.extra.values().for_each(|value| message::each_text(value, see));
        }
        for (key, value) in &self.extra {
            see(key);
            message::each_text(value, see);
        }
    }
}

/// What an answer has to look like. Each vendor has its own means to hold a model to it; whether an answer really is so
/// is for the caller to see ([`crate::in_schema`]).
#[derive(Debug, Clone, PartialEq)]
pub struct ResponseSchema {
    /// What the answer is called; letters, digits, `_` and `-`.
    pub name: String,
    /// A JSON Schema.
    pub schema: Value,
}

/// A tool the model may call.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// The JSON Schema of its arguments; `null` for a tool the vendor runs itself.
    pub input_schema: Value,
    /// Fields of the vendor's that have no place above, as they were sent.
    pub extra: Map<String, Value>,
}

/// Which of an agent's conversations a request belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Conversation {
    /// What is known about its place.
    pub part: Part,
    /// The sub-agent's own id, where the agent sends one.
    pub agent: Option<String>,
    /// The session's id, where the agent sends one.
    pub session: Option<String>,
}

impl Conversation {
    /// The agent's own conversation with its user.
    pub fn main() -> Self {
        Self { part: Part::Main, ..Self::default() }
    }

    /// A sub-agent's conversation.
    pub fn subagent(id: Option<String>) -> Self {
        Self { part: Part::Subagent, agent: id, session: None }
    }
}

/// What part a conversation has in the agent's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Part {
    /// The agent's own conversation with its user.
    Main,
    /// A sub-agent's.
    Subagent,
    /// The agent does not say. With tools it is the main one, without it is a side request such as for a title.
    #[default]
    Unmarked,
}

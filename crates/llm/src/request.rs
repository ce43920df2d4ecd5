//! Request from an agent to its model.

use serde_json::{Map, Value};

use crate::message::{self, Block, Message, Role};

/// Request for the next message of a conversation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Request {
    /// Name of the model, as given by the agent.
    pub model: String,
    /// System prompt, in the pieces in which it is sent.
    pub system: Vec<String>,
    /// Messages so far.
    pub messages: Vec<Message>,
    /// Tools that the model may call.
    pub tools: Vec<ToolSpec>,
    /// Maximum number of tokens in the reply.
    pub max_tokens: Option<u64>,
    /// Sampling temperature, from 0; `None` leaves it to the vendor.
    pub temperature: Option<f64>,
    /// Reasoning effort, in the vendor's wording.
    pub effort: Option<String>,
    /// Required structure of the reply, if it must be JSON.
    pub response_schema: Option<ResponseSchema>,
    /// True if the request is not retried when a provider did not start to respond in time.
    pub gives_up_on_silence: bool,
    /// Conversation it belongs to.
    pub conversation: Conversation,
    /// Other fields from the vendor's format, as they were sent.
    pub extra: Map<String, Value>,
}

impl Request {
    /// Returns the whole system prompt: the pieces before the conversation and the system's messages within it.
    pub fn system_text(&self) -> String {
        let within = self.messages.iter().filter(|message| message.role == Role::System).map(Message::spoken);
        self.system.iter().cloned().chain(within).collect::<Vec<_>>().join("\n")
    }

    /// Returns the text of the user's first message.
    pub fn first_user_text(&self) -> Option<String> {
        self.messages.iter().find(|message| message.role == Role::User).map(Message::spoken)
    }

    /// Returns the text of all the user's messages, one message per line.
    pub fn user_text(&self) -> String {
        let users = self.messages.iter().filter(|message| message.role == Role::User);
        users.map(Message::spoken).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
    }

    /// Returns the text of the user's last message that contains text; messages with only tool results are skipped.
    pub fn last_user_text(&self) -> Option<String> {
        let users = self.messages.iter().rev().filter(|message| message.role == Role::User);
        users.map(Message::spoken).find(|text| !text.is_empty())
    }

    /// Returns the tool results that the model has not answered yet, as text.
    pub fn fresh_tool_results(&self) -> Vec<String> {
        let since =
            self.messages.iter().rposition(|message| message.role == Role::Assistant).map_or(0, |index| index + 1);
        let blocks = self.messages[since..].iter().flat_map(|message| &message.content);
        blocks
            .filter_map(|block| match block {
                Block::ToolResult { content, .. } => Some(message::texts(content)),
                _ => None,
            })
            .collect()
    }

    /// Returns the names of the tools, in order.
    pub fn tool_names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|tool| tool.name.as_str())
    }

    /// Calls `see` with every string in the request.
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

/// Required structure of a reply. Each vendor enforces it in its own way; the caller must check whether a reply really
/// has it ([`crate::structured_reply`]).
#[derive(Debug, Clone, PartialEq)]
pub struct ResponseSchema {
    /// Name of the structure: letters, digits, `_` and `-`.
    pub name: String,
    /// JSON Schema.
    pub schema: Value,
}

/// Tool that the model may call.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolSpec {
    /// Name.
    pub name: String,
    /// Description.
    pub description: Option<String>,
    /// JSON Schema for its arguments; `null` for a tool that the vendor runs itself.
    pub input_schema: Value,
    /// Other fields from the vendor's format, as they were sent.
    pub extra: Map<String, Value>,
}

/// The agent's conversation to which a request belongs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Conversation {
    /// Role of the conversation.
    pub role: ConversationRole,
    /// Id of the sub-agent, if the agent sends one.
    pub agent: Option<String>,
    /// Id of the session, if the agent sends one.
    pub session: Option<String>,
}

impl Conversation {
    /// Creates the agent's own conversation with its user.
    pub fn main() -> Self {
        Self { role: ConversationRole::Main, ..Self::default() }
    }

    /// Creates a sub-agent's conversation.
    pub fn subagent(id: Option<String>) -> Self {
        Self { role: ConversationRole::Subagent, agent: id, session: None }
    }
}

/// Role of a conversation in the agent's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ConversationRole {
    /// The agent's own conversation with its user.
    Main,
    /// Conversation of a sub-agent.
    Subagent,
    /// Not specified by the agent. With tools it is the main conversation, without tools a side request, for example
    /// for a title.
    #[default]
    Unmarked,
}

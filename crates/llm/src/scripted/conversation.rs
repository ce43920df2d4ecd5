//! Steps of a conversation other than the main one.

use super::context::ScriptContext;
use super::step::Step;
use crate::{ConversationRole, Request};

/// Steps, and conditions on the requests that they answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Conversation {
    pub(super) name: Option<String>,
    pub(super) subagent: Option<bool>,
    pub(super) has_tools: Option<bool>,
    pub(super) first_user_contains: Vec<String>,
    pub(super) user_contains: Vec<String>,
    pub(super) system_contains: Vec<String>,
    pub(super) steps: Vec<Step>,
}

impl Conversation {
    /// Returns `true` if every condition holds.
    pub(super) fn matches(&self, request: &Request, context: &ScriptContext) -> bool {
        let is_subagent = request.conversation.role == ConversationRole::Subagent;
        if self.subagent.is_some_and(|wanted| wanted != is_subagent)
            || self.has_tools.is_some_and(|wanted| wanted == request.tools.is_empty())
        {
            return false;
        }
        let holds = |wanted: &[String], text: &dyn Fn() -> String| {
            wanted.is_empty() || {
                let text = text();
                wanted.iter().all(|part| text.contains(&context.fill(part)))
            }
        };
        holds(&self.first_user_contains, &|| request.first_user_text().unwrap_or_default())
            && holds(&self.user_contains, &|| request.user_text())
            && holds(&self.system_contains, &|| request.system_text())
    }
}

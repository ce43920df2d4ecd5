//! Calls of an agent's own tools, as another program reports them.

use model::ToolCall;
use serde_json::Value;

use crate::{codex, opencode};

/// Returns the call of a tool of the agent named `agent`, with the canonical name if the agent is known.
pub(crate) fn native_call(agent: &str, id: &str, name: &str, input: Value, message: &str) -> ToolCall {
    match agent {
        "codex" => codex::item::call(id, None, name, input, message),
        "opencode" => opencode::tool::call(id, name, input, message),
        _ => ToolCall::new(id, name, input, message),
    }
}

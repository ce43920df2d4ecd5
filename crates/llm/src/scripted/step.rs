//! A reply in a script.

use std::time::Duration;

use model::{Excerpt, Tokens, nearest};
use serde_json::Value;

use super::context::ScriptContext;
use super::expectation::Expectation;
use super::fault::Fault;
use crate::{Block, Reply, Request, StopReason};

/// Default number of tokens in a reply.
pub(super) const DEFAULT_TOKENS: Tokens =
    Tokens { input: 100, cache_read: 0, cache_write: 0, output: 10, reasoning: None };

/// Tool of Codex that finds further tools, such as those of MCP servers. They are not offered before.
const TOOL_SEARCH: &str = "tool_search";

/// Reply of a script.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Step {
    pub(super) text: Option<String>,
    pub(super) thinking: Option<String>,
    pub(super) tools: Vec<Call>,
    pub(super) tokens: Tokens,
    pub(super) stop: Option<StopReason>,
    pub(super) delay: Duration,
    pub(super) times: Times,
    pub(super) fault: Option<Fault>,
    pub(super) expect: Expectation,
    /// Location `file:line:column`, for messages.
    pub(super) place: String,
}

/// Tool call in a script.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    pub(super) name: String,
    pub(super) input: Value,
    pub(super) id: Option<String>,
    /// False if the script calls the tool although the agent does not offer it.
    pub(super) is_offered: bool,
    /// Location of its name, for messages.
    pub(super) place: Excerpt,
    /// Location of its arguments.
    pub(super) input_place: Excerpt,
}

/// Number of requests that a step answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Times {
    Exactly(u64),
    Forever,
}

impl Step {
    /// Describes the first call that the script makes wrongly: with an argument that its tool does not accept, or of a tool
    /// that `request` does not offer.
    pub(super) fn mistake(&self, request: &Request) -> Option<String> {
        self.unoffered(request).or_else(|| self.wrong_argument(request))
    }

    /// Describes the first argument that its tool, according to the schema in `request`, refuses.
    fn wrong_argument(&self, request: &Request) -> Option<String> {
        let calls = self.tools.iter().filter(|call| call.is_offered && self.fault.is_none());
        calls.into_iter().find_map(|call| {
            let schema = &request.tools.iter().find(|tool| tool.name == call.name)?.input_schema;
            // Agents also close the schemas of tools that declare no arguments, and pass any of them on.
            let known = schema.get("properties")?.as_object().filter(|known| !known.is_empty())?;
            if schema.get("additionalProperties") != Some(&Value::Bool(false)) {
                return None;
            }
            let wrong = call.input.as_object()?.keys().find(|key| !known.contains_key(*key))?;
            let near = nearest(wrong, known.keys().map(String::as_str));
            let hint = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            let all = known.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            let (place, name) = (&call.place, &call.name);
            Some(format!(
                "{place}: the script calls `{name}` with `{wrong}`, which is not one of its arguments{hint} (it has {all})"
            ))
        })
    }

    /// Describes the first call of a tool that `request` does not offer. A request without tools may offer them in a way
    /// that is not known here.
    fn unoffered(&self, request: &Request) -> Option<String> {
        let is_known = |call: &&Call| {
            let name = call.name.strip_prefix("functions.").unwrap_or(&call.name);
            request.tools.is_empty() || request.tool_names().any(|known| known == name)
        };
        let call =
            self.tools.iter().find(|call| call.is_offered && !is_known(call)).filter(|_| self.fault.is_none())?;
        let near = nearest(&call.name, request.tool_names());
        let hint = match near {
            Some(near) => format!("; did you mean `{near}`?"),
            None if request.tool_names().any(|known| known == TOOL_SEARCH) => {
                format!("; a call of a tool that it finds with `{TOOL_SEARCH}` needs `offered: false`")
            }
            None => String::new(),
        };
        let known = request.tool_names().collect::<Vec<_>>().join(", ");
        let (place, name) = (&call.place, &call.name);
        Some(format!(
            "{place}: the script calls `{name}`, which the agent does not offer to its model{hint} (it offers {known})"
        ))
    }

    /// Creates the reply to `request`. `label` makes its ids unique within the trial.
    pub(super) fn reply(&self, request: &Request, context: &ScriptContext, label: &str) -> Reply {
        let mut content = Vec::new();
        if let Some(thinking) = &self.thinking {
            content.push(Block::Thinking { text: context.fill(thinking), signature: None });
        }
        if let Some(text) = &self.text
            && !text.is_empty()
        {
            content.push(Block::Text { text: context.fill(text) });
        }
        for (index, call) in self.tools.iter().enumerate() {
            content.push(Block::ToolUse {
                id: call.id.clone().unwrap_or_else(|| format!("toolu_{label}_{}", index + 1)),
                name: call.name.clone(),
                input: context.fill_json(&call.input),
            });
        }
        let natural = if self.tools.is_empty() { StopReason::EndTurn } else { StopReason::ToolUse };
        Reply {
            message_id: format!("msg_{label}"),
            model: request.model.clone(),
            content,
            stop_reason: self.stop.clone().unwrap_or(natural),
            tokens: Some(self.tokens),
            ..Reply::default()
        }
    }
}

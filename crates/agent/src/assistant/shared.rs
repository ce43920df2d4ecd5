//! Code shared by both APIs.

use model::{AuxiliaryUsage, Ending, Step, ToolCall, ToolResult};

use crate::own_tools::OwnTools;
use crate::turn::Turn;

/// Records that a conversation was opened.
pub(super) fn begin(turn: &mut Turn, id: &str, model: Option<&str>, tools: &OwnTools) -> Result<(), Ending> {
    turn.record(Step::Session {
        session_id: Some(id.to_owned()),
        model: model.map(str::to_owned),
        agent_version: None,
        tools: tools.specs().map(|spec| spec.name.clone()).collect(),
        auth: None,
    })
}

/// Records `call` and the answer of the case's tool with that name. Calling a tool that does not exist is a failure of
/// the agent, because the conversation cannot continue.
pub(super) async fn answer(call: ToolCall, tools: &mut OwnTools, turn: &mut Turn) -> Result<ToolResult, Ending> {
    let (id, name, input) = (call.id.clone(), call.raw_name.clone(), call.input.clone());
    turn.record(Step::ToolCall(call))?;
    let Some(at) = tools.find(&name) else {
        let known: Vec<&str> = tools.specs().map(|spec| spec.name.as_str()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(Ending::GaveUp {
            reason: format!(
                "it called the `{name}` tool, which the case does not provide (tools of the case: {known})"
            ),
        });
    };
    let reply = tools.answer(at, &input, turn).await?.ok_or(Ending::Cancelled)?;
    turn.waiting("agent");
    let is_error = reply.is_err();
    let (Ok(content) | Err(content)) = reply;
    let result = ToolResult { id, content, is_error };
    turn.record(Step::ToolResult(result.clone()))?;
    Ok(result)
}

/// Records the ending and the usage for one message.
pub(super) fn finish(answered: Result<Option<String>, Ending>, used: AuxiliaryUsage, turn: &mut Turn) -> Ending {
    let subtype = if answered.is_ok() { "success" } else { "error" };
    turn.finish(answered, subtype, used.usage())
}

//! Agents in the client's process.

use std::sync::Arc;

use agent::{Costs, Description, Executor};
use model::Ending;
use serde::Deserialize;
use serde_json::{Value, json};

use super::connection::Connection;
use super::message::{RpcError, UNREACHABLE};

/// The client's description of one of its agents.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentSettings {
    /// True if the agent works in a directory, so that every trial needs a sandbox.
    pub sandbox: bool,
    /// False if its answers cost nothing, so that a cost which it does not report is 0.
    pub costs: bool,
}

impl Default for AgentSettings {
    fn default() -> Self {
        Self { sandbox: false, costs: true }
    }
}

/// Returns the agent `name` of the client, for the run that the request `run` starts. It lives until the process ends,
/// as all agents do: some hundred bytes for each run.
///
/// # Errors
/// Returns an error if another agent could be meant by the name.
pub fn agent(
    connection: &Arc<Connection>,
    run: &Value,
    name: &str,
    settings: AgentSettings,
) -> Result<&'static Executor, RpcError> {
    let is_name = |name: &str| name.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(letter));
    if name.is_empty() || !is_name(name) {
        let message =
            format!("`{name}` is not a name of an agent: it must consist of letters, digits, `-`, `_` and `.`");
        return Err(RpcError::params(message));
    }
    if agent::find(name).is_some() {
        return Err(RpcError::params(format!("`{name}` is a built-in agent; use another name for yours")));
    }
    let name: &'static str = Box::leak(name.to_owned().into_boxed_str());
    let description = Description {
        efforts: Some(&[]),
        needs_sandbox: settings.sandbox,
        takes_script: true,
        takes_tools: true,
        costs: if settings.costs { Costs::MayReport } else { Costs::Nothing },
        ..Description::new(name, "a function of the program that uses trialrun")
    };
    let (connection, run) = (Arc::clone(connection), run.clone());
    Ok(Executor::answering(description, move |call| {
        let (connection, params) = (Arc::clone(&connection), params(&run, name, &call));
        async move { connection.call("agent/send", &params).await.map_err(ending) }
    }))
}

/// Returns the parameters of the callback.
fn params(run: &Value, agent: &str, call: &agent::Call) -> Value {
    let mut params = json!({
        "run": run,
        "agent": agent,
        "trial": call.trial,
        "conversation_id": call.conversation_id,
        "message": call.message.text,
        "history": call.history,
        "directory": call.directory,
        "timeout_ms": call.timeout_ms,
    });
    let more = serde_json::to_value(&call.message).unwrap_or_default();
    if let (Some(params), Value::Object(more)) = (params.as_object_mut(), more) {
        params.extend(more.into_iter().filter(|(name, _)| name != "text"));
    }
    params
}

/// Returns the ending for an error of the client. An agent that raises an error has given up, like one that is a
/// program and exits without an answer.
fn ending(error: RpcError) -> Ending {
    match error {
        RpcError { code: UNREACHABLE, message, .. } => Ending::Unreachable { reason: message },
        RpcError { message, .. } => Ending::GaveUp { reason: message },
    }
}

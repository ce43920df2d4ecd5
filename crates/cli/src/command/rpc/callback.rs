//! Agents, assertions and operators in the client's process.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

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
    /// Set if its spans are received.
    pub traces: Option<Traces>,
}

/// Protocol by which the client sends spans.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Traces {
    Otlp,
}

impl Default for AgentSettings {
    fn default() -> Self {
        Self { sandbox: false, costs: true, traces: None }
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
    let answer = move |call: agent::Call| {
        let (connection, params) = (Arc::clone(&connection), params(&run, name, &call));
        async move { connection.call("agent/send", &params).await.map_err(ending) }
    };
    Ok(match settings.traces {
        Some(Traces::Otlp) => Executor::traced(description, answer),
        None => Executor::answering(description, answer),
    })
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
    if let Some(traces) = &call.traces {
        params["traces"] = json!({ "endpoint": traces.endpoint, "traceparent": traces.traceparent });
    }
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

/// The client's description of one of its assertions or operators.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FunctionSettings {
    /// Time limit of a call in milliseconds.
    pub timeout_ms: u64,
}

impl Default for FunctionSettings {
    fn default() -> Self {
        Self { timeout_ms: 30_000 }
    }
}

/// Assertions and operators of the client, for one request.
pub struct ClientFunctions {
    connection: Arc<Connection>,
    /// Id of the request.
    run: Value,
    assertions: Vec<&'static str>,
    operators: Vec<String>,
    timeouts: BTreeMap<String, Duration>,
}

impl ClientFunctions {
    /// Returns the functions of the client for the request `run`; `None` if it has none. The names of assertions live
    /// until the process ends, like those of agents.
    ///
    /// # Errors
    /// Returns an error if something else could be meant by a name.
    pub fn of(
        connection: &Arc<Connection>,
        run: &Value,
        assertions: &BTreeMap<String, FunctionSettings>,
        operators: &BTreeMap<String, FunctionSettings>,
    ) -> Result<Option<Arc<dyn grade::Functions>>, RpcError> {
        if assertions.is_empty() && operators.is_empty() {
            return Ok(None);
        }
        for name in assertions.keys() {
            if !is_word(name) {
                return Err(RpcError::params(not_a_word(name, "an assertion")));
            }
            if grade::find(name).is_some() || name == "custom" {
                return Err(RpcError::params(format!("`{name}` is a built-in assertion; use another name for yours")));
            }
        }
        for name in operators.keys() {
            if !name.strip_prefix('$').is_some_and(is_word) {
                return Err(RpcError::params(not_a_word(name, "an operator with its `$`")));
            }
            if grade::OPERATORS.iter().any(|operator| operator.name == name) || expect::is_meta(name) {
                return Err(RpcError::params(format!("`{name}` is a built-in operator; use another name for yours")));
            }
        }
        let timeouts = assertions.iter().chain(operators);
        Ok(Some(Arc::new(Self {
            connection: Arc::clone(connection),
            run: run.clone(),
            assertions: assertions.keys().map(|name| &*Box::leak(name.clone().into_boxed_str())).collect(),
            operators: operators.keys().cloned().collect(),
            timeouts: timeouts.map(|(name, set)| (name.clone(), Duration::from_millis(set.timeout_ms))).collect(),
        })))
    }

    fn call(&self, method: &str, kind: &str, name: &str, mut params: Value) -> Result<Value, String> {
        params["run"] = self.run.clone();
        params[kind] = name.into();
        let limit = self.timeouts.get(name).copied().unwrap_or_default();
        match self.connection.call_blocking(method, &params, limit) {
            Some(Ok(answer)) => Ok(answer),
            Some(Err(error)) => Err(error.message),
            None => Err(format!("it did not answer within {} s", limit.as_secs_f64())),
        }
    }
}

fn is_word(name: &str) -> bool {
    let is_inside = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    name.starts_with(|letter: char| letter.is_ascii_alphabetic()) && name.chars().all(is_inside)
}

fn not_a_word(name: &str, kind: &str) -> String {
    format!("`{name}` is not a name of {kind}: it must start with a letter, and consist of letters, digits and `_`")
}

impl fmt::Debug for ClientFunctions {
    /// Names do not depend on the connection, so that the digest of an assertion is the same in each run.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientFunctions")
    }
}

impl grade::Functions for ClientFunctions {
    fn assertions(&self) -> &[&'static str] {
        &self.assertions
    }

    fn operators(&self) -> &[String] {
        &self.operators
    }

    fn check(&self, name: &str, evidence: Value) -> Result<Value, String> {
        self.call("assertion/check", "assertion", name, evidence)
    }

    fn compare(&self, name: &str, values: Value) -> Result<Value, String> {
        self.call("operator/compare", "operator", name, values)
    }
}

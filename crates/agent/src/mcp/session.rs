//! A session with the server under test. A message asks for a call or for one of the checks, and the reply says what the
//! server did.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mcp::{
    Answer, Client, Direction, Era, Exchange, Failure, Options, Report, Unchecked, answer_errors, check_fuzz,
    check_protocol, check_safety, compare, output_errors, read_contract, text_of,
};
use model::{Ending, Step, Usage, UserMessage};
use sandbox::BoxFuture;
use serde_json::{Value, json};

use super::connection::Connections;
use super::request::{Call, Request};
use crate::session::Session;
use crate::step_recorder::StepRecorder;
use crate::turn::{Turn, finished, unless_stopped};

/// Time limit for each answer in checks.
const LIMIT: Duration = Duration::from_secs(60);
/// Maximum length of foreign text in a message, in characters.
const SHOWN: usize = 200;
/// Maximum size of a contract.
const MAX_CONTRACT_BYTES: u64 = 16 << 20;

/// An open session.
pub(super) struct McpSession {
    pub(super) connections: Connections,
    pub(super) era: Option<Era>,
    pub(super) id: String,
    /// Folder of the suite, against which the path of a contract is resolved.
    pub(super) directory: Arc<Path>,
    pub(super) client: Option<Client>,
    /// Tools of the server, once they are known.
    pub(super) tools: Vec<Value>,
    pub(super) step_recorder: StepRecorder,
}

/// A reply as it is recorded.
struct Replied {
    text: String,
    result: Value,
}

impl McpSession {
    async fn act(&mut self, message: &UserMessage, turn: &mut Turn) -> Result<(), Ending> {
        let request = Request::read(&message.text).map_err(|reason| Ending::InvalidTest { reason })?;
        turn.waiting("agent");
        let stopping = turn.stopping();
        let replied = match request {
            Request::Call(call) => unless_stopped(stopping, self.call(&call, turn)).await?,
            check => {
                self.step_recorder.begin(turn, &self.id)?;
                unless_stopped(stopping, self.check(&check)).await?
            }
        };
        self.keep_traffic(turn);
        for line in self.connections.take_stderr() {
            turn.record(Step::Notice { from: "stderr".to_owned(), text: line })?;
        }
        let Replied { text, result } = replied?;
        turn.record(finished(false, Usage::default(), Some(text), Some(result)))
    }

    fn options(&self) -> Options {
        Options { era: self.era, limit: LIMIT, ..Options::default() }
    }

    /// Makes a check.
    async fn check(&mut self, check: &Request) -> Result<Replied, Ending> {
        self.client = None;
        let options = self.options();
        let connections = &mut self.connections;
        let mut contract = None;
        let mut tool_list = None;
        let checked = match check {
            Request::Protocol => check_protocol(connections, grade::schema_errors).await,
            Request::Safety(safety) => check_safety(connections, safety, &options).await.map(|(report, list)| {
                tool_list = Some(list);
                report
            }),
            Request::Fuzz(fuzz) => check_fuzz(connections, fuzz, &options, grade::schema_errors).await,
            Request::Contract { file } => {
                let mistake = |reason: String| {
                    let file = file.as_deref().unwrap_or_default();
                    Ending::InvalidTest { reason: format!("the contract `{file}`: {reason}") }
                };
                let old = file.as_ref().map(|file| read_contract_file(&self.directory.join(file)));
                let old = old.transpose().map_err(mistake)?;
                match read_contract(connections, &options).await {
                    Ok(new) => {
                        let compared = old.as_ref().map(|old| compare(old, &new)).transpose().map_err(mistake)?;
                        contract = Some(new);
                        Ok(compared.unwrap_or_default())
                    }
                    Err(unchecked) => Err(unchecked),
                }
            }
            Request::Call(_) => Ok(Report::default()),
        };
        let report = match checked {
            Ok(report) => report,
            Err(unchecked) => return Err(self.ending(unchecked).await),
        };
        let mut text = report.describe();
        let mut result = json!({"rules": report.to_json()});
        if let Some(contract) = contract {
            result["contract"] = contract;
        }
        if let Some(list) = tool_list {
            result["toolList"] = list.to_json();
            text = format!("{} tools, about {} tokens: {text}", list.tools, list.tokens);
        }
        if let Request::Fuzz(fuzz) = check {
            result["seed"] = fuzz.seed.into();
            text = format!("seed {}: {text}", fuzz.seed);
        }
        result["output"] = text.as_str().into();
        Ok(Replied { text, result })
    }

    /// Opens the session for calls.
    async fn connect(&mut self, turn: &mut Turn) -> Result<(), Ending> {
        let options = Options { keeps_traffic: true, ..self.options() };
        let opened = mcp::open(&mut self.connections, &options).await;
        let mut client = match opened {
            Ok(client) => client,
            Err(unchecked) => return Err(self.ending(unchecked).await),
        };
        self.tools = match client.tools().await {
            Ok(tools) => tools,
            // A server need not have tools. If it says that it has some, their output schemas must be known.
            Err(_) if client.server().capabilities.get("tools").is_none_or(Value::is_null) => Vec::new(),
            Err(failure) => return Err(self.ending(Unchecked::Server(failure)).await),
        };
        if let Some(item) = self.tools.iter().find(|tool| !tool["name"].is_string()) {
            let shown = model::text::shortened(&item.to_string(), SHOWN);
            return Err(Ending::GaveUp { reason: format!("an item of its list of tools has no name: {shown}") });
        }
        let names = self.tools.iter().filter_map(|tool| tool["name"].as_str()).map(str::to_owned).collect();
        let agent_version = client.server().version.clone();
        self.client = Some(client);
        turn.record(Step::Session {
            session_id: Some(self.id.clone()),
            model: None,
            agent_version,
            tools: names,
            auth: None,
        })
    }

    /// Calls a tool.
    async fn call(&mut self, call: &Call, turn: &mut Turn) -> Result<Replied, Ending> {
        if self.client.is_none() {
            self.connect(turn).await?;
        }
        self.step_recorder.next_turn();
        let id = self.step_recorder.call(turn, &call.tool, call.arguments.clone())?;
        let outcome = self.exchange(call).await;
        let (result, cancelled) = match outcome {
            Ok(outcome) => outcome,
            Err(failure) => {
                let reason = format!("`{}`: {}", call.tool, self.describe(&failure).await);
                self.step_recorder.result(turn, &id, &reason, true)?;
                return Err(Ending::GaveUp { reason });
            }
        };
        if let (Some(exchange), Some(client)) = (&result, &mut self.client) {
            let asks = exchange.answer.as_result().is_some_and(|result| result["resultType"] == "input_required");
            if asks && client.era() == Era::Stateless {
                let reason = format!("`{}` asks the client for input, which a call cannot give", call.tool);
                self.step_recorder.result(turn, &id, &reason, true)?;
                return Err(Ending::InvalidTest { reason });
            }
            let mut errors = answer_errors(client.era(), &exchange.answer, grade::schema_errors);
            errors.extend(client.take_unmarked().first().map(|text| format!("no `jsonrpc` `2.0` in {text}")));
            if !errors.is_empty() {
                let reason = format!("`{}`: its answer breaks the protocol: {}", call.tool, errors.join("; "));
                self.step_recorder.result(turn, &id, &reason, true)?;
                return Err(Ending::GaveUp { reason });
            }
        }
        let result = self.described(call, result.as_ref(), cancelled);
        let text = result["text"].as_str().unwrap_or_default().to_owned();
        let is_error = result["isError"] == true || result.get("error").is_some();
        self.step_recorder.result(turn, &id, &text, is_error)?;
        Ok(Replied { text, result })
    }

    /// Sends a call. Returns its answer, and if it was cancelled, `true` if the server was usable afterwards.
    async fn exchange(&mut self, call: &Call) -> Result<(Option<Exchange>, Option<bool>), Failure> {
        let Some(client) = &mut self.client else { return Err(Failure::Ended) };
        let id = client.begin_call(&call.tool, &call.arguments, call.progress);
        let Some(after) = call.cancel_after else {
            let exchange = client.finish_call(&call.tool, &call.arguments, id, call.limit).await?;
            return Ok((Some(exchange), None));
        };
        match client.finish(id, after).await {
            Err(Failure::TimedOut(_)) => {}
            answered => return answered.map(|exchange| (Some(exchange), None)),
        }
        client.cancel(id, "the test cancels it");
        let alive = client.request("tools/list", json!({})).await;
        Ok((None, Some(alive.is_ok_and(|exchange| exchange.answer.as_result().is_some()))))
    }

    /// Returns what happened, for expectations.
    fn described(&self, call: &Call, exchange: Option<&Exchange>, alive: Option<bool>) -> Value {
        let mut described = json!({"isError": false, "cancelled": alive.is_some()});
        if let Some(alive) = alive {
            described["alive"] = alive.into();
            described["text"] = "cancelled".into();
        }
        let Some(exchange) = exchange else { return described };
        described["durationMs"] = u64::try_from(exchange.duration.as_millis()).unwrap_or(u64::MAX).into();
        described["bytes"] = exchange.bytes.into();
        described["progress"] = exchange.progress().count().into();
        match &exchange.answer {
            Answer::Error { code, message, error } => {
                described["error"] = error.clone();
                described["text"] = format!("error {code}: {message}").into();
            }
            Answer::Result(result) => {
                let text = text_of(result);
                described["isError"] = result["isError"].as_bool().unwrap_or_default().into();
                described["output"] = result.get("structuredContent").cloned().unwrap_or_else(|| text.as_str().into());
                described["text"] = text.into();
                for key in ["content", "structuredContent"] {
                    if let Some(value) = result.get(key) {
                        described[key] = value.clone();
                    }
                }
                let tool = self.tools.iter().find(|tool| tool["name"] == call.tool.as_str());
                let errors = tool.map(|tool| output_errors(tool, result, grade::schema_errors)).unwrap_or_default();
                if !errors.is_empty() {
                    described["schemaErrors"] = errors.into();
                }
            }
        }
        described
    }

    /// Returns the ending of a session that could not be used.
    async fn ending(&mut self, unchecked: Unchecked) -> Ending {
        let end = self.connections.describe_end().await;
        if let Some(reason) = self.connections.environment_fault() {
            return Ending::Unreachable { reason };
        }
        match unchecked {
            Unchecked::NotStarted(reason) => Ending::Unreachable { reason },
            Unchecked::Options(reason) => Ending::InvalidTest { reason },
            Unchecked::Server(failure @ (Failure::Lost(_) | Failure::Http { status: 401 | 403 | 404, .. }))
                if !self.connections.is_program() =>
            {
                let hint = match &failure {
                    Failure::Http { challenge: Some(challenge), .. } if challenge.contains("resource_metadata") => {
                        "; it wants an OAuth token, which trialrun does not fetch: set it in `headers` of the server in the \
                         project, as `Authorization: Bearer ${env.TOKEN}`"
                    }
                    Failure::Http { status: 401 | 403, .. } => "; set `headers` of the server in the project",
                    _ => "",
                };
                Ending::Unreachable { reason: format!("{failure}{hint}") }
            }
            Unchecked::Server(failure) => {
                let end = end.map(|end| format!(" ({end})")).unwrap_or_default();
                Ending::GaveUp { reason: format!("{failure}{end}") }
            }
        }
    }

    async fn describe(&mut self, failure: &Failure) -> String {
        match failure {
            Failure::Ended => {
                let end = self.connections.describe_end().await;
                end.map_or_else(|| failure.to_string(), |end| format!("{failure} ({end})"))
            }
            other => other.to_string(),
        }
    }

    fn keep_traffic(&mut self, turn: &mut Turn) {
        let Some(client) = &mut self.client else { return };
        for (direction, text) in client.take_traffic() {
            turn.raw(if direction == Direction::Sent { "to the server" } else { "from the server" }, &text);
        }
    }
}

/// Reads a contract.
pub(super) fn read_contract_file(path: &Path) -> Result<Value, String> {
    let text = files::read_named_text(path, MAX_CONTRACT_BYTES).map_err(|error| error.to_string())?;
    let contract = model::foreign_json::parse(&text).map_err(|error| error.to_string())?;
    // Comparing it with itself fails if it is not a contract.
    compare(&contract, &contract)?;
    Ok(contract)
}

impl Session for McpSession {
    fn send<'a>(&'a mut self, message: &'a UserMessage, turn: &'a mut Turn) -> BoxFuture<'a, Ending> {
        Box::pin(async move {
            match self.act(message, turn).await {
                Ok(()) => Ending::Finished,
                Err(ending) => {
                    self.keep_traffic(turn);
                    ending
                }
            }
        })
    }

    fn close<'a>(&'a mut self) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Some(client) = &mut self.client {
                client.close().await;
            }
            self.connections.stop().await;
        })
    }
}

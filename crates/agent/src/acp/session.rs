//! A conversation: one process, and one session in it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use model::decode::Problems;
use model::text::shortened;
use model::{Ending, PermissionMode, PermissionRequest, Question, Step, UserMessage};
use sandbox::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::config::SessionConfig;
use super::elicitation;
use super::files;
use super::launch::Launch;
use super::message::{self, INTERNAL, Incoming, NO_METHOD, RpcError};
use super::named::{self, Named};
use super::permission::{self, Choice, Rule};
use super::settings::{self, Change};
use super::terminal::Terminals;
use super::update::Interpreter;
use crate::json::{items, owned, text};
use crate::lines::{Line, Notices};
use crate::process::{Output, Process};
use crate::server::{self, Connection, Server};
use crate::session::Session;
use crate::turn::Turn;
use crate::{Endpoint, SessionContext};

/// Version of the protocol.
const VERSION: u64 = 1;
/// Time limit for each request that opens a session. Some agents need half a minute on a busy machine.
const TO_OPEN: Duration = Duration::from_secs(180);
/// Time limit for the end of a reply after it was cancelled.
const TO_CANCEL: Duration = Duration::from_secs(1);
/// Time limit for updates after a reply. Agents that write from several tasks may send the response first.
const FOR_UPDATES: Duration = Duration::from_millis(100);
/// Maximum length of foreign text in a message, in characters.
const SHOWN: usize = 300;

/// Kinds of calls that may run a command.
const COMMANDS: &[&str] = &["execute"];
/// Kinds of calls that may write a file.
const CHANGES: &[&str] = &["edit", "delete", "move", "execute"];

/// Id of a request, and its result.
type Delayed = (Value, Value);

/// An open conversation.
pub(super) struct AcpSession {
    launch: Launch,
    context: SessionContext,
    named: Option<Named>,
    /// How to sign in.
    sign_in: Option<&'static str>,
    process: Option<Process>,
    config: SessionConfig,
    /// Id of the session, once it is open.
    session_id: Option<String>,
    can_close: bool,
    /// Text for the agent that comes before the first message.
    preface: Option<String>,
    /// Number of the last request.
    last_id: u64,
    interpreter: Interpreter,
    terminals: Terminals,
    /// Responses to requests that take time.
    done: (mpsc::UnboundedSender<Delayed>, mpsc::UnboundedReceiver<Delayed>),
    /// Notices from stdout and from stderr.
    notices: [Notices; 2],
    /// True while a reply is in progress.
    is_replying: bool,
    /// Reason why a call of the reply was denied.
    denied: Option<String>,
    /// Actions of the agent in the reply that this program carried out, by the kinds of calls that may be theirs.
    served: BTreeMap<&'static [&'static str], &'static str>,
    /// Id of a response that no request has.
    stray: Option<Value>,
    /// True if the conversation ended early.
    is_over: bool,
}

impl AcpSession {
    /// Creates a conversation without starting a process.
    pub(super) fn new(
        launch: Launch,
        context: SessionContext,
        named: Option<Named>,
        sign_in: Option<&'static str>,
    ) -> Self {
        let read = |node| SessionConfig::read(node, &mut Problems::new());
        let config = context.config.as_ref().map(|config| read(&config.node)).unwrap_or_default();
        Self {
            launch,
            config,
            context,
            named,
            sign_in,
            process: None,
            session_id: None,
            can_close: false,
            preface: None,
            last_id: 0,
            interpreter: Interpreter::default(),
            terminals: Terminals::default(),
            done: mpsc::unbounded_channel(),
            notices: Default::default(),
            is_replying: false,
            denied: None,
            served: BTreeMap::new(),
            stray: None,
            is_over: false,
        }
    }

    async fn converse(&mut self, message: &UserMessage, turn: &mut Turn) -> Ending {
        if turn.turns_left() == 0 {
            return turn.out_of_turns();
        }
        if self.config.resumes && self.session_id.is_some() {
            self.terminals.close();
            if let Some(mut process) = self.process.take() {
                let _ = process.end().await;
            }
        }
        if self.process.is_none() {
            turn.waiting("agent");
            if let Err(ending) = self.open(turn).await {
                if ending == Ending::Cancelled {
                    let reason = "it had not opened a session when the trial's time was over".to_owned();
                    turn.explain_timeout(reason.clone());
                    turn.excuse(Ending::Unreachable { reason });
                }
                return ending;
            }
        } else if let Err(ending) = self.leftovers(Duration::ZERO, turn).await {
            return ending;
        }
        self.prompt(&message.text, turn).await
    }

    /// Starts the agent and opens a session.
    async fn open(&mut self, turn: &mut Turn) -> Result<(), Ending> {
        let process = self.launch.start(&self.context).map_err(|reason| Ending::Unreachable { reason })?;
        self.process = Some(process);
        let files = !self.named.is_some_and(|named| named.has_own_files);
        let asked = json!({
            "protocolVersion": VERSION,
            "clientCapabilities": {
                "fs": {"readTextFile": files, "writeTextFile": files},
                "terminal": true,
                "elicitation": {"form": {}},
                "session": {"configOptions": {"boolean": {}}, "notices": {}, "compaction": {}},
                "subagents": {},
            },
            "clientInfo": {"name": "trialrun", "title": "trialrun", "version": env!("CARGO_PKG_VERSION")},
        });
        let agent =
            self.opening("initialize", &asked, turn).await?.map_err(|error| self.refused("initialize", &error))?;
        let version = agent.get("protocolVersion").cloned().unwrap_or(Value::Null);
        if version.is_null() {
            let reason = format!("its response to `initialize` has no `protocolVersion`: {}", shown(&agent));
            return Err(Ending::Unreachable { reason });
        }
        if version.as_u64() != Some(VERSION) && version != json!(VERSION.to_string()) {
            let reason = format!("it speaks version {version} of the Agent Client Protocol, and not version {VERSION}");
            return Err(Ending::Unreachable { reason });
        }
        self.can_close = agent.pointer("/agentCapabilities/sessionCapabilities/close").is_some();
        let (id, mut session) = match self.session_id.clone() {
            Some(id) => (id.clone(), self.resume(&agent, &id, turn).await?),
            None => {
                let session = self.new_session(&agent, turn).await?;
                let Some(id) = owned(&session, "sessionId") else {
                    let reason =
                        format!("its response to `session/new` has no text as its `sessionId`: {}", shown(&session));
                    return Err(Ending::Unreachable { reason });
                };
                (id, session)
            }
        };
        let setup = Arc::clone(&self.context.setup);
        let mut model = settings::current_model(&session);
        // A scripted model, and one that an argument or a variable names, is selected already.
        let is_set = self.named.is_some_and(|named| named.sets_model())
            || matches!(self.context.endpoint, Endpoint::Gateway { .. });
        if let Some(name) = setup.model.as_deref().filter(|_| !is_set) {
            let change = settings::select_model(&session, &id, name);
            let change = change.map_err(|models| no_choice("model", name, &models))?;
            self.change(change, &mut session, turn).await?;
            model = Some(name.to_owned());
        }
        let mode = named::mode_of(self.named.as_ref(), setup.permission_mode);
        let change = settings::select_mode(&session, &id, mode);
        self.change(change, &mut session, turn).await?;
        if let Some(effort) = setup.reasoning_effort.as_deref() {
            let change = settings::select_effort(&session, &id, effort);
            let change = change.map_err(|efforts| no_choice("reasoning effort", effort, &efforts))?;
            self.change(change, &mut session, turn).await?;
        }
        for (name, value) in self.config.options.clone() {
            let change = settings::select_option(&session, &id, &name, &value);
            let change = change.map_err(|reason| Ending::InvalidTest { reason })?;
            self.change(Some(change), &mut session, turn).await?;
        }
        if agent.pointer("/agentCapabilities/sessionCapabilities/title").is_some() {
            // Otherwise, some agents ask the model for one. A title is not part of the conversation, so an error is ignored.
            let _ = self.opening("session/set_title", &json!({"sessionId": id, "title": "trialrun"}), turn).await?;
        }
        self.session_id = Some(id.clone());
        turn.record(Step::Session {
            session_id: Some(id),
            model: model.or_else(|| setup.model.clone()),
            agent_version: agent.pointer("/agentInfo/version").and_then(Value::as_str).map(str::to_owned),
            tools: Vec::new(),
            auth: self.launch.auth().map(str::to_owned),
        })?;
        turn.record(Step::PermissionsReported)
    }

    /// Opens a session, after a sign-in if the agent wants one and there is a key.
    async fn new_session(&mut self, agent: &Value, turn: &mut Turn) -> Result<Value, Ending> {
        const METHOD: &str = "session/new";
        let sandbox = self.context.sandbox().map_err(|breakage| Ending::Aborted { reason: breakage.to_string() })?;
        let servers = &self.context.servers;
        let http = agent.pointer("/agentCapabilities/mcpCapabilities/http") == Some(&json!(true));
        let remote = servers.iter().find(|server| matches!(server.connection, Connection::Http { .. }));
        if let Some(server) = remote.filter(|_| !http) {
            let reason = format!("it does not connect to MCP servers over HTTP, such as `{}`", server.name);
            return Err(Ending::Unreachable { reason });
        }
        let servers: Vec<Value> = servers.iter().map(Server::for_acp).collect();
        let mut asked = json!({"cwd": sandbox.work(), "mcpServers": servers});
        let prompt = self.context.setup.system_prompt.as_deref().filter(|prompt| !prompt.is_empty());
        if let Some(prompt) = prompt.filter(|_| !self.named.is_some_and(|named| named.configures_prompt())) {
            let takes_prompt =
                ["/agentCapabilities/sessionCapabilities/systemPrompt", "/agentCapabilities/systemPrompt"]
                    .iter()
                    .any(|path| agent.pointer(path).is_some_and(|has| !has.is_null() && *has != json!(false)));
            if takes_prompt {
                asked["systemPrompt"] = json!({"mode": "append", "content": [{"type": "text", "text": prompt}]});
            } else if agent.pointer("/agentCapabilities/_meta/claudeCode").is_some() {
                asked["_meta"] = json!({"systemPrompt": {"append": prompt}});
            } else {
                turn.warn("the agent takes no system prompt, so it is the beginning of the first message");
                self.preface = Some(prompt.to_owned());
            }
        }
        let first = self.opening(METHOD, &asked, turn).await?;
        let error = match first {
            Ok(session) => return Ok(session),
            Err(error) => error,
        };
        let methods = items(agent, "authMethods").iter().filter_map(|method| text(method, "id"));
        let method =
            self.named.and_then(|named| named.auth_method).filter(|own| methods.into_iter().any(|id| id == *own));
        let has_key = matches!(self.launch.auth(), Some("api key" | "scripted"));
        let Some(method) = method.filter(|_| has_key && error.wants_sign_in()) else {
            return Err(self.refused(METHOD, &error));
        };
        let signed_in = self.opening("authenticate", &json!({"methodId": method}), turn).await?;
        signed_in.map_err(|error| self.refused("authenticate", &error))?;
        self.opening(METHOD, &asked, turn).await?.map_err(|error| self.refused(METHOD, &error))
    }

    /// Opens the session of an earlier process again. An agent that offers this must be able to.
    async fn resume(&mut self, agent: &Value, id: &str, turn: &mut Turn) -> Result<Value, Ending> {
        let can = |path: &str| agent.pointer(path).is_some_and(|can| !can.is_null() && *can != json!(false));
        let method = if can("/agentCapabilities/sessionCapabilities/resume") {
            "session/resume"
        } else if can("/agentCapabilities/loadSession") {
            "session/load"
        } else {
            let reason = "it can neither resume nor load a session, so it cannot be tested with `resume`".to_owned();
            return Err(Ending::InvalidTest { reason });
        };
        self.interpreter.resume();
        let sandbox = self.context.sandbox().map_err(|breakage| Ending::Aborted { reason: breakage.to_string() })?;
        let servers: Vec<Value> = self.context.servers.iter().map(Server::for_acp).collect();
        let params = json!({"sessionId": id, "cwd": sandbox.work(), "mcpServers": servers});
        let resumed = self.opening(method, &params, turn).await?;
        resumed.map_err(|error| match error.wants_sign_in() {
            true => self.refused(method, &error),
            false => Ending::GaveUp { reason: format!("it offers `{method}`, but could not do it: {error}") },
        })
    }

    /// Changes a setting of the session. The response has the options that the change left.
    async fn change(&mut self, change: Option<Change>, session: &mut Value, turn: &mut Turn) -> Result<(), Ending> {
        let Some(Change { method, params }) = change else { return Ok(()) };
        let changed = self.opening(method, &params, turn).await?;
        let changed = changed.map_err(|error| self.refused(method, &error))?;
        if let Some(options) = changed.get("configOptions").filter(|options| options.is_array()) {
            session["configOptions"] = options.clone();
        }
        Ok(())
    }

    /// Sends a request that opens the session, and returns the response.
    async fn opening(
        &mut self,
        method: &str,
        params: &Value,
        turn: &mut Turn,
    ) -> Result<Result<Value, RpcError>, Ending> {
        let answered = tokio::time::timeout(TO_OPEN, self.call(method, params, turn)).await;
        answered.unwrap_or_else(|_| {
            let hint = self.stray_hint().map(|hint| format!("; {hint}")).unwrap_or_default();
            let reason = format!("it did not answer `{method}` within {} s{hint}", TO_OPEN.as_secs());
            Err(Ending::Unreachable { reason })
        })
    }

    /// Says that the agent sent a response that belongs to no request, if it did.
    fn stray_hint(&self) -> Option<String> {
        let id = self.stray.as_ref()?;
        Some(format!("it sent a response with the id {}, which no open request has", shown(id)))
    }

    /// Returns the ending if the agent does not open a session.
    fn refused(&self, method: &str, error: &RpcError) -> Ending {
        let reason = match (error.wants_sign_in(), self.sign_in) {
            (true, Some(hint)) => format!("it is not signed in ({error}): {hint}"),
            (true, None) => format!("it is not signed in ({error}); a key in the environment goes into its `env`"),
            (false, _) => format!("it refused `{method}`: {error}"),
        };
        Ending::Unreachable { reason }
    }

    /// Sends a message and follows the reply.
    async fn prompt(&mut self, text: &str, turn: &mut Turn) -> Ending {
        self.interpreter.begin();
        (self.is_replying, self.denied, self.stray) = (true, None, None);
        self.served.clear();
        turn.waiting("model");
        let mut blocks = vec![json!({"type": "text", "text": text})];
        if let Some(preface) = self.preface.take() {
            blocks.insert(0, json!({"type": "text", "text": preface}));
        }
        let params = json!({"sessionId": self.session_id, "prompt": blocks});
        let replied = self.call("session/prompt", &params, turn).await;
        let (response, stopped) = match replied {
            Ok(Ok(response)) => {
                let late = self.leftovers(FOR_UPDATES, turn).await;
                (Ok(response), late.err())
            }
            Ok(Err(error)) => (Err(error), None),
            Err(ending) => {
                if let Some(hint) = self.stray_hint() {
                    turn.explain_timeout(hint);
                }
                (Ok(self.cancel(turn).await), Some(ending))
            }
        };
        self.is_replying = false;
        let mut recorded = Ok(());
        for step in self.interpreter.end() {
            recorded = recorded.and(turn.record(step));
        }
        if self.named.is_some_and(|named| named.hides_calls) {
            turn.misses_calls();
        }
        for (kinds, what) in &self.served {
            if !self.interpreter.may_have_called(kinds) {
                turn.warn(format!("the agent {what} through trialrun and reported no call that did this"));
                turn.misses_calls();
            }
        }
        if self.interpreter.has_unreadable_text() {
            recorded = recorded.and(turn.unreadable("the agent sent a piece of its answer that is not a text"));
        }
        for (kind, count) in self.interpreter.unknown() {
            let what =
                if kind.is_empty() { "without a kind".to_owned() } else { format!("of the unknown kind `{kind}`") };
            turn.warn(format!("the agent sent updates {what} ({count}); they are only in the record"));
        }
        let whole = response.as_ref().ok().cloned().unwrap_or(Value::Null);
        let mut usage = self.interpreter.usage(&whole);
        if self.named.is_some_and(|named| named.hides_tokens) {
            usage.tokens = None;
        }
        let reason = owned(&whole, "stopReason").unwrap_or_else(|| "error".to_owned());
        let answered = match (stopped, response) {
            (Some(ending), _) => Err(ending),
            (None, Err(error)) => Err(self.failed(&error)),
            (None, Ok(response)) => self.ended(&response).and(recorded).map(|()| self.interpreter.answer()),
        };
        turn.finish(answered, &reason, usage)
    }

    /// Returns the ending if the agent returned an error for a message.
    fn failed(&self, error: &RpcError) -> Ending {
        if error.wants_sign_in() {
            return self.refused("session/prompt", error);
        }
        match error.status() {
            status if llm::is_agents_doing(status, &error.message) => Ending::GaveUp { reason: error.message.clone() },
            Some(_) => Ending::ProviderFailed { reason: error.to_string() },
            None => Ending::Aborted { reason: format!("it returned an error instead of an answer: {error}") },
        }
    }

    /// Returns the ending unless the reply is complete.
    fn ended(&self, response: &Value) -> Result<(), Ending> {
        let gave_up = |reason: &str| Err(Ending::GaveUp { reason: reason.to_owned() });
        match (text(response, "stopReason"), &self.denied) {
            (Some("end_turn"), _) => Ok(()),
            (Some("refusal"), _) => gave_up("the model refused to answer"),
            (Some("max_tokens"), _) => gave_up("its answer is longer than the model's limit"),
            (Some("max_turn_requests"), _) => gave_up("it reached its own limit of model requests"),
            (Some("cancelled"), Some(denied)) => {
                gave_up(&format!("it stopped because a call was not permitted ({denied})"))
            }
            (Some("cancelled"), None) => Err(Ending::Aborted {
                reason: "it reports that its reply was cancelled, but trialrun did not cancel it".to_owned(),
            }),
            _ => gave_up(&format!("its response to `session/prompt` has no known `stopReason`: {}", shown(response))),
        }
    }

    /// Asks the agent to stop, and returns its response, or nothing if there is none in time.
    async fn cancel(&mut self, turn: &mut Turn) -> Value {
        self.terminals.close();
        let prompt = self.last_id;
        self.write(&message::notification("session/cancel", &json!({"sessionId": self.session_id})));
        let Some(process) = &mut self.process else { return Value::Null };
        let answer = async {
            loop {
                match process.next_output().await {
                    Output::Stdout(line) => {
                        line.keep("stdout", turn);
                        match Incoming::read(&line.text) {
                            Incoming::Response(id, response) if id == prompt => return response.unwrap_or_default(),
                            Incoming::Request { id, .. } => {
                                let outcome = json!({"outcome": {"outcome": "cancelled"}});
                                process.write(message::response(&id, Ok(outcome)));
                            }
                            _ => {}
                        }
                    }
                    Output::Stderr(line) => line.keep("stderr", turn),
                    Output::End => return Value::Null,
                }
            }
        };
        let response = tokio::time::timeout(TO_CANCEL, answer).await.unwrap_or_default();
        let _ = process.stop().await;
        response
    }

    /// Sends a request, and serves the agent until it responds.
    async fn call(&mut self, method: &str, params: &Value, turn: &mut Turn) -> Result<Result<Value, RpcError>, Ending> {
        self.last_id += 1;
        let own = self.last_id;
        self.write(&message::request(own, method, params));
        loop {
            match self.next(turn).await? {
                Incoming::Response(id, response) if id == own => return Ok(response),
                Incoming::Rejected(error) => return Ok(Err(error)),
                other => self.handle(other, turn).await?,
            }
        }
    }

    /// Reads what the agent writes after its reply within this time, which does not count as the agent's.
    async fn leftovers(&mut self, within: Duration, turn: &mut Turn) -> Result<(), Ending> {
        let began = Instant::now();
        for _ in 0..Notices::MAX_COUNT {
            let Some(process) = &mut self.process else { return Ok(()) };
            let output = tokio::select! {
                biased;
                output = process.next_output() => output,
                () = tokio::time::sleep(within.saturating_sub(began.elapsed())) => break,
            };
            if matches!(output, Output::End) {
                break;
            }
            if let Some(incoming) = self.hear(output, turn)? {
                match incoming {
                    Incoming::Notification { params, .. } if !self.is_replying => too_late(&params, turn),
                    incoming => self.handle(incoming, turn).await?,
                }
            }
        }
        turn.pause(began.elapsed());
        Ok(())
    }

    /// Returns the next message of the agent.
    async fn next(&mut self, turn: &mut Turn) -> Result<Incoming, Ending> {
        loop {
            let Some(process) = &mut self.process else {
                return Err(Ending::GaveUp { reason: "its process has ended".to_owned() });
            };
            let output = tokio::select! {
                biased;
                () = turn.stopping() => return Err(Ending::Cancelled),
                Some((id, result)) = self.done.1.recv() => {
                    process.write(message::response(&id, Ok(result)));
                    continue;
                }
                output = process.next_output() => output,
            };
            if matches!(output, Output::End) {
                let how = process.describe_end().await;
                let trouble = process.start_error().map(str::to_owned);
                turn.exited(process.exit_code());
                self.process = None;
                if self.is_replying {
                    // It may have been about to report a call.
                    turn.misses_calls();
                }
                return Err(match (trouble, self.is_replying) {
                    (Some(reason), _) => Ending::Unreachable { reason },
                    (None, true) => Ending::GaveUp { reason: format!("its process ended before it answered ({how})") },
                    (None, false) => {
                        Ending::Unreachable { reason: format!("its process ended before it opened a session ({how})") }
                    }
                });
            }
            if let Some(incoming) = self.hear(output, turn)? {
                return Ok(incoming);
            }
        }
    }

    /// Reads a line; returns `None` if it is not a message.
    fn hear(&mut self, output: Output, turn: &mut Turn) -> Result<Option<Incoming>, Ending> {
        let [stdout, stderr] = &mut self.notices;
        match output {
            Output::Stderr(line) => {
                line.keep("stderr", turn);
                stderr.record("stderr", &line.text, turn)?;
                Ok(None)
            }
            Output::Stdout(line) => {
                line.keep("stdout", turn);
                if line.dropped > 0 {
                    turn.unreadable("the agent printed a line that is too long")?;
                }
                match Incoming::read(&line.text) {
                    Incoming::Noise => noise(stdout, &line, turn).map(|()| None),
                    Incoming::TooDeep => Err(turn.too_deep()),
                    Incoming::Damaged => {
                        turn.misses_calls();
                        turn.unreadable("the agent printed a message that is not valid JSON").map(|()| None)
                    }
                    incoming => Ok(Some(incoming)),
                }
            }
            Output::End => Ok(None),
        }
    }

    async fn handle(&mut self, incoming: Incoming, turn: &mut Turn) -> Result<(), Ending> {
        match incoming {
            Incoming::Notification { method, params } if method == "session/update" && self.is_replying => {
                let update = params.get("update").unwrap_or(&Value::Null);
                if text(update, "sessionUpdate").is_some_and(|kind| kind.starts_with("agent_")) {
                    turn.speaks();
                }
                let Self { interpreter, terminals, session_id, .. } = self;
                let child = text(&params, "sessionId").filter(|session| Some(*session) != session_id.as_deref());
                let steps = interpreter.read(update, child, |id| terminals.text(id));
                Self::follow(steps, turn)
            }
            Incoming::Request { id, method, params } => self.serve(&id, &method, &params, turn).await,
            Incoming::Stray(id) => {
                self.stray = Some(id);
                Ok(())
            }
            Incoming::Response(id, _) => {
                self.stray = Some(id.into());
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Records steps. A limit may be reached with any of them.
    fn follow(steps: Vec<Step>, turn: &mut Turn) -> Result<(), Ending> {
        steps.into_iter().try_for_each(|step| turn.follow(step))
    }

    /// Answers a request of the agent.
    async fn serve(&mut self, id: &Value, method: &str, params: &Value, turn: &mut Turn) -> Result<(), Ending> {
        let sandbox = self.context.sandbox().map_err(|breakage| Ending::Aborted { reason: breakage.to_string() })?;
        let reads_only = self.context.setup.permission_mode == PermissionMode::Plan;
        let answer = match method {
            "session/request_permission" => {
                let outcome = self.permit(params, turn)?;
                Ok(json!({"outcome": outcome}))
            }
            "elicitation/create" => Ok(elicitation::answer(params, |question| turn.ask(question))),
            "fs/read_text_file" => files::read(sandbox.as_ref(), params).await,
            "fs/write_text_file" | "terminal/create" if reads_only => {
                let message = format!("`{method}` is not allowed: the permission mode is `plan`");
                turn.record(Step::PermissionDenied {
                    tool: method.to_owned(),
                    call_id: None,
                    message: message.clone(),
                })?;
                Err((INTERNAL, message))
            }
            "fs/write_text_file" => {
                self.served.insert(CHANGES, "wrote a file");
                files::write(sandbox.as_ref(), params).await
            }
            "terminal/create" => {
                self.served.insert(COMMANDS, "ran a command");
                self.terminals.create(sandbox.as_ref(), params)
            }
            "terminal/output" => self.terminals.output(params),
            "terminal/kill" => self.terminals.kill(params),
            "terminal/release" => self.terminals.release(params),
            "terminal/wait_for_exit" => match self.terminals.wait(params) {
                Ok(ended) => {
                    let (id, done) = (id.clone(), self.done.0.clone());
                    tokio::spawn(async move {
                        let _ = done.send((id, ended.await));
                    });
                    return Ok(());
                }
                Err(error) => Err(error),
            },
            _ => Err((NO_METHOD, format!("the method `{method}` is not offered"))),
        };
        self.write(&message::response(id, answer));
        Ok(())
    }

    /// Decides on a request for permission, and returns the outcome.
    fn permit(&mut self, params: &Value, turn: &mut Turn) -> Result<Value, Ending> {
        let asked = params.get("toolCall").unwrap_or(&Value::Null);
        let (id, steps) = self.interpreter.asks(asked);
        Self::follow(steps, turn)?;
        let Some(reported) = self.interpreter.reported(&id) else { return Ok(json!({"outcome": "cancelled"})) };
        let call = reported.canonical();
        let title = if reported.title.is_empty() { call.name.clone() } else { reported.title.clone() };
        let choices = Choice::all(params);
        let setup = &self.context.setup;
        let listed = setup.closed_tools.as_deref().unwrap_or_default();
        let rule = match server::is_allowed(&call.raw_name, listed, &self.context.servers) {
            true => Rule::Allow,
            false => permission::decide(setup, &call, &reported.kind),
        };
        let (choice, reason) = match rule {
            Rule::Allow => match Choice::find(&choices, true) {
                Some(choice) => (Some(choice), "by the case's rules".to_owned()),
                None => (None, "the case's rules allow it, but the agent offered no option that does".to_owned()),
            },
            Rule::Deny(reason) => (Choice::find(&choices, false), reason.to_owned()),
            Rule::Ask => {
                let options = choices.iter().map(|choice| choice.name.clone()).collect();
                let question =
                    Question { call_id: Some(id.clone()), question: title.clone(), options, ..Question::default() };
                let answer = turn.answer(question);
                let named =
                    |answer: &String| choices.iter().find(|choice| choice.name == *answer || choice.id == *answer);
                let chosen = answer.as_ref().and_then(named);
                let reason = match &answer {
                    Some(answer) if chosen.is_none() => {
                        format!("`user_responses` chose \"{answer}\", which is not one of the options")
                    }
                    Some(answer) => format!("`user_responses` chose \"{answer}\""),
                    None => "no user can approve it, and `user_responses` has no answer".to_owned(),
                };
                (chosen.or_else(|| Choice::find(&choices, false)), reason)
            }
        };
        let is_allowed = choice.is_some_and(Choice::allows);
        turn.record(Step::PermissionAsked(PermissionRequest {
            call_id: id.clone(),
            tool: call.name.clone(),
            title,
            granted: is_allowed,
            decided_by: reason.clone(),
        }))?;
        if !is_allowed {
            let message = format!("{} is not allowed here: {reason}", call.raw_name);
            self.denied = Some(message.clone());
            turn.record(Step::PermissionDenied { tool: call.name, call_id: Some(id), message })?;
        }
        Ok(match choice {
            Some(choice) => json!({"outcome": "selected", "optionId": choice.id}),
            None => json!({"outcome": "cancelled"}),
        })
    }

    fn write(&self, line: &str) {
        if let Some(process) = &self.process {
            process.write(line.to_owned());
        }
    }
}

/// Notes an update that arrived after the reply that it belongs to. It may have been a call.
fn too_late(params: &Value, turn: &mut Turn) {
    let kind = params.pointer("/update/sessionUpdate").and_then(Value::as_str).unwrap_or_default();
    let is_call = kind.starts_with("tool_call");
    if is_call || kind == "agent_message_chunk" {
        turn.warn(format!("the agent sent an update (`{kind}`) after its reply; it is only in the record"));
    }
    if is_call {
        turn.misses_calls();
    }
}

/// Records a line on stdout that is not a message.
fn noise(notices: &mut Notices, line: &Line, turn: &mut Turn) -> Result<(), Ending> {
    if !line.text.trim().is_empty() {
        turn.warn("the agent wrote lines to stdout that are not messages of the protocol; they are skipped");
    }
    notices.record("agent", &line.text, turn)
}

/// Returns the ending if the agent does not offer the choice `name`. `what` is what can be chosen.
fn no_choice(what: &str, name: &str, offered: &[String]) -> Ending {
    let reason = match offered {
        [] => format!("it does not let a client choose the {what}, so `{name}` cannot be used"),
        offered => {
            let near = model::nearest(name, offered.iter().map(String::as_str));
            let near = near.map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default();
            format!("it has no {what} `{name}`{near}; it offers {}", shortened(&offered.join(", "), SHOWN))
        }
    };
    Ending::InvalidTest { reason }
}

fn shown(value: &Value) -> String {
    shortened(&value.to_string(), SHOWN)
}

impl Session for AcpSession {
    fn send<'a>(&'a mut self, message: &'a UserMessage, turn: &'a mut Turn) -> BoxFuture<'a, Ending> {
        Box::pin(async move {
            let ending = self.converse(message, turn).await;
            self.is_over = ending != Ending::Finished;
            ending
        })
    }

    fn close<'a>(&'a mut self) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            self.terminals.close();
            if self.can_close && !self.is_over {
                let params = json!({"sessionId": self.session_id});
                self.last_id += 1;
                self.write(&message::request(self.last_id, "session/close", &params));
            }
            let Some(mut process) = self.process.take() else { return };
            let _ = if self.is_over { process.stop().await } else { process.end().await };
        })
    }
}

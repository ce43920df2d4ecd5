//! A conversation with the module.

use model::{Ending, Usage, UserMessage};
use sandbox::{BoxFuture, Breakage};
use script::{ScriptError, Value};
use serde_json::{Map, Value as Json, json};

use super::export::{self, Export};
use super::loaded::Loaded;
use super::module::Module;
use super::return_value::ReturnValue;
use crate::SessionContext;
use crate::answer::Reported;
use crate::answer::usage::Count;
use crate::network::{self, Network};
use crate::session::Session;
use crate::step_recorder::StepRecorder;
use crate::traces::{AnswerCalls, Inbox, ProgramState, SPAN_PORT, record_end};
use crate::transcript::{ReportedTurn, as_text, perform};
use crate::turn::{Turn, finished};

/// A conversation with the module.
pub(super) struct CustomSession {
    session_id: String,
    /// `None` after an abandoned call, and after the only call of a shared engine.
    loaded: Option<Loaded>,
    /// Options of the project for the module.
    options: Map<String, Json>,
    step_recorder: StepRecorder,
    /// The spans of the service behind the module, if they are received.
    inbox: Option<Inbox>,
    /// Trace that the message in progress belongs to.
    traceparent: Option<String>,
    /// Messages from both sides so far; kept only if there is more than one user message.
    history: Option<Vec<Json>>,
    /// Messages that the module returned last.
    given: Vec<Json>,
}

impl CustomSession {
    /// Loads the module, and connects if it is an adapter.
    ///
    /// # Errors
    /// Returns an error if the module cannot be loaded or cannot connect. No message has been sent to the agent yet,
    /// so this says nothing about the agent.
    pub(super) async fn open(session_context: &SessionContext) -> Result<Self, Breakage> {
        let broken = |problem: &model::Diagnostic| Breakage::environment(problem.to_string());
        let module = Module::from_context(session_context)
            .map_err(|problems| problems.first().map_or_else(|| Breakage::harness("`custom` has no module"), broken))?;
        let Module { file, path, options, hosts, traces } = module;
        let broken = |error: &ScriptError| Breakage::environment(format!("`{file}` cannot be loaded: {error}"));
        let network = Network::to(&hosts, Some(session_context));
        let program = export::program(&path, network, &session_context.state);
        let case = &session_context.case;
        let is_long = case.messages.len() > 1 || case.code.is_some() || case.user.is_some();
        // Modules often keep the state of a conversation in variables, and for modules that use the network the time
        // for starting an engine does not matter.
        let may_be_shared = !is_long && hosts.is_empty();
        let loaded = Loaded::load(program, session_context.setup.timeout_ms, may_be_shared)
            .await
            .map_err(|error| broken(&error))?;
        let Some(loaded) = loaded else {
            return Err(Breakage::environment(format!("`{file}` exports neither `execute` nor `send`")));
        };
        let inbox = match traces {
            Some(traces) => {
                let receiver = session_context.state.receivers.receiver(traces.port.or(Some(SPAN_PORT)))?;
                Some(Inbox::of_shared(receiver, traces))
            }
            None => None,
        };
        let mut conversation = Self {
            session_id: session_context.session_id("custom"),
            history: (is_long || matches!(loaded.export, Export::Adapter(_))).then(Vec::new),
            loaded: Some(loaded),
            options,
            step_recorder: StepRecorder::default(),
            inbox,
            traceparent: None,
            given: Vec::new(),
        };
        conversation.connect().await?;
        Ok(conversation)
    }

    /// Lets an adapter connect and start a conversation that is independent of others.
    async fn connect(&mut self) -> Result<(), Breakage> {
        let Some(Loaded { engine, export: Export::Adapter(adapter), .. }) = &mut self.loaded else { return Ok(()) };
        let options = Value::from(&Json::Object(self.options.clone()));
        let calls = [("connect", &adapter.connect, vec![options]), ("reset", &adapter.reset, Vec::new())];
        for (name, function, arguments) in calls {
            let Some(function) = function else { continue };
            let called = engine.prepare(function, arguments).await;
            called.map_err(|error| Breakage::environment(reason(name, &error)))?;
        }
        Ok(())
    }

    async fn act(&mut self, message: &UserMessage, turn: &mut Turn) -> Result<(), Ending> {
        self.step_recorder.begin(turn, &self.session_id)?;
        if let Some(inbox) = &mut self.inbox {
            self.traceparent = Some(inbox.begin(turn).await?);
        }
        turn.waiting("agent");
        let gone = || Ending::GaveUp { reason: "an earlier call was abandoned".to_owned() };
        let mut loaded = self.loaded.take().ok_or_else(gone)?;
        match &loaded.export {
            Export::Execute(execute) => {
                let context = Value::from(&self.context(message));
                let called = loaded.engine.call(execute, vec![context.clone()], turn).await;
                let mut called = called.inspect_err(|_| turn.misses_calls())?;
                let is_over = matches!(&called, Ok(_) | Err(ScriptError::TimedOut { .. }));
                if !is_over && let Some(unused) = loaded.unused().await.map_err(|error| threw("execute", &error))? {
                    loaded = unused;
                    if let Export::Execute(execute) = &loaded.export {
                        called = loaded.engine.call(execute, vec![context], turn).await?;
                    }
                }
                self.loaded = loaded.done();
                let given = called
                    .map_err(|error| threw("execute", &error))
                    .and_then(|value| ReturnValue::read(&value, &mut self.given).ok_or_else(|| nothing("execute")))
                    .inspect_err(|_| turn.misses_calls())?;
                self.take_in(message, given, turn).await
            }
            Export::Adapter(adapter) => {
                let arguments = vec![Value::String(message.text.clone()), Value::from(&self.surroundings(message))];
                let called = loaded.engine.call(&adapter.send, arguments, turn).await;
                let called = called.inspect_err(|_| turn.misses_calls())?;
                self.loaded = loaded.done();
                let reported = called
                    .map_err(|error| threw("send", &error))
                    .and_then(|value| answer(&value))
                    .inspect_err(|_| turn.misses_calls())?;
                self.take_in_answer(message, reported, turn).await
            }
        }
    }

    /// Returns the argument of `execute`.
    fn context(&self, message: &UserMessage) -> Json {
        let mut args = message.vars.clone();
        if args.is_empty() {
            args.insert("input".to_owned(), json!(message.text));
        }
        if !message.tools.is_empty() {
            args.insert("tools".to_owned(), json!(message.tools));
        }
        if let Some(history) = &self.history {
            args.insert("messages".to_owned(), json!(history));
        }
        let mut context = Map::new();
        context.extend(message.script.as_ref().map(|script| ("script".to_owned(), json!(script))));
        context.insert("args".to_owned(), Json::Object(args));
        context.insert("options".to_owned(), Json::Object(self.options_of(message)));
        context.extend(self.traceparent.as_ref().map(|traceparent| ("traceparent".to_owned(), json!(traceparent))));
        Json::Object(context)
    }

    /// Returns the second argument of `send`, after the message.
    fn surroundings(&self, message: &UserMessage) -> Json {
        let mut context = Map::new();
        context.insert("conversationId".to_owned(), json!(self.session_id));
        context.insert("history".to_owned(), json!(self.history));
        context.extend(self.traceparent.as_ref().map(|traceparent| ("traceparent".to_owned(), json!(traceparent))));
        context.extend(message.script.as_ref().map(|script| ("script".to_owned(), json!(script))));
        let listed = [("tools", json!(message.tools), message.tools.is_empty())];
        let named = [("vars", &message.vars), ("persona", &message.persona), ("options", &self.options_of(message))]
            .map(|(name, values)| (name, json!(values), values.is_empty()));
        let given = listed.into_iter().chain(named).filter(|(_, _, is_empty)| !is_empty);
        context.extend(given.map(|(name, value, _)| (name.to_owned(), value)));
        Json::Object(context)
    }

    /// Returns the options of the case merged over the project's options.
    fn options_of(&self, message: &UserMessage) -> Map<String, Json> {
        let mut options = self.options.clone();
        options.extend(message.options.clone());
        options
    }

    async fn take_in(&mut self, message: &UserMessage, given: ReturnValue, turn: &mut Turn) -> Result<(), Ending> {
        given.warnings.iter().for_each(|warning| turn.warn(format!("unexpected value from `execute`: {warning}")));
        if given.is_empty {
            turn.misses_calls();
            return Err(Ending::GaveUp { reason: "`execute` returned no `output`".to_owned() });
        }
        let said = given.turns.iter().rev().map(|turn| turn.text.as_str()).find(|text| !text.is_empty());
        let text = given.text.clone().or_else(|| said.map(str::to_owned));
        let usage = self.perform(&given.turns, given.tells_calls, (text.as_deref(), given.count), turn).await?;
        self.remember(message, text.as_deref());
        turn.record(finished(false, usage, text, Some(given.result)))
    }

    async fn take_in_answer(&mut self, message: &UserMessage, answer: Reported, turn: &mut Turn) -> Result<(), Ending> {
        answer.warnings.iter().for_each(|warning| turn.warn(format!("unexpected value from `send`: {warning}")));
        let reported = (answer.text.as_deref(), answer.count);
        let usage = self.perform(&answer.turns, answer.tells_calls, reported, turn).await?;
        if let Some(reason) = answer.error {
            return Err(gave_up(reason));
        }
        self.remember(message, answer.text.as_deref());
        turn.record(finished(false, usage, answer.text, answer.result))
    }

    /// Records what an answer, with its text and usage, or its spans say about the reply. Returns the usage.
    async fn perform(
        &mut self,
        turns: &[ReportedTurn],
        are_listed: bool,
        (text, count): (Option<&str>, Count),
        turn: &mut Turn,
    ) -> Result<Usage, Ending> {
        let report = match &mut self.inbox {
            Some(inbox) => Some(inbox.collect(ProgramState::Running, turn).await?),
            None => None,
        };
        let tools = turns.iter().flat_map(|turn| &turn.calls).map(|call| call.name.as_str()).collect();
        if !(AnswerCalls { text, are_listed, tools }).record(report.as_ref(), turn).await? {
            perform(turns, &mut self.step_recorder, turn).await?;
        }
        count.of_reply(report.as_ref(), turn)
    }

    fn remember(&mut self, message: &UserMessage, answer: Option<&str>) {
        if let Some(conversation) = &mut self.history {
            conversation.push(json!({"role": "user", "content": message.text}));
            conversation.push(json!({"role": "assistant", "content": answer}));
        }
    }
}

/// Reads the return value of `send`.
fn answer(value: &Value) -> Result<Reported, Ending> {
    match value.to_json() {
        Json::Null => Err(nothing("send")),
        Json::Object(map) => {
            let shown = model::text::shortened(&Json::Object(map.clone()).to_string(), 300);
            Reported::read(map).ok_or_else(|| Ending::GaveUp { reason: format!("`send` returned no `text`: {shown}") })
        }
        plain => Ok(Reported::from_text(as_text(&plain))),
    }
}

fn nothing(name: &str) -> Ending {
    Ending::GaveUp { reason: format!("`{name}` returned nothing") }
}

/// Returns the ending after a function threw an error. If it needed something that scripts do not have, ended its process,
/// or could not reach a server, that is not the agent's fault.
fn threw(name: &str, error: &ScriptError) -> Ending {
    let reason = reason(name, error);
    if let ScriptError::Crashed { place, .. } = error {
        let reason = place.as_ref().map_or_else(|| reason.clone(), |place| format!("{place}: {reason}"));
        return Ending::InvalidTest { reason };
    }
    if let ScriptError::Environment { .. } = error {
        return Ending::Unreachable { reason };
    }
    let is_limit = error.is_limit() || matches!(error, ScriptError::OutOfMemory { .. });
    if !is_limit || network::refusal(&reason).is_some() {
        return gave_up(reason);
    }
    let place = error.place().map(|place| format!("{place}: ")).unwrap_or_default();
    let help = error.help().map(|help| format!("; {help}")).unwrap_or_default();
    Ending::InvalidTest { reason: format!("{place}{reason}{help}") }
}

/// Returns the ending for an agent that gave up. If the reason is a request that `network` does not allow, the
/// configuration is wrong.
fn gave_up(reason: String) -> Ending {
    match network::refusal(&reason) {
        Some(reason) => Ending::InvalidTest { reason },
        None => Ending::GaveUp { reason },
    }
}

fn reason(name: &str, error: &ScriptError) -> String {
    let verb = if matches!(error, ScriptError::Thrown { .. }) { " threw" } else { ":" };
    format!("`{name}`{verb} {error}")
}

impl Session for CustomSession {
    fn send<'a>(&'a mut self, message: &'a UserMessage, turn: &'a mut Turn) -> BoxFuture<'a, Ending> {
        Box::pin(async move {
            let ending = self.act(message, turn).await.err().unwrap_or(Ending::Finished);
            record_end(self.inbox.as_mut(), &ending, turn).await;
            ending
        })
    }

    fn close<'a>(&'a mut self) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Some(Loaded { engine, export: Export::Adapter(adapter), .. }) = &mut self.loaded
                && let Some(disconnect) = &adapter.disconnect
            {
                // The trial is over, so errors are ignored. The thread ends together with the engine.
                let _ = engine.prepare(disconnect, Vec::new()).await;
            }
        })
    }
}

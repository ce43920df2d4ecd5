//! An agent that is a function in the program that embeds these libraries.

use std::path::PathBuf;
use std::sync::Arc;

use model::text::shortened;
use model::{Ending, UserMessage};
use sandbox::{BoxFuture, Breakage, Sandbox};
use serde_json::{Value, json};

use crate::answer::Reported;
use crate::session::Session;
use crate::step_recorder::StepRecorder;
use crate::traces::{AnswerCalls, Inbox, ProgramState, TraceSettings, record_end};
use crate::transcript::{as_text, perform};
use crate::turn::{Turn, finished, unless_stopped};
use crate::{Agent, Description, SessionContext};

/// Maximum number of characters of an answer that are shown in a message.
const SHOWN: usize = 300;

/// Answer to one message: a text, or a map in the form that a program of the `subprocess` agent writes.
type Answer = Result<Value, Ending>;

type Execute = dyn Fn(Call) -> BoxFuture<'static, Answer> + Send + Sync;

/// A message to an [`Executor`], with what it may need to know about the trial.
#[derive(Debug, Clone)]
pub struct Call {
    /// Printed id of the trial.
    pub trial: String,
    /// Id of the conversation, new for each trial.
    pub conversation_id: String,
    /// The message.
    pub message: UserMessage,
    /// Earlier messages of both sides, as `{role, content}`.
    pub history: Vec<Value>,
    /// The agent's working directory; `None` if the trial has no sandbox.
    pub directory: Option<PathBuf>,
    /// Time limit of the trial in milliseconds.
    pub timeout_ms: u64,
    /// Address for the spans of the reply, if the agent has `traces`.
    pub traces: Option<TraceTarget>,
}

/// Address for the spans of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceTarget {
    /// Base address for an exporter of OTLP over HTTP. Spans that are sent there belong to the conversation.
    pub endpoint: String,
    /// W3C `traceparent` of the message.
    pub traceparent: String,
}

/// An agent that answers each message with a function. It needs no process and no model.
pub struct Executor {
    description: Description,
    traces: Option<TraceSettings>,
    execute: Arc<Execute>,
}

impl Executor {
    /// Returns an agent called `name` that answers text with text, or with the reason why it gives up. Like every
    /// agent, it lives until the process ends, so create it only once.
    pub fn new<F, R>(name: &'static str, execute: F) -> &'static Self
    where
        F: Fn(String) -> R + Send + Sync + 'static,
        R: Future<Output = Result<String, String>> + Send + 'static,
    {
        let description = Description {
            efforts: Some(&[]),
            needs_sandbox: false,
            ..Description::new(name, "a function of the program that embeds trialrun")
        };
        Self::answering(description, move |call| {
            let answer = execute(call.message.text);
            async move { answer.await.map(Value::String).map_err(|reason| Ending::GaveUp { reason }) }
        })
    }

    /// Returns an agent that gets each message with its context, and answers with a text, or with a map that also
    /// reports tool calls and usage. An error ends the conversation. The agent lives until the process ends.
    pub fn answering<F, R>(description: Description, execute: F) -> &'static Self
    where
        F: Fn(Call) -> R + Send + Sync + 'static,
        R: Future<Output = Answer> + Send + 'static,
    {
        Self::create(description, None, execute)
    }

    /// Returns an agent like [`Self::answering`] whose function sends OpenTelemetry spans to [`Call::traces`]. They show
    /// what it did. It must have sent them when a span ends that covers the whole reply, or within ten seconds.
    pub fn traced<F, R>(description: Description, execute: F) -> &'static Self
    where
        F: Fn(Call) -> R + Send + Sync + 'static,
        R: Future<Output = Answer> + Send + 'static,
    {
        Self::create(description, Some(TraceSettings::USUAL), execute)
    }

    fn create<F, R>(description: Description, traces: Option<TraceSettings>, execute: F) -> &'static Self
    where
        F: Fn(Call) -> R + Send + Sync + 'static,
        R: Future<Output = Answer> + Send + 'static,
    {
        Box::leak(Box::new(Self { description, traces, execute: Arc::new(move |call| Box::pin(execute(call))) }))
    }
}

impl std::fmt::Debug for Executor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Executor").field("name", &self.description.name).finish_non_exhaustive()
    }
}

impl Agent for Executor {
    fn description(&self) -> &Description {
        &self.description
    }

    fn open<'a>(&'a self, context: SessionContext) -> BoxFuture<'a, Result<Box<dyn Session>, Breakage>> {
        Box::pin(async move {
            let inbox = match self.traces {
                Some(traces) => Some(Inbox::of_function(context.state.receivers.receiver(None)?, traces)),
                None => None,
            };
            let session: Box<dyn Session> = Box::new(ExecutorSession {
                session_id: context.session_id(self.description.name),
                trial: context.trial.to_string(),
                sandbox: context.sandbox.clone(),
                timeout_ms: context.setup.timeout_ms,
                history: Vec::new(),
                step_recorder: StepRecorder::default(),
                inbox,
                execute: Arc::clone(&self.execute),
            });
            Ok(session)
        })
    }
}

struct ExecutorSession {
    session_id: String,
    trial: String,
    /// Kept until the conversation ends, because the function may work in its directory.
    sandbox: Option<Arc<dyn Sandbox>>,
    timeout_ms: u64,
    history: Vec<Value>,
    step_recorder: StepRecorder,
    /// The spans of the conversation, if they are received.
    inbox: Option<Inbox>,
    execute: Arc<Execute>,
}

impl ExecutorSession {
    async fn act(&mut self, message: &UserMessage, turn: &mut Turn) -> Result<(), Ending> {
        self.step_recorder.begin(turn, &self.session_id)?;
        let traces = match &mut self.inbox {
            Some(inbox) => Some(TraceTarget { traceparent: inbox.begin(turn).await?, endpoint: inbox.endpoint() }),
            None => None,
        };
        turn.waiting("agent");
        let call = Call {
            trial: self.trial.clone(),
            conversation_id: self.session_id.clone(),
            message: message.clone(),
            history: self.history.clone(),
            directory: self.sandbox.as_ref().map(|sandbox| sandbox.work().to_owned()),
            timeout_ms: self.timeout_ms,
            traces,
        };
        let answered = unless_stopped(turn.stopping(), (self.execute)(call)).await;
        let answer = answered.and_then(|value| read(value?)).inspect_err(|_| turn.misses_calls())?;
        answer.warnings.iter().for_each(|warning| turn.warn(format!("unexpected content in the answer: {warning}")));
        let report = match &mut self.inbox {
            Some(inbox) => Some(inbox.collect(ProgramState::Running, turn).await?),
            None => None,
        };
        let tools = answer.turns.iter().flat_map(|turn| &turn.calls).map(|call| call.name.as_str()).collect();
        let calls = AnswerCalls { text: answer.text.as_deref(), are_listed: answer.tells_calls, tools };
        if !calls.record(report.as_ref(), turn).await? {
            perform(&answer.turns, &mut self.step_recorder, turn).await?;
        }
        let usage = answer.count.of_reply(report.as_ref(), turn)?;
        if let Some(reason) = answer.error {
            return Err(Ending::GaveUp { reason });
        }
        self.history.push(json!({"role": "user", "content": message.text}));
        self.history.push(json!({"role": "assistant", "content": answer.text}));
        turn.record(finished(false, usage, answer.text, answer.result))
    }
}

/// Reads an answer.
fn read(answer: Value) -> Result<Reported, Ending> {
    let nothing = |reason: String| Ending::GaveUp { reason };
    match answer {
        Value::Null => Err(nothing("it returned nothing".to_owned())),
        Value::Object(map) => {
            let shown = shortened(&Value::Object(map.clone()).to_string(), SHOWN);
            Reported::read(map).ok_or_else(|| {
                nothing(format!("its answer has no `message`, `text`, `content` or `response`: {shown}"))
            })
        }
        plain => Ok(Reported::from_text(as_text(&plain))),
    }
}

impl Session for ExecutorSession {
    fn send<'a>(&'a mut self, message: &'a UserMessage, turn: &'a mut Turn) -> BoxFuture<'a, Ending> {
        Box::pin(async move {
            let ending = self.act(message, turn).await.err().unwrap_or(Ending::Finished);
            record_end(self.inbox.as_mut(), &ending, turn).await;
            ending
        })
    }
}

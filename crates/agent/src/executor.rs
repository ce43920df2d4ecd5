//! An agent that is a function in the program that embeds these libraries.

use std::sync::Arc;

use model::{Ending, Step, Usage, UserMessage};
use sandbox::{BoxFuture, Breakage};

use crate::session::Session;
use crate::step_recorder::StepRecorder;
use crate::turn::{Turn, finished, unless_stopped};
use crate::{Agent, Description, SessionContext};

/// Answer to one message, or the reason why there is none, in which case the agent has given up.
type Answer = Result<String, String>;

type Execute = dyn Fn(String) -> BoxFuture<'static, Answer> + Send + Sync;

/// An agent that answers each message with a function. It needs no sandbox, process or model.
pub struct Executor {
    description: Description,
    execute: Arc<Execute>,
}

impl Executor {
    /// Returns an agent called `name`. Like every agent, it lives until the process ends, so create it only once.
    pub fn new<F, R>(name: &'static str, execute: F) -> &'static Self
    where
        F: Fn(String) -> R + Send + Sync + 'static,
        R: Future<Output = Answer> + Send + 'static,
    {
        let description = Description {
            efforts: Some(&[]),
            needs_sandbox: false,
            ..Description::new(name, "a function of the program that embeds trialrun")
        };
        Box::leak(Box::new(Self { description, execute: Arc::new(move |message| Box::pin(execute(message))) }))
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
        let session_id = context.session_id(self.description.name);
        let session: Box<dyn Session> = Box::new(ExecutorSession {
            session_id,
            step_recorder: StepRecorder::default(),
            execute: Arc::clone(&self.execute),
        });
        Box::pin(std::future::ready(Ok(session)))
    }
}

struct ExecutorSession {
    session_id: String,
    step_recorder: StepRecorder,
    execute: Arc<Execute>,
}

impl ExecutorSession {
    async fn answer(&mut self, message: &str, turn: &mut Turn) -> Result<(), Ending> {
        self.step_recorder.next_turn();
        self.step_recorder.begin(turn, &self.session_id)?;
        turn.record(Step::CallsUnreported)?;
        let answered = unless_stopped(turn.stopping(), (self.execute)(message.to_owned())).await?;
        let text = answered.map_err(|reason| Ending::GaveUp { reason })?;
        self.step_recorder.say(turn, &text)?;
        turn.record(finished(false, Usage::default(), Some(text), None))
    }
}

impl Session for ExecutorSession {
    fn send<'a>(&'a mut self, message: &'a UserMessage, turn: &'a mut Turn) -> BoxFuture<'a, Ending> {
        Box::pin(async move { self.answer(&message.text, turn).await.err().unwrap_or(Ending::Finished) })
    }
}

//! A conversation with an agent.

use model::{Ending, UserMessage};
use sandbox::BoxFuture;

use crate::turn::Turn;

/// An open conversation with an agent in its sandbox.
pub trait Session: Send {
    /// Sends one user message and follows the agent until it has answered. What the agent does on the way is recorded
    /// through `turn`; when [`Turn::record`] says stop, or [`Turn::stopping`] resolves, the session ends what it can
    /// politely and returns. The runner ends what is left over after a grace period.
    fn send<'a>(&'a mut self, message: &'a UserMessage, turn: &'a mut Turn) -> BoxFuture<'a, Reply>;

    /// Ends the conversation and everything that belongs to it. Called whatever happened before.
    fn close<'a>(&'a mut self) -> BoxFuture<'a, ()>;

    /// What the agent's process exited with by itself, once the conversation is closed; `None` if it has none or was ended.
    fn exit_code(&self) -> Option<i32> {
        None
    }
}

/// How an agent answered one message. Texts, calls and usage were recorded as steps already.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// How acting on this message ended; the next message is sent only after [`Ending::Finished`].
    pub ending: Ending,
}

impl Reply {
    /// It answered.
    pub fn finished() -> Self {
        Self { ending: Ending::Finished }
    }

    /// It ended otherwise.
    pub fn ended(ending: Ending) -> Self {
        Self { ending }
    }
}

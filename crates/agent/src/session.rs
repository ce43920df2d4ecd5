//! A conversation with an agent.

use model::{Ending, UserMessage};
use sandbox::BoxFuture;

use crate::turn::Turn;

/// An open conversation with an agent in its sandbox.
pub trait Session: Send {
    /// Sends one user message and follows the agent until it has answered. The agent's steps are recorded with `turn`.
    /// When [`Turn::record`] returns a stop, or [`Turn::stopping`] resolves, the session asks the agent to end and
    /// returns. The runner kills the remaining processes after a grace period.
    fn send<'a>(&'a mut self, message: &'a UserMessage, turn: &'a mut Turn) -> BoxFuture<'a, Reply>;

    /// Ends the conversation and everything that belongs to it. It is called in every case.
    fn close<'a>(&'a mut self) -> BoxFuture<'a, ()>;

    /// Returns the exit code of the agent's process after the conversation is closed; `None` if it has no process or
    /// was ended from outside.
    fn exit_code(&self) -> Option<i32> {
        None
    }
}

/// Result of sending one message. Texts, calls and usage were already recorded as steps.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// Ending for this message. The next message is sent only after [`Ending::Finished`].
    pub ending: Ending,
}

impl Reply {
    /// Creates the reply of an agent that answered.
    pub fn finished() -> Self {
        Self { ending: Ending::Finished }
    }

    /// Creates a reply with another ending.
    pub fn ended(ending: Ending) -> Self {
        Self { ending }
    }
}

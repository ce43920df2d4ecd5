//! A conversation with an agent.

use model::{Ending, UserMessage};
use sandbox::BoxFuture;

use crate::turn::Turn;

/// An open conversation with an agent in its sandbox.
pub trait Session: Send {
    /// Sends one user message and follows the agent until it has answered. Texts, calls and usage are recorded with
    /// `turn`. When [`Turn::record`] returns an error, or [`Turn::stopping`] resolves, the session asks the agent to
    /// stop and returns. The runner kills the remaining processes after a grace period. Returns the ending for this
    /// message; the next message is sent only after [`Ending::Finished`].
    fn send<'a>(&'a mut self, message: &'a UserMessage, turn: &'a mut Turn) -> BoxFuture<'a, Ending>;

    /// Ends the conversation and everything that belongs to it. It is always called.
    fn close<'a>(&'a mut self) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Returns the exit code of the agent's process after the conversation is closed; `None` if it has no process or
    /// was stopped from outside.
    fn exit_code(&self) -> Option<i32> {
        None
    }
}

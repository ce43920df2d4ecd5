//! The model `scripted:FILE`, which plays the replies from a file, so that an agent can be tested offline, at no
//! cost, and with the same result every time.
//!
//! A script is an ordered list of *steps*; a step is one reply: text, reasoning, tool calls, their cost, or a *fault*.
//! The n-th request of a conversation gets the n-th step, regardless of what the request contains; `expect_request`
//! checks its contents. Requests of other conversations (sub-agents, side requests) never use up the steps of the main
//! one. They have their own steps under `conversations`, and requests without steps are answered as follows:
//!
//! - a request without tools that is not marked as the agent's main conversation, such as one for a session's title,
//!   gets the text `ok` for no tokens;
//! - a request of a sub-agent is rejected, with a [`Problem`] that says what to write;
//! - a request after the last step is rejected in the same way.
//!
//! If a conversation can have several instances (each sub-agent is one), every instance plays its steps from the
//! start. A [`Playback`] is the state of one trial; the [`Script`] itself never changes and is shared.
//!
//! In every string of a script, `$SANDBOX` is replaced by the trial's working directory and `$HOME` by the agent's home
//! directory, unless a letter, digit or `_` follows. `${HOME}` is left to the shell.
//!
//! `docs/reference/scripted-model.md` describes the format; a test compares it with the reader.

mod context;
mod conversation;
mod expectation;
mod fault;
mod playback;
mod preview;
mod read;
mod step;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use context::ScriptContext;
pub use playback::{Playback, Problem, ServedFault};
#[cfg(test)]
pub(crate) use tests::specimen;

use conversation::Conversation;
use step::Step;

/// Script as it was read; the same for every trial.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    name: String,
    steps: Vec<Step>,
    conversations: Vec<Conversation>,
    warnings: Vec<model::Diagnostic>,
}

impl Script {
    /// Takes the warnings about its file.
    pub fn take_warnings(&mut self) -> Vec<model::Diagnostic> {
        std::mem::take(&mut self.warnings)
    }

    /// Returns the file from which it was read, as the user wrote it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of steps of the main conversation.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Returns `true` if the main conversation has no steps.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Starts playing the script for one trial.
    pub fn play(self: &Arc<Self>, context: ScriptContext) -> Playback {
        Playback::new(Arc::clone(self), context)
    }
}

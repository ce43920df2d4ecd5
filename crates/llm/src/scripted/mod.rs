//! The model `scripted:FILE`: it says what a file tells it to, so that an agent can be tested offline, for nothing, and
//! with the same result every time.
//!
//! A script is an ordered list of *steps*; a step is one answer: text, thinking, tool calls, what they cost, or a
//! *fault*. The n-th request of a conversation gets the n-th step, whatever it says; `expect_request` checks what it
//! said. Requests of other conversations (sub-agents, side requests) never use up the steps of the main one: they have
//! steps of their own under `conversations`, and what nobody wrote steps for is answered as follows:
//!
//! - a request without tools that is not marked as the agent's main conversation, such as one for a session's title,
//!   gets the text `ok` for no tokens;
//! - a sub-agent's request is refused, with a [`Problem`] that says what to write;
//! - a request after the last step is refused likewise.
//!
//! Wherever a conversation can have several instances (each sub-agent is one) every instance plays its steps from the
//! beginning. The state of one trial is a [`Playback`]; the [`Script`] itself is never changed and is shared.
//!
//! In every text of a script `$SANDBOX` is replaced by the trial's working directory and `$HOME` by the agent's home
//! directory, unless a letter, digit or `_` follows. `${HOME}` is left to the shell.
//!
//! The format is described key by key by [`reference()`], from the same tables the tests hold against the reader.

mod conversation;
mod expectation;
mod fault;
mod playback;
mod read;
mod reference;
#[cfg(test)]
mod specimen;
mod stage;
mod step;

use std::sync::Arc;

pub use fault::FaultKind;
pub use playback::{Playback, Problem, ProblemKind, ServedFault};
pub use reference::{EXAMPLE, reference};
pub use stage::Stage;

use crate::Provider;
use crate::provider::Opened;
use conversation::Conversation;
use step::Step;

pub(crate) const PROVIDER: Provider = Provider {
    name: "scripted",
    argument: "FILE",
    summary: "answers from a file: steps of text, tool calls and faults; offline and deterministic",
    variables: &[],
    open: |opening| {
        let node = (opening.read)(opening.argument).map_err(crate::OpenError::Invalid)?;
        Script::from_node(&node).map(|script| Opened::Script(Arc::new(script))).map_err(crate::OpenError::Invalid)
    },
};

/// A script as it was read; the same for every trial.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    name: String,
    steps: Vec<Step>,
    conversations: Vec<Conversation>,
}

impl Script {
    /// The file it was read from, as the user wrote it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many steps the main conversation has.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether the main conversation has no step at all.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Begins to play the script, for one trial.
    pub fn play(self: &Arc<Self>, stage: Stage) -> Playback {
        Playback::new(Arc::clone(self), stage)
    }
}

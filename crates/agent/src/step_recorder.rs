//! Records the steps of an agent without a model: numbers turns and calls, and enforces the limits.

use model::{Ending, Step, ToolCall, ToolResult};
use serde_json::Value;

use crate::turn::Turn;

/// Records the steps of an agent that has no model. Texts and calls belong to the same turn until
/// [`StepRecorder::next_turn`] is called. No turn is started beyond the limit.
#[derive(Debug, Default)]
pub(super) struct StepRecorder {
    turns: usize,
    calls: usize,
    in_turn: bool,
    has_begun: bool,
}

impl StepRecorder {
    /// Records the start of the conversation, once.
    pub(super) fn begin(&mut self, turn: &mut Turn, session_id: &str) -> Result<(), Ending> {
        if std::mem::replace(&mut self.has_begun, true) {
            return Ok(());
        }
        turn.record(Step::Session {
            session_id: Some(session_id.to_owned()),
            model: None,
            agent_version: None,
            tools: Vec::new(),
            auth: None,
        })
    }

    /// Starts a new turn with the next step.
    pub(super) fn next_turn(&mut self) {
        self.in_turn = false;
    }

    /// Records the text `text`.
    pub(super) fn say(&mut self, turn: &mut Turn, text: &str) -> Result<(), Ending> {
        let message = self.message(turn)?;
        turn.record(Step::Text { message, text: text.to_owned(), parent: None })
    }

    /// Records the reasoning `text`.
    pub(super) fn think(&mut self, turn: &mut Turn, text: &str) -> Result<(), Ending> {
        let message = self.message(turn)?;
        turn.record(Step::Thinking { message, text: text.to_owned(), parent: None })
    }

    /// Records a call and returns its id.
    pub(super) fn call(&mut self, turn: &mut Turn, name: &str, input: Value) -> Result<String, Ending> {
        let message = self.message(turn)?;
        self.calls += 1;
        let id = format!("call-{}", self.calls);
        turn.record(Step::ToolCall(ToolCall::new(&id, name, input, message)))?;
        Ok(id)
    }

    /// Records the result of a call.
    pub(super) fn result(&mut self, turn: &mut Turn, id: &str, content: &str, is_error: bool) -> Result<(), Ending> {
        turn.record(Step::ToolResult(ToolResult { id: id.to_owned(), content: content.to_owned(), is_error }))
    }

    /// Returns the current turn, or a new one if the limit allows it.
    fn message(&mut self, turn: &mut Turn) -> Result<String, Ending> {
        if !self.in_turn {
            if turn.turns_left() == 0 {
                return Err(turn.out_of_turns());
            }
            self.turns += 1;
            self.in_turn = true;
        }
        Ok(format!("turn-{}", self.turns))
    }
}

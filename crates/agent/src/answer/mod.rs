//! Builds an answer from its parts: texts and calls in the order of arrival. `document` reads the formats of answers,
//! and `usage` those of usage.

pub(super) mod document;
mod reported;
pub(super) mod usage;

use std::collections::HashMap;

use model::foreign_json;
use serde_json::Value;

pub(super) use self::reported::Reported;
use self::usage::Count;
use super::transcript::{ReportedCall, as_text};

/// Warning about a call without a name.
pub(super) const MISSING_NAME: &str = "a call has no name";

/// Answer of an agent, either complete or as far as it has arrived.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pieces: Vec<Piece>,
    /// Index in `pieces` of each call, by the keys that refer to it.
    calls: HashMap<String, usize>,
    /// Reported usage.
    pub(crate) count: Count,
    /// Value of the answer, if it is more than text.
    pub(crate) output: Option<Value>,
    /// Body from which the answer was read, if it is JSON.
    pub(crate) raw: Option<Value>,
    /// Warnings about irregularities in the answer.
    pub(crate) warnings: Vec<String>,
    /// True if it is in a form that says which tools were called.
    pub(crate) tells_calls: bool,
    /// True if texts in the usual places are ignored, because the user's own parser extracts the text.
    ignores_text: bool,
}

/// A part of an answer.
#[derive(Debug)]
pub(crate) enum Piece {
    Text(String),
    Call(ReportedCall),
    /// The following parts belong to another turn of the model.
    Turn,
}

impl Answer {
    /// Creates an answer whose text is extracted by other code.
    pub(crate) fn without_text() -> Self {
        Self { ignores_text: true, ..Self::default() }
    }

    /// Returns the parts in order.
    pub(crate) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Adds text from one of the usual places.
    pub(crate) fn append_default_text(&mut self, text: &str) {
        if !self.ignores_text {
            self.append_text(text);
        }
    }

    /// Adds text.
    pub(crate) fn append_text(&mut self, text: &str) {
        match self.pieces.last_mut() {
            Some(Piece::Text(answer_text)) => foreign_json::append(answer_text, text),
            _ => self.pieces.push(Piece::Text(text.to_owned())),
        }
    }

    /// Starts a new turn for the following parts.
    pub(crate) fn next_turn(&mut self) {
        if !matches!(self.pieces.last(), None | Some(Piece::Turn)) {
            self.pieces.push(Piece::Turn);
        }
    }

    /// Adds a call. Later pieces of it and its result refer to it by `key`.
    pub(crate) fn call(&mut self, key: Option<&str>, call: ReportedCall) {
        self.tells_calls = true;
        if let Some(key) = key {
            self.calls.insert(key.to_owned(), self.pieces.len());
        }
        self.pieces.push(Piece::Call(call));
    }

    /// Makes `key` another key for the part at `index`.
    pub(crate) fn name(&mut self, key: &str, index: usize) {
        self.calls.insert(key.to_owned(), index);
    }

    /// Returns the call with the given key.
    pub(crate) fn call_mut(&mut self, key: &str) -> Option<&mut ReportedCall> {
        match self.pieces.get_mut(*self.calls.get(key)?)? {
            Piece::Call(call) => Some(call),
            _ => None,
        }
    }

    /// Sets the result of the call with the given key.
    pub(crate) fn result(&mut self, key: &str, result: &Value, is_error: bool) {
        match self.call_mut(key) {
            Some(call) => (call.result, call.is_error) = (Some(as_text(result)), is_error),
            None => self.add_warning(format!("a result refers to the call `{key}`, which does not exist")),
        }
    }

    /// Adds the calls in a list, in any known form. `name` is the name of the list.
    pub(crate) fn add_calls(&mut self, calls: &Value, name: &str) {
        let Some(calls) = calls.as_array() else {
            return self.add_warning(format!("`{name}` is not a list"));
        };
        for (index, written) in calls.iter().enumerate() {
            match written.as_object().and_then(ReportedCall::read) {
                Some(given) => {
                    let id = given.id.clone();
                    self.call(id.as_deref(), given);
                }
                None => self.add_warning(format!("`{name}[{index}]` has no `name`")),
            }
        }
    }

    /// Replaces halves of characters that the pieces of a stream left behind.
    pub(crate) fn settle(&mut self) {
        for piece in &mut self.pieces {
            match piece {
                Piece::Text(text) => foreign_json::settle(text),
                Piece::Call(call) => call.settle(),
                Piece::Turn => {}
            }
        }
        self.output.iter_mut().chain(&mut self.raw).for_each(foreign_json::settle_value);
    }

    /// Returns `true` if it says which tools were called, and all of it is understood: every warning is about a call
    /// that is not completely known.
    pub(crate) fn knows_calls(&self) -> bool {
        let is_nameless = |piece: &Piece| matches!(piece, Piece::Call(call) if call.name.is_empty());
        self.tells_calls && self.warnings.is_empty() && !self.pieces.iter().any(is_nameless)
    }

    /// Adds a warning about an irregularity that does not stop the conversation.
    pub(crate) fn add_warning(&mut self, warning: String) {
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// Returns `true` if there are texts, including empty ones.
    pub(crate) fn has_text(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Text(_)))
    }

    /// Returns `true` if there are calls.
    pub(crate) fn has_calls(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Call(_)))
    }

    /// Returns all texts, with texts from different turns on separate lines. `None` if there is none.
    pub(crate) fn text(&self) -> Option<String> {
        let mut text: Option<String> = None;
        let mut is_new_turn = false;
        for piece in &self.pieces {
            match piece {
                Piece::Turn => is_new_turn = true,
                Piece::Text(answer_text) => {
                    let text = text.get_or_insert_default();
                    if std::mem::take(&mut is_new_turn) && !text.is_empty() && !answer_text.is_empty() {
                        text.push('\n');
                    }
                    text.push_str(answer_text);
                }
                Piece::Call(_) => {}
            }
        }
        text
    }
}

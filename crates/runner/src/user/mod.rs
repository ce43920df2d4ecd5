//! A user simulated by a model. The model's cost and failures are kept separate from the agent's: a user that cannot
//! be simulated makes a trial broken, never failed.

mod prompt;

use std::sync::Arc;

use llm::{Conversation, Model, ProviderError, Request, ResponseSchema, StructuredReply, StructuredReplyError};
use mask::Mask;
use model::text::counted;
use model::{AuxiliaryUsage, Ending, SimulatedUser, Trace};
use serde_json::{Map, Value, json};

/// Maximum size of a message of a simulated user, in bytes. A model that writes more is out of control.
const LONGEST: usize = 16 * 1024;

/// Maximum number of tokens in one answer from the model.
const MOST_TOKENS: u64 = 2_000;

/// Player of the user in one trial.
pub(crate) struct Player {
    model: Arc<dyn Model>,
    /// Name of the model, as its provider knows it.
    name: String,
    user: SimulatedUser,
    mask: Arc<Mask>,
    sent_messages: u64,
    spent: AuxiliaryUsage,
}

/// The user's next move.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Move {
    /// Sends a message.
    Say(String),
    /// Ends the conversation, with the reason.
    Leave(String),
}

/// Reason why the user's next move is not known.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("the model that plays the user failed: {0}")]
pub(crate) struct PlayerError(StructuredReplyError);

impl PlayerError {
    /// Returns how the trial ends because of it. A script without an answer is the user's mistake rather than a
    /// provider's failure.
    pub(crate) fn ending(&self) -> Ending {
        let reason = self.to_string();
        match &self.0 {
            StructuredReplyError::Provider(ProviderError::Exhausted { .. } | ProviderError::Unscripted { .. }) => {
                Ending::InvalidTest { reason }
            }
            _ => Ending::ProviderFailed { reason },
        }
    }
}

impl Player {
    /// Has `model`, which its provider calls `name`, play `user`. Values that `mask` knows are not sent to it.
    pub(crate) fn new(model: Arc<dyn Model>, name: String, user: SimulatedUser, mask: Arc<Mask>) -> Self {
        Self { model, name, user, mask, sent_messages: 0, spent: AuxiliaryUsage::default() }
    }

    /// Persona of the user.
    pub(crate) fn persona(&self) -> &Map<String, Value> {
        &self.user.persona
    }

    /// Returns the user's next move after the conversation in `trace`. A model that fails is asked once more.
    ///
    /// # Errors
    /// Returns an error if it fails again.
    pub(crate) async fn next(&mut self, trace: &Trace) -> Result<Move, PlayerError> {
        if self.sent_messages >= self.user.max_turns {
            return Ok(Move::Leave(format!(
                "the model that plays the user has sent {}, which is the maximum",
                counted(self.sent_messages as usize, "message")
            )));
        }
        let request = self.request(trace);
        let answer = match self.ask(&request).await {
            Ok(answer) => answer,
            Err(error) if is_final(&error) => return Err(PlayerError(error)),
            Err(_) => self.ask(&request).await.map_err(PlayerError)?,
        };
        let next = read(&answer);
        self.sent_messages += u64::from(matches!(next, Move::Say(_)));
        Ok(next)
    }

    /// Returns the usage since the last call; `None` if the model was not called.
    pub(crate) fn spent(&mut self) -> Option<AuxiliaryUsage> {
        let spent = std::mem::take(&mut self.spent);
        (spent.requests > 0).then_some(spent)
    }

    fn request(&self, trace: &Trace) -> Request {
        Request {
            model: self.name.clone(),
            system: vec![prompt::role(&self.user)],
            messages: vec![prompt::conversation(trace, &self.mask)],
            max_tokens: Some(MOST_TOKENS),
            response_schema: Some(ResponseSchema { name: "user_turn".into(), schema: schema() }),
            // A user has one conversation and no tools; a script plays its steps for that conversation.
            conversation: Conversation::main(),
            ..Request::default()
        }
    }

    async fn ask(&mut self, request: &Request) -> Result<Value, StructuredReplyError> {
        let StructuredReply { value, tokens, cost_usd, replies } =
            llm::structured_reply(self.model.as_ref(), request, &valid).await;
        self.spent += AuxiliaryUsage { requests: u64::from(replies), cached: 0, tokens, cost_usd };
        value
    }
}

/// Returns `true` if a retry cannot help.
fn is_final(error: &StructuredReplyError) -> bool {
    match error {
        StructuredReplyError::Provider(error) => !error.is_transient(),
        StructuredReplyError::Refused(_) | StructuredReplyError::TooLong | StructuredReplyError::Invalid(_) => false,
    }
}

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "done": { "type": "boolean", "description": "Whether you have nothing more to say." },
            "message": { "type": "string", "description": "What you say next; empty if you are done." },
            "reason": { "type": "string", "description": "Why, in one short sentence." },
        },
        "required": ["done", "message", "reason"],
        "additionalProperties": false,
    })
}

fn valid(answer: &Value) -> Result<(), String> {
    let Some(done) = answer["done"].as_bool() else { return Err("`done` must be true or false".into()) };
    let Some(message) = answer["message"].as_str() else { return Err("`message` must be text".into()) };
    if !answer["reason"].is_string() {
        return Err("`reason` must be text".into());
    }
    if !done && message.trim().is_empty() {
        return Err("`message` must not be empty while you are not done".into());
    }
    if message.len() > LONGEST {
        return Err(format!("`message` must not be longer than {} KiB", LONGEST / 1024));
    }
    Ok(())
}

fn read(answer: &Value) -> Move {
    let text = |key: &str| answer[key].as_str().unwrap_or_default().trim().to_owned();
    if answer["done"] == true { Move::Leave(text("reason")) } else { Move::Say(text("message")) }
}

#[cfg(test)]
mod tests;

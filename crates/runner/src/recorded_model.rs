//! A model in this process whose answers are replayed from a cassette, or recorded.

use std::sync::Arc;
use std::time::Duration;

use cassette::{Answer, Asked, Exchange, Found, Sender, Tape};
use llm::{AnswerReader, BoxFuture, Model, ProviderError, Reply, Request, WIRES};
use model::{Step, Tokens};
use serde_json::{Value, json};

/// Path of these requests in cassettes. They have no HTTP path.
const PATH: &str = "model";

/// A model that answers from the tape if possible, and asks the real model otherwise.
pub(crate) struct RecordedModel {
    model: Arc<dyn Model>,
    tape: Arc<Tape>,
    sender: Sender,
}

impl RecordedModel {
    /// Puts the tape in front of `model`, if there is one. `sender` is recorded as the sender of its requests.
    pub(crate) fn wrap(model: Arc<dyn Model>, tape: Option<&Arc<Tape>>, sender: Sender) -> Arc<dyn Model> {
        match tape {
            Some(tape) => Arc::new(Self { model, tape: Arc::clone(tape), sender }),
            None => model,
        }
    }
}

impl Model for RecordedModel {
    fn respond<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Reply, ProviderError>> {
        Box::pin(async move {
            let body = llm::request_document(request);
            match self.tape.ask(Asked { sender: self.sender, path: PATH, body }) {
                Found::Recorded(answer) => read(&answer.body()),
                Found::Stale(message) => {
                    Err(ProviderError::Http { status: 400, kind: None, message, headers: Vec::new() })
                }
                Found::Live(slot) => {
                    let reply = self.model.respond(request).await?;
                    self.tape.keep(&slot, Answer::whole(200, "application/json", written(&reply)));
                    Ok(reply)
                }
            }
        })
    }

    fn address(&self) -> Option<&str> {
        self.model.address()
    }

    fn take_steps(&self) -> Vec<Step> {
        self.model.take_steps()
    }

    fn steps_ready(&self) -> BoxFuture<'_, ()> {
        self.model.steps_ready()
    }

    fn silent_for(&self) -> Option<Duration> {
        self.model.silent_for()
    }
}

/// Returns a reply in its recorded form.
fn written(reply: &Reply) -> String {
    let written = WIRES.first().map(|wire| wire.whole(reply)).unwrap_or_default();
    // The format of the reply cannot say that the tokens are not known.
    json!({"reply": written, "tokens": reply.tokens, "cost_usd": reply.cost_usd}).to_string()
}

/// Returns the reply in a recorded exchange, or `None` if the exchange is not from such a model.
pub fn recorded_reply(exchange: &Exchange) -> Option<Reply> {
    if exchange.path == PATH {
        return read(&exchange.answer.body()).ok();
    }
    let wire = llm::wire_of_path(&exchange.path)?;
    let is_stream = exchange.answer.content_type.starts_with("text/event-stream");
    let mut reader = AnswerReader::new(wire, "", is_stream)?;
    reader.take(exchange.answer.body().as_bytes());
    reader.so_far()
}

/// Parses a recorded reply.
fn read(recorded: &str) -> Result<Reply, ProviderError> {
    let recorded: Value = serde_json::from_str(recorded).map_err(|_| ProviderError::Malformed)?;
    let (reply, cost_usd) = (&recorded["reply"], recorded["cost_usd"].as_f64());
    let tokens = recorded.get("tokens").map(|tokens| serde_json::from_value(tokens.clone()));
    let tokens: Option<Option<Tokens>> = tokens.transpose().map_err(|_| ProviderError::Malformed)?;
    let model = reply["model"].as_str().unwrap_or_default().to_owned();
    let mut reader = WIRES.first().and_then(|wire| AnswerReader::new(*wire, &model, false));
    let read = reader.as_mut().and_then(|reader| {
        reader.take(reply.to_string().as_bytes());
        reader.so_far()
    });
    // An older version did not record them.
    let complete = |reply: Reply| Reply { cost_usd, tokens: tokens.unwrap_or(reply.tokens), ..reply };
    read.map(complete).ok_or(ProviderError::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cassette::{CassetteMode, Normalizer};
    use llm::{Block, Message, Role, StopReason};

    struct Silent;

    impl Model for Silent {
        fn respond<'a>(&'a self, _request: &'a Request) -> BoxFuture<'a, Result<Reply, ProviderError>> {
            Box::pin(std::future::ready(Err(ProviderError::Cut)))
        }
    }

    struct Fixed(Reply);

    impl Model for Fixed {
        fn respond<'a>(&'a self, _request: &'a Request) -> BoxFuture<'a, Result<Reply, ProviderError>> {
            Box::pin(std::future::ready(Ok(self.0.clone())))
        }
    }

    #[tokio::test]
    async fn a_recorded_reply_is_the_same_without_the_model() {
        let reply = Reply {
            message_id: "m1".into(),
            model: "m".into(),
            content: vec![
                Block::Text { text: "Listing.".into() },
                Block::ToolUse { id: "c1".into(), name: "Bash".into(), input: json!({"command": "ls"}) },
            ],
            stop_reason: StopReason::ToolUse,
            tokens: Some(Tokens { input: 10, output: 5, ..Tokens::default() }),
            cost_usd: Some(0.5),
        };
        let request = Request {
            model: "m".into(),
            system: vec!["Work.".into()],
            messages: vec![Message::text(Role::User, "go")],
            max_tokens: Some(10),
            ..Request::default()
        };
        let tape = Arc::new(Tape::new(CassetteMode::Record, "c", None, Normalizer::default()));
        let model = RecordedModel::wrap(Arc::new(Fixed(reply.clone())), Some(&tape), Sender::Judge);
        assert_eq!(model.respond(&request).await, Ok(reply.clone()));
        let recording = tape.recorded().unwrap().unwrap();
        let tape = Arc::new(Tape::new(CassetteMode::Replay, "c", Some(recording.into()), Normalizer::default()));
        let model = RecordedModel::wrap(Arc::new(Silent), Some(&tape), Sender::Judge);
        assert_eq!(model.respond(&request).await, Ok(reply.clone()));
        for tokens in [None, Some(Tokens { output: 5, reasoning: Some(4), ..Tokens::default() })] {
            let reply = Reply { tokens, ..reply.clone() };
            assert_eq!(read(&written(&reply)), Ok(reply));
        }
        let other = Request { system: vec!["Rest.".into()], ..request };
        assert!(model.respond(&other).await.is_err());
        assert_eq!(tape.stale().unwrap().sender, "judge");
    }
}

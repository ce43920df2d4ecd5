//! Requests to a model that this process has opened.

use std::collections::HashSet;

use llm::{Block, Model, Reply, Request};
use model::{Ending, Step, ToolCall};

use crate::turn::{Turn, WAITING_ON_PROVIDER};

/// Sends `request` and records the model's steps, such as retries. Meanwhile, the trial waits for `on`.
pub(super) async fn respond(
    model: &dyn Model,
    request: &Request,
    on: &'static str,
    turn: &mut Turn,
) -> Result<Reply, Ending> {
    turn.waiting(on);
    let mut stopping = std::pin::pin!(turn.stopping());
    let mut respond = model.respond(request);
    let reply = loop {
        let reply = tokio::select! {
            biased;
            () = &mut stopping => return Err(Ending::Cancelled),
            reply = &mut respond => Some(reply),
            () = model.steps_ready() => None,
        };
        record_steps(model.take_steps(), turn)?;
        if let Some(reply) = reply {
            break reply;
        }
    };
    turn.waiting("agent");
    reply.map_err(|error| match error.is_agents_doing() {
        true => Ending::GaveUp { reason: error.to_string() },
        false => Ending::ProviderFailed { reason: error.to_string() },
    })
}

/// Ids of a conversation's messages. Some servers give all their responses the same id, but each one is a message of its
/// own.
#[derive(Debug, Default)]
pub(super) struct MessageIds(HashSet<String>);

impl MessageIds {
    /// Returns the id of a new message, which its server calls `id`.
    fn next(&mut self, id: &str) -> String {
        let mut next = id.to_owned();
        while !self.0.insert(next.clone()) {
            next = format!("{id}#{}", self.0.len() + 1);
        }
        next
    }
}

/// Returns the steps in a model's message, in order. A message without content becomes an empty string, because it
/// still counts as a turn.
pub(super) fn steps(content: &Reply, ids: &mut MessageIds) -> Vec<Step> {
    let id = ids.next(&content.message_id);
    let message = || id.clone();
    let step = |block: &Block| match block {
        Block::Text { text } => Some(Step::Text { message: message(), text: text.clone(), parent: None }),
        Block::Thinking { text, .. } => Some(Step::Thinking { message: message(), text: text.clone(), parent: None }),
        Block::ToolUse { id, name, input } => Some(Step::ToolCall(ToolCall::new(id, name, input.clone(), message()))),
        Block::ToolResult { .. } | Block::Other(_) => None,
    };
    let mut steps: Vec<Step> = content.content.iter().filter_map(step).collect();
    if steps.is_empty() {
        steps.push(Step::Text { message: message(), text: String::new(), parent: None });
    }
    steps
}

/// Records the steps of requests to a model.
pub(super) fn record_steps(steps: Vec<Step>, turn: &mut Turn) -> Result<(), Ending> {
    steps.into_iter().try_for_each(|step| {
        if matches!(step, Step::Retry { .. }) {
            turn.waiting(WAITING_ON_PROVIDER);
        }
        turn.record(step)
    })
}

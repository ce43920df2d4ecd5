//! A conversation through the Responses API: each response names the previous one, and only new content is sent.

use std::sync::Arc;

use llm::{Block, Conversation, Message, Model, OpenError, Reply, Request, Role, StopReason};
use model::{AuxiliaryUsage, Ending, Step, Usage, UserMessage};
use sandbox::{BoxFuture, Breakage};
use serde_json::json;

use super::OWNER;
use super::config::AssistantConfig;
use super::shared::{answer, begin, finish};
use crate::model_request::{MessageIds, respond, steps};
use crate::own_tools::OwnTools;
use crate::session::Session;
use crate::turn::Turn;
use crate::{Endpoint, SessionContext};

/// An open conversation.
pub(super) struct Responses {
    id: String,
    model: Arc<dyn Model>,
    request: Request,
    message_ids: MessageIds,
    tools: OwnTools,
    opened: bool,
}

/// Opens the model behind the API.
pub(super) fn open(
    providers: &llm::Providers,
    model: &str,
    base_url: Option<&str>,
) -> Result<Arc<dyn Model>, OpenError> {
    providers.model(&format!("openai-responses:{model}"), base_url)
}

impl Responses {
    /// Opens a conversation without sending a request.
    pub(super) async fn open(context: &SessionContext, setting: AssistantConfig) -> Result<Self, Breakage> {
        let named = setting.model(context.setup.model.as_deref()).map(str::to_owned);
        let model: Arc<dyn Model> = match (&context.endpoint, &named) {
            (Endpoint::Script { model, .. }, _) => Arc::clone(model),
            (endpoint, Some(named)) => {
                let given = match endpoint {
                    Endpoint::Vendor { base_url } | Endpoint::Observed { base_url, .. } => base_url.as_deref(),
                    _ => None,
                };
                let providers = setting.providers(&context.providers);
                open(&providers, named, setting.base_url(given))
                    .map_err(|error| Breakage::environment(error.to_string()))?
            }
            (_, None) => return Err(Breakage::environment("`assistant` needs a `model`")),
        };
        let tools = OwnTools::open(context, OWNER).await?;
        let request = Request {
            model: named.unwrap_or_default(),
            system: setting.instructions.into_iter().chain(context.setup.system_prompt.clone()).collect(),
            tools: tools.specs().cloned().collect(),
            effort: context.setup.reasoning_effort.clone(),
            conversation: Conversation::main(),
            extra: [("store".to_owned(), json!(true))].into_iter().collect(),
            ..Request::default()
        };
        let message_ids = MessageIds::default();
        Ok(Self { id: context.session_id("assistant"), model, request, message_ids, tools, opened: false })
    }

    /// Runs the conversation from a user message to the answer.
    async fn follow(
        &mut self,
        text: &str,
        turn: &mut Turn,
        used: &mut AuxiliaryUsage,
    ) -> Result<Option<String>, Ending> {
        if !std::mem::replace(&mut self.opened, true) {
            begin(turn, &self.id, Some(self.request.model.as_str()).filter(|name| !name.is_empty()), &self.tools)?;
        }
        self.request.messages = vec![Message::text(Role::User, text)];
        loop {
            if turn.turns_left() == 0 {
                return Err(turn.out_of_turns());
            }
            let reply = respond(self.model.as_ref(), &self.request, "agent", turn).await?;
            *used += AuxiliaryUsage::from_answer(reply.tokens, reply.cost_usd);
            self.request.extra.insert("previous_response_id".to_owned(), json!(reply.message_id));
            // Calls are recorded when they are answered.
            let mut calls = Vec::new();
            for step in steps(&reply, &mut self.message_ids) {
                match step {
                    Step::ToolCall(call) => calls.push(call),
                    step => turn.record(step)?,
                }
            }
            if calls.is_empty() {
                return answer_of(&reply);
            }
            turn.spends(Usage { tokens: reply.tokens, cost_usd: reply.cost_usd })?;
            let mut results = Vec::with_capacity(calls.len());
            for call in calls {
                let result = answer(call, &mut self.tools, turn).await?;
                let content = vec![Block::Text { text: result.content }];
                results.push(Block::ToolResult { id: result.id, content, is_error: result.is_error });
            }
            self.request.messages = vec![Message { role: Role::User, content: results }];
        }
    }
}

/// Returns the text for the user, unless the agent stopped before it was done.
fn answer_of(reply: &Reply) -> Result<Option<String>, Ending> {
    let reason = match &reply.stop_reason {
        StopReason::Refusal => "it declined to answer",
        StopReason::MaxTokens => "its answer is incomplete: it reached its token limit",
        _ => return Ok(Some(reply.text())),
    };
    Err(Ending::GaveUp { reason: reason.to_owned() })
}

impl Session for Responses {
    fn send<'a>(&'a mut self, message: &'a UserMessage, turn: &'a mut Turn) -> BoxFuture<'a, Ending> {
        Box::pin(async move {
            let mut used = AuxiliaryUsage::default();
            let answered = self.follow(&message.text, turn, &mut used).await;
            finish(answered, used, turn)
        })
    }
}

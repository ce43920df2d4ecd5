//! Conversations through the Assistants API: one thread per trial, one run per message.

use std::time::Duration;

use llm::{Documents, Failure};
use model::{AuxiliaryUsage, Ending, Step, ToolCall, UserMessage, foreign_json};
use sandbox::{BoxFuture, Breakage};
use serde_json::{Map, Value, json};

use super::OWNER;
use super::config::{Api, AssistantConfig};
use super::shared::{answer, begin, finish};
use crate::answer::usage::usage;
use crate::json::{owned, text};
use crate::model_request::record_steps;
use crate::own_tools::OwnTools;
use crate::session::Session;
use crate::turn::{Turn, unless_stopped};
use crate::{Endpoint, SessionContext};

/// Delay before a run is polled for the first time. Each later delay is 1.5 times the previous one.
const INITIAL_POLL_DELAY: Duration = Duration::from_millis(100);
/// Maximum delay between two polls.
const MAX_POLL_DELAY: Duration = Duration::from_secs(2);
/// Timeout for cancelling a run.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);

/// An open conversation.
pub(super) struct Thread {
    documents: Documents,
    /// Id of the thread.
    id: String,
    /// Body of the request that starts a run.
    run: Value,
    model: Option<String>,
    tools: OwnTools,
    opened: bool,
    /// Path of the current run.
    running: Option<String>,
    /// The agent's own key, which must not appear in any message.
    key: Option<String>,
}

impl Thread {
    /// Creates a thread.
    pub(super) async fn open(context: &SessionContext, setting: AssistantConfig) -> Result<Self, Breakage> {
        let given = match &context.endpoint {
            Endpoint::Vendor { base_url } | Endpoint::Observed { base_url, .. } => base_url.as_deref(),
            _ => {
                return Err(Breakage::environment(
                    "the Assistants API does not support scripted models; use `api: responses`",
                ));
            }
        };
        let documents = setting.providers(&context.providers).assistants(setting.base_url(given));
        let documents = documents.map_err(|error| Breakage::environment(error.to_string()))?;
        let model = setting.model(context.setup.model.as_deref()).map(str::to_owned);
        let Api::Assistants(assistant) = &setting.api else {
            return Err(Breakage::harness("a thread was opened without an assistant"));
        };
        let mut run = Map::new();
        run.insert("assistant_id".to_owned(), json!(assistant));
        run.extend(model.as_ref().map(|model| ("model".to_owned(), json!(model))));
        run.extend(setting.instructions.as_ref().map(|text| ("instructions".to_owned(), json!(text))));
        run.extend(
            context.setup.system_prompt.as_ref().map(|text| ("additional_instructions".to_owned(), json!(text))),
        );
        run.extend(
            context.setup.reasoning_effort.as_ref().map(|effort| ("reasoning_effort".to_owned(), json!(effort))),
        );
        let tools = OwnTools::open(context, OWNER).await?;
        let thread = documents.post("/threads", &json!({})).await;
        let thread = thread.map_err(|failure| Breakage::provider(failure.to_string()))?;
        let id = id_of(&thread).ok_or_else(|| Breakage::provider(with_excerpt("the thread has no `id`", &thread)))?;
        Ok(Self {
            documents,
            id,
            run: Value::Object(run),
            model,
            tools,
            opened: false,
            running: None,
            key: setting.key,
        })
    }

    /// Adds a message to the thread and follows a run to the answer.
    async fn run_to_completion(
        &mut self,
        text: &str,
        turn: &mut Turn,
        used: &mut AuxiliaryUsage,
    ) -> Result<Option<String>, Ending> {
        if !std::mem::replace(&mut self.opened, true) {
            begin(turn, &self.id, self.model.as_deref(), &self.tools)?;
        }
        if turn.turns_left() == 0 {
            return Err(turn.out_of_turns());
        }
        turn.waiting("agent");
        let message = json!({"role": "user", "content": text});
        self.post(&format!("/threads/{}/messages", self.id), &message, turn).await?;
        let mut run = self.post(&format!("/threads/{}/runs", self.id), &self.run, turn).await?;
        let Some(id) = id_of(&run) else { return Err(provider(with_excerpt("the run has no `id`", &run))) };
        let path = format!("/threads/{}/runs/{id}", self.id);
        self.running = Some(path.clone());
        let mut wait = INITIAL_POLL_DELAY;
        let mut steps = 0;
        loop {
            match status(&run) {
                "queued" | "in_progress" | "cancelling" => {
                    unless_stopped(turn.stopping(), tokio::time::sleep(wait)).await?;
                    wait = (wait * 3 / 2).min(MAX_POLL_DELAY);
                    run = self.get(&path, turn).await?;
                }
                "requires_action" => {
                    steps += 1;
                    let outputs = self.submit_tool_outputs(&run, &format!("{id}-{steps}"), turn).await?;
                    run = self.post(&format!("{path}/submit_tool_outputs"), &outputs, turn).await?;
                    wait = INITIAL_POLL_DELAY;
                }
                _ => break,
            }
        }
        self.running = None;
        let usage = run.get("usage").and_then(Value::as_object).map(usage).unwrap_or_default().usage();
        *used += AuxiliaryUsage::from_answer(usage.tokens, usage.cost_usd);
        check_status(&run)?;
        Ok(Some(self.answer(&id, turn).await?))
    }

    /// Answers the calls of a run with the case's tools.
    async fn submit_tool_outputs(&mut self, run: &Value, message: &str, turn: &mut Turn) -> Result<Value, Ending> {
        if turn.turns_left() == 0 {
            return Err(turn.out_of_turns());
        }
        let calls = run.pointer("/required_action/submit_tool_outputs/tool_calls").and_then(Value::as_array);
        let Some(calls) = calls.filter(|calls| !calls.is_empty()) else {
            return Err(provider(with_excerpt("the run requires an unknown action", run)));
        };
        let mut outputs = Vec::with_capacity(calls.len());
        for call in calls {
            let text = |path: &str| call.pointer(path).and_then(Value::as_str);
            let (Some(id), Some(name)) = (text("/id"), text("/function/name")) else {
                return Err(provider(with_excerpt("a tool call has no `id` or no name", call)));
            };
            let written = text("/function/arguments").unwrap_or_default();
            let input = foreign_json::parse(written).unwrap_or_else(|_| match written.trim() {
                "" => json!({}),
                _ => json!(written),
            });
            let result = answer(ToolCall::new(id, name, input, message), &mut self.tools, turn).await?;
            outputs.push(json!({"tool_call_id": id, "output": result.content}));
        }
        Ok(json!({ "tool_outputs": outputs }))
    }

    /// Returns the text that the run added to the thread.
    async fn answer(&self, run: &str, turn: &mut Turn) -> Result<String, Ending> {
        let path = format!("/threads/{}/messages?run_id={run}&order=asc&limit=100", self.id);
        let listed = self.get(&path, turn).await?;
        let Some(messages) = listed.get("data").and_then(Value::as_array) else {
            return Err(provider(with_excerpt("the thread's messages have no `data`", &listed)));
        };
        // Some servers return the whole thread.
        let is_from_run = |message: &&Value| {
            text(message, "role") == Some("assistant") && text(message, "run_id").is_none_or(|id| id == run)
        };
        let mut texts = Vec::new();
        for (index, message) in messages.iter().filter(is_from_run).enumerate() {
            let text = text_of(message);
            let message = id_of(message).unwrap_or_else(|| format!("{run}-message-{index}"));
            turn.record(Step::Text { message, text: text.clone(), parent: None })?;
            texts.push(text);
        }
        Ok(texts.join("\n"))
    }

    async fn get(&self, path: &str, turn: &mut Turn) -> Result<Value, Ending> {
        self.result(self.documents.get(path), turn).await
    }

    async fn post(&self, path: &str, body: &Value, turn: &mut Turn) -> Result<Value, Ending> {
        self.result(self.documents.post(path, body), turn).await
    }

    /// Waits for a response, unless the trial must stop, and records retries.
    async fn result(
        &self,
        request: impl Future<Output = Result<Value, Failure>>,
        turn: &mut Turn,
    ) -> Result<Value, Ending> {
        let response = unless_stopped(turn.stopping(), request).await?;
        record_steps(self.documents.take_steps(), turn)?;
        turn.waiting("agent");
        response.map_err(|failure| match failure.kind.is_agents_doing() {
            true => Ending::GaveUp { reason: failure.to_string() },
            false => provider(failure.to_string()),
        })
    }

    /// Removes the agent's key from the service's messages about a run.
    fn without_key(&self, ending: Ending) -> Ending {
        match (ending, &self.key) {
            (Ending::ProviderFailed { reason }, Some(key)) => provider(reason.replace(key.as_str(), "[key]")),
            (Ending::GaveUp { reason }, Some(key)) => Ending::GaveUp { reason: reason.replace(key.as_str(), "[key]") },
            (ending, _) => ending,
        }
    }

    /// Cancels the current run, whose result is no longer needed.
    async fn cancel(&mut self) {
        if let Some(path) = self.running.take() {
            let body = json!({});
            let cancelling = format!("{path}/cancel");
            let _ = tokio::time::timeout(CANCEL_TIMEOUT, self.documents.post(&cancelling, &body)).await;
        }
    }
}

/// Returns the ending of a run that did not complete, depending on who is at fault.
fn check_status(run: &Value) -> Result<(), Ending> {
    let text_at = |path: &str| run.pointer(path).and_then(Value::as_str).unwrap_or_default();
    match status(run) {
        "completed" => Ok(()),
        "incomplete" => {
            let reason = text_at("/incomplete_details/reason");
            Err(Ending::GaveUp { reason: format!("its answer is incomplete ({reason})") })
        }
        "failed" => {
            let (code, message) = (text_at("/last_error/code"), text_at("/last_error/message"));
            let reason = format!("the run failed ({code}): {message}");
            match llm::is_agents_doing(None, &format!("{code} {message}")) {
                true => Err(Ending::GaveUp { reason }),
                false => Err(provider(reason)),
            }
        }
        "expired" => Err(provider("the run expired before it had an answer".to_owned())),
        "cancelled" => Err(Ending::Aborted { reason: "the run was cancelled by the service".to_owned() }),
        _ => Err(provider(with_excerpt("the run has an unknown status", run))),
    }
}

fn status(run: &Value) -> &str {
    text(run, "status").unwrap_or_default()
}

fn id_of(document: &Value) -> Option<String> {
    owned(document, "id").filter(|id| !id.is_empty())
}

/// Returns the texts and refusals of a message, joined in order.
fn text_of(message: &Value) -> String {
    let Some(parts) = message.get("content").and_then(Value::as_array) else {
        return owned(message, "content").unwrap_or_default();
    };
    let text = |part: &Value| {
        let found = ["/text/value", "/text", "/refusal"].iter().find_map(|path| part.pointer(path)?.as_str());
        found.map(str::to_owned)
    };
    parts.iter().filter_map(text).collect::<Vec<_>>().join("\n")
}

fn provider(reason: String) -> Ending {
    Ending::ProviderFailed { reason }
}

fn with_excerpt(what: &str, document: &Value) -> String {
    let shown = model::text::shortened(&document.to_string(), 300);
    format!("{what}: {shown}")
}

impl Session for Thread {
    fn send<'a>(&'a mut self, message: &'a UserMessage, turn: &'a mut Turn) -> BoxFuture<'a, Ending> {
        Box::pin(async move {
            let mut used = AuxiliaryUsage::default();
            let answered =
                self.run_to_completion(&message.text, turn, &mut used).await.map_err(|ending| self.without_key(ending));
            self.cancel().await;
            finish(answered, used, turn)
        })
    }

    fn close<'a>(&'a mut self) -> BoxFuture<'a, ()> {
        // The thread is kept, so that the conversation can be examined at the service.
        Box::pin(self.cancel())
    }
}

//! A model whose responses fail where a case injects faults.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::{FaultAction, FaultKind, FaultOccurrence, Step};
use serde_json::Value;
use tokio::sync::Notify;

use crate::account::Account;
use crate::answer::{Answer, BoxFuture, Break, Model, ProviderError, Served};
use crate::provider::provider_of;
use crate::remote::RetryPolicy;
use crate::wire::ReportedError;
use crate::{Block, ConversationRole, Failure, FailureKind, Policy, Providers, Reply, Request, StopReason, ToolSpec};

/// Name of the provider whose policy applies to models without a provider.
const SCRIPTED: &str = "scripted";

/// Beginning of a reply that is cut off.
const CUT_TEXT: &str = "I will look at the current state first, and then I will make the change step by step.";

/// Arguments that end too early and are therefore not valid JSON.
const TORN_ARGUMENTS: &str = "{\"command\": \"git sta";

/// Callback that receives each occurrence of a fault.
type Report = dyn Fn(FaultOccurrence) + Send + Sync;

/// A model between an agent and its real or scripted model, which injects the faults of a case. Each trial has its own.
///
/// Requests are counted from 1. Side requests, which are not marked as part of a conversation and have no tools, are
/// passed on and not counted. A request that a fault hits does not reach the model, unless the fault is a slow
/// response. If several faults match a request, the first one is injected.
pub struct FaultyModel {
    inner: Arc<dyn Model>,
    faults: Vec<FaultAction>,
    /// True if the agent has no tools, so that its conversation has none either.
    without_tools: bool,
    policy: Policy,
    account: Arc<Account>,
    report: Box<Report>,
    retried: Notify,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    requests: u64,
    /// Numbers of the requests that each fault hit.
    hits: Vec<Vec<u64>>,
    /// True if the last request failed because of a fault.
    is_broken: bool,
    /// Tool calls that faults produced.
    calls: Vec<Block>,
    /// Retries to record.
    steps: Vec<Step>,
}

impl FaultyModel {
    /// Creates a model that injects those of `faults` that hit model requests into the traffic with `inner`. Requests
    /// of callers in this process are retried by the policy of the provider of `name`. Each occurrence is passed to
    /// `report`.
    pub fn new(
        inner: Arc<dyn Model>,
        faults: Vec<FaultAction>,
        without_tools: bool,
        (providers, name): (&Providers, &str),
        report: impl Fn(FaultOccurrence) + Send + Sync + 'static,
    ) -> Self {
        let faults: Vec<FaultAction> = faults.into_iter().filter(|fault| fault.requests().is_some()).collect();
        let provider = provider_of(name).map_or(SCRIPTED, |(provider, _)| provider.name);
        let policy = providers.policy_of(provider).clone();
        let state = Mutex::new(State { hits: vec![Vec::new(); faults.len()], ..State::default() });
        let account = Arc::new(Account::new(&policy));
        let (report, retried) = (Box::new(report), Notify::new());
        Self { inner, faults, without_tools, policy, account, report, retried, state }
    }

    /// Returns the numbers of the requests that each fault hit, in the order of the faults.
    pub fn hits(&self) -> Vec<Vec<u64>> {
        self.state().hits.clone()
    }

    /// Returns the number of counted requests.
    pub fn requests(&self) -> u64 {
        self.state().requests
    }

    /// Returns `true` if a fault hit any request.
    pub fn has_occurred(&self) -> bool {
        self.state().hits.iter().any(|hits| !hits.is_empty())
    }

    /// Returns `true` if the last counted request failed because of a fault.
    pub fn is_broken(&self) -> bool {
        self.state().is_broken
    }

    /// Returns the tool calls that faults produced.
    pub fn calls(&self) -> Vec<Block> {
        self.state().calls.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request, and returns its number and the fault that hits it.
    fn next(&self, request: &Request) -> Option<(FaultAction, u64)> {
        let is_side =
            request.conversation.role == ConversationRole::Unmarked && request.tools.is_empty() && !self.without_tools;
        if is_side {
            return None;
        }
        let mut state = self.state();
        state.requests += 1;
        let number = state.requests;
        let is_hit = |fault: &FaultAction| {
            let is_possible = fault.kind() != FaultKind::MalformedArguments || !request.tools.is_empty();
            is_possible && fault.requests().is_some_and(|requests| requests.includes(number))
        };
        let found = self.faults.iter().enumerate().find(|(_, fault)| is_hit(fault));
        state.is_broken = found.is_some_and(|(_, fault)| fault.kind().breaks());
        let (at, fault) = found?;
        if let Some(hits) = state.hits.get_mut(at) {
            hits.push(number);
        }
        drop(state);
        let (kind, detail) = (fault.kind(), fault.describe());
        (self.report)(FaultOccurrence { fault: kind, number: Some(number), detail });
        Some((fault.clone(), number))
    }

    /// Returns the answer to a request that is hit, unless the model itself must answer it.
    fn inject(&self, fault: &FaultAction, number: u64, request: &Request) -> Option<Answer> {
        let reply = |content: Vec<Block>, stop_reason: StopReason| Reply {
            message_id: format!("msg_fault_{number:04}"),
            model: request.model.clone(),
            content,
            stop_reason,
            ..Reply::default()
        };
        match fault {
            FaultAction::HttpStatus { status, retry_after, .. } => {
                let headers = retry_after.iter().map(|wait| ("retry-after".to_owned(), wait.to_string())).collect();
                let message = message_of(*status).to_owned();
                Some(Answer::Failed(ProviderError::Http { status: *status, kind: None, message, headers }))
            }
            FaultAction::CutStream { .. } => {
                let begun = reply(vec![Block::Text { text: CUT_TEXT.to_owned() }], StopReason::EndTurn);
                Some(Answer::Broken { how: Break::Cut, begun })
            }
            FaultAction::MalformedArguments { .. } => {
                let (id, input) = (format!("toolu_fault_{number:04}"), Value::String(TORN_ARGUMENTS.to_owned()));
                let name = called_tool(&request.tools)?.name.clone();
                let call = Block::ToolUse { id, name, input };
                self.state().calls.push(call.clone());
                Some(Answer::Reply(reply(vec![call], StopReason::ToolUse)))
            }
            _ => None,
        }
    }

    /// Answers a request from a caller in this process. `Err` is a fault after which the caller may try again.
    async fn attempt(&self, request: &Request) -> Result<Result<Reply, ProviderError>, Failure> {
        let Some((fault, number)) = self.next(request) else { return Ok(self.inner.respond(request).await) };
        let answer = match (self.inject(&fault, number, request), &fault) {
            (Some(answer), _) => answer,
            (None, FaultAction::SlowStream { delay_ms, .. }) => match self.inner.respond(request).await {
                Ok(reply) => Answer::Slow { reply, delay: Duration::from_millis(*delay_ms) },
                Err(error) => Answer::Failed(error),
            },
            (None, _) => return Ok(self.inner.respond(request).await),
        };
        let sent = format!("model request {number}");
        match answer.perform().await {
            Err(error @ ProviderError::Http { .. }) => Err(failure(&error, &sent)),
            Err(ProviderError::Cut) => Err(Failure::new(FailureKind::Cut, sent)),
            done => Ok(done),
        }
    }
}

impl std::fmt::Debug for FaultyModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FaultyModel").field("faults", &self.faults).finish_non_exhaustive()
    }
}

impl Model for FaultyModel {
    fn respond<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Reply, ProviderError>> {
        Box::pin(async move {
            let retry_policy =
                RetryPolicy { account: &self.account, policy: &self.policy, again: FailureKind::is_transient };
            let on_retry = |step| {
                self.state().steps.push(step);
                self.retried.notify_one();
            };
            match retry_policy.ask(|| self.attempt(request), |_| None, on_retry).await {
                Ok(answered) => answered,
                Err(failure) => Err(ProviderError::Failed(Box::new(failure))),
            }
        })
    }

    fn take_steps(&self) -> Vec<Step> {
        let own = std::mem::take(&mut self.state().steps);
        self.inner.take_steps().into_iter().chain(own).collect()
    }

    fn steps_ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            tokio::select! {
                () = self.inner.steps_ready() => {}
                () = self.retried.notified() => {}
            }
        })
    }

    fn silent_for(&self) -> Option<Duration> {
        self.inner.silent_for()
    }

    fn serve<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Served> {
        Box::pin(async move {
            let Some((fault, number)) = self.next(request) else { return self.inner.serve(request).await };
            if let Some(answer) = self.inject(&fault, number, request) {
                return Served { answer, pending_request: None };
            }
            let served = self.inner.serve(request).await;
            match (served.answer, fault) {
                (Answer::Reply(reply), FaultAction::SlowStream { delay_ms, .. }) => {
                    Served { answer: Answer::Slow { reply, delay: Duration::from_millis(delay_ms) }, ..served }
                }
                (answer, _) => Served { answer, ..served },
            }
        })
    }
}

/// Returns the usual message for an error status.
fn message_of(status: u16) -> &'static str {
    match status {
        401 | 403 => "the key is not valid",
        408 | 504 => "the request timed out",
        429 => "the rate limit is exceeded",
        503 | 529 => "overloaded",
        400..=499 => "the request is not valid",
        _ => "internal server error",
    }
}

fn failure(error: &ProviderError, sent: &str) -> Failure {
    let ProviderError::Http { status, kind, message, .. } = error else {
        return Failure::new(FailureKind::Server, sent);
    };
    let reported = ReportedError { codes: kind.iter().cloned().collect(), message: message.clone() };
    Failure { retry_after: error.retry_after(), ..Failure::reported(Some(*status), &reported, sent) }
}

/// Returns the tool to use for a call with malformed arguments: one that runs commands, or one that cannot do anything
/// without arguments.
fn called_tool(tools: &[ToolSpec]) -> Option<&ToolSpec> {
    let runs_commands = |tool: &&ToolSpec| {
        let name = tool.name.to_ascii_lowercase();
        ["bash", "shell", "exec"].iter().any(|word| name.contains(word))
    };
    let needs_arguments = |tool: &&ToolSpec| {
        tool.input_schema.get("required").and_then(Value::as_array).is_some_and(|required| !required.is_empty())
    };
    let mut callable = tools.iter().filter(|tool| !tool.name.is_empty());
    tools.iter().find(runs_commands).or_else(|| tools.iter().find(needs_arguments)).or_else(|| callable.next())
}

#[cfg(test)]
mod tests {
    use model::Occurrences;

    use super::*;
    use crate::scripted::specimen;
    use crate::{Conversation, Message, Role, ScriptContext};

    const ONCE: Occurrences = Occurrences { at: 1, every: 1, times: Some(1) };

    fn quick() -> Providers {
        let policy = Policy { first_wait: Duration::from_millis(1), tries: 3, ..Policy::default() };
        Providers::new(crate::Credentials::default(), crate::Prices::default(), policy)
    }

    fn faulty(script: &str, faults: Vec<FaultAction>) -> (FaultyModel, Arc<Mutex<Vec<String>>>) {
        let playback = Arc::new(specimen::script(script).play(ScriptContext::default()));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let report = {
            let seen = Arc::clone(&seen);
            move |occurrence: FaultOccurrence| seen.lock().unwrap().push(occurrence.describe())
        };
        (FaultyModel::new(playback, faults, false, (&quick(), "scripted:s.yaml"), report), seen)
    }

    fn request(tools: &[&str]) -> Request {
        let tool = |name: &&str| ToolSpec { name: (*name).to_owned(), ..ToolSpec::default() };
        Request {
            messages: vec![Message::text(Role::User, "go")],
            tools: tools.iter().map(tool).collect(),
            conversation: Conversation::main(),
            ..Request::default()
        }
    }

    #[tokio::test]
    async fn a_caller_in_this_process_retries_and_gets_the_same_reply() {
        let status = FaultAction::HttpStatus {
            status: 529,
            retry_after: None,
            requests: Occurrences { times: Some(2), ..ONCE },
        };
        let (model, seen) = faulty("steps: [{text: a}, {text: b}]", vec![status]);
        let reply = model.respond(&request(&[])).await.unwrap();
        assert_eq!((reply.text().as_str(), model.requests(), model.hits()), ("a", 3, vec![vec![1, 2]]));
        let statuses: Vec<_> = model
            .take_steps()
            .iter()
            .filter_map(|step| match step {
                Step::Retry { status, .. } => *status,
                _ => None,
            })
            .collect();
        assert_eq!(statuses, [529, 529]);
        assert_eq!(*seen.lock().unwrap(), ["model request 1: HTTP 529", "model request 2: HTTP 529"]);
        assert!(model.has_occurred() && !model.is_broken());
        assert_eq!(model.respond(&request(&[])).await.unwrap().text(), "b");
    }

    #[tokio::test]
    async fn a_fault_that_stays_is_returned_after_the_last_try() {
        let cut = FaultAction::CutStream { requests: Occurrences { at: 1, every: 1, times: None } };
        let (model, _) = faulty("steps: [{text: a}]", vec![cut]);
        let error = model.respond(&request(&[])).await.unwrap_err();
        assert_eq!(error.to_string(), "the connection closed in the middle of the response [model request 3, 3 tries]");
        assert!(model.is_broken());
    }

    #[tokio::test]
    async fn side_requests_are_not_counted() {
        let status = FaultAction::HttpStatus { status: 500, retry_after: Some(1), requests: ONCE };
        let (model, _) = faulty("steps: [{text: a}]", vec![status]);
        let side = Request { messages: vec![Message::text(Role::User, "title?")], ..Request::default() };
        assert!(matches!(model.serve(&side).await.answer, Answer::Reply(_)));
        let Answer::Failed(error) = model.serve(&request(&["Bash"])).await.answer else { panic!("no error") };
        assert_eq!(error.retry_after(), Some(Duration::from_secs(1)));
        assert!(matches!(model.serve(&request(&["Bash"])).await.answer, Answer::Reply(_)));
    }

    #[tokio::test]
    async fn malformed_arguments_are_those_of_an_extra_call() {
        let malformed = FaultAction::MalformedArguments { requests: ONCE };
        let (model, _) = faulty("steps: [{text: a}]", vec![malformed]);
        let reply = model.respond(&request(&["Read", "Bash"])).await.unwrap();
        let [Block::ToolUse { name, input, .. }] = reply.content.as_slice() else { panic!("{reply:?}") };
        assert_eq!((name.as_str(), input), ("Bash", &Value::String(TORN_ARGUMENTS.to_owned())));
        assert!(serde_json::from_str::<Value>(TORN_ARGUMENTS).is_err());
        assert_eq!(model.calls(), reply.content);
        assert_eq!(model.respond(&request(&["Read", "Bash"])).await.unwrap().text(), "a");
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reply_is_complete() {
        let slow = FaultAction::SlowStream { delay_ms: 60_000, requests: ONCE };
        let (model, _) = faulty("steps: [{text: a}]", vec![slow]);
        let began = tokio::time::Instant::now();
        assert_eq!(model.respond(&request(&[])).await.unwrap().text(), "a");
        assert_eq!(began.elapsed().as_secs(), 60);
        let (model, _) = faulty("steps: [{text: a}]", vec![FaultAction::SlowStream { delay_ms: 7, requests: ONCE }]);
        let Answer::Slow { delay, .. } = model.serve(&request(&[])).await.answer else { panic!("not slow") };
        assert_eq!(delay.as_millis(), 7);
    }
}

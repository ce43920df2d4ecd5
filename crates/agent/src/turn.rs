//! Records an agent's steps. Every step passes through here: its paths are resolved, it is counted against the limits,
//! kept in the trace and sent to the dispatcher.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use grade::Responder;
use model::foreign_json::MAX_VALUES;
use model::{
    Budget, Definition, Ending, Event, Limits, OnBudget, Question, Step, Tokens, ToolCall, Trace, Usage, rounded_number,
};
use sandbox::DiskWatch;
use serde_json::Value;
use tokio::sync::watch;

use crate::activity::Activity;
use crate::event_sink::EventSink;
use crate::pricing::{Bill, Pricing};
use crate::resolve::Resolver;
use crate::server::{self, Server};

/// Maximum size of an agent's own output that is kept per attempt, in bytes; the rest is read but not kept.
const MAX_OUTPUT_BYTES: usize = 16 * 1024 * 1024;
/// Size that is counted for each kept line in addition to its text, in bytes.
const LINE: usize = 200;
/// Maximum size of an agent's steps in an attempt, in bytes. No real conversation with a model comes close to it.
const MAX_REPORTED_BYTES: usize = 64 * 1024 * 1024;

/// Maximum nesting depth of a value from an agent. A record adds levels, and cannot be read if it has more than 127.
const MAX_DEPTH: usize = 100;

/// Reason for the ending if the model answered with neither text nor a call.
pub(crate) const SILENT: &str = "its model answered with neither text nor a tool call";

/// Reason for the ending if the agent finished its reply without any content.
const NO_ANSWER: &str = "it answered with neither text nor a tool call";

/// Beginning of the reason for the ending if the agent's program reports that it was interrupted. trialrun interrupts it
/// only after another ending.
pub const INTERRUPTED: &str = "it was interrupted: ";

/// Value of `Event::Waiting` while an agent retries its model after an error. If the trial's timeout then expires, the
/// trial is broken because of the provider.
pub const WAITING_ON_PROVIDER: &str = "provider";

/// Record of a conversation, from the user's messages to the agent's answers. A session records the agent's steps
/// here, and gets answers to the agent's questions from here.
pub struct Turn {
    sink: Box<dyn EventSink>,
    trace: Trace,
    limits: Arc<Limits>,
    responder: Responder,
    resolver: Resolver,
    warnings: Vec<String>,
    /// The same warnings, for lookups.
    warned: HashSet<String>,
    pricing: Pricing,
    activity: Arc<Activity>,
    stop: watch::Receiver<bool>,
    ending: Option<Ending>,
    /// Remaining size for the agent's own output; `None` once something was omitted.
    room: Option<usize>,
    /// Size of the steps so far.
    recorded_bytes: usize,
    /// Time when the first part of the reply to the last message arrived.
    first_token: Option<Instant>,
    /// Known usage of the message in progress.
    on_the_way: Tokens,
    /// Known cost of the message in progress, for agents that report it with each response.
    cost_on_the_way: Option<f64>,
    /// Exit code of the agent's process, if it ended on its own.
    exit_code: Option<i32>,
    /// Probable cause if the trial times out.
    timeout_hint: Option<String>,
    /// The disk on which the agent works.
    disk: Option<Arc<DiskWatch>>,
    /// Ending of the trial if it would fail otherwise.
    excuse: Option<Ending>,
    /// True if the message in progress was answered together with an earlier one.
    is_answered: bool,
    /// True if the steps of the reply in progress were only observed, and its answer has neither text nor a call.
    is_only_observed: bool,
    /// True if the steps were recorded earlier, so that a limit of this program says nothing about the agent.
    is_replay: bool,
    /// Definition whose use ends the conversation, and its name.
    ends_with_use_of: Option<(Definition, String)>,
    /// MCP servers of the agent.
    servers: Arc<[Server]>,
}

impl Turn {
    /// Creates a turn whose events go to `sink`.
    pub fn new(
        sink: Box<dyn EventSink>,
        limits: Arc<Limits>,
        responder: Responder,
        resolver: Resolver,
        activity: Arc<Activity>,
        stop: watch::Receiver<bool>,
    ) -> Self {
        Self {
            sink,
            trace: Trace::default(),
            limits,
            responder,
            resolver,
            warnings: Vec::new(),
            warned: HashSet::new(),
            pricing: Pricing::default(),
            activity,
            stop,
            ending: None,
            room: Some(MAX_OUTPUT_BYTES),
            recorded_bytes: 0,
            first_token: None,
            on_the_way: Tokens::default(),
            cost_on_the_way: None,
            exit_code: None,
            timeout_hint: None,
            disk: None,
            excuse: None,
            is_answered: false,
            is_only_observed: false,
            is_replay: false,
            ends_with_use_of: None,
            servers: Arc::default(),
        }
    }

    /// Sets the MCP servers of the agent, whose tools get the same name under every agent.
    pub fn with_servers(mut self, servers: Arc<[Server]>) -> Self {
        self.servers = servers;
        self
    }

    /// Ends the conversation as soon as the agent has used this skill or sub-agent.
    pub fn ends_with_use_of(mut self, used: Option<(Definition, String)>) -> Self {
        self.ends_with_use_of = used;
        self
    }

    /// Sets the disk on which the agent works, to detect whether it is full.
    pub fn on_disk(mut self, disk: Option<Arc<DiskWatch>>) -> Self {
        self.disk = disk;
        self
    }

    /// Returns `true` if others than the agent have filled its disk, now or at any recorded step.
    fn disk_was_full(&self) -> bool {
        self.disk.as_deref().is_some_and(|disk| {
            disk.look();
            disk.was_filled_by_others()
        })
    }

    /// Sets the pricing of usage.
    pub fn paid_by(mut self, pricing: Pricing) -> Self {
        self.pricing = pricing;
        self
    }

    /// Records a step. After a limit is hit, every call returns the same stop.
    ///
    /// # Errors
    /// Returns the ending with which the agent must stop now.
    pub fn record(&mut self, mut step: Step) -> Result<(), Ending> {
        self.activity.touch();
        self.disk.as_deref().into_iter().for_each(DiskWatch::look);
        self.recorded_bytes += size(&step);
        if self.recorded_bytes > MAX_REPORTED_BYTES && !matches!(step, Step::Finished { .. }) {
            let reason = format!("its steps take more than {} MiB in the record", MAX_REPORTED_BYTES >> 20);
            let ending = if self.is_replay { Ending::Aborted { reason } } else { Ending::GaveUp { reason } };
            return Err(self.ending.get_or_insert(ending).clone());
        }
        if is_too_deep(&step) {
            return Err(self.too_deep());
        }
        match &mut step {
            Step::ToolCall(call) => {
                server::rename(call, &self.servers);
                call.touches = self.resolver.touches(call);
            }
            Step::Finished { usage, .. } => self.pricing.settle(usage, self.trace.model.as_deref()),
            _ => {}
        }
        if matches!(step, Step::Finished { .. }) {
            (self.on_the_way, self.cost_on_the_way) = (Tokens::default(), None);
        }
        if let Step::ToolCall(ToolCall { input: value, .. }) | Step::Finished { result: Some(value), .. } = &step
            && let Some(number) = rounded_number(value)
        {
            let number = number.to_string();
            self.warn(format!("a number of more than 64 bits was rounded to {number}; send such ids as strings"));
        }
        self.trace.push(&step);
        let is_call = matches!(step, Step::ToolCall(_) | Step::ToolResult(_));
        self.sink.send(Event::Step(step));
        if self.ending.is_none() {
            self.ending = self.exhausted();
        }
        if let Some((definition, name)) = self.ends_with_use_of.as_ref().filter(|_| is_call && self.ending.is_none())
            && grade::made_use_of(&self.trace, *definition, name)
        {
            self.ending = Some(Ending::Finished);
        }
        self.ending.clone().map_or(Ok(()), Err)
    }

    /// Records a step that an agent's program reports, and sets what the trial waits for afterwards.
    pub(crate) fn follow(&mut self, step: Step) -> Result<(), Ending> {
        match &step {
            Step::ToolCall(_) => self.waiting("tool"),
            Step::ToolResult(_) | Step::Text { .. } | Step::Thinking { .. } => self.waiting("model"),
            // The provider refuses a conversation that is too long, however often the agent sends it.
            Step::Retry { status, error, .. } if llm::is_agents_doing(*status, error) => self.waiting("model"),
            Step::Retry { .. } => self.waiting(WAITING_ON_PROVIDER),
            _ => {}
        }
        self.record(step)
    }

    /// Ends the conversation because part of the agent's output could not be read. The steps in it are unknown, so the
    /// trial has no verdict.
    ///
    /// # Errors
    /// Always returns that ending.
    pub fn unreadable(&mut self, what: &str) -> Result<(), Ending> {
        let reason = format!("{what}, so the steps of the agent are not completely known");
        Err(self.ending.get_or_insert(Ending::Aborted { reason }).clone())
    }

    /// Ends the conversation because the agent sent a value with too many levels, or JSON with too many values, and
    /// returns that ending.
    pub(crate) fn too_deep(&mut self) -> Ending {
        self.ending.get_or_insert(Ending::GaveUp { reason: too_deep() }).clone()
    }

    /// Counts the usage of a model response, for agents that report it before the message is processed.
    /// [`Step::Finished`] reports the total again.
    ///
    /// # Errors
    /// Returns the ending with which the agent must stop now.
    pub fn uses(&mut self, tokens: Tokens) -> Result<(), Ending> {
        self.on_the_way += tokens;
        if self.ending.is_none() {
            self.ending = self.exhausted();
        }
        self.ending.clone().map_or(Ok(()), Err)
    }

    /// Counts the usage of a model response as [`Self::uses`] does, with its cost.
    ///
    /// # Errors
    /// Returns the ending with which the agent must stop now.
    pub(crate) fn spends(&mut self, usage: Usage) -> Result<(), Ending> {
        if let Some(cost) = usage.cost_usd {
            *self.cost_on_the_way.get_or_insert_default() += cost;
        }
        self.uses(usage.tokens.unwrap_or_default())
    }

    /// Records the exit code of an agent's process that ended on its own.
    pub fn exited(&mut self, code: Option<i32>) {
        self.exit_code = code;
    }

    /// Returns the exit code of the agent's process, if it ended on its own.
    pub fn exit_code(&self) -> Option<i32> {
        self.exit_code
    }

    /// Records that the first part of a streamed reply has arrived; later calls have no effect.
    pub fn speaks(&mut self) {
        self.activity.touch();
        self.first_token.get_or_insert_with(Instant::now);
    }

    /// Prepares for a message that is about to be sent.
    pub fn message_begins(&mut self) {
        (self.first_token, self.is_answered, self.exit_code) = (None, false, None);
        self.is_only_observed = false;
    }

    /// Returns the ending of a message, given the one that the session returned. An agent that finished without any
    /// content, of whatever kind it is, has given up.
    pub fn message_ends(&mut self, ending: Ending) -> Ending {
        let has_answered = match self.is_only_observed {
            true => self.trace.reply(self.trace.replies.len()).is_some_and(|mut reply| {
                reply.turns.clear();
                reply.has_answered()
            }),
            false => self.trace.has_answered(),
        };
        if ending != Ending::Finished || self.is_answered || has_answered {
            return ending;
        }
        self.ending.get_or_insert_with(|| Ending::GaveUp { reason: NO_ANSWER.to_owned() }).clone()
    }

    /// Records that the calls of the reply in progress are not known, at least not all of them.
    pub(crate) fn misses_calls(&mut self) {
        // After a stop, the step is recorded nevertheless, and the ending is known.
        let _ = self.record(Step::CallsUnreported);
    }

    /// Records that the steps of the reply in progress were only observed: its answer has neither text nor a call.
    pub(crate) fn observes_only(&mut self) {
        self.is_only_observed = true;
    }

    /// Records that the message in progress needs no reply, because an earlier reply contains it.
    pub(crate) fn is_answered_already(&mut self) {
        self.is_answered = true;
    }

    /// Must be called before the first step if the steps were recorded earlier.
    pub(crate) fn is_replay(&mut self) {
        self.is_replay = true;
    }

    /// Returns the time at which the first part of the reply to the last message arrived, if it was streamed.
    pub fn first_token(&self) -> Option<Instant> {
        self.first_token
    }

    /// Keeps a line of the agent's own output unchanged, up to the size limit.
    pub fn raw(&mut self, stream: &str, line: &str) {
        self.activity.touch();
        let Some(room) = self.room else { return };
        self.room = room.checked_sub(line.len() + LINE);
        if self.room.is_none() {
            let kept = MAX_OUTPUT_BYTES >> 20;
            return self.warn(format!("the agent's output is too large to keep; the record has its first {kept} MiB"));
        }
        self.sink.send(Event::Output { stream: stream.to_owned(), text: line.to_owned() });
    }

    /// Answers a question from the case's `user_responses` and records both. Returns `None` if no answer was prepared.
    pub fn ask(&mut self, mut question: Question) -> Option<String> {
        for warning in self.responder.answer(&mut question) {
            self.warn(warning);
        }
        let answer = question.answer.clone();
        let _ = self.record(Step::Question(question));
        answer
    }

    /// Returns the prepared answer to a question that is recorded as a request for permission.
    pub(crate) fn answer(&mut self, mut question: Question) -> Option<String> {
        for warning in self.responder.answer(&mut question) {
            self.warn(warning);
        }
        question.answer
    }

    /// Denies a call that the agent's own rules do not allow, because there is no user to approve it. Returns the
    /// message for the agent.
    pub fn deny(&mut self, call: &ToolCall) -> String {
        let message = format!("{} is not allowed here, and no user can approve it", call.raw_name);
        let _ = self.record(Step::PermissionDenied {
            tool: call.name.clone(),
            call_id: Some(call.id.clone()),
            message: message.clone(),
        });
        message
    }

    /// Records the last step of the answer to a message. Usage is recorded even after a stop, and may itself exceed a
    /// limit. Returns the ending.
    pub(crate) fn finish(&mut self, answered: Result<Option<String>, Ending>, subtype: &str, usage: Usage) -> Ending {
        let (text, ending) = match answered {
            Ok(text) => (text, Ending::Finished),
            Err(ending) => (None, ending),
        };
        let is_error = ending != Ending::Finished;
        let finished = Step::Finished { subtype: subtype.to_owned(), is_error, usage, text, result: None };
        match self.record(finished) {
            Err(stopped) if !is_error => stopped,
            _ => ending,
        }
    }

    /// Adds time that does not count as the agent's.
    pub(crate) fn pause(&self, time: Duration) {
        self.sink.pause(time);
    }

    /// Sets what the trial waits for, for `status` and for the idle warning.
    pub fn waiting(&mut self, on: &'static str) {
        if self.activity.waits_for(on) {
            self.sink.send(Event::Waiting { on: on.to_owned() });
        }
    }

    /// Adds a warning that does not affect the verdict.
    pub fn warn(&mut self, warning: impl Into<String>) {
        let warning = warning.into();
        if self.warned.insert(warning.clone()) {
            self.warnings.push(warning);
        }
    }

    /// Sets the probable cause if the trial times out.
    pub(crate) fn explain_timeout(&mut self, hint: impl Into<String>) {
        self.timeout_hint = Some(hint.into());
    }

    /// Returns the probable cause if the trial times out.
    pub fn timeout_hint(&self) -> Option<&str> {
        self.timeout_hint.as_deref()
    }

    /// Resolves when the trial must stop: the wall clock ran out or the run was cancelled.
    pub fn stopping(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut stop = self.stop.clone();
        async move {
            if stop.wait_for(|stop| *stop).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Ends an agent that records many steps for one answer, if it was asked to stop.
    ///
    /// # Errors
    /// Returns [`Ending::Cancelled`] if it was.
    pub fn check_stop(&self) -> Result<(), Ending> {
        if *self.stop.borrow() { Err(Ending::Cancelled) } else { Ok(()) }
    }

    /// Returns `true` if a limit was hit, so that the agent must stop.
    pub fn is_over(&self) -> bool {
        self.ending.is_some()
    }

    /// Returns the number of model turns that the agent may still start.
    pub fn turns_left(&self) -> u64 {
        self.limits.turn_cap().map_or(u64::MAX, |most| most.saturating_sub(self.trace.turn_count() as u64))
    }

    /// Returns `true` if there is a limit on model turns.
    pub fn has_turn_limit(&self) -> bool {
        self.limits.turn_cap().is_some()
    }

    /// Ends the conversation because the turns are used up, for agents that stop on their own before the next turn.
    pub fn out_of_turns(&mut self) -> Ending {
        let limit = self.limits.turn_cap().unwrap_or(self.trace.turn_count() as u64);
        self.ending.get_or_insert(Ending::OutOfBudget { budget: Budget::Turns, limit: limit as f64 }).clone()
    }

    /// Returns the trace recorded so far.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Adds observations made outside the conversation, whose events were already sent.
    pub fn complete_trace(&mut self, complete: impl FnOnce(&mut Trace)) {
        complete(&mut self.trace);
    }

    /// Records a reason for which the agent's failure says nothing about it; the first one counts.
    pub fn excuse(&mut self, ending: Ending) {
        self.excuse.get_or_insert(ending);
    }

    /// Returns the ending of the trial if it would fail otherwise, if there is a reason for which the failure would say
    /// nothing about the agent.
    pub fn excused(&self) -> Option<Ending> {
        let reason = || "the disk was full while the agent worked".to_owned();
        let disk = self.disk_was_full().then(|| Ending::Aborted { reason: reason() });
        disk.or_else(|| self.excuse.clone())
    }

    /// Returns the information about the cost in addition to the amount.
    pub fn bill(&self) -> Bill {
        self.pricing.bill()
    }

    /// Ends the recording. Returns the trace, the indices of unused prepared answers, and the warnings.
    pub fn into_parts(self) -> (Trace, Vec<usize>, Vec<String>) {
        let unused = self.responder.unused();
        (self.trace, unused, self.warnings)
    }

    fn exhausted(&self) -> Option<Ending> {
        if let Some(most) = self.limits.turn_cap().filter(|most| self.trace.turn_count() as u64 > *most) {
            return Some(Ending::OutOfBudget { budget: Budget::Turns, limit: most as f64 });
        }
        let mut counted = self.limits.counted(self.trace.usage, self.trace.unreported);
        let known = counted.usage.tokens;
        let mut used = known.unwrap_or_default();
        used += self.on_the_way;
        match self.limits.token_budget.filter(|_| !self.limits.tokens_only_warn()) {
            Some(limit) if used.total() as f64 > limit => {
                return Some(Ending::OutOfBudget { budget: Budget::Tokens, limit });
            }
            _ if self.limits.on_budget == OnBudget::Warn => return None,
            _ => {}
        }
        let used = (known.is_some() || used != Tokens::default()).then_some(used);
        let on_the_way = self.pricing.estimate(self.on_the_way, self.trace.model.as_deref()).or(self.cost_on_the_way);
        let cost = match (counted.usage.cost_usd, on_the_way) {
            (Some(settled), Some(more)) => Some(settled + more),
            (settled, more) => settled.or(more),
        };
        counted.usage = Usage { tokens: used, cost_usd: cost };
        let over = self.limits.budgets.overruns(&counted);
        over.first().map(|over| Ending::OutOfBudget { budget: over.budget, limit: over.limit })
    }
}

/// Returns the last step of the answer to a message.
pub(crate) fn finished(is_error: bool, usage: Usage, text: Option<String>, result: Option<Value>) -> Step {
    let subtype = if is_error { "error" } else { "success" }.to_owned();
    Step::Finished { subtype, is_error, usage, text, result }
}

/// Waits for `future`, unless the trial must stop.
pub(crate) async fn unless_stopped<T>(
    stopping: impl Future<Output = ()>,
    future: impl Future<Output = T>,
) -> Result<T, Ending> {
    tokio::select! {
        biased;
        () = stopping => Err(Ending::Cancelled),
        output = future => Ok(output),
    }
}

/// Returns the size of a step in bytes, counting only what the agent controls.
fn size(step: &Step) -> usize {
    LINE + match step {
        Step::Text { text, .. } | Step::Thinking { text, .. } | Step::Notice { text, .. } => text.len(),
        Step::ToolCall(call) => weight(&call.input),
        Step::ToolResult(result) => result.content.len(),
        Step::Finished { text, result, .. } => text.as_ref().map_or(0, String::len) + result.as_ref().map_or(0, weight),
        _ => 0,
    }
}

/// Returns the approximate size of a value as JSON, in bytes, without serialising it.
fn weight(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => text.len(),
        Value::Array(items) => 2 + items.iter().map(weight).sum::<usize>(),
        Value::Object(entries) => 2 + entries.iter().map(|(key, value)| key.len() + weight(value)).sum::<usize>(),
    }
}

/// Returns the reason for the ending if a value has too many levels, or JSON too many values.
pub(crate) fn too_deep() -> String {
    format!(
        "it sent a value with more than {MAX_DEPTH} levels, or JSON with more than {MAX_VALUES} values and keys, which a \
         record cannot hold"
    )
}

/// Returns `true` if a value in a step has more levels than a record can hold.
fn is_too_deep(step: &Step) -> bool {
    match step {
        Step::ToolCall(call) => has_more_levels(&call.input, MAX_DEPTH),
        Step::Finished { result: Some(result), .. } => has_more_levels(result, MAX_DEPTH),
        _ => false,
    }
}

fn has_more_levels(value: &Value, most: usize) -> bool {
    let is_deeper = |value: &Value| has_more_levels(value, most - 1);
    match value {
        Value::Array(items) => most == 0 || items.iter().any(is_deeper),
        Value::Object(entries) => most == 0 || entries.values().any(is_deeper),
        _ => false,
    }
}

//! Watching an agent act: every step goes through here, has its paths resolved, is counted against the
//! limits, kept in the trace and told to the dispatcher.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use grade::Responder;
use model::{Budget, Ending, Event, Limits, OnBudget, Question, Step, Tokens, ToolCall, Trace};
use sandbox::room;
use serde_json::Value;
use tokio::sync::watch;

use crate::activity::Activity;
use crate::event_sink::EventSink;
use crate::pricing::{Bill, Pricing};
use crate::resolve::Resolver;

/// How much of an agent's own output is kept for an attempt, in bytes; the rest of it is only followed.
const MOST_OUTPUT: usize = 16 * 1024 * 1024;
/// What keeping a line costs beside its text, in bytes.
const LINE: usize = 200;
/// How much an agent may tell in an attempt, in bytes. No conversation with a model comes near to it.
const MOST_TOLD: usize = 64 * 1024 * 1024;

/// How many levels a value may have that an agent gives. It stands some levels further down in a record, which nobody can
/// read if it has more than 127.
const MOST_LEVELS: usize = 100;

/// What an agent waits for that tries its model again after an error. A trial whose time is over then is broken by the
/// provider.
pub const WAITING_ON_PROVIDER: &str = "provider";

/// Whether the agent may go on.
#[derive(Debug, Clone, PartialEq)]
#[must_use = "an agent that goes on after a stop breaks its limits"]
pub enum Flow {
    /// It may.
    Go,
    /// It must stop now, and this is how its acting ended.
    Stop(Ending),
}

impl Flow {
    /// The stop as an error, so that `?` leaves what the agent was doing.
    pub fn go(self) -> Result<(), Ending> {
        match self {
            Self::Go => Ok(()),
            Self::Stop(ending) => Err(ending),
        }
    }
}

/// What the harness says to a call that needs permission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Go ahead.
    Allow,
    /// No, and why.
    Deny(String),
}

/// A turn of the conversation, from the user's message to the agent's answer. It goes both ways: the session records
/// what the agent does, and asks what the agent asks.
pub struct Turn {
    sink: Box<dyn EventSink>,
    trace: Trace,
    limits: Arc<Limits>,
    responder: Responder,
    resolver: Resolver,
    warnings: Vec<String>,
    /// The same, to be found.
    warned: HashSet<String>,
    pricing: Pricing,
    activity: Arc<Activity>,
    stop: watch::Receiver<bool>,
    ending: Option<Ending>,
    /// How much more of the agent's own output is kept; `None` once something was left out.
    room: Option<usize>,
    /// How much was told so far.
    told: usize,
    /// When the first word of the reply to the last message came.
    first_token: Option<Instant>,
    /// What was used for the message that is being dealt with, as far as it is known on the way.
    on_the_way: Tokens,
    /// What the agent's process exited with by itself.
    exit_code: Option<i32>,
    /// The agent's working directory.
    disk: Option<PathBuf>,
    /// True if that disk was full at some moment.
    disk_was_full: bool,
}

impl Turn {
    /// Watches a trial whose events go to `sink`.
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
            room: Some(MOST_OUTPUT),
            told: 0,
            first_token: None,
            on_the_way: Tokens::default(),
            exit_code: None,
            disk: None,
            disk_was_full: false,
        }
    }

    /// The agent works in the directory `work`, whose disk may fill up.
    pub fn on_disk(mut self, work: Option<&Path>) -> Self {
        self.disk = work.map(Path::to_owned);
        self
    }

    /// True if the disk that the agent works on is full, or was at a step that it told of.
    pub fn disk_was_full(&self) -> bool {
        self.disk_was_full || self.disk.as_deref().is_some_and(room::is_full)
    }

    /// What is used is paid by `pricing`.
    pub fn paid_by(mut self, pricing: Pricing) -> Self {
        self.pricing = pricing;
        self
    }

    /// Records what happened. Once a limit is hit the answer is the same stop for ever.
    pub fn record(&mut self, mut step: Step) -> Flow {
        self.activity.heard();
        self.disk_was_full = self.disk_was_full || self.disk.as_deref().is_some_and(room::is_full);
        self.told += size(&step);
        if self.told > MOST_TOLD && !matches!(step, Step::Finished { .. }) {
            let because = format!("it was stopped after it had told more than {} MiB", MOST_TOLD >> 20);
            return Flow::Stop(self.ending.get_or_insert(Ending::GaveUp { because }).clone());
        }
        if is_too_deep(&step) {
            let because = format!("it gave a value of more than {MOST_LEVELS} levels, which no record can hold");
            return Flow::Stop(self.ending.get_or_insert(Ending::GaveUp { because }).clone());
        }
        match &mut step {
            Step::ToolCall(call) => call.touches = self.resolver.touches(call),
            Step::Finished { usage, .. } => self.pricing.settle(usage, self.trace.model.as_deref()),
            _ => {}
        }
        if matches!(step, Step::Finished { .. }) {
            self.on_the_way = Tokens::default();
        }
        self.trace.push(&step);
        self.sink.send(Event::Step(step));
        if self.ending.is_none() {
            self.ending = self.exhausted();
        }
        match &self.ending {
            Some(ending) => Flow::Stop(ending.clone()),
            None => Flow::Go,
        }
    }

    /// Ends acting because a part of the agent's output could not be read. What it did there is unknown, so the trial has
    /// no verdict.
    pub fn unreadable(&mut self, what: &str) -> Flow {
        let because = format!("{what}, so not everything that the agent did is known");
        Flow::Stop(self.ending.get_or_insert(Ending::Aborted { because }).clone())
    }

    /// Counts what an answer of the model has used, for agents that know before the message is dealt with.
    /// [`Step::Finished`] tells all of it once more.
    pub fn uses(&mut self, tokens: Tokens) -> Flow {
        self.on_the_way += tokens;
        if self.ending.is_none() {
            self.ending = self.exhausted();
        }
        self.ending.clone().map_or(Flow::Go, Flow::Stop)
    }

    /// The agent's process ended by itself; what it exited with.
    pub fn exited(&mut self, code: Option<i32>) {
        self.exit_code = code;
    }

    /// What the agent's process exited with by itself.
    pub fn exit_code(&self) -> Option<i32> {
        self.exit_code
    }

    /// The first word of a reply that comes in pieces is here; later ones do not count.
    pub fn speaks(&mut self) {
        self.activity.heard();
        self.first_token.get_or_insert_with(Instant::now);
    }

    /// A message is about to be sent.
    pub fn message_begins(&mut self) {
        self.first_token = None;
    }

    /// When the first word of the reply to the last message came, where it came in pieces.
    pub fn first_token(&self) -> Option<Instant> {
        self.first_token
    }

    /// Keeps a line of the agent's own output as it came, as long as there is room.
    pub fn raw(&mut self, stream: &str, line: &str) {
        self.activity.heard();
        let Some(room) = self.room else { return };
        self.room = room.checked_sub(line.len() + LINE);
        if self.room.is_none() {
            let kept = MOST_OUTPUT >> 20;
            return self
                .warn(format!("the agent's own output is too much to be kept; the record has the first {kept} MiB"));
        }
        self.sink.send(Event::Output { stream: stream.to_owned(), text: line.to_owned() });
    }

    /// Answers a question from the case's `user_responses` and records both. `None`: no answer was prepared.
    pub fn ask(
        &mut self,
        call_id: Option<&str>,
        question: &str,
        options: &[String],
        multi_select: bool,
    ) -> Option<String> {
        let mut asked = Question {
            call_id: call_id.map(str::to_owned),
            question: question.to_owned(),
            options: options.to_vec(),
            multi_select,
            answer: None,
            response: None,
            undecided: None,
        };
        for warning in self.responder.answer(&mut asked) {
            self.warn(warning);
        }
        let answer = asked.answer.clone();
        let _ = self.record(Step::Question(asked));
        answer
    }

    /// Decides on a call that the agent's own rules did not allow. Nobody is there to say yes, so it is always no.
    pub fn permit(&mut self, call: &ToolCall) -> Decision {
        let message = format!("{} is not allowed here and nobody is there to allow it", call.raw_name);
        let _ = self.record(Step::PermissionDenied {
            tool: call.name.clone(),
            call_id: Some(call.id.clone()),
            message: message.clone(),
        });
        Decision::Deny(message)
    }

    /// Says what the trial waits for now, for `status` and for the idle warning.
    pub fn waiting(&mut self, on: &'static str) {
        if self.activity.waits_for(on) {
            self.sink.send(Event::Waiting { on: on.to_owned() });
        }
    }

    /// Something that looks wrong but decides nothing.
    pub fn warn(&mut self, warning: impl Into<String>) {
        let warning = warning.into();
        if self.warned.insert(warning.clone()) {
            self.warnings.push(warning);
        }
    }

    /// Resolves when the trial is to stop: the wall clock ran out or the run was cancelled.
    pub fn stopping(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut stop = self.stop.clone();
        async move {
            if stop.wait_for(|stop| *stop).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Whether a limit was hit, so that the agent must stop.
    pub fn is_over(&self) -> bool {
        self.ending.is_some()
    }

    /// How many more model turns the agent may begin.
    pub fn turns_left(&self) -> u64 {
        self.limits.turn_cap().map_or(u64::MAX, |most| most.saturating_sub(self.trace.turn_count() as u64))
    }

    /// True if a number of model turns stops the agent.
    pub fn has_turn_limit(&self) -> bool {
        self.limits.turn_cap().is_some()
    }

    /// Ends acting because the turns are used up, for agents that stop by themselves before the next turn.
    pub fn out_of_turns(&mut self) -> Ending {
        let limit = self.limits.turn_cap().unwrap_or(self.trace.turn_count() as u64);
        self.ending.get_or_insert(Ending::OutOfBudget { budget: Budget::Turns, limit: limit as f64 }).clone()
    }

    /// What was recorded so far.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// What is known of the cost beside the amount.
    pub fn bill(&self) -> Bill {
        self.pricing.bill()
    }

    /// Ends watching.
    pub fn into_parts(self) -> (Trace, Vec<usize>, Vec<String>) {
        let unused = self.responder.unused();
        (self.trace, unused, self.warnings)
    }

    fn exhausted(&self) -> Option<Ending> {
        if let Some(most) = self.limits.turn_cap().filter(|most| self.trace.turn_count() as u64 > *most) {
            return Some(Ending::OutOfBudget { budget: Budget::Turns, limit: most as f64 });
        }
        let counted = self.limits.counted(self.trace.usage);
        let known = counted.tokens;
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
        let on_the_way = self.pricing.estimate(self.on_the_way, self.trace.model.as_deref());
        let cost = match (counted.cost_usd, on_the_way) {
            (Some(settled), Some(more)) => Some(settled + more),
            (settled, more) => settled.or(more),
        };
        let over = self.limits.budgets.overruns(used, cost, None);
        over.first().map(|over| Ending::OutOfBudget { budget: over.budget, limit: over.limit })
    }
}

/// How much a step tells, in bytes, as far as it is the agent that decides.
fn size(step: &Step) -> usize {
    LINE + match step {
        Step::Text { text, .. } | Step::Thinking { text, .. } | Step::Notice { text, .. } => text.len(),
        Step::ToolCall(call) => weight(&call.input),
        Step::ToolResult(result) => result.content.len(),
        Step::Finished { text, result, .. } => text.as_ref().map_or(0, String::len) + result.as_ref().map_or(0, weight),
        _ => 0,
    }
}

/// How much a value tells, in bytes: about the length of its JSON, without writing it down.
fn weight(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => text.len(),
        Value::Array(items) => 2 + items.iter().map(weight).sum::<usize>(),
        Value::Object(entries) => 2 + entries.iter().map(|(key, value)| key.len() + weight(value)).sum::<usize>(),
    }
}

/// Whether a value in a step has more levels than a record can hold.
fn is_too_deep(step: &Step) -> bool {
    match step {
        Step::ToolCall(call) => has_more_levels(&call.input, MOST_LEVELS),
        Step::Finished { result: Some(result), .. } => has_more_levels(result, MOST_LEVELS),
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

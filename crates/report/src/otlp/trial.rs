//! The spans of one trial: the trial itself, each attempt of its agent, the model's turns, tool calls and judges.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use model::{Effect, Envelope, Event, Finding, Outcome, Status as Verdict, Step, Tokens, ToolCall, TrialRecord, Usage};
use serde_json::{Value, json};

use super::conventions as names;
use super::identifiers::span_id;
use crate::telemetry::message::{Attributes, LogRecord, Span, Status, nanoseconds};
use crate::terminal::fault_name;

/// Kinds of spans.
const INTERNAL: i32 = 1;
const CLIENT: i32 = 3;
/// Status of a span that ended with an error.
const ERROR: i32 = 2;
/// Severity of log records.
const INFO: i32 = 9;
/// Flags of a sampled span.
pub(super) const SAMPLED: u32 = 1;

/// Attributes that the spans of all trials share.
#[derive(Debug, Clone, Default)]
pub(super) struct RunContext {
    pub(super) run: Arc<str>,
    pub(super) trace: Vec<u8>,
    /// Span of the run.
    pub(super) span: Vec<u8>,
    /// Model that judges.
    pub(super) judge: Option<String>,
    /// True if spans contain messages, arguments and results.
    pub(super) content: bool,
}

/// Spans of a trial in progress.
#[derive(Default)]
pub(super) struct TrialSpans {
    context: RunContext,
    trial: Arc<str>,
    started: Timestamp,
    /// The first span is the trial itself.
    spans: Vec<Draft>,
    attempt: Option<Attempt>,
    /// Judge that is being asked.
    judging: Option<usize>,
    judges: Vec<usize>,
    /// Span that evaluations refer to.
    evaluated: usize,
}

/// Span in progress.
struct Draft {
    name: String,
    kind: i32,
    parent: Option<usize>,
    started: Timestamp,
    ended: Timestamp,
    attributes: Attributes,
    error: Option<String>,
}

/// Attempt in progress.
#[derive(Default)]
struct Attempt {
    span: usize,
    model: Option<String>,
    answered_by: Option<String>,
    version: Option<String>,
    session: Option<String>,
    usage: Usage,
    /// Turns, by model message and by the call that started the sub-agent.
    turns: HashMap<(String, Option<String>), Turn>,
    calls: HashMap<String, Call>,
    /// Start time of the next turn, by the call that started the sub-agent.
    idle_since: HashMap<Option<String>, Timestamp>,
    /// The user's messages, and the last answer.
    messages: Vec<Value>,
    answer: Option<String>,
}

struct Turn {
    span: usize,
    parts: Vec<Value>,
}

struct Call {
    span: usize,
    parent: Option<String>,
    is_open: bool,
}

impl TrialSpans {
    pub(super) fn new(context: &RunContext, trial: &Arc<str>, at: Timestamp) -> Self {
        let mut spans = Self { context: context.clone(), trial: Arc::clone(trial), started: at, ..Self::default() };
        spans.open(String::new(), INTERNAL, None, at);
        spans
    }

    /// Adds an event of the trial.
    pub(super) fn add(&mut self, envelope: &Envelope) {
        let at = envelope.at;
        if let Some(judge) = self.judging.take() {
            self.spans[judge].ended = at;
        }
        match &envelope.event {
            Event::TrialStarted { agent, model, .. } => {
                self.close_attempt(at);
                self.open_attempt(agent, model.as_deref(), envelope.attempt.unwrap_or(1), at);
            }
            Event::SandboxReady { .. } => {
                if let Some(attempt) = &mut self.attempt {
                    // The agent starts now.
                    self.spans[attempt.span].started = at;
                    attempt.idle_since.insert(None, at);
                }
            }
            Event::Step(step) => self.step(step, at),
            Event::Waiting { on } if on == "collecting" => self.close_attempt(at),
            Event::Waiting { on } if on == "judge" => self.judge(at),
            Event::Collected(_) | Event::TrialRetried { .. } => self.close_attempt(at),
            _ => {}
        }
    }

    /// Opens a span and returns its number.
    fn open(&mut self, name: String, kind: i32, parent: Option<usize>, at: Timestamp) -> usize {
        let attributes = Attributes::default();
        self.spans.push(Draft { name, kind, parent, started: at, ended: at, attributes, error: None });
        self.spans.len() - 1
    }

    /// Opens the span of an operation of the GenAI conventions. Its name consists of the operation and `of`.
    fn operate(&mut self, operation: &str, of: Option<&str>, kind: i32, parent: usize, at: Timestamp) -> usize {
        let name = of.map_or(operation.to_owned(), |of| format!("{operation} {of}"));
        let span = self.open(name, kind, Some(parent), at);
        self.spans[span].attributes.put(names::OPERATION, operation);
        span
    }

    fn open_attempt(&mut self, agent: &str, model: Option<&str>, number: u32, at: Timestamp) {
        let span = self.operate(names::INVOKE_AGENT, Some(agent), INTERNAL, 0, at);
        let attributes = &mut self.spans[span].attributes;
        attributes.put(names::AGENT_NAME, agent);
        attributes.put(names::ATTEMPT, u64::from(number));
        self.evaluated = span;
        self.attempt = Some(Attempt {
            span,
            model: model.map(str::to_owned),
            idle_since: HashMap::from([(None, at)]),
            ..Attempt::default()
        });
    }

    /// Closes the attempt, and the calls that have no result.
    fn close_attempt(&mut self, at: Timestamp) {
        let Some(attempt) = self.attempt.take() else { return };
        for call in attempt.calls.values().filter(|call| call.is_open) {
            self.spans[call.span].ended = at;
        }
        if self.context.content {
            for turn in attempt.turns.values() {
                let attributes = &mut self.spans[turn.span].attributes;
                attributes.put(names::OUTPUT_MESSAGES, &*message("assistant", &turn.parts));
            }
        }
        let span = &mut self.spans[attempt.span];
        span.ended = at;
        let attributes = &mut span.attributes;
        put_model(attributes, attempt.model.as_deref().or(attempt.answered_by.as_deref()));
        attributes.put_some(names::RESPONSE_MODEL, attempt.answered_by.as_deref());
        attributes.put_some(names::AGENT_VERSION, attempt.version.as_deref());
        attributes.put_some(names::CONVERSATION, attempt.session.as_deref());
        put_usage(attributes, attempt.usage);
        if self.context.content {
            attributes.put(names::INPUT_MESSAGES, &*Value::from(attempt.messages).to_string());
            if let Some(answer) = attempt.answer {
                attributes.put(names::OUTPUT_MESSAGES, &*message("assistant", &[text_part(&answer)]));
            }
        }
    }

    fn judge(&mut self, at: Timestamp) {
        let model = self.context.judge.clone();
        let name = model.as_deref().map(names::model_name);
        let span = self.operate(names::CHAT, name, CLIENT, 0, at);
        let attributes = &mut self.spans[span].attributes;
        attributes.put(names::AGENT_NAME, "judge");
        put_model(attributes, model.as_deref());
        self.judging = Some(span);
        self.judges.push(span);
    }

    fn step(&mut self, step: &Step, at: Timestamp) {
        // An agent may still write after its conversation is over.
        let Some(mut attempt) = self.attempt.take() else { return };
        self.spans[attempt.span].ended = at;
        match step {
            Step::Session { session_id, model, agent_version, .. } => {
                let keep = |kept: &mut Option<String>, described: &Option<String>| {
                    if kept.is_none() {
                        kept.clone_from(described);
                    }
                };
                keep(&mut attempt.session, session_id);
                keep(&mut attempt.answered_by, model);
                keep(&mut attempt.version, agent_version);
            }
            Step::UserMessage { text, .. } => {
                attempt.idle_since.insert(None, at);
                if self.context.content {
                    attempt.messages.push(json!({ "role": "user", "parts": [text_part(text)] }));
                }
            }
            Step::Text { message, text, parent } => {
                self.turn(&mut attempt, message, parent.as_ref(), at, || text_part(text));
            }
            Step::Thinking { message, text, parent } => {
                let part = || json!({ "type": "reasoning", "content": text });
                self.turn(&mut attempt, message, parent.as_ref(), at, part);
            }
            Step::ToolCall(call) => self.call(&mut attempt, call, at),
            Step::ToolResult(result) => {
                if let Some(call) = attempt.calls.get_mut(&result.id).filter(|call| call.is_open) {
                    call.is_open = false;
                    let span = &mut self.spans[call.span];
                    span.ended = at;
                    if result.is_error {
                        span.error = Some(String::new());
                        span.attributes.put(names::ERROR_TYPE, "tool_error");
                    }
                    if self.context.content {
                        span.attributes.put(names::TOOL_RESULT, &*result.content);
                    }
                    attempt.idle_since.insert(call.parent.clone(), at);
                }
            }
            Step::Finished { usage, text, .. } => {
                attempt.usage += *usage;
                if let Some(text) = text.as_ref().filter(|text| self.context.content && !text.is_empty()) {
                    attempt.answer = Some(text.clone());
                }
            }
            _ => {}
        }
        self.attempt = Some(attempt);
    }

    /// Extends the turn of a model message until now, or adds it. A turn starts when the agent could first query the
    /// model.
    fn turn(
        &mut self,
        attempt: &mut Attempt,
        message: &str,
        parent: Option<&String>,
        at: Timestamp,
        part: impl FnOnce() -> Value,
    ) {
        let key = (message.to_owned(), parent.cloned());
        if !attempt.turns.contains_key(&key) {
            let started_by = parent.and_then(|parent| attempt.calls.get(parent)).map(|call| call.span);
            let above = started_by.unwrap_or(attempt.span);
            let since = attempt.idle_since.get(&key.1).copied();
            let model = attempt.answered_by.clone().or_else(|| attempt.model.clone());
            let name = model.as_deref().map(names::model_name);
            let started = since.unwrap_or(self.spans[above].started);
            let span = self.operate(names::CHAT, name, CLIENT, above, started);
            put_model(&mut self.spans[span].attributes, model.as_deref());
            attempt.turns.insert(key.clone(), Turn { span, parts: Vec::new() });
        }
        if let Some(turn) = attempt.turns.get_mut(&key) {
            self.spans[turn.span].ended = at;
            if self.context.content {
                turn.parts.push(part());
            }
        }
        attempt.idle_since.insert(key.1, at);
    }

    fn call(&mut self, attempt: &mut Attempt, call: &ToolCall, at: Timestamp) {
        let part = || json!({ "type": "tool_call", "id": call.id, "name": call.raw_name, "arguments": call.input });
        self.turn(attempt, &call.message, call.parent.as_ref(), at, part);
        let above = call.parent.as_ref().and_then(|parent| attempt.calls.get(parent)).map(|call| call.span);
        let above = above.unwrap_or(attempt.span);
        let span = self.operate(names::EXECUTE_TOOL, Some(&call.raw_name), INTERNAL, above, at);
        let attributes = &mut self.spans[span].attributes;
        attributes.put(names::TOOL_NAME, &*call.raw_name);
        attributes.put(names::TOOL_TYPE, "function");
        attributes.put(names::TOOL_CALL, &*call.id);
        if call.name != call.raw_name {
            attributes.put(names::CANONICAL_TOOL, &*call.name);
        }
        if call.effect == Effect::Skill {
            attributes.put_some(names::SKILL_NAME, call.key_argument().as_deref());
        }
        if self.context.content {
            attributes.put(names::TOOL_ARGUMENTS, &*call.input.to_string());
        }
        attempt.calls.insert(call.id.clone(), Call { span, parent: call.parent.clone(), is_open: true });
    }

    /// Ends the trial. Returns its spans, and a log record for each finding.
    pub(super) fn finish(mut self, record: &TrialRecord, at: Timestamp) -> (Vec<Span>, Vec<LogRecord>) {
        self.close_attempt(at);
        if let Some(judge) = self.judging.take() {
            self.spans[judge].ended = at;
        }
        let trial = &mut self.spans[0];
        trial.name = format!("{}::{}", record.suite, record.case);
        trial.started = self.started.min(at);
        trial.ended = at;
        describe(record, &mut trial.attributes);
        let is_bad = matches!(record.outcome, Outcome::Failed | Outcome::Broken) && !record.is_baseline();
        trial.error = is_bad.then(|| record.reason.clone().unwrap_or_default());
        if let ([judge], Some(used)) = (self.judges.as_slice(), record.judge) {
            put_usage(&mut self.spans[*judge].attributes, used.usage());
        }
        let logs = record.findings.iter().map(|finding| self.evaluation(finding, at)).collect();
        let (context, trial) = (self.context, self.trial);
        let id = |number: usize| span_id(&context.run, &trial, number + 1);
        let spans = self.spans.into_iter().enumerate().map(|(number, draft)| Span {
            trace_id: context.trace.clone(),
            span_id: id(number),
            parent_span_id: draft.parent.map_or(context.span.clone(), id),
            name: draft.name,
            kind: draft.kind,
            start_time_unix_nano: nanoseconds(draft.started),
            end_time_unix_nano: nanoseconds(draft.ended.max(draft.started)),
            attributes: draft.attributes.0,
            status: draft.error.map(|message| Status { message, code: ERROR }),
            flags: SAMPLED,
        });
        (spans.collect(), logs)
    }

    /// Returns the result of an assertion. It belongs to the agent's last attempt.
    fn evaluation(&self, finding: &Finding, at: Timestamp) -> LogRecord {
        let mut attributes = Attributes::default();
        attributes.put(names::EVALUATION_NAME, &*finding.id);
        attributes.put_some(names::SCORE_VALUE, finding.score);
        let label = match finding.status {
            Verdict::Met => Some("pass"),
            Verdict::Unmet => Some("fail"),
            Verdict::Undecided => None,
        };
        attributes.put_some(names::SCORE_LABEL, label);
        attributes.put(names::EXPLANATION, &*finding.reason);
        if finding.status == Verdict::Undecided {
            attributes.put(names::ERROR_TYPE, "undecided");
        }
        attributes.put(names::ASSERTION_TYPE, &*finding.kind);
        attributes.put(names::ASSERTION_WEIGHT, finding.weight);
        attributes.put(names::JUDGED, finding.judged);
        attributes.put(names::TRIAL_ID, &*self.trial);
        LogRecord {
            time_unix_nano: nanoseconds(at),
            observed_time_unix_nano: nanoseconds(at),
            severity_number: INFO,
            attributes: attributes.0,
            flags: SAMPLED,
            trace_id: self.context.trace.clone(),
            span_id: span_id(&self.context.run, &self.trial, self.evaluated + 1),
            event_name: names::EVALUATION_RESULT.to_owned(),
        }
    }
}

/// Adds the attributes of a finished trial.
fn describe(record: &TrialRecord, attributes: &mut Attributes) {
    attributes.put(names::SUITE_NAME, &*record.suite);
    attributes.put(names::CASE_NAME, &*format!("{}::{}", record.suite, record.case));
    let status = match record.outcome {
        Outcome::Passed => Some("pass"),
        Outcome::Failed => Some("fail"),
        _ => None,
    };
    attributes.put_some(names::CASE_STATUS, status);
    attributes.put(names::TRIAL_ID, &*record.id);
    attributes.put(names::TRIAL_OUTCOME, record.outcome.name());
    attributes.put(names::TRIAL_ARM, &*record.arm);
    attributes.put(names::TRIAL_REPETITION, record.repetition);
    attributes.put(names::TRIAL_FLAKY, record.flaky);
    attributes.put(names::TRIAL_BASELINE, record.is_baseline());
    attributes.put_some(names::TRIAL_SCORE, record.score);
    attributes.put_some(names::TRIAL_MAX_SCORE, record.max_score);
    attributes.put_some(names::COST, record.cost_usd);
    attributes.put_some(names::CODE_FILE, record.file.as_deref());
    attributes.put_some(names::CODE_LINE, record.line.map(|line| line as u64));
    if record.outcome == Outcome::Broken {
        attributes.put(names::ERROR_TYPE, record.fault.map_or("broken", fault_name));
    } else if record.outcome == Outcome::Failed {
        attributes.put(names::ERROR_TYPE, "assertion");
    }
}

fn put_model(attributes: &mut Attributes, model: Option<&str>) {
    attributes.put_some(names::PROVIDER, model.and_then(names::provider));
    attributes.put_some(names::REQUEST_MODEL, model.map(names::model_name));
}

fn put_usage(attributes: &mut Attributes, usage: Usage) {
    if let Some(Tokens { cache_read, cache_write, output, reasoning, .. }) = usage.tokens {
        attributes.put_some(names::INPUT_TOKENS, usage.tokens.map(|tokens| tokens.all_input()));
        attributes.put(names::CACHE_READ_TOKENS, cache_read);
        attributes.put(names::CACHE_WRITE_TOKENS, cache_write);
        attributes.put(names::OUTPUT_TOKENS, output);
        attributes.put_some(names::REASONING_TOKENS, reasoning);
    }
    attributes.put_some(names::COST, usage.cost_usd);
}

fn text_part(text: &str) -> Value {
    json!({ "type": "text", "content": text })
}

/// Returns a message as JSON in the form that the conventions define.
fn message(role: &str, parts: &[Value]) -> String {
    json!([{ "role": role, "parts": parts, "finish_reason": "stop" }]).to_string()
}

//! Trials in the form of the report.

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::{
    AnsweredQuestion, Aside, AttemptRecord, CallRecord, Ending, Fault, FileChange, Limits, Outcome, Phases,
    SideEffects, SkillInfo, Tokens, TrialRecord,
};
use serde::Serialize;
use serde_json::{Map, Value};

use super::finding::FindingFields;
use crate::{agent_output, score};

/// Returns a trial as JSON, with the field names of the report.
pub fn trial_json(record: &TrialRecord) -> Value {
    serde_json::to_value(Trial::of(record)).unwrap_or(Value::Null)
}

/// Tokens with their sum.
#[derive(Serialize)]
pub(super) struct TokenUsage {
    #[serde(flatten)]
    tokens: Tokens,
    total: u64,
}

pub(super) fn token_usage(tokens: Tokens) -> TokenUsage {
    TokenUsage { tokens, total: tokens.total() }
}

/// Returns the tokens of requests to models other than the agent's.
pub(super) fn usage_of(aside: Option<Aside>) -> Option<TokenUsage> {
    aside?.tokens.map(token_usage)
}

/// JSON form of a trial. Fields that only other kinds of suites fill are present and empty, so that a reader needs only
/// one form.
#[derive(Serialize)]
pub(super) struct Trial<'a> {
    id: &'a str,
    suite: &'a str,
    case: &'a str,
    title: Option<&'a str>,
    arm: &'a str,
    agent: &'a str,
    model: Option<&'a str>,
    variant: Option<&'a str>,
    repetition: u64,
    outcome: Outcome,
    undecided: usize,
    decided_pass: Option<bool>,
    flaky: bool,
    fault: Option<Fault>,
    because: Option<&'a str>,
    ending: Option<&'a Ending>,
    score: Option<f64>,
    max_score: Option<f64>,
    pass_score: Option<f64>,
    failed_critical: Vec<&'a str>,
    dimensions: Map<String, Value>,
    findings: Vec<FindingFields<'a>>,
    scores: &'a BTreeMap<String, f64>,
    input: Input<'a>,
    answer: Option<&'a str>,
    output: Option<&'a Value>,
    expected: Option<&'a Value>,
    reason: Option<&'a Value>,
    script: Option<&'a str>,
    tools: &'a [Value],
    vars: Option<&'a Map<String, Value>>,
    messages: &'a [Value],
    not: bool,
    position: Option<usize>,
    turns: Vec<Turn<'a>>,
    turn_count: usize,
    tool_calls: &'a [CallRecord],
    questions: &'a [AnsweredQuestion],
    usage: Option<TokenUsage>,
    cost_usd: Option<f64>,
    cost_usd_cli: Option<f64>,
    cost_source: Option<&'a str>,
    triggered: Option<bool>,
    should_trigger: Option<bool>,
    side_effects: &'a [SideEffects],
    judge_usage: Option<TokenUsage>,
    judge_cost_usd: Option<f64>,
    user_usage: Option<TokenUsage>,
    user_cost_usd: Option<f64>,
    duration_ms: u64,
    agent_ms: Option<u64>,
    phases: Phases,
    started_at: Timestamp,
    session_id: Option<&'a str>,
    agent_version: Option<&'a str>,
    auth: Option<&'a str>,
    skill: Option<&'a SkillInfo>,
    limits: &'a Limits,
    settings: &'a Map<String, Value>,
    attempts: Vec<Attempt<'a>>,
    files_changed: &'a [FileChange],
    sandbox: Option<&'a str>,
    errors: &'a [String],
    warnings: &'a [String],
}

impl<'a> Trial<'a> {
    pub(super) fn of(record: &'a TrialRecord) -> Self {
        let from_agent = record.cost_source.as_deref() == Some("agent");
        Self {
            id: &record.id,
            suite: &record.suite,
            case: &record.case,
            title: record.title.as_deref(),
            arm: &record.arm,
            agent: &record.agent,
            model: record.model.as_deref(),
            variant: record.variant.as_deref(),
            repetition: record.repetition,
            outcome: record.outcome,
            undecided: record.undecided(),
            decided_pass: record.decided_pass(),
            flaky: record.flaky,
            fault: record.fault,
            because: record.because.as_deref(),
            ending: record.ending.as_ref(),
            score: record.score,
            max_score: record.max_score,
            pass_score: record.pass_score,
            failed_critical: score::failed_critical(&record.findings),
            dimensions: dimensions(record),
            findings: record.findings.iter().map(FindingFields::of).collect(),
            scores: &record.scores,
            input: Input::of(record),
            answer: record.answer.as_deref(),
            output: agent_output::output(record),
            expected: record.expected.as_ref(),
            reason: agent_output::reason(record),
            script: record.script.as_deref(),
            tools: &record.tools,
            vars: record.vars.as_ref(),
            messages: agent_output::messages(record).unwrap_or_default(),
            not: record.not,
            position: record.position,
            turns: turns(record),
            turn_count: record.turn_count,
            tool_calls: &record.tool_calls,
            questions: &record.questions,
            usage: record.usage.map(token_usage),
            cost_usd: record.cost_usd,
            // If the agent's own figure is the one that counts, it is stored once.
            cost_usd_cli: record.cost_usd_cli.or(record.cost_usd.filter(|_| from_agent)),
            cost_source: record.cost_source.as_deref(),
            triggered: record.triggered,
            should_trigger: record.should_trigger,
            side_effects: &record.side_effects,
            judge_usage: usage_of(record.judge),
            judge_cost_usd: record.judge.and_then(|judge| judge.cost_usd),
            user_usage: usage_of(record.user),
            user_cost_usd: record.user.and_then(|user| user.cost_usd),
            duration_ms: record.duration_ms,
            agent_ms: record.agent_ms,
            phases: record.phases,
            started_at: record.started_at,
            session_id: record.session_id.as_deref(),
            agent_version: record.agent_version.as_deref(),
            auth: record.auth.as_deref(),
            skill: record.skill.as_ref(),
            limits: &record.limits,
            settings: &record.settings,
            attempts: record.attempts.iter().map(Attempt::of).collect(),
            files_changed: &record.files_changed,
            sandbox: record.sandbox.as_deref(),
            errors: &record.errors,
            warnings: &record.warnings,
        }
    }
}

/// The value that the message was made from, if there is one, else the user's messages.
#[derive(Serialize)]
#[serde(untagged)]
enum Input<'a> {
    Value(&'a Value),
    Messages(&'a [String]),
}

impl<'a> Input<'a> {
    fn of(record: &'a TrialRecord) -> Self {
        agent_output::some(record.input_value.as_ref()).map_or(Self::Messages(&record.input), Self::Value)
    }
}

fn dimensions(record: &TrialRecord) -> Map<String, Value> {
    score::dimensions(&record.findings).into_iter().map(|(name, share)| (name.to_owned(), share.into())).collect()
}

/// A message of the user and the reply to it.
#[derive(Serialize)]
struct Turn<'a> {
    message: &'a str,
    answer: Option<&'a str>,
    latency_ms: Option<u64>,
    first_token_ms: Option<u64>,
}

fn turns(record: &TrialRecord) -> Vec<Turn<'_>> {
    // The record stores a single answer only once.
    let only = record.answer.as_deref().filter(|_| record.replies.len() == 1);
    record
        .input
        .iter()
        .zip(&record.replies)
        .map(|(message, reply)| Turn {
            message,
            answer: reply.answer.as_deref().or(only),
            latency_ms: reply.latency_ms,
            first_token_ms: reply.first_token_ms,
        })
        .collect()
}

#[derive(Serialize)]
struct Attempt<'a> {
    outcome: Outcome,
    because: Option<&'a str>,
    answer: Option<&'a str>,
    usage: Option<TokenUsage>,
    cost_usd: Option<f64>,
    duration_ms: u64,
}

impl<'a> Attempt<'a> {
    fn of(attempt: &'a AttemptRecord) -> Self {
        Self {
            outcome: attempt.outcome,
            because: attempt.because.as_deref(),
            answer: attempt.answer.as_deref(),
            usage: attempt.usage.map(token_usage),
            cost_usd: attempt.cost_usd,
            duration_ms: attempt.duration_ms,
        }
    }
}

//! A trial as the report tells it.

use jiff::Timestamp;
use model::{
    AnsweredQuestion, AttemptRecord, CallRecord, Capture, Claim, Ending, Excerpt, Fault, FileChange, Finding, Limits,
    Outcome, Position, SkillInfo, Status, TrialRecord,
};
use serde::Serialize;
use serde_json::{Map, Value};

/// A trial by the report's names.
pub fn trial_json(record: &TrialRecord) -> Value {
    serde_json::to_value(Trial::of(record)).unwrap_or(Value::Null)
}

#[derive(Serialize)]
pub(super) struct Used {
    pub(super) input: u64,
    pub(super) cache_read: u64,
    pub(super) cache_write: u64,
    pub(super) output: u64,
    pub(super) reasoning: Option<u64>,
    pub(super) total: u64,
}

/// Fields that only other kinds of suites fill are there and empty, so that a reader needs one form only.
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
    flaky: bool,
    fault: Option<Fault>,
    because: Option<&'a str>,
    ending: Option<&'a Ending>,
    score: Option<f64>,
    max_score: Option<f64>,
    pass_score: Option<f64>,
    failed_critical: [&'static str; 0],
    dimensions: Map<String, Value>,
    findings: Vec<Found<'a>>,
    scores: Map<String, Value>,
    input: &'a [String],
    answer: Option<&'a str>,
    expected: Option<Value>,
    reason: Option<&'static str>,
    script: Option<Value>,
    tools: Option<Value>,
    vars: Option<Value>,
    messages: [Value; 0],
    turn_count: usize,
    tool_calls: &'a [CallRecord],
    questions: &'a [AnsweredQuestion],
    usage: Option<Used>,
    cost_usd: Option<f64>,
    cost_usd_cli: Option<f64>,
    cost_source: Option<&'a str>,
    judge_usage: Option<Used>,
    judge_cost_usd: Option<f64>,
    duration_ms: u64,
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
            flaky: record.flaky,
            fault: record.fault,
            because: record.because.as_deref(),
            ending: record.ending.as_ref(),
            score: record.score,
            max_score: record.max_score,
            pass_score: record.pass_score,
            failed_critical: [],
            dimensions: Map::new(),
            findings: record.findings.iter().map(Found::of).collect(),
            scores: Map::new(),
            input: &record.input,
            answer: record.answer.as_deref(),
            expected: None,
            reason: None,
            script: None,
            tools: None,
            vars: None,
            messages: [],
            turn_count: record.turn_count,
            tool_calls: &record.tool_calls,
            questions: &record.questions,
            usage: record.usage.as_ref().map(Used::of),
            cost_usd: record.cost_usd,
            cost_usd_cli: record.cost_usd.filter(|_| from_agent),
            cost_source: record.cost_source.as_deref(),
            judge_usage: None,
            judge_cost_usd: None,
            duration_ms: record.duration_ms,
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

#[derive(Serialize)]
struct Found<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    title: Option<&'a str>,
    status: Status,
    claim: Claim,
    method: Option<&'static str>,
    score: Option<f64>,
    weight: f64,
    critical: bool,
    dimension: Option<&'static str>,
    because: &'a str,
    expected: Option<&'a str>,
    actual: Option<&'a str>,
    evidence: &'a [String],
    error: Option<&'a str>,
    latency_ms: Option<u64>,
    captures: &'a [Capture],
    source: Option<&'a Excerpt>,
    at: Option<Position>,
    key: Option<&'static str>,
    details: [Value; 0],
    implicit: bool,
}

impl<'a> Found<'a> {
    fn of(finding: &'a Finding) -> Self {
        Self {
            id: &finding.id,
            kind: &finding.kind,
            title: finding.title.as_deref(),
            status: finding.status,
            claim: finding.claim,
            method: None,
            score: finding.score,
            weight: finding.weight,
            critical: false,
            dimension: None,
            because: &finding.because,
            expected: finding.expected.as_deref(),
            actual: finding.actual.as_deref(),
            evidence: &finding.evidence,
            error: finding.error.as_deref(),
            latency_ms: None,
            captures: &finding.captures,
            source: finding.source.as_ref(),
            at: finding.at,
            key: None,
            details: [],
            implicit: finding.implicit,
        }
    }
}

#[derive(Serialize)]
struct Attempt<'a> {
    outcome: Outcome,
    because: Option<&'a str>,
    usage: Option<Used>,
    cost_usd: Option<f64>,
    duration_ms: u64,
}

impl<'a> Attempt<'a> {
    fn of(attempt: &'a AttemptRecord) -> Self {
        Self {
            outcome: attempt.outcome,
            because: attempt.because.as_deref(),
            usage: attempt.usage.as_ref().map(Used::of),
            cost_usd: attempt.cost_usd,
            duration_ms: attempt.duration_ms,
        }
    }
}

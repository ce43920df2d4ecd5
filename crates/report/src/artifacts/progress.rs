//! `progress.jsonl`: the progress of a run, one object per line, with the field names of agent-skill-eval. Unknown
//! fields are omitted.

use std::collections::HashSet;

use jiff::Timestamp;
use model::{HookRecord, OnBudget, Outcome, RunInfo, Status, TrialId, TrialRecord, Usage};
use serde_json::{Map, Value, json};

use super::run::{one_skill, rounded};
use super::trial::{assertions, budget_reason, iteration, pass_rate, with_skill};

/// Returns a line: the event, its time, and its fields.
pub(super) fn line(event: &str, at: Timestamp, began: Timestamp, fields: &[&Value]) -> Vec<u8> {
    let mut all = Map::new();
    all.insert("event".into(), json!(event));
    all.insert("ts".into(), json!(at.strftime("%Y-%m-%dT%H:%M:%S+00:00").to_string()));
    all.insert("elapsed_s".into(), json!(seconds(began, at)));
    for (name, value) in fields.iter().filter_map(|fields| fields.as_object()).flatten() {
        if !value.is_null() {
            all.insert(name.clone(), value.clone());
        }
    }
    let mut bytes = serde_json::to_vec(&all).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

/// Returns the time between two timestamps, in seconds with one decimal.
pub(super) fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    rounded(to.duration_since(from).as_secs_f64().max(0.0), 1)
}

/// Returns the fields of `suite_started`.
pub(super) fn suite_started(info: &RunInfo) -> Value {
    let mut known = HashSet::new();
    let ids = info.trials.iter().map(|trial| &*trial.case).filter(|case| known.insert(*case));
    let ids: Vec<&str> = ids.collect();
    let agents: Vec<&str> = info.agents.iter().map(|agent| agent.name.as_str()).collect();
    json!({
        "skill": one_skill(info),
        "iteration": iteration(info),
        "run_id": info.id,
        "total_runs": info.trials.len(),
        "eval_ids": ids,
        "agents": agents,
    })
}

/// Returns the fields that identify the trial of an event.
pub(super) fn identity(id: &TrialId, agent: &str, has_skill: bool) -> Value {
    json!({
        "eval_id": id.case, "agent": agent, "with_skill": has_skill, "run_index": id.repetition,
        "suite": id.suite, "arm": id.arm,
    })
}

/// Returns the same fields for a record.
pub(super) fn identity_of(record: &TrialRecord) -> Value {
    json!({
        "eval_id": record.case, "agent": record.agent, "with_skill": with_skill(record),
        "run_index": record.repetition, "suite": record.suite, "arm": record.arm,
    })
}

/// Returns the fields of `agent_finished`.
pub(super) fn agent_finished(duration_s: f64, usage: Usage) -> Value {
    let tokens = usage.tokens;
    json!({
        "duration_s": duration_s,
        "input_tokens": tokens.map(|tokens| tokens.all_input()),
        "cached_tokens": tokens.map(|tokens| tokens.cache_read),
        "non_cached_input_tokens": tokens.map(|tokens| tokens.input + tokens.cache_write),
        "output_tokens": tokens.map(|tokens| tokens.output),
        "reasoning_output_tokens": tokens.and_then(|tokens| tokens.reasoning),
        "total_tokens": tokens.map(|tokens| tokens.total()),
        "cost_usd": usage.cost_usd,
    })
}

/// Returns the last event of a trial and its fields.
pub(super) fn ended(record: &TrialRecord) -> (&'static str, Value) {
    match record.outcome {
        Outcome::Broken | Outcome::Stale => ("run_error", json!({ "error": record.reason })),
        Outcome::Skipped | Outcome::Cancelled => ("run_skipped", json!({ "reason": record.reason })),
        Outcome::Passed | Outcome::Failed | Outcome::Undecided => {
            let count = |status: Status| assertions(record).filter(|finding| finding.status == status).count();
            let (passed, failed) = (count(Status::Met), count(Status::Unmet));
            let fields = json!({
                "duration_s": rounded(record.duration_ms as f64 / 1000.0, 1),
                "outcome": record.outcome.name(),
                "pass_rate": pass_rate(passed, failed),
                "passed": passed,
                "total": assertions(record).count(),
                "total_tokens": record.usage.map(|tokens| tokens.total()),
                "budget_exceeded": budget_reason(record).is_some(),
            });
            ("run_finished", fields)
        }
    }
}

/// Returns the fields of `budget_exceeded`; `None` if no budget was exceeded.
pub(super) fn budget_exceeded(record: &TrialRecord) -> Option<Value> {
    let action = match record.limits.on_budget {
        OnBudget::Warn => "warn",
        OnBudget::Fail => "fail",
        OnBudget::Stop => "stop-suite",
    };
    Some(json!({ "label": record.id, "reason": budget_reason(record)?, "action": action }))
}

/// Returns the fields of `hook_finished`.
pub(super) fn hook_finished(record: &HookRecord) -> Value {
    json!({
        "hook": record.hook.name(),
        "command": record.command,
        "exit_code": record.exit_code,
        "timed_out": record.timed_out,
        "error": record.error,
    })
}

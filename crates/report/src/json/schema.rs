//! JSON Schema of the report, for editors and for programs that validate their input.

mod arm;

use serde_json::{Map, Value, json};

use super::SCHEMA;
use arm::{arm, case_delta, delta, suite_delta, trigger};

/// Returns the JSON Schema of the JSON report. Fields may be added, so a reader must not reject unknown ones.
pub fn report_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": SCHEMA,
        "description": "A recorded run. Unknown numbers are null, never 0.",
        "type": "object",
        "properties": {
            "schema": { "const": SCHEMA },
            "run": reference("run"),
            "summary": reference("summary"),
            "arms": list(reference("arm")),
            "deltas": about(list(reference("delta")), "effect of the skill on each agent and model"),
            "hooks": reference("hooks"),
            "trials": list(reference("trial")),
        },
        "required": ["schema", "run", "summary", "arms", "deltas", "hooks", "trials"],
        "$defs": {
            "run": run(),
            "agent": object(json!({
                "name": text(),
                "version": maybe("string"),
                "model": maybe("string"),
                "reasoning_effort": maybe("string"),
                "base_url": maybe("string"),
            })),
            "skill": object(json!({ "name": text(), "version": maybe("string"), "content_hash": text() })),
            "tokens": object(json!({
                "input": count(),
                "cache_read": count(),
                "cache_write": count(),
                "output": count(),
                "reasoning": maybe("integer"),
                "total": count(),
            })),
            "outcome": { "enum": ["passed", "failed", "undecided", "broken", "skipped", "cancelled"] },
            "estimate": object(json!({
                "mean": number(),
                "stddev": maybe("number"),
                "ci95": interval(),
            })),
            "summary": summary(),
            "arm": arm(),
            "at_k": object(json!({
                "k": count(),
                "value": number(),
                "cases": about(count(), "cases with at least k decided trials"),
            })),
            "trigger": trigger(),
            "delta": delta(),
            "suite_delta": suite_delta(),
            "case_delta": case_delta(),
            "case_figures": object(json!({
                "trials": about(count(), "graded trials"),
                "decided": about(count(), "graded trials in which every assertion was decided"),
                "passed": about(count(), "decided trials that passed"),
                "pass_rate": maybe("number"),
            })),
            "hooks": object(json!({
                "pre_run": list(reference("hook")),
                "post_grade": list(reference("hook")),
                "post_run": list(reference("hook")),
            })),
            "hook": object(json!({
                "trial": about(maybe("string"), "id of the trial that it ran for"),
                "command": text(),
                "exit_code": maybe("integer"),
                "timed_out": { "type": "boolean" },
                "error": about(maybe("string"), "error that prevented it from completing"),
                "stdout": text(),
                "stderr": text(),
                "duration_ms": count(),
            })),
            "side_effect": object_and(json!({
                "remote": text(),
                "branches": list(text()),
                "review_requests": list(count()),
            }), json!({
                "commits": {
                    "type": "object",
                    "additionalProperties": text(),
                    "description": "branch → commit that it points to after the trial",
                },
                "added": { "type": "boolean", "description": "true if the trial added the remote" },
            })),
            "trial": trial(),
            "finding": finding(),
            "detail": detail(),
            "failure": failure(),
            "excerpt": object(json!({
                "file": text(),
                "line": count(),
                "column": count(),
                "length": count(),
                "text": text(),
            })),
            "attempt": object(json!({
                "outcome": reference("outcome"),
                "because": maybe("string"),
                "answer": maybe("string"),
                "usage": optional("tokens"),
                "cost_usd": maybe("number"),
                "duration_ms": count(),
            })),
        },
    })
}

fn run() -> Value {
    object(json!({
        "id": text(),
        "label": maybe("string"),
        "regrade_of": maybe("string"),
        "started_at": time(),
        "finished_at": { "type": ["string", "null"], "format": "date-time" },
        "duration_ms": maybe("integer"),
        "signal": maybe("string"),
        "planned": about(count(), "planned trials, including the baseline"),
        "trialrun_version": text(),
        "settings": { "type": "object" },
        "agents": list(reference("agent")),
        "skills": list(reference("skill")),
    }))
}

fn summary() -> Value {
    object(json!({
        "trials": about(count(), "trials with an outcome, excluding the baseline"),
        "baseline": about(count(), "trials of the baseline: the agent without the skill"),
        "passed": count(),
        "failed": count(),
        "undecided": count(),
        "passed_but_undecided": about(count(), "undecided trials in which everything that was decided passes"),
        "broken": count(),
        "skipped": count(),
        "cancelled": count(),
        "flaky": count(),
        "pass_rate": about(maybe("number"), "share of `decided_trials` that passed; passed / (passed + failed) if nothing is undecided"),
        "decided_trials": about(count(), "graded trials in which every assertion was decided"),
        "decided_pass_rate": about(maybe("number"), "share of graded trials in which everything that was decided passes"),
        "tokens": about(optional("tokens"), "tokens of the agents in all attempts, including the baseline"),
        "cost_usd": about(maybe("number"), "cost of these tokens"),
        "trials_with_cost": about(count(), "trials whose cost is known, including the baseline"),
        "baseline_tokens": about(optional("tokens"), "part of `tokens` that the baseline used"),
        "baseline_cost_usd": about(maybe("number"), "part of `cost_usd` that the baseline cost"),
        "judge_usage": about(optional("tokens"), "tokens of judges"),
        "judge_cost_usd": about(maybe("number"), "cost of these tokens"),
        "user_usage": about(optional("tokens"), "tokens of models that play users"),
        "user_cost_usd": about(maybe("number"), "cost of these tokens"),
    }))
}

fn trial() -> Value {
    object(json!({
        "id": text(),
        "suite": text(),
        "case": text(),
        "title": maybe("string"),
        "arm": text(),
        "agent": text(),
        "model": maybe("string"),
        "variant": maybe("string"),
        "repetition": count(),
        "outcome": reference("outcome"),
        "undecided": about(count(), "findings that were not decided, or only in part"),
        "decided_pass": {
            "type": ["boolean", "null"],
            "description": "true if everything that was decided passes; null if no assertion was decided",
        },
        "flaky": { "type": "boolean" },
        "fault": { "enum": ["environment", "provider", "harness", "judge", "test", null] },
        "because": maybe("string"),
        "ending": { "type": ["object", "null"] },
        "score": about(maybe("number"), "Σ weight · score over decided findings"),
        "max_score": about(maybe("number"), "Σ weight over decided findings, or the maximum that the case sets"),
        "pass_score": { "type": ["number", "null"], "description": "score required to pass; null without scoring" },
        "failed_critical": {
            "type": "array",
            "items": text(),
            "description": "paths of critical parts that failed",
        },
        "dimensions": {
            "type": "object",
            "additionalProperties": number(),
            "description": "dimension → weighted mean of its scores, 0 to 1",
        },
        "findings": list(reference("finding")),
        "scores": {
            "type": "object",
            "additionalProperties": number(),
            "description": "name → number that code recorded with `score(name, value)`",
        },
        "input": { "description": "value that the message was made from, if there is one; else the list of messages" },
        "answer": maybe("string"),
        "output": { "description": "output of the agent, if it is more than text" },
        "expected": { "description": "expected output of the case" },
        "reason": { "description": "reason that the agent gave in its output" },
        "script": maybe("string"),
        "tools": { "type": "array" },
        "vars": { "type": ["object", "null"] },
        "messages": { "type": "array", "description": "messages that the agent returned with its output" },
        "not": { "type": "boolean", "description": "true if the trial passes when its assertions do not hold" },
        "position": {
            "type": ["integer", "null"],
            "minimum": 0,
            "description": "position of the case in its file, for formats that count cases",
        },
        "turns": about(
            list(object(json!({
                "message": text(),
                "answer": maybe("string"),
                "latency_ms": maybe("integer"),
                "first_token_ms": maybe("integer"),
            }))),
            "messages of the user with their replies",
        ),
        "turn_count": count(),
        "tool_calls": list(json!({
            "type": "object",
            "properties": {
                "name": text(),
                "raw_name": text(),
                "input": {},
                "result": maybe("string"),
                "is_error": { "type": "boolean" },
                "turn": count(),
                "parent": text(),
            },
            "required": ["name", "raw_name", "input", "result", "is_error", "turn"],
        })),
        "questions": list(object(json!({ "question": text(), "answer": maybe("string") }))),
        "usage": about(optional("tokens"), "tokens of the agent"),
        "cost_usd": about(maybe("number"), "cost of these tokens"),
        "cost_usd_cli": about(maybe("number"), "cost that the agent reported"),
        "cost_source": about(maybe("string"), "source of `cost_usd`"),
        "triggered": {
            "type": ["boolean", "null"],
            "description": "true if the agent used the skill under test; null without a skill",
        },
        "should_trigger": { "type": ["boolean", "null"], "description": "true if the agent should have used it" },
        "side_effects": about(list(reference("side_effect")), "changes that the trial left on remotes"),
        "judge_usage": about(optional("tokens"), "tokens of judges"),
        "judge_cost_usd": about(maybe("number"), "cost of these tokens"),
        "user_usage": about(optional("tokens"), "tokens of the model that plays the user"),
        "user_cost_usd": about(maybe("number"), "cost of these tokens"),
        "duration_ms": about(count(), "total time, from creating the sandbox to the outcome"),
        "agent_ms": about(maybe("integer"), "working time of the agent, which `max_duration` limits and comparisons use"),
        "phases": object(json!({
            "provision_ms": count(),
            "act_ms": count(),
            "collect_ms": count(),
            "grade_ms": count(),
            "hooks_ms": count(),
        })),
        "started_at": time(),
        "session_id": maybe("string"),
        "agent_version": maybe("string"),
        "auth": maybe("string"),
        "skill": optional("skill"),
        "limits": object_and(json!({
            "max_turns": count(),
            "max_turns_set": { "type": "boolean" },
            "token_budget": maybe("number"),
            "token_budget_from": maybe("string"),
            "timeout_ms": count(),
            "timeout_from": maybe("string"),
        }), json!({
            "budgets": object(json!({
                "input": maybe("number"),
                "non_cached_input": maybe("number"),
                "output": maybe("number"),
                "reasoning": maybe("number"),
                "cost_usd": maybe("number"),
                "duration_ms": maybe("number"),
            })),
            "on_budget": { "enum": ["warn", "fail", "stop"] },
        })),
        "settings": { "type": "object" },
        "attempts": list(reference("attempt")),
        "files_changed": list(object(json!({ "path": text(), "change": { "enum": ["added", "modified", "deleted"] } }))),
        "sandbox": maybe("string"),
        "errors": list(text()),
        "warnings": list(text()),
    }))
}

fn finding() -> Value {
    object(json!({
        "id": text(),
        "type": text(),
        "title": maybe("string"),
        "status": status(),
        "claim": { "enum": ["declared", "observed"] },
        "method": { "type": ["string", "null"], "description": "`judge` if a model decides" },
        "score": maybe("number"),
        "weight": number(),
        "critical": { "type": "boolean" },
        "dimension": maybe("string"),
        "because": text(),
        "expected": maybe("string"),
        "actual": maybe("string"),
        "evidence": list(text()),
        "error": maybe("string"),
        "latency_ms": maybe("integer"),
        "captures": list(object(json!({
            "field": text(),
            "value": text(),
            "shown_chars": count(),
            "step": maybe("integer"),
        }))),
        "source": optional("excerpt"),
        "at": { "anyOf": [{ "type": "null" }, object(json!({ "turn": maybe("integer"), "call": maybe("integer") }))] },
        "key": maybe("string"),
        "details": list(reference("detail")),
        "failures": list(reference("failure")),
        "implicit": { "type": "boolean" },
    }))
}

fn detail() -> Value {
    object(json!({
        "key": text(),
        "title": maybe("string"),
        "dimension": maybe("string"),
        "critical": { "type": "boolean" },
        "weight": { "type": "number", "description": "share of the part above it; below 0 for a penalty" },
        "score": { "type": "number", "description": "0 to 1" },
        "status": status(),
        "details": list(reference("detail")),
    }))
}

fn failure() -> Value {
    object(json!({
        "key": text(),
        "message": text(),
        "expected": {},
        "actual": {},
        "diff": list(object(json!({ "part": { "enum": ["same", "missing", "extra"] }, "text": text() }))),
        "critical": { "type": "boolean" },
        "source": optional("excerpt"),
    }))
}

fn interval() -> Value {
    json!({ "type": ["array", "null"], "items": number() })
}

fn status() -> Value {
    json!({ "enum": ["met", "unmet", "undecided"] })
}

/// Returns the schema of an object in which all of these fields are required.
fn object(properties: Value) -> Value {
    let names: Vec<Value> =
        properties.as_object().map(Map::keys).into_iter().flatten().map(|name| name.clone().into()).collect();
    Map::from_iter([
        ("type".to_owned(), "object".into()),
        ("properties".to_owned(), properties),
        ("required".to_owned(), names.into()),
    ])
    .into()
}

/// Returns the schema of an object in which all of `properties` are required, and `others` are optional.
fn object_and(properties: Value, others: Value) -> Value {
    let mut object = object(properties);
    if let (Some(known), Value::Object(others)) = (object["properties"].as_object_mut(), others) {
        known.extend(others);
    }
    object
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

fn optional(name: &str) -> Value {
    json!({ "anyOf": [{ "type": "null" }, reference(name)] })
}

fn list(item: Value) -> Value {
    Map::from_iter([("type".to_owned(), "array".into()), ("items".to_owned(), item)]).into()
}

/// Returns `schema` with a description.
fn about(mut schema: Value, text: &str) -> Value {
    if let Some(map) = schema.as_object_mut() {
        map.insert("description".to_owned(), text.into());
    }
    schema
}

fn maybe(kind: &str) -> Value {
    json!({ "type": [kind, "null"] })
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn time() -> Value {
    json!({ "type": "string", "format": "date-time" })
}

fn number() -> Value {
    json!({ "type": "number" })
}

fn count() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

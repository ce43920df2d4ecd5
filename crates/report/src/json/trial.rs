//! Trials in the form that the report uses.

use model::{AttemptRecord, AuxiliaryUsage, Tokens, TrialRecord};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::finding::FindingFields;
use crate::{agent_output, score};

/// Returns a trial as JSON, with the field names of the report.
pub fn trial_json(record: &TrialRecord) -> Value {
    serde_json::to_value(Trial(record)).unwrap_or(Value::Null)
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
pub(super) fn usage_of(usage: Option<AuxiliaryUsage>) -> Option<TokenUsage> {
    usage?.tokens.map(token_usage)
}

/// JSON form of a trial. Fields that only other kinds of suites use are present but empty, so that readers have to
/// handle only one form.
pub(super) struct Trial<'a>(pub(super) &'a TrialRecord);

impl Serialize for Trial<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let record = self.0;
        let from_agent = record.cost_source.as_deref() == Some("agent");
        let mut fields = serializer.serialize_map(None)?;
        fields.serialize_entry("id", &record.id)?;
        fields.serialize_entry("suite", &record.suite)?;
        fields.serialize_entry("case", &record.case)?;
        fields.serialize_entry("title", &record.title)?;
        fields.serialize_entry("tags", &record.tags)?;
        fields.serialize_entry("quarantine", &record.quarantine)?;
        fields.serialize_entry("arm", &record.arm)?;
        fields.serialize_entry("agent", &record.agent)?;
        fields.serialize_entry("model", &record.model)?;
        fields.serialize_entry("variant", &record.variant)?;
        fields.serialize_entry("repetition", &record.repetition)?;
        fields.serialize_entry("auto_trials", &record.auto_trials)?;
        fields.serialize_entry("outcome", &record.outcome)?;
        fields.serialize_entry("undecided", &record.undecided())?;
        fields.serialize_entry("decided_pass", &record.decided_pass())?;
        fields.serialize_entry("flaky", &record.flaky)?;
        fields.serialize_entry("fault", &record.fault)?;
        fields.serialize_entry("because", &record.reason)?;
        fields.serialize_entry("ending", &record.ending)?;
        fields.serialize_entry("score", &record.score)?;
        fields.serialize_entry("max_score", &record.max_score)?;
        fields.serialize_entry("pass_score", &record.pass_score)?;
        fields.serialize_entry("failed_critical", &score::failed_critical(&record.findings))?;
        fields.serialize_entry("dimensions", &dimensions(record))?;
        fields.serialize_entry("findings", &record.findings.iter().map(FindingFields).collect::<Vec<_>>())?;
        fields.serialize_entry("scores", &record.scores)?;
        fields.serialize_entry("input", &Input::new(record))?;
        fields.serialize_entry("answer", &record.answer)?;
        fields.serialize_entry("output", &agent_output::output(record))?;
        fields.serialize_entry("expected", &record.expected)?;
        fields.serialize_entry("reason", &agent_output::reason(record))?;
        fields.serialize_entry("script", &record.script)?;
        fields.serialize_entry("tools", &record.tools)?;
        fields.serialize_entry("vars", &record.vars)?;
        fields.serialize_entry("messages", &agent_output::messages(record).unwrap_or_default())?;
        fields.serialize_entry("not", &record.not)?;
        fields.serialize_entry("position", &record.position)?;
        fields.serialize_entry("turns", &turns(record))?;
        fields.serialize_entry("turn_count", &record.turn_count)?;
        fields.serialize_entry("tool_calls", &record.tool_calls)?;
        if record.calls_unreported {
            fields.serialize_entry("calls_unreported", &true)?;
        }
        fields.serialize_entry("questions", &record.questions)?;
        fields.serialize_entry("usage", &record.usage.map(token_usage))?;
        fields.serialize_entry("cost_usd", &record.cost_usd)?;
        // If the agent's own figure is the one that counts, it is stored only once.
        fields.serialize_entry("cost_usd_cli", &record.cost_usd_cli.or(record.cost_usd.filter(|_| from_agent)))?;
        fields.serialize_entry("cost_source", &record.cost_source)?;
        fields.serialize_entry("triggered", &record.triggered)?;
        fields.serialize_entry("should_trigger", &record.should_trigger)?;
        fields.serialize_entry("side_effects", &record.side_effects)?;
        fields.serialize_entry("judge_sampled", &record.judge_sampled)?;
        fields.serialize_entry("judge_usage", &usage_of(record.judge))?;
        fields.serialize_entry("judge_cost_usd", &record.judge.and_then(|judge| judge.cost_usd))?;
        fields.serialize_entry("user_usage", &usage_of(record.user))?;
        fields.serialize_entry("user_cost_usd", &record.user.and_then(|user| user.cost_usd))?;
        fields.serialize_entry("duration_ms", &record.duration_ms)?;
        fields.serialize_entry("agent_ms", &record.agent_ms)?;
        fields.serialize_entry("phases", &record.phases)?;
        fields.serialize_entry("started_at", &record.started_at)?;
        fields.serialize_entry("session_id", &record.session_id)?;
        fields.serialize_entry("agent_version", &record.agent_version)?;
        fields.serialize_entry("auth", &record.auth)?;
        fields.serialize_entry("skill", &record.skill)?;
        fields.serialize_entry("limits", &record.limits)?;
        fields.serialize_entry("settings", &record.settings)?;
        fields.serialize_entry("attempts", &record.attempts.iter().map(Attempt).collect::<Vec<_>>())?;
        // Most sandboxes do not record attempts to reach hosts.
        if let Some(network) = &record.network {
            fields.serialize_entry("network", network)?;
            fields.serialize_entry("egress", &record.egress)?;
        }
        if !record.injected_faults.is_empty() {
            fields.serialize_entry("injected_faults", &record.injected_faults)?;
        }
        if !record.mock_calls.is_empty() {
            fields.serialize_entry("mock_calls", &record.mock_calls)?;
        }
        if let Some(traffic) = &record.model_traffic {
            fields.serialize_entry("model_traffic", traffic)?;
        }
        if let Some(cassette) = &record.cassette {
            fields.serialize_entry("cassette", cassette)?;
        }
        fields.serialize_entry("files_changed", &record.files_changed)?;
        fields.serialize_entry("integrity", &record.integrity)?;
        fields.serialize_entry("sandbox", &record.sandbox)?;
        fields.serialize_entry("errors", &record.errors)?;
        fields.serialize_entry("warnings", &record.warnings)?;
        fields.end()
    }
}

/// The value that the message was rendered from, if there is one, otherwise the user's messages.
#[derive(Serialize)]
#[serde(untagged)]
enum Input<'a> {
    Value(&'a Value),
    Messages(&'a [String]),
}

impl<'a> Input<'a> {
    fn new(record: &'a TrialRecord) -> Self {
        agent_output::some(record.input_value.as_ref()).map_or(Self::Messages(&record.input), Self::Value)
    }
}

fn dimensions(record: &TrialRecord) -> Map<String, Value> {
    score::dimensions(&record.findings).into_iter().map(|(name, share)| (name.to_owned(), share.into())).collect()
}

/// A message from the user and the reply to it.
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

/// JSON form of an attempt.
struct Attempt<'a>(&'a AttemptRecord);

impl Serialize for Attempt<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_map(None)?;
        fields.serialize_entry("outcome", &self.0.outcome)?;
        fields.serialize_entry("because", &self.0.reason)?;
        fields.serialize_entry("answer", &self.0.answer)?;
        fields.serialize_entry("usage", &self.0.usage.map(token_usage))?;
        fields.serialize_entry("cost_usd", &self.0.cost_usd)?;
        fields.serialize_entry("duration_ms", &self.0.duration_ms)?;
        fields.end()
    }
}

//! The agent's structured result, if it returned more than text, split into the parts that reports show.

use model::TrialRecord;
use serde_json::Value;

/// Keys under which an output gives its reason, from most to least specific.
const REASONS: [&str; 7] = ["thinking", "reasonings", "reasoning", "reasons", "reason", "explanations", "explanation"];

/// Returns the output; `None` if the agent gave only text, or no output at all.
pub(crate) fn output(record: &TrialRecord) -> Option<&Value> {
    record.result.as_ref()?.get("output")
}

/// Returns the agent's own reason, which may be `null`.
pub(crate) fn reason(record: &TrialRecord) -> Option<&Value> {
    reason_of(output(record)?)
}

/// Returns the agent's own reason in its output: the first of the usual keys that is present.
pub fn reason_of(output: &Value) -> Option<&Value> {
    let output = output.as_object()?;
    REASONS.iter().find_map(|name| output.get(*name))
}

/// Returns the messages next to the output; `None` if there is no list of them.
pub(crate) fn messages(record: &TrialRecord) -> Option<&[Value]> {
    record.result.as_ref()?.get("messages")?.as_array().map(Vec::as_slice)
}

/// Returns a value that is not `null`. A record does not distinguish `null` from a missing value.
pub(crate) fn some(value: Option<&Value>) -> Option<&Value> {
    value.filter(|value| !value.is_null())
}

//! What the agent gave, where that is more than text, by the parts that reports name.

use model::TrialRecord;
use serde_json::Value;

/// Keys under which an output says why it is as it is, the most telling first.
const REASONS: [&str; 7] = ["thinking", "reasonings", "reasoning", "reasons", "reason", "explanations", "explanation"];

/// The output; absent where nothing but text was given, or no output at all.
pub(crate) fn output(record: &TrialRecord) -> Option<&Value> {
    record.result.as_ref()?.get("output")
}

/// The agent's own reason, `null` if that is what it says.
pub(crate) fn reason(record: &TrialRecord) -> Option<&Value> {
    reason_of(output(record)?)
}

/// The agent's own reason in what it gave: the first of the usual keys that is there.
pub fn reason_of(output: &Value) -> Option<&Value> {
    let output = output.as_object()?;
    REASONS.iter().find_map(|name| output.get(*name))
}

/// The messages it gave beside its output; absent where it gave no list of them.
pub(crate) fn messages(record: &TrialRecord) -> Option<&[Value]> {
    record.result.as_ref()?.get("messages")?.as_array().map(Vec::as_slice)
}

/// A value that was given. A recorded `null` cannot be told from none.
pub(crate) fn some(value: Option<&Value>) -> Option<&Value> {
    value.filter(|value| !value.is_null())
}

//! Large types of the model as JSON, compiled here without optimisation: in the tests of a crate that is optimised in debug
//! builds, they take 12 s of CPU time.

use model::{Event, TrialRecord};
use serde_json::Value;

/// Returns an event as JSON.
pub fn of_event(event: &Event) -> String {
    serde_json::to_string(event).expect("an event is JSON")
}

/// Returns a record as JSON.
pub fn of_record(record: &TrialRecord) -> String {
    serde_json::to_string(record).expect("a record is JSON")
}

/// Reads a record.
///
/// # Panics
/// Panics if a field is missing or wrong.
pub fn record(value: Value) -> TrialRecord {
    serde_json::from_value(value).expect("a record")
}

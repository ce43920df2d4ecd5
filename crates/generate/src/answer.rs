//! Answers from models, as data.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads an answer, which must be an object.
///
/// # Errors
/// Returns a description of the problem.
pub(crate) fn read<T: DeserializeOwned>(value: &Value) -> Result<T, String> {
    let kind = match value {
        Value::Object(_) => return serde_json::from_value(value.clone()).map_err(|error| error.to_string()),
        Value::Array(_) => "a list",
        Value::String(_) => "a string",
        Value::Null => "null",
        Value::Bool(_) | Value::Number(_) => "a single value",
    };
    Err(format!("it must be a JSON object, not {kind}"))
}

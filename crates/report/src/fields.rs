//! Helpers for JSON objects whose fields may be omitted.

use serde::Serialize;
use serde_json::{Map, Value};

/// Adds a field.
pub(crate) fn put(fields: &mut Map<String, Value>, name: &str, value: impl Serialize) {
    // Serialising fails only for maps whose keys are not strings, and there are none.
    fields.insert(name.to_owned(), serde_json::to_value(value).unwrap_or_default());
}

/// Adds a field if it has a value.
pub(crate) fn put_some(fields: &mut Map<String, Value>, name: &str, value: Option<impl Serialize>) {
    if let Some(value) = value {
        put(fields, name, value);
    }
}

/// Adds a list, unless it is empty.
pub(crate) fn put_list<T: Serialize>(fields: &mut Map<String, Value>, name: &str, values: Vec<T>) {
    if !values.is_empty() {
        put(fields, name, values);
    }
}

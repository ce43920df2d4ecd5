//! Deserialisation of optional values that distinguishes null from absent.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Deserialises fields of type `Option<Value>` that are omitted when absent.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use crate::Failure;

    #[test]
    fn a_found_null_is_distinguished_from_an_absent_value() {
        let read = |text: &str| serde_json::from_str::<Failure>(text).unwrap();
        assert_eq!(read(r#"{"key":"a","message":"m","expected":null}"#).expected, Some(serde_json::Value::Null));
        assert_eq!(read(r#"{"key":"a","message":"m"}"#).expected, None);
    }
}

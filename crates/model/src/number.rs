//! Numbers in JSON that are not known exactly.

use serde_json::{Number, Value};

/// 2^63, above which neither kind of 64-bit integer has room for all numbers.
const LEAST: f64 = 9_223_372_036_854_775_808.0;

/// Returns a number in `value` of which JSON readers keep only about 17 digits, because it needs more than 64 bits.
pub fn rounded_number(value: &Value) -> Option<&Number> {
    let is_rounded = |number: &Number| number.is_f64() && number.as_f64().is_some_and(|number| number.abs() >= LEAST);
    match value {
        Value::Number(number) => Some(number).filter(|number| is_rounded(number)),
        Value::Array(items) => items.iter().find_map(rounded_number),
        Value::Object(entries) => entries.values().find_map(rounded_number),
        Value::Null | Value::Bool(_) | Value::String(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_more_than_64_bits_are_found_at_any_depth() {
        let json = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        for text in ["18446744073709551616", "-9223372036854775809", "{\"a\": [1, 123456789012345678901234567890]}"] {
            assert!(rounded_number(&json(text)).is_some(), "{text}");
        }
        for text in ["18446744073709551615", "-9223372036854775808", "1.5e9", "[\"123456789012345678901234567890\"]"] {
            assert!(rounded_number(&json(text)).is_none(), "{text}");
        }
    }
}

//! Values with numbers of more than 64 bits: JSON readers keep only their first digits, and others could stand for them.

use jsonschema::Validator;
use model::rounded_number;
use serde_json::{Number, Value};

use super::SchemaError;

/// Keyword about the last digits of a number, in which even its nearest neighbours can agree.
const OF_DIGITS: &str = "multipleOf";

/// Returns the reason if the digits that are not known determine whether `value` is valid. `errors` are those of the
/// digits that are known.
pub(super) fn doubt(validator: &Validator, document: &Value, value: &Value, errors: &[SchemaError]) -> Option<String> {
    let number = rounded_number(value)?;
    let is_of_digits = mentions(document, OF_DIGITS) && errors.iter().all(|error| error.keyword == OF_DIGITS);
    let differs = |direction: f64| validator.is_valid(&neighbour(value, direction, &mut 0.0)) != errors.is_empty();
    (is_of_digits || differs(1.0) || differs(-1.0)).then(|| {
        format!(
            "the value has a number of more than 64 bits (about {number}), whose digits are not known; ids of that \
             length must be strings"
        )
    })
}

/// Returns `value` with neighbours of its rounded numbers, each at another distance: equal ones can be different numbers.
fn neighbour(value: &Value, direction: f64, distance: &mut f64) -> Value {
    match value {
        Value::Number(number) if rounded_number(value).is_some() => {
            *distance += 2.0 * f64::EPSILON;
            let near = number.as_f64().map(|float| float * (1.0 + direction * *distance));
            near.and_then(Number::from_f64).map_or_else(|| value.clone(), Value::Number)
        }
        Value::Array(items) => items.iter().map(|item| neighbour(item, direction, distance)).collect(),
        Value::Object(entries) => {
            let near = |(key, value): (&String, &Value)| (key.clone(), neighbour(value, direction, distance));
            Value::Object(entries.iter().map(near).collect())
        }
        other => other.clone(),
    }
}

fn mentions(document: &Value, keyword: &str) -> bool {
    match document {
        Value::Object(map) => map.iter().any(|(key, value)| key == keyword || mentions(value, keyword)),
        Value::Array(items) => items.iter().any(|item| mentions(item, keyword)),
        _ => false,
    }
}

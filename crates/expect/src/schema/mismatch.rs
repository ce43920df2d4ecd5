//! Translates the library's errors into the terms of the user's schema.

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::paths::{Location, LocationSegment};
use jsonschema::{ValidationError, Validator};
use serde_json::Value;

use super::SchemaError;
use super::describe::{counted, joined, kind_of, must_be_one_of, shown};
use super::undecided::give_up;
use super::vocabulary::{PATTERN, keyword};

/// Maximum number of alternatives in `anyOf` and `oneOf` that are explained.
const EXPLAINED: usize = 3;

/// Returns all errors that `validator`, which is compiled from `document`, finds in `value`.
pub(super) fn all(validator: &Validator, document: &Value, value: &Value) -> Vec<SchemaError> {
    let mut found = Vec::new();
    for error in validator.iter_errors(value) {
        let path = path(error.instance_path(), value);
        let (keyword, expected) = asked(&error, document);
        for message in messages(&error, value) {
            found.push(SchemaError {
                path: path.clone(),
                keyword: keyword.clone(),
                message,
                expected: expected.clone(),
            });
        }
    }
    found
}

/// Returns the violated keyword and its value. A part with an `$id` is found by the end of its path.
fn asked(error: &ValidationError<'_>, document: &Value) -> (String, Value) {
    if matches!(error.kind(), ValidationErrorKind::FalseSchema) {
        return (String::new(), Value::Bool(false));
    }
    let path = error.schema_path();
    let names: Vec<String> = path.into_iter().map(|segment| segment.to_string()).collect();
    let keyword = names.iter().rev().find(|name| *name == PATTERN || keyword(name).is_some());
    let keyword = keyword.map_or("", |name| name.trim_start_matches("check:"));
    (keyword.to_owned(), document.pointer(path.as_str()).cloned().unwrap_or_default())
}

/// Returns the path as `a.b[0]`.
fn path(location: &Location, value: &Value) -> String {
    let mut path = String::new();
    let mut at = Some(value);
    for segment in location {
        match (segment, at) {
            (LocationSegment::Index(index), Some(Value::Array(items))) => {
                path.push_str(&format!("[{index}]"));
                at = items.get(index);
            }
            (segment, _) => {
                let key = segment.to_string();
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(&key);
                at = at.and_then(|at| at.get(&key));
            }
        }
    }
    path
}

/// Returns one message for each error in `whole`.
pub(super) fn messages(error: &ValidationError<'_>, whole: &Value) -> Vec<String> {
    let value = error.instance();
    let one = |text: String| vec![text];
    let each = |names: &[String]| names.iter().map(|name| format!("must not have `{name}`")).collect();
    match error.kind() {
        ValidationErrorKind::Custom { message, .. } => one(message.clone()),
        ValidationErrorKind::BacktrackLimitExceeded { .. } | ValidationErrorKind::RegexEngineFailure { .. } => {
            give_up(error.to_string());
            Vec::new()
        }
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => each(unexpected),
        ValidationErrorKind::AdditionalItems { limit } => {
            one(format!("must not have more than {}", counted(*limit as u64, "item")))
        }
        ValidationErrorKind::UnevaluatedItems { unexpected } => {
            one(format!("must not have the items {}", unexpected.join(", ")))
        }
        ValidationErrorKind::Required { property } => {
            one(format!("must have `{}`", property.as_str().unwrap_or_default()))
        }
        ValidationErrorKind::Type { kind } => one(format!("must be {}, not {}", types(kind), kind_of(value))),
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            one(format!("must match one of {} alternatives: {}", context.len(), alternatives(context, whole)))
        }
        ValidationErrorKind::OneOfMultipleValid { context } => {
            let valid = context.iter().filter(|errors| errors.is_empty()).count();
            one(format!("must match exactly one of {} alternatives, not {valid}", context.len()))
        }
        ValidationErrorKind::PropertyNames { error } => {
            let name = error.instance().as_str().unwrap_or_default().to_owned();
            one(format!("must not have a property called `{name}`: the name {}", messages(error, whole).join(", ")))
        }
        ValidationErrorKind::FalseSchema => one("must not be there".to_owned()),
        ValidationErrorKind::Contains => one("must have the required number of items that match".to_owned()),
        ValidationErrorKind::Not { .. } => one(format!("must not match: {} is excluded", shown(value))),
        ValidationErrorKind::UniqueItems => one("must not have the same item twice".to_owned()),
        kind => one(limit(kind, value).unwrap_or_else(|| error.to_string())),
    }
}

/// Returns the message for a keyword that compares the value with a limit.
fn limit(kind: &ValidationErrorKind, value: &Value) -> Option<String> {
    let shown_value = shown(value);
    let length = || value.as_str().map_or(0, |text| text.chars().count());
    let count = || value.as_array().map_or(0, Vec::len);
    let size = || value.as_object().map_or(0, serde_json::Map::len);
    Some(match kind {
        ValidationErrorKind::Constant { expected_value } => {
            format!("must be {}, not {shown_value}", shown(expected_value))
        }
        ValidationErrorKind::Enum { options } => {
            format!("{}, not {shown_value}", must_be_one_of(options.as_array().map_or(&[], Vec::as_slice)))
        }
        ValidationErrorKind::Minimum { limit } => format!("must be at least {limit}, not {shown_value}"),
        ValidationErrorKind::Maximum { limit } => format!("must be at most {limit}, not {shown_value}"),
        ValidationErrorKind::ExclusiveMinimum { limit } => format!("must be more than {limit}, not {shown_value}"),
        ValidationErrorKind::ExclusiveMaximum { limit } => format!("must be less than {limit}, not {shown_value}"),
        ValidationErrorKind::MultipleOf { multiple_of } => {
            format!("must be a multiple of {multiple_of}, not {shown_value}")
        }
        ValidationErrorKind::MinLength { limit } => {
            format!("must have at least {}, not {}", counted(*limit, "character"), length())
        }
        ValidationErrorKind::MaxLength { limit } => {
            format!("must have at most {}, not {}", counted(*limit, "character"), length())
        }
        ValidationErrorKind::MinItems { limit } => {
            format!("must have at least {}, not {}", counted(*limit, "item"), count())
        }
        ValidationErrorKind::MaxItems { limit } => {
            format!("must have at most {}, not {}", counted(*limit, "item"), count())
        }
        ValidationErrorKind::MinProperties { limit } => {
            format!("must have at least {}, not {}", counted(*limit, "property"), size())
        }
        ValidationErrorKind::MaxProperties { limit } => {
            format!("must have at most {}, not {}", counted(*limit, "property"), size())
        }
        _ => return None,
    })
}

/// Returns the first error of each alternative.
fn alternatives(context: &[Vec<ValidationError<'static>>], whole: &Value) -> String {
    let mut described: Vec<String> = context
        .iter()
        .enumerate()
        .filter_map(|(index, errors)| {
            let error = errors.first()?;
            let place = path(error.instance_path(), whole);
            let message = messages(error, whole).into_iter().next()?;
            let place = if place.is_empty() { String::new() } else { format!("`{place}` ") };
            Some(format!("({}) {place}{message}", index + 1))
        })
        .take(EXPLAINED)
        .collect();
    if context.len() > described.len() {
        described.push("…".to_owned());
    }
    described.join("; ")
}

fn types(kind: &TypeKind) -> String {
    let named = |name: String| match name.as_str() {
        "object" | "array" | "integer" => format!("an {name}"),
        "null" => name,
        _ => format!("a {name}"),
    };
    match kind {
        TypeKind::Single(one) => named(one.to_string()),
        TypeKind::Multiple(many) => {
            let names: Vec<String> = many.iter().map(|one| named(one.to_string())).collect();
            joined(&names, "or")
        }
    }
}

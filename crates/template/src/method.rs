//! Methods of values: `text.upper()`, `map.items()`.

use crate::error::TemplateError;
use crate::filter::{pairs, title};
use crate::operation::{Call, Operation, named as find, names, operation, text};
use crate::value::{Entries, Value};

/// Methods of strings.
pub(crate) const TEXT: &[Operation] = &[
    text("upper", str::to_uppercase),
    text("lower", str::to_lowercase),
    text("title", title),
    text("strip", |text| text.trim().to_owned()),
    text("lstrip", |text| text.trim_start().to_owned()),
    text("rstrip", |text| text.trim_end().to_owned()),
    operation("split(sep, maxsplit)", 0, split),
    operation("startswith(text)", 1, |call| {
        Ok(Value::Bool(call.text()?.starts_with(call.text_argument(0)?.unwrap_or_default())))
    }),
    operation("endswith(text)", 1, |call| {
        Ok(Value::Bool(call.text()?.ends_with(call.text_argument(0)?.unwrap_or_default())))
    }),
];

/// Methods of maps.
pub(crate) const MAP: &[Operation] = &[
    operation("get(name, default)", 1, |call| {
        let name = call.text_argument(0)?.unwrap_or_default();
        let found = entries(call)?.into_iter().find(|(key, _)| **key == *name);
        Ok(found.map_or_else(|| call.value(1).clone(), |(_, value)| value))
    }),
    operation("items", 0, |call| pairs(entries(call)?)),
    operation("keys", 0, |call| Value::list(entries(call)?.into_iter().map(|(name, _)| Value::Text(name)).collect())),
    operation("values", 0, |call| Value::list(entries(call)?.into_iter().map(|(_, value)| value).collect())),
];

/// Returns the method called `name` of `value`.
pub(crate) fn named(value: &Value, name: &str) -> Result<&'static Operation, TemplateError> {
    let methods = match value {
        Value::Text(_) => TEXT,
        Value::Map(_) | Value::Namespace(_) => MAP,
        _ => &[],
    };
    find(methods, name).ok_or_else(|| {
        let error = TemplateError::new(format!("{} has no method named `{name}`", value.kind()));
        error.suggest("methods", name, names(methods))
    })
}

fn entries(call: &Call<'_>) -> Result<Entries, TemplateError> {
    call.operand.entries().ok_or_else(|| call.not_for("a map"))
}

fn split(call: &Call<'_>) -> Result<Value, TemplateError> {
    let text = call.text()?;
    let most = call.whole_argument(1)?.and_then(|most| usize::try_from(most).ok());
    let parts: Vec<Value> = match call.text_argument(0)? {
        Some("") => return Err(TemplateError::new("`split` needs a separator that is not empty")),
        Some(separator) => {
            let most = most.map_or(usize::MAX, |most| most.saturating_add(1));
            text.splitn(most, separator).map(Value::text).collect()
        }
        None => words(text, most.unwrap_or(usize::MAX)).into_iter().map(Value::text).collect(),
    };
    Value::list(parts)
}

/// Splits `text` into at most `most` words, followed by the rest as one string.
fn words(text: &str, most: usize) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        if words.len() >= most {
            words.push(rest);
            break;
        }
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        words.push(&rest[..end]);
        rest = rest[end..].trim_start();
    }
    words
}

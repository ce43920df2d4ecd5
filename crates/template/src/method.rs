//! Methods of values: `text.upper()`, `map.items()`.

use crate::error::TemplateError;
use crate::filter::{pairs, title};
use crate::operation::{self, Call, Operation, plain};
use crate::value::{Entries, Value};

/// Methods of texts.
pub(crate) const TEXT: &[Operation] = &[
    plain("upper", "The string in upper case.", "{{ 'abc'.upper() }}", "ABC", |call| {
        Ok(Value::text(&call.text()?.to_uppercase()))
    }),
    plain("lower", "The string in lower case.", "{{ 'ABC'.lower() }}", "abc", |call| {
        Ok(Value::text(&call.text()?.to_lowercase()))
    }),
    plain(
        "title",
        "The string with the first letter of each word in upper case.",
        "{{ 'alice in'.title() }}",
        "Alice In",
        |call| Ok(Value::text(&title(call.text()?))),
    ),
    plain("strip", "The string without whitespace at both ends.", "{{ ' a '.strip() }}", "a", |call| {
        Ok(Value::text(call.text()?.trim()))
    }),
    plain("lstrip", "The string without leading whitespace.", "{{ ' a'.lstrip() }}", "a", |call| {
        Ok(Value::text(call.text()?.trim_start()))
    }),
    plain("rstrip", "The string without trailing whitespace.", "{{ 'a '.rstrip() }}", "a", |call| {
        Ok(Value::text(call.text()?.trim_end()))
    }),
    plain(
        "split",
        "The parts of the string between separators, as a list; by default, between whitespace. It splits \
         at most `maxsplit` times.",
        "{{ 'a-b-c'.split('-', 1) }}",
        "a,b-c",
        split,
    )
    .takes(0, &["sep", "maxsplit"], "split(sep, maxsplit)"),
    plain("startswith", "True if the string starts with `text`.", "{{ 'abc'.startswith('ab') }}", "true", |call| {
        Ok(Value::Bool(call.text()?.starts_with(call.text_argument(0)?.unwrap_or_default())))
    })
    .takes(1, &["text"], "startswith(text)"),
    plain("endswith", "True if the string ends with `text`.", "{{ 'abc'.endswith('bc') }}", "true", |call| {
        Ok(Value::Bool(call.text()?.ends_with(call.text_argument(0)?.unwrap_or_default())))
    })
    .takes(1, &["text"], "endswith(text)"),
];

/// Methods of maps.
pub(crate) const MAP: &[Operation] = &[
    plain(
        "get",
        "The value of a key; the default, or null, if it does not exist.",
        "{{ {'a': 1}.get('b', 2) }}",
        "2",
        |call| {
            let name = call.text_argument(0)?.unwrap_or_default();
            let found = entries(call)?.into_iter().find(|(key, _)| **key == *name);
            Ok(found.map_or_else(|| call.value(1).clone(), |(_, value)| value))
        },
    )
    .takes(1, &["name", "default"], "get(name, default)"),
    plain("items", "The entries of the map, as a list of keys and values.", "{{ {'a': 1}.items() }}", "a,1", |call| {
        pairs(entries(call)?)
    }),
    plain("keys", "The keys of the map.", "{{ {'a': 1}.keys() }}", "a", |call| {
        Value::list(entries(call)?.into_iter().map(|(name, _)| Value::Text(name)).collect())
    }),
    plain("values", "The values of the map.", "{{ {'a': 1}.values() }}", "1", |call| {
        Value::list(entries(call)?.into_iter().map(|(_, value)| value).collect())
    }),
];

/// Returns the method `name` of `value`.
///
/// # Errors
/// Returns an error if there is no method of that name.
pub(crate) fn named(value: &Value, name: &str) -> Result<&'static Operation, TemplateError> {
    let methods = match value {
        Value::Text(_) => TEXT,
        Value::Map(_) | Value::Namespace(_) => MAP,
        _ => &[],
    };
    operation::named(methods, name).ok_or_else(|| {
        let error = TemplateError::new(format!("{} has no method `{name}`", value.kind()));
        error.suggest("methods", name, methods.iter().map(|method| method.entry.name))
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

/// Splits `text` into at most `most` words, followed by the rest as one text.
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

//! Access to resolved values: members, items, slices.

use std::cell::RefCell;
use std::rc::Rc;

use crate::error::TemplateError;
use crate::operation::Given;
use crate::path::{self, Key};
use crate::value::{Entries, Value};

/// Returns the number of steps needed to find a part of `value`. Strings and the names in a map are searched linearly.
pub(crate) fn walked(value: &Value) -> usize {
    if matches!(value, Value::List(_)) { 0 } else { value.size() }
}

/// Returns the member `key` of a resolved value. `name` is what messages call the value.
pub(crate) fn member(value: &Value, key: &Key, name: &str) -> Result<Value, TemplateError> {
    let found = match (value, key) {
        (Value::List(list), Key::Position(position)) => {
            path::place(*position, list.items.len()).and_then(|index| list.items.get(index)).cloned()
        }
        (Value::Text(text), Key::Position(position)) => path::place(*position, path::length(text))
            .and_then(|index| text.chars().nth(index))
            .map(|found| Value::text(&found.to_string())),
        (Value::List(list), Key::Name(name)) if name == "length" => Some(Value::count(list.items.len())),
        (Value::Text(text), Key::Name(name)) if name == "length" => Some(Value::count(path::length(text))),
        (Value::Map(_) | Value::Namespace(_), _) => return entry(value, &key.to_string(), name),
        _ => None,
    };
    found.ok_or_else(|| missing(value, key, name))
}

fn entry(value: &Value, key: &str, name: &str) -> Result<Value, TemplateError> {
    if let Some(found) = value.member(key) {
        return Ok(found);
    }
    let entries = value.entries().unwrap_or_default();
    let error = TemplateError::missing(format!("`{name}` has no member `{key}`"));
    Err(error.suggest("members", key, entries.iter().map(|(name, _)| &**name)))
}

fn missing(value: &Value, key: &Key, name: &str) -> TemplateError {
    TemplateError::missing(match (value, key) {
        (Value::List(list), Key::Position(at)) => {
            format!("`{name}` has no item {at}: its length is {}", list.items.len())
        }
        (Value::Text(text), Key::Position(at)) => {
            format!("`{name}` has no character {at}: its length is {}", path::length(text))
        }
        _ => format!("`{name}` is {}, so it has no member `{key}`", value.kind()),
    })
}

/// Returns `items[start:stop:step]`.
pub(crate) fn picked<T>(
    items: &[T],
    start: Option<i64>,
    stop: Option<i64>,
    step: Option<i64>,
) -> Result<Vec<&T>, TemplateError> {
    let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
    let step = step.unwrap_or(1);
    if step == 0 {
        return Err(TemplateError::new("the step cannot be 0"));
    }
    let (lowest, highest) = if step > 0 { (0, length) } else { (-1, length - 1) };
    let bound = |given: Option<i64>, default: i64| match given {
        Some(position) if position < 0 => position.saturating_add(length).clamp(lowest, highest),
        Some(position) => position.clamp(lowest, highest),
        None => default,
    };
    let (start, stop) = if step > 0 {
        (bound(start, lowest), bound(stop, highest))
    } else {
        (bound(start, highest), bound(stop, lowest))
    };
    let mut found = Vec::new();
    let mut at = start;
    while (step > 0 && at < stop) || (step < 0 && at > stop) {
        found.extend(usize::try_from(at).ok().and_then(|index| items.get(index)));
        at = at.saturating_add(step);
    }
    Ok(found)
}

/// Returns the value of `loop` in the body of a loop.
pub(crate) fn loop_position(items: &[Value], index: usize) -> Result<Value, TemplateError> {
    let count = items.len();
    let mut entries: Entries = vec![
        ("index".into(), Value::count(index + 1)),
        ("index0".into(), Value::count(index)),
        ("revindex".into(), Value::count(count - index)),
        ("revindex0".into(), Value::count(count - index - 1)),
        ("first".into(), Value::Bool(index == 0)),
        ("last".into(), Value::Bool(index + 1 == count)),
        ("length".into(), Value::count(count)),
    ];
    if let Some(before) = index.checked_sub(1).and_then(|index| items.get(index)) {
        entries.push(("previtem".into(), before.clone()));
    }
    if let Some(after) = items.get(index + 1) {
        entries.push(("nextitem".into(), after.clone()));
    }
    Value::map(entries)
}

/// Returns the value of `namespace(…)`.
pub(crate) fn namespace(given: Given) -> Result<Value, TemplateError> {
    let mut entries = match given.positional.as_slice() {
        [] => Vec::new(),
        [value] => value
            .entries()
            .ok_or_else(|| TemplateError::new(format!("`namespace` begins with a map, not with {}", value.kind())))?,
        _ => return Err(TemplateError::new("`namespace` takes at most one map")),
    };
    entries.extend(given.named.into_iter().map(|(name, value)| (name.into(), value)));
    Value::map(entries.clone())?;
    Ok(Value::Namespace(Rc::new(RefCell::new(entries))))
}

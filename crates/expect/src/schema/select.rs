//! Converts the ajv-keywords `deepProperties`, `select` and `selectCases` to standard keywords, because they contain
//! schemas, which the library must compile. `items` is the draft's keyword for schemas of items by position.

use serde_json::{Value, json};

use super::check::steps;
use super::mistake::Mistake;

/// Maximum index of an item that a pointer may contain.
const FARTHEST_ITEM: usize = 10_000;

/// Returns schemas for the values at the given pointers, if these values exist.
pub(super) fn deep_properties(pointers: &Value, items: &str) -> Result<Vec<Value>, Mistake> {
    let pointers = pointers
        .as_object()
        .ok_or_else(|| Mistake::new("`deepProperties` must be a map of JSON pointers to schemas"))?;
    let mut all_of = Vec::with_capacity(pointers.len());
    for (pointer, schema) in pointers {
        let steps = reachable(pointer)?;
        let nested = steps.iter().rev().fold(schema.clone(), |inner, step| match item_index(step) {
            Some(index) => {
                json!({"type": ["object", "array"], "properties": {step: inner}, items: nth(index, &inner)})
            }
            None => json!({"type": "object", "properties": {step: inner}}),
        });
        all_of.push(json!({"if": {"type": "object"}, "then": nested}));
    }
    Ok(all_of)
}

/// Returns schemas that are selected by the value of `by`: a constant, or a reference written with `$data`.
pub(super) fn select(
    by: &Value,
    cases: Option<&Value>,
    default: Option<Value>,
    items: &str,
) -> Result<Vec<Value>, Mistake> {
    let Some(cases) = cases.and_then(Value::as_object) else {
        return Err(Mistake::new("`select` needs a map of `selectCases` in the same schema"));
    };
    let Some(data) = by.as_object() else {
        let chosen = case_name(by).ok_or_else(|| {
            Mistake::new("`select` must be a string, a number, a boolean, null or a map with `$data`")
        })?;
        return Ok(cases.get(&chosen).cloned().or(default).into_iter().collect());
    };
    let data = data.get("$data").and_then(Value::as_str).and_then(|data| data.strip_prefix('0'));
    let pointer = data.filter(|rest| rest.starts_with('/')).ok_or_else(|| {
        let mistake = Mistake::new("`select` can only refer to a part of the same value");
        mistake.help("write `$data: 0/name` for the `name` property")
    })?;
    let steps = reachable(pointer)?;
    let at = |leaf: Value| steps.iter().rev().fold(leaf, |inner, step| reach(step, &inner, items));
    let mut all_of = vec![json!({"if": at(json!({"type": ["object", "array"]})), "then": false})];
    let mut chosen = Vec::new();
    for (name, schema) in cases {
        let values = case_values(name);
        all_of.push(json!({"if": at(json!({"enum": values})), "then": schema}));
        chosen.extend(values);
    }
    if let Some(default) = default {
        let other = if chosen.is_empty() { json!({}) } else { json!({"not": {"enum": chosen}}) };
        all_of.push(json!({"if": at(other), "then": default}));
    }
    Ok(all_of)
}

/// Returns the steps of a pointer if its indices are not too large.
fn reachable(pointer: &str) -> Result<Vec<String>, Mistake> {
    let steps = steps(pointer)?;
    if steps.iter().filter_map(|step| item_index(step)).any(|index| index > FARTHEST_ITEM) {
        return Err(Mistake::new(format!("`{pointer}` points beyond item {FARTHEST_ITEM}")));
    }
    Ok(steps)
}

fn item_index(step: &str) -> Option<usize> {
    step.bytes().all(|b| b.is_ascii_digit()).then(|| step.parse().unwrap_or(usize::MAX)).filter(|_| !step.is_empty())
}

/// Returns schemas for items that restrict only the one at `index`.
fn nth(index: usize, inner: &Value) -> Vec<Value> {
    let mut items = vec![json!({}); index];
    items.push(inner.clone());
    items
}

/// Returns a schema that matches only if a value exists at `step` and matches `inner`.
fn reach(step: &str, inner: &Value, items: &str) -> Value {
    let object = json!({"type": "object", "required": [step], "properties": {step: inner}});
    let Some(index) = item_index(step) else { return object };
    json!({"anyOf": [object, {"type": "array", "minItems": index + 1, items: nth(index, inner)}]})
}

/// Returns the name of the case for a value.
fn case_name(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Null | Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Array(_) | Value::Object(_) => None,
    }
}

/// Returns every value whose case is called `name`.
fn case_values(name: &str) -> Vec<Value> {
    let mut values = vec![Value::String(name.to_owned())];
    let other = serde_json::from_str::<Value>(name).ok().filter(|value| !value.is_string());
    values.extend(other.filter(|value| case_name(value).as_deref() == Some(name)));
    values
}

//! Filters: `value | filter`.

use std::cmp::{Ordering, Reverse};
use std::rc::Rc;

use crate::error::TemplateError;
use crate::limit;
use crate::number::Number;
use crate::operation::{Call, Operation, operation, text};
use crate::operator::{Comparison, spaces};
use crate::path::length;
use crate::predicate;
use crate::value::{Entries, Value, push};

/// All filters. Functions are filters as well.
pub(crate) const FILTERS: &[Operation] = &[
    operation("list", 0, |call| call.items().map(|_| call.operand.clone())),
    operation("first", 0, |call| call.items()?.first().cloned().ok_or_else(|| empty(call))),
    operation("last", 0, |call| call.items()?.last().cloned().ok_or_else(|| empty(call))),
    operation("length", 0, count),
    operation("reverse", 0, |call| Value::list(call.items()?.iter().rev().cloned().collect())),
    operation("sort", 0, sort),
    operation("selectattr(attribute, test, value)", 1, |call| select_by_member(call, true)),
    operation("rejectattr(attribute, test, value)", 1, |call| select_by_member(call, false)),
    operation("map(attribute=name, default=value)", 1, map_member),
    text("upper", str::to_uppercase),
    text("lower", str::to_lowercase),
    text("title", title),
    text("capitalize", capitalized),
    text("trim", |text| text.trim().to_owned()),
    text("trimStart", |text| text.trim_start().to_owned()),
    text("trimEnd", |text| text.trim_end().to_owned()),
    operation("indent(width=4, first=false, blank=false)", 0, indent),
    operation("string", 0, |call| Ok(Value::Text(call.operand.to_text()?))),
    operation("int", 0, |call| number(call).map(|number| Value::Number(Number::from_f64(number.as_double().trunc())))),
    operation("float", 0, |call| number(call).map(Value::Number)),
    operation("abs", 0, absolute),
    operation("items", 0, |call| pairs(call.operand.entries().ok_or_else(|| call.not_for("a map"))?)),
];

/// Returns names and values as a list of lists.
pub(crate) fn pairs(entries: Entries) -> Result<Value, TemplateError> {
    let pair = |(name, value)| Value::list(vec![Value::Text(name), value]);
    Value::list(entries.into_iter().map(pair).collect::<Result<_, _>>()?)
}

/// Returns `text` with the first letter of each word in upper case, and the other letters unchanged.
pub(crate) fn title(text: &str) -> String {
    let mut titled = String::with_capacity(text.len());
    let mut inside = false;
    for letter in text.chars() {
        let part_of_word = letter.is_alphanumeric() || letter == '_';
        if part_of_word && !inside {
            titled.extend(letter.to_uppercase());
        } else {
            titled.push(letter);
        }
        inside = part_of_word;
    }
    titled
}

/// Returns `text` with the first letter in upper case, and the other letters unchanged.
fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn empty(call: &Call<'_>) -> TemplateError {
    TemplateError::missing(format!("the list is empty, so it has no {} item", call.name))
}

fn count(call: &Call<'_>) -> Result<Value, TemplateError> {
    Ok(Value::count(match call.operand {
        Value::Text(text) => length(text),
        Value::List(list) => list.items.len(),
        Value::Map(map) => map.entries.len(),
        Value::Namespace(entries) => entries.borrow().len(),
        _ => return Err(call.not_for("text, a list or a map")),
    }))
}

fn sort(call: &Call<'_>) -> Result<Value, TemplateError> {
    let mut items = call.items()?.to_vec();
    let numbers = items.iter().all(|item| matches!(item, Value::Number(_)));
    let texts = items.iter().all(|item| matches!(item, Value::Text(_)));
    if !numbers && !texts {
        return Err(TemplateError::new("`sort` works on a list of numbers or a list of strings, not on a mixture"));
    }
    call.budget.spend(sorting(&items))?;
    if numbers {
        items.sort_by(|left, right| match (left, right) {
            (Value::Number(left), Value::Number(right)) => left.order(*right),
            _ => Ordering::Equal,
        });
    } else {
        // Sorted as in a dictionary: case is ignored unless it is the only difference, in which case lower case comes
        // first.
        items.sort_by_cached_key(|item| match item {
            Value::Text(text) => (text.to_lowercase(), Reverse(Rc::clone(text))),
            _ => (String::new(), Reverse("".into())),
        });
    }
    Value::list(items)
}

/// Returns the number of steps to sort `items`: each is compared as often as a list of that length can be halved.
fn sorting(items: &[Value]) -> usize {
    let bytes: usize = items.iter().map(|item| if let Value::Text(text) = item { text.len() } else { 0 }).sum();
    let halvings = items.len().checked_ilog2().and_then(|halvings| usize::try_from(halvings).ok()).unwrap_or(0) + 1;
    (items.len() / limit::VALUES_A_STEP).saturating_add(bytes / limit::BYTES_A_STEP).saturating_mul(halvings)
}

fn select_by_member(call: &Call<'_>, wanted: bool) -> Result<Value, TemplateError> {
    let attribute = call.text_argument(0)?.unwrap_or_default();
    let test = call.text_argument(1)?.map(predicate::named).transpose()?;
    let mut comparison = Comparison::new(call.budget);
    let mut kept = Vec::new();
    for item in call.items()? {
        let passes = match (member(call, item, attribute)?, test) {
            (None, _) => false,
            (Some(member), None) => member.is_true(),
            (Some(member), Some(test)) => predicate::passes(test, &member, call.argument(2), call, &mut comparison)?,
        };
        if passes == wanted {
            kept.push(item.clone());
        }
    }
    Value::list(kept)
}

fn map_member(call: &Call<'_>) -> Result<Value, TemplateError> {
    let attribute = call.text_argument(0)?.unwrap_or_default();
    let mut values = Vec::new();
    for item in call.items()? {
        match member(call, item, attribute)?.or_else(|| call.argument(1).cloned()) {
            Some(value) => values.push(value),
            None => {
                let entries = item.entries().unwrap_or_default();
                let error = TemplateError::missing(format!("an item of the list has no member `{attribute}`"));
                return Err(error.suggest("members", attribute, entries.iter().map(|(name, _)| &**name)));
            }
        }
    }
    Value::list(values)
}

/// Returns a member of an item, which must be a map.
fn member(call: &Call<'_>, item: &Value, attribute: &str) -> Result<Option<Value>, TemplateError> {
    if !item.is_map() {
        return Err(not_a_map(call, item));
    }
    call.budget.spend(item.size())?;
    Ok(item.member(attribute))
}

fn not_a_map(call: &Call<'_>, item: &Value) -> TemplateError {
    TemplateError::new(format!("`{}` works on a list of maps, not of {}", call.name, item.kind()))
}

fn indent(call: &Call<'_>) -> Result<Value, TemplateError> {
    let width = call.whole_argument(0)?.unwrap_or(4);
    let margin = spaces(usize::try_from(width).unwrap_or(0))?;
    let (first, blank) = (call.flag(1), call.flag(2));
    let mut text = String::new();
    for (index, line) in call.text()?.split('\n').enumerate() {
        if index > 0 {
            push(&mut text, "\n")?;
        }
        if (index > 0 || first) && (!line.is_empty() || blank) {
            push(&mut text, &margin)?;
        }
        push(&mut text, line)?;
    }
    Ok(Value::Text(text.into()))
}

fn number(call: &Call<'_>) -> Result<Number, TemplateError> {
    match call.operand {
        Value::Number(number) => Ok(*number),
        Value::Bool(value) => Ok(Number::Whole(i64::from(*value))),
        Value::Text(text) => Ok(leading_number(text, call.name == "float")),
        _ => Err(call.not_for("text or a number")),
    }
}

/// Parses the longest prefix of `text` that is a number.
fn leading_number(text: &str, fraction: bool) -> Number {
    let text = text.trim_start();
    let sign = usize::from(text.starts_with(['+', '-']));
    let mut end = sign + digits(&text[sign..]);
    if fraction && text[end..].starts_with('.') {
        end += 1 + digits(&text[end + 1..]);
    }
    let written = text[..end].trim_end_matches('.');
    written.parse().map(Number::Whole).or_else(|_| written.parse().map(Number::from_f64)).unwrap_or(Number::Whole(0))
}

fn digits(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len())
}

fn absolute(call: &Call<'_>) -> Result<Value, TemplateError> {
    match call.operand {
        Value::Number(Number::Whole(whole)) if *whole != i64::MIN => Ok(Value::Number(Number::Whole(whole.abs()))),
        Value::Number(number) => Ok(Value::Number(Number::from_f64(number.as_double().abs()))),
        _ => Err(call.not_for("a number")),
    }
}

//! Global functions: `name(…)`. Each is also a filter, which receives its first argument from the left.

use crate::date;
use crate::error::TemplateError;
use crate::limit;
use crate::number::Number;
use crate::operation::{Call, Operation, operation};
use crate::path::place;
use crate::value::{Style, Value, join};

pub(crate) const FUNCTIONS: &[Operation] = &[
    operation("join(list, sep=\",\")", 1, |call| match call.value(0) {
        Value::List(list) => {
            let mut text = String::new();
            join(&list.items, call.text_argument(1)?.unwrap_or(","), &mut text)?;
            Ok(Value::Text(text.into()))
        }
        other => Ok(other.clone()),
    }),
    operation("tojson(value, indent=0, depth=0)", 1, to_json),
    operation("select(value, index)", 1, select),
    operation("randomInt(max, min=0)", 1, random_whole),
    operation("strftime(date, format)", 2, |call| {
        let date = date::read(call.value(0), call.clock)?;
        date::show(date, call.text_argument(1)?.unwrap_or_default())
    }),
    operation("strftime_now(format)", 1, |call| {
        let now = call.clock.now_ms.ok_or_else(|| TemplateError::new("the time is unknown here"))?;
        date::show(date::of_ms(now, call.clock), call.text_argument(0)?.unwrap_or_default())
    }),
    operation("range(start, stop, step=1)", 1, range),
    // The user chooses the names of its arguments, so it is called separately.
    operation("namespace(name=value, …)", 0, |call| Ok(call.value(0).clone())),
    operation("raise_exception(message)", 1, |call| Err(TemplateError::new(&*call.value(0).to_text()?))),
];

fn to_json(call: &Call<'_>) -> Result<Value, TemplateError> {
    let whole = |at| Ok(call.whole_argument(at)?.map_or(0, |value| usize::try_from(value).unwrap_or(0)));
    let style = Style { comma: ", ", colon: ": ", indent: whole(1)? };
    let mut text = String::new();
    call.value(0).print_json(&style, whole(2)?, &mut text)?;
    Ok(Value::Text(text.into()))
}

fn select(call: &Call<'_>) -> Result<Value, TemplateError> {
    let chosen = |count: usize| match call.argument(1) {
        Some(Value::Text(text)) => Ok(text.parse().ok().and_then(|position| place(position, count))),
        Some(_) => Ok(call.whole_argument(1)?.and_then(|position| place(position, count))),
        None => Ok(by_chance(call, count)),
    };
    let found = match call.value(0) {
        Value::List(list) => chosen(list.items.len())?.and_then(|index| list.items.get(index)).cloned(),
        Value::Text(text) => {
            let characters: Vec<char> = text.chars().collect();
            chosen(characters.len())?
                .and_then(|index| characters.get(index))
                .map(|found| Value::text(&found.to_string()))
        }
        Value::Map(map) => match call.text_argument(1)? {
            Some(key) => map.get(key).cloned(),
            None => by_chance(call, map.entries.len())
                .and_then(|index| map.entries.get(index))
                .map(|(_, value)| value.clone()),
        },
        other => {
            return Err(TemplateError::new(format!(
                "`select` works on a list, a map or text, not on {}",
                other.kind()
            )));
        }
    };
    found.ok_or_else(|| TemplateError::missing("`select` did not find an item"))
}

fn by_chance(call: &Call<'_>, count: usize) -> Option<usize> {
    let count = u64::try_from(count).ok().filter(|count| *count > 0)?;
    usize::try_from(call.chance.below(count)).ok()
}

fn random_whole(call: &Call<'_>) -> Result<Value, TemplateError> {
    let most = call.whole_argument(0)?.unwrap_or(0);
    let least = call.whole_argument(1)?.unwrap_or(0);
    let choices =
        most.checked_sub(least).and_then(|span| span.checked_add(1)).and_then(|span| u64::try_from(span).ok());
    let choices = choices.filter(|choices| *choices > 0);
    let choices =
        choices.ok_or_else(|| TemplateError::new(format!("there is no whole number from {least} to {most}")))?;
    let above = i64::try_from(call.chance.below(choices)).unwrap_or(0);
    Ok(Value::Number(Number::Whole(least.saturating_add(above))))
}

fn range(call: &Call<'_>) -> Result<Value, TemplateError> {
    let first = call.whole_argument(0)?.unwrap_or(0);
    let (start, stop) = call.whole_argument(1)?.map_or((0, first), |stop| (first, stop));
    let step = call.whole_argument(2)?.unwrap_or(1);
    if step == 0 {
        return Err(TemplateError::new("the step of `range` cannot be 0"));
    }
    let mut numbers = Vec::new();
    let mut next = start;
    while (step > 0 && next < stop) || (step < 0 && next > stop) {
        numbers.push(Value::Number(Number::Whole(next)));
        if numbers.len() > limit::ITEMS {
            break;
        }
        let Some(after) = next.checked_add(step) else { break };
        next = after;
    }
    Value::list(numbers)
}

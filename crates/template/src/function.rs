//! Global functions: `name(…)`. Each is a filter as well, which receives its first argument from the left.

use crate::date;
use crate::error::TemplateError;
use crate::limit;
use crate::number::Number;
use crate::operation::{Call, Operation, plain};
use crate::path::place;
use crate::value::{Style, Value, join};

pub(crate) const FUNCTIONS: &[Operation] = &[
    plain(
        "join",
        "The items of a list joined to a string. Other values are unchanged.",
        "{{ [1, 2]|join('-') }}",
        "1-2",
        |call| match call.value(0) {
            Value::List(list) => {
                let mut text = String::new();
                join(&list.items, call.text_argument(1)?.unwrap_or(","), &mut text)?;
                Ok(Value::Text(text.into()))
            }
            other => Ok(other.clone()),
        },
    )
    .takes(1, &["list", "sep"], "join(list, sep=\",\")"),
    plain(
        "tojson",
        "The value as JSON, on one line or with `indent` spaces per level. `depth` is the level to \
         start from.",
        "{{ {'a': [1, none]}|tojson }}",
        "{\"a\": [1, null]}",
        to_json,
    )
    .takes(1, &["value", "indent", "depth"], "tojson(value, indent=0, depth=0)"),
    plain(
        "select",
        "An item of a list, a value of a map or a character of a string. A negative index counts \
         from the end. Without an index, a random one.",
        "{{ select(['a', 'b'], -1) }}",
        "b",
        select,
    )
    .takes(1, &["value", "index"], "select(value, index)"),
    plain(
        "randomInt",
        "A random integer between `min` and `max`, inclusive.",
        "{{ randomInt(6, 1) }}",
        "",
        random_whole,
    )
    .takes(1, &["max", "min"], "randomInt(max, min=0)"),
    plain(
        "strftime",
        "Formats a date, which is an ISO 8601 string or a number of milliseconds since 1970. The \
         format supports %Y %y %m %B %b %d %H %I %p %M %S %f %A %a %w and %%.",
        "{{ strftime('2024-05-01', '%d %B %Y, %A') }}",
        "01 May 2024, Wednesday",
        |call| {
            let date = date::read(call.value(0), call.clock)?;
            date::show(date, call.text_argument(1)?.unwrap_or_default())
        },
    )
    .takes(2, &["date", "format"], "strftime(date, format)"),
    plain(
        "strftime_now",
        "Formats the time of the run; the format is that of `strftime`.",
        "{{ strftime_now('%Y-%m-%d') }}",
        "",
        |call| {
            let now = call.clock.now_ms.ok_or_else(|| TemplateError::new("the time is not known here"))?;
            date::show(date::of_ms(now, call.clock), call.text_argument(0)?.unwrap_or_default())
        },
    )
    .takes(1, &["format"], "strftime_now(format)"),
    plain(
        "range",
        "Integers from `start` to below `stop`. With one argument, from 0.",
        "{{ range(3) }} {{ range(1, 9, 3) }}",
        "0,1,2 1,4,7",
        range,
    )
    .takes(1, &["start", "stop", "step"], "range(start, stop, step=1)"),
    // The names of its arguments are the user's choice, so it is called separately.
    plain(
        "namespace",
        "A map whose values can be set with `{% set space.name = value %}`, also inside loops.",
        "{% set n = namespace(sum=0) %}{% for i in [1, 2] %}{% set n.sum = n.sum + i %}{% endfor \
         %}{{ n.sum }}",
        "3",
        |call| Ok(call.value(0).clone()),
    )
    .takes(0, &["map"], "namespace(name=value, …)"),
    plain(
        "raise_exception",
        "Stops with this error message.",
        "{{ raise_exception('no user is given') }}",
        "",
        |call| Err(TemplateError::new(&*call.value(0).to_text()?)),
    )
    .takes(1, &["message"], "raise_exception(message)"),
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
        Value::List(list) => chosen(list.items.len())?.and_then(|at| list.items.get(at)).cloned(),
        Value::Text(text) => {
            let characters: Vec<char> = text.chars().collect();
            chosen(characters.len())?.and_then(|at| characters.get(at)).map(|found| Value::text(&found.to_string()))
        }
        Value::Map(map) => match call.text_argument(1)? {
            Some(key) => map.get(key).cloned(),
            None => {
                by_chance(call, map.entries.len()).and_then(|at| map.entries.get(at)).map(|(_, value)| value.clone())
            }
        },
        other => {
            return Err(TemplateError::new(format!("`select` works on a list, a map or text, not on {}", other.kind())));
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

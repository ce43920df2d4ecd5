//! Requirements on the arguments of a call.

use model::{ArgumentGuard, WantedArgument};
use script::{Regex, RegexError};
use serde_json::Value;

/// Number of characters of a value that messages show.
const SHOWN: usize = 80;

/// Checks that the requirement can be tested.
///
/// # Errors
/// Returns an error if its regular expression is not valid.
pub fn check(guard: &ArgumentGuard) -> Result<(), RegexError> {
    match &guard.wanted {
        WantedArgument::Matches { source, flags } => Regex::literal(source, flags).map(drop),
        _ => Ok(()),
    }
}

/// Returns how `input` differs from the first requirement that it does not meet; `None` if it meets all.
pub(crate) fn violation(guards: &[ArgumentGuard], input: &Value) -> Option<String> {
    guards.iter().find_map(|guard| difference(guard, input))
}

fn difference(guard: &ArgumentGuard, input: &Value) -> Option<String> {
    let path = &guard.path;
    let actual = at(input, path);
    let shown = || actual.map_or_else(|| "missing".to_owned(), self::shown);
    match &guard.wanted {
        WantedArgument::OneOf(texts) => {
            let is_one = scalar(actual).is_some_and(|text| texts.contains(&text));
            (!is_one).then(|| format!("`{path}` is {}, not {}", shown(), one_of(texts)))
        }
        WantedArgument::Type(wanted) => {
            (type_of(actual) != wanted).then(|| format!("`{path}` is {}, not of the type {wanted}", shown()))
        }
        WantedArgument::Words(words) => {
            let given = actual.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let is_front =
                given.len() >= words.len() && given.iter().zip(words).all(|(given, word)| given.as_str() == Some(word));
            (!is_front).then(|| format!("`{path}` is {}, which does not begin with {}", shown(), words.join(" ")))
        }
        WantedArgument::Matches { source, flags } => {
            let Some(text) = scalar(actual) else { return Some(format!("`{path}` is {}, not a text", shown())) };
            match Regex::literal(source, flags).and_then(|regex| regex.is_match(&text)) {
                Ok(true) => None,
                Ok(false) => Some(format!("`{path}` is {}, which does not match /{source}/{flags}", shown())),
                Err(error) => Some(format!("`{path}`: {error}")),
            }
        }
    }
}

/// Returns the value at a path such as `filter.state` or `items.0`.
pub(crate) fn at<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(value, |value, key| match value {
        Value::Array(items) => items.get(key.parse::<usize>().ok()?),
        Value::Object(entries) => entries.get(key),
        _ => None,
    })
}

/// Returns the text of a string, number or boolean.
fn scalar(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) => Some(text.clone()),
        number @ (Value::Number(_) | Value::Bool(_)) => Some(number.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn type_of(value: Option<&Value>) -> &'static str {
    match value {
        None | Some(Value::Null) => "missing",
        Some(Value::Bool(_)) => "bool",
        Some(Value::Number(_)) => "number",
        Some(Value::String(_)) => "string",
        Some(Value::Array(_)) => "array",
        Some(Value::Object(_)) => "object",
    }
}

fn shown(value: &Value) -> String {
    model::text::shortened(&value.to_string(), SHOWN)
}

fn one_of(texts: &[String]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| format!("`{text}`")).collect();
    match quoted.as_slice() {
        [only] => only.clone(),
        several => format!("one of {}", several.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn guard(path: &str, wanted: WantedArgument) -> ArgumentGuard {
        ArgumentGuard { path: path.into(), wanted }
    }

    #[test]
    fn a_requirement_is_met_by_a_text_a_pattern_a_type_or_the_first_words() {
        let input = json!({"id": 7, "filter": {"state": "open", "tags": ["a"]}, "args": ["pr", "list", "--all"]});
        let one = |texts: &[&str]| WantedArgument::OneOf(texts.iter().map(|text| (*text).to_owned()).collect());
        let matches = |source: &str| WantedArgument::Matches { source: source.into(), flags: "i".into() };
        let words = |text: &str| WantedArgument::Words(text.split(' ').map(str::to_owned).collect());
        for (path, wanted) in [
            ("id", one(&["7"])),
            ("filter.state", one(&["closed", "open"])),
            ("filter.state", matches("^OP")),
            ("id", matches("^\\d$")),
            ("filter.tags", WantedArgument::Type("array".into())),
            ("filter.tags.0", one(&["a"])),
            ("args", words("pr list")),
        ] {
            assert_eq!(violation(&[guard(path, wanted.clone())], &input), None, "{path} {wanted:?}");
        }
        for (path, wanted, reason) in [
            ("id", one(&["8"]), "`id` is 7, not `8`"),
            ("filter.owner", one(&["a", "b"]), "`filter.owner` is missing, not one of `a`, `b`"),
            ("filter.tags", matches("a"), "`filter.tags` is [\"a\"], not a text"),
            ("filter.state", matches("^x"), "`filter.state` is \"open\", which does not match /^x/i"),
            ("id", WantedArgument::Type("string".into()), "`id` is 7, not of the type string"),
            ("args", words("pr view"), "`args` is [\"pr\",\"list\",\"--all\"], which does not begin with pr view"),
        ] {
            assert_eq!(violation(&[guard(path, wanted)], &input).as_deref(), Some(reason));
        }
    }
}

//! Replaces `{{input.NAME}}` and `{{file:PATH}}` in the text of an answer.

use std::path::{Component, Path};

use serde_json::Value;

use crate::guard::at;

/// Reads a file for an answer. The error is a reason for the user.
pub(crate) type ReadFile<'a> = dyn Fn(&Path) -> Result<String, String> + 'a;

/// Maximum length of an answer, in bytes. Files and arguments may be long.
const MOST_TEXT: usize = 4 << 20;

/// Returns `text` with the arguments and files that it names. A missing argument is empty. Files are below `directory`.
///
/// # Errors
/// Returns the reason if a file cannot be read, or if the text becomes too long.
pub(crate) fn filled(text: &str, input: &Value, directory: &Path, read: &ReadFile<'_>) -> Result<String, String> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        filled.push_str(before);
        let placeholder = Placeholder::first(after);
        match placeholder {
            Some((Placeholder::Input(path), after)) => {
                filled.push_str(&argument(input, path));
                rest = after;
            }
            Some((Placeholder::File(path), after)) => {
                filled.push_str(&file(path, input, directory, read)?);
                rest = after;
            }
            None => {
                filled.push_str("{{");
                rest = after;
            }
        }
        if filled.len() > MOST_TEXT {
            return Err(format!("the answer is longer than {} MiB", MOST_TEXT >> 20));
        }
    }
    filled.push_str(rest);
    Ok(filled)
}

/// Returns `value` with each text in it replaced by `fill`. A text that is only `{{input.NAME}}` becomes the argument
/// itself, whatever its type.
///
/// # Errors
/// Returns the error of `fill`.
pub(crate) fn filled_value(
    value: &Value,
    input: &Value,
    fill: &dyn Fn(&str) -> Result<String, String>,
) -> Result<Value, String> {
    Ok(match value {
        Value::String(text) => {
            let only = text.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}")).and_then(Placeholder::of);
            match only {
                Some(Placeholder::Input(path)) => at(input, path).cloned().unwrap_or_default(),
                _ => Value::String(fill(text)?),
            }
        }
        Value::Array(items) => items.iter().map(|item| filled_value(item, input, fill)).collect::<Result<_, _>>()?,
        Value::Object(entries) => {
            let entry = |(key, value): (&String, &Value)| Ok((key.clone(), filled_value(value, input, fill)?));
            Value::Object(entries.iter().map(entry).collect::<Result<_, String>>()?)
        }
        other => other.clone(),
    })
}

/// A placeholder in an answer.
pub(crate) enum Placeholder<'t> {
    /// Path of an argument.
    Input(&'t str),
    /// Path of a file, in which arguments may be named.
    File(&'t str),
}

impl<'t> Placeholder<'t> {
    /// Returns the placeholder at the beginning of `text`, which follows `{{`, and the text after it.
    pub(crate) fn first(text: &'t str) -> Option<(Self, &'t str)> {
        let ends = text.match_indices("}}").map(|(at, _)| at);
        // A path may end with `}`, which belongs to it.
        let ends =
            ends.clone().take(1).chain(ends.take(1).map(|end| end + 1).filter(|end| text[*end..].starts_with("}}")));
        ends.into_iter().find_map(|end| Some((Self::of(&text[..end])?, &text[end + 2..])))
    }

    fn of(inside: &'t str) -> Option<Self> {
        let inside = inside.trim();
        if let Some(path) = inside.strip_prefix("input.") {
            let is_path = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
            return (!path.is_empty() && path.chars().all(is_path)).then_some(Self::Input(path));
        }
        let path = inside.strip_prefix("file:")?.trim();
        (path.matches('{').count() == path.matches('}').count()).then_some(Self::File(path))
    }
}

/// Returns the text of an argument: a string as it is, another value as JSON.
fn argument(input: &Value, path: &str) -> String {
    match at(input, path) {
        None => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// Returns the content of a file whose path may contain `{input.NAME}`.
fn file(written: &str, input: &Value, directory: &Path, read: &ReadFile<'_>) -> Result<String, String> {
    let mut path = String::new();
    let mut rest = written;
    while let Some((before, after)) = rest.split_once("{input.") {
        let Some((name, after)) = after.split_once('}') else { break };
        let part = argument(input, name);
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if part.is_empty() || part.starts_with('.') || !part.chars().all(is_plain) {
            return Err(format!("`{{input.{name}}}` is {part:?}, which is not a plain file name"));
        }
        path.push_str(before);
        path.push_str(&part);
        rest = after;
    }
    path.push_str(rest);
    let below = Path::new(&path);
    if below.components().any(|part| !matches!(part, Component::Normal(_) | Component::CurDir)) {
        return Err(format!("the file `{path}` is not in the folder of the mock"));
    }
    read(&directory.join(below)).map_err(|reason| format!("`{{{{file:{path}}}}}`: {reason}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn result(text: &str) -> Result<String, String> {
        let input = json!({"id": 7, "name": "Ann", "filter": {"tags": ["a"]}, "up": "../x"});
        let read = |path: &Path| Ok(format!("<{}>", path.display()));
        filled(text, &input, Path::new("/mocks/db"), &read)
    }

    #[test]
    fn arguments_and_files_replace_their_placeholders() {
        for (text, wanted) in [
            ("{{ input.name }} #{{input.id}}", "Ann #7"),
            ("{{input.filter.tags}}{{input.missing}}!", "[\"a\"]!"),
            ("{{file:fixtures/{input.id}.json}}", "</mocks/db/fixtures/7.json>"),
            ("{{file:{input.id}}}, {\"a\":{{input.id}}}", "</mocks/db/7>, {\"a\":7}"),
            ("{{ other }} {{", "{{ other }} {{"),
        ] {
            assert_eq!(result(text).as_deref(), Ok(wanted), "{text}");
        }
        let input = json!({"id": 7, "name": "A \"B\""});
        let value = json!({"id": "{{input.id}}", "names": ["{{ input.name }}!"], "other": "{{input.x}}"});
        let read = |_: &Path| Err(String::new());
        let fill = |text: &str| filled(text, &input, Path::new("/"), &read);
        let wanted = json!({"id": 7, "names": ["A \"B\"!"], "other": null});
        assert_eq!(filled_value(&value, &input, &fill), Ok(wanted));
        for text in ["{{file:../x}}", "{{file:/etc/passwd}}", "{{file:a/{input.up}}}", "{{file:{input.missing}}}"] {
            assert!(result(text).is_err(), "{text}");
        }
    }
}

//! Lines of the AI SDK's data stream: a letter for the type, a colon, and JSON.

use serde_json::Value;

use super::{End, Told, Trouble};
use crate::answer::Call;
use crate::answer::usage::Count;

/// Returns `true` if `line` has the form of a data line, even if its JSON is invalid.
pub(super) fn is_one(line: &str) -> bool {
    let mut letters = line.bytes();
    let code = letters.next().is_some_and(|code| code.is_ascii_digit() || (b'a'..=b'k').contains(&code));
    code && letters.next() == Some(b':') && letters.next().is_some_and(|first| matches!(first, b'"' | b'{' | b'['))
}

/// Parses the letter and the value.
pub(super) fn parse(line: &str) -> Option<(char, Value)> {
    let (code, value) = line.split_once(':')?;
    Some((code.chars().next()?, serde_json::from_str(value).ok()?))
}

pub(super) fn read(code: char, value: &Value, told: &mut Told) -> Result<(), Trouble> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
    let id = text("toolCallId");
    match code {
        '0' => told.answer.hear(value.as_str().unwrap_or_default()),
        '3' => {
            return Err(Trouble::Reported(value.as_str().map_or_else(|| value.to_string(), str::to_owned)));
        }
        'b' | '9' => {
            if told.answer.called(id).is_none() {
                let call = Call::new(Some(id.to_owned()), text("toolName"));
                told.answer.call(Some(id), call);
            }
            if let Some(call) = told.answer.called(id).filter(|_| code == '9') {
                call.input = value.get("args").cloned();
            }
        }
        'c' => {
            if let Some(call) = told.answer.called(id) {
                call.write(text("argsTextDelta"));
            }
        }
        'a' => told.answer.result(id, value.get("result").unwrap_or(&Value::Null), false),
        'f' => {
            told.owes_an_end();
            told.answer.next_turn();
        }
        'e' => {
            let mut step = Count::default();
            value.as_object().into_iter().for_each(|value| step.look(value));
            told.steps.add(&step);
            told.owes_an_end();
        }
        'd' => {
            value.as_object().into_iter().for_each(|value| told.answer.count.look(value));
            told.end = End::Over;
        }
        // Data, sources, files and reasoning.
        _ => {}
    }
    Ok(())
}

//! Lines of the AI SDK's data stream: a letter for the type, a colon, and JSON.

use model::foreign_json;
use serde_json::Value;

use super::{End, StreamError, StreamState};
use crate::answer::usage::Count;
use crate::transcript::ReportedCall;

/// Returns `true` if `line` has the form of a data line, even if its JSON is invalid.
pub(super) fn is_one(line: &str) -> bool {
    let mut letters = line.bytes();
    let code = letters.next().is_some_and(|code| code.is_ascii_digit() || (b'a'..=b'k').contains(&code));
    code && letters.next() == Some(b':') && letters.next().is_some_and(|first| matches!(first, b'"' | b'{' | b'['))
}

/// Parses the letter and the value.
pub(super) fn parse(line: &str) -> Option<(char, Value)> {
    let (code, value) = line.split_once(':')?;
    Some((code.chars().next()?, foreign_json::parse_piece(value).ok()?))
}

pub(super) fn read(code: char, value: &Value, state: &mut StreamState) -> Result<(), StreamError> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
    state.answer.tells_calls = true;
    let id = text("toolCallId");
    match code {
        '0' => state.answer.append_default_text(value.as_str().unwrap_or_default()),
        '3' => {
            return Err(StreamError::Reported(value.as_str().map_or_else(|| value.to_string(), str::to_owned)));
        }
        'b' | '9' => {
            if state.answer.call_mut(id).is_none() {
                let call = ReportedCall::new(Some(id.to_owned()), text("toolName"));
                state.answer.call(Some(id), call);
            }
            if let Some(call) = state.answer.call_mut(id).filter(|_| code == '9') {
                call.input = value.get("args").cloned();
            }
        }
        'c' => {
            if let Some(call) = state.answer.call_mut(id) {
                call.write(text("argsTextDelta"));
            }
        }
        'a' => state.answer.result(id, value.get("result").unwrap_or(&Value::Null), false),
        'f' => {
            state.owes_an_end();
            state.answer.next_turn();
        }
        'e' => {
            let mut step = Count::default();
            value.as_object().into_iter().for_each(|value| step.read_from(value));
            state.steps.add(&step);
            state.owes_an_end();
        }
        'd' => {
            value.as_object().into_iter().for_each(|value| state.answer.count.read_from(value));
            state.end = End::Over;
        }
        // Data, sources, files and reasoning.
        _ => {}
    }
    Ok(())
}

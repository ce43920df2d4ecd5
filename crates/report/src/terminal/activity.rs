//! Activity of an agent, in a few words.

use model::{Step, ToolCall};

use super::Paint;

/// Maximum width of a tool's argument.
const ARGUMENT: usize = 80;

/// Formats what an agent is waiting for: `the agent`, or a tool such as `Bash`.
pub(super) fn waiting_for(on: &str) -> String {
    let is_tool = on.starts_with(char::is_uppercase) || on.contains("__");
    if is_tool { on.to_owned() } else { format!("the {on}") }
}

/// Formats a call as `Bash "git status"`: the tool and its most descriptive argument.
pub(crate) fn call(call: &ToolCall, paint: &Paint) -> String {
    let name = paint.folded(&call.name, 60);
    match call.key_argument() {
        Some(argument) if !argument.is_empty() => {
            format!("{name} \"{}\"", paint.folded(&argument, ARGUMENT))
        }
        _ => name,
    }
}

/// Returns `true` if [`call`] shows the complete input of `made`.
pub(crate) fn shows_whole_input(made: &ToolCall, paint: &Paint) -> bool {
    let Some(input) = made.input.as_object() else { return made.input.is_null() };
    let mut values = input.values();
    match (values.next(), values.next()) {
        (None, _) => true,
        (Some(only), None) => {
            only.as_str().is_some_and(|only| paint.folded(only, ARGUMENT) == only && !only.is_empty())
        }
        _ => false,
    }
}

/// Describes the activity after a step; `None` for a step that implies none.
pub(crate) fn doing(step: &Step, paint: &Paint) -> Option<String> {
    match step {
        Step::ToolCall(made) => Some(call(made, paint)),
        Step::Question(question) => Some(format!("asks \"{}\"", paint.folded(&question.question, 80))),
        Step::Text { text, .. } if !text.trim().is_empty() => Some(format!("\"{}\"", paint.folded(text, 80))),
        Step::Thinking { .. } => Some("thinks".into()),
        Step::Retry { attempt, status, .. } => {
            Some(format!("request retry {attempt}{}", status.map_or_else(String::new, |status| format!(" ({status})"))))
        }
        Step::ToolResult(_) => Some("has a result".into()),
        Step::UserMessage { index, of, .. } if *of > 1 => Some(format!("message {index} of {of}")),
        Step::Session { .. } => Some("session opened".into()),
        _ => None,
    }
}

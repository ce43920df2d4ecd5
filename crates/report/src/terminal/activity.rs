//! What an agent is doing, in a few words.

use model::{Step, ToolCall};

use super::Paint;
use crate::plain;

/// `Bash "git status"`: the tool and the argument that says best what it is about.
pub(crate) fn call(call: &ToolCall, paint: &Paint) -> String {
    let name = plain::folded(&call.name, 60, paint.signs().ellipsis);
    match call.key_argument() {
        Some(argument) if !argument.is_empty() => {
            format!("{name} \"{}\"", plain::folded(&argument, 80, paint.signs().ellipsis))
        }
        _ => name,
    }
}

/// What the last step says about now; `None` for a step that says nothing.
pub(crate) fn doing(step: &Step, paint: &Paint) -> Option<String> {
    let ellipsis = paint.signs().ellipsis;
    match step {
        Step::ToolCall(made) => Some(call(made, paint)),
        Step::Question(question) => Some(format!("asks \"{}\"", plain::folded(&question.question, 80, ellipsis))),
        Step::Text { text, .. } if !text.trim().is_empty() => {
            Some(format!("\"{}\"", plain::folded(text, 80, ellipsis)))
        }
        Step::Thinking { .. } => Some("thinks".into()),
        Step::Retry { attempt, status, .. } => Some(format!(
            "provider retry {attempt}{}",
            status.map_or_else(String::new, |status| format!(" ({status})"))
        )),
        Step::ToolResult(_) => Some("has a result".into()),
        Step::UserMessage { index, of, .. } if *of > 1 => Some(format!("message {index} of {of}")),
        Step::Session { .. } => Some("session opened".into()),
        _ => None,
    }
}

//! Tools of the embedded agent. Each has its own file and a line in [`TOOLS`]. Their names and arguments are those
//! that models know from other coding agents.

mod argument;
mod ask_user_question;
mod bash;
mod edit;
mod glob;
mod grep;
mod read;
mod skill;
#[cfg(test)]
mod tests;
mod write;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sandbox::BoxFuture;
use serde_json::{Value, json};

use self::argument::Arguments;
pub(super) use self::argument::INVALID;
use super::ToolContext;
use super::access::FileAccess;
use crate::turn::Turn;

/// Result of a tool for the model: the output, or an error message.
pub(super) type ToolOutput = Result<String, String>;

/// A tool of the embedded agent.
pub(crate) struct Tool {
    /// Its canonical name.
    pub(crate) name: &'static str,
    /// Description for the model.
    pub(crate) description: &'static str,
    /// JSON Schemas of its arguments, by name.
    properties: fn() -> Value,
    /// Names of the arguments that it requires.
    required: &'static [&'static str],
    run: Run,
}

/// Function that runs a tool.
enum Run {
    /// Works only on files, on a separate thread.
    OnFiles(fn(&mut Arguments, &Files) -> ToolOutput),
    /// Uses the whole context of the agent.
    InContext(for<'a> fn(Arguments, Call<'a>) -> BoxFuture<'a, ToolOutput>),
}

/// All tools, in the order in which the model sees them.
pub(crate) static TOOLS: &[Tool] =
    &[bash::TOOL, read::TOOL, write::TOOL, edit::TOOL, glob::TOOL, grep::TOOL, ask_user_question::TOOL, skill::TOOL];

/// Names of [`TOOLS`].
pub(super) const NAMES: &[&str] = &["Bash", "Read", "Write", "Edit", "Glob", "Grep", "AskUserQuestion", "Skill"];

/// Context for tools that work only on files.
struct Files {
    access: Arc<FileAccess>,
    stopped: Stopped,
}

/// True once the tool's answer is no longer needed.
#[derive(Clone, Default)]
struct Stopped(Arc<AtomicBool>);

impl Stopped {
    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Guard of a pending answer. Dropping it tells the tool to stop.
struct Waiting(Stopped);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

/// A call in progress.
struct Call<'a> {
    id: &'a str,
    tool_context: &'a ToolContext,
    turn: &'a mut Turn,
}

/// Returns the tool with this name.
pub(super) fn find(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

impl Tool {
    /// Returns the JSON Schema of its arguments.
    pub(crate) fn schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": (self.properties)(),
            "required": self.required,
            "additionalProperties": false,
        })
    }

    /// Answers the call `id` with `input`. Returns `None` if the trial must stop; all processes of the call have then
    /// ended.
    pub(super) async fn answer(
        &self,
        id: &str,
        input: &Value,
        tool_context: &ToolContext,
        turn: &mut Turn,
    ) -> Option<ToolOutput> {
        let mut arguments = match Arguments::parse(input.clone(), &self.schema()) {
            Ok(arguments) => arguments,
            Err(wrong) => return Some(Err(wrong)),
        };
        turn.waiting(self.name);
        let stopping = turn.stopping();
        let answering = async {
            match self.run {
                Run::InContext(run) => run(arguments, Call { id, tool_context, turn }).await,
                Run::OnFiles(run) => {
                    let waiting = Waiting(Stopped::default());
                    let files = Files { access: Arc::clone(&tool_context.access), stopped: waiting.0.clone() };
                    let done = tokio::task::spawn_blocking(move || run(&mut arguments, &files)).await;
                    done.unwrap_or_else(|_| Err("the tool failed; this is a bug in trialrun".to_owned()))
                }
            }
        };
        tokio::select! {
            biased;
            () = stopping => None,
            reply = answering => Some(reply),
        }
    }
}

//! The tool that runs a shell command.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Arguments, Call, Run, Tool, ToolOutput};
use sandbox::supervise::{self, MESSAGE_PREFIX, SUPERVISOR_FAILED};

/// Timeout of a command, unless the model sets one.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum length of the output in characters; longer output is truncated in the middle.
const MAX_OUTPUT_CHARS: usize = 30_000;
/// Maximum size kept of each stream while the command runs, in bytes.
const MAX_BUFFERED_BYTES: usize = 4 * MAX_OUTPUT_CHARS;

pub(super) const TOOL: Tool = Tool {
    name: "Bash",
    description: "Runs a shell command in the working directory and returns its output. Each call starts a new shell; \
                  background processes end with it.",
    properties,
    required: &["command"],
    run: Run::InContext(|arguments, call| Box::pin(bash(arguments, call))),
};

fn properties() -> Value {
    json!({
        "command": {"type": "string", "description": "The command"},
        "timeout": {"type": "integer", "minimum": 1, "description": "Time limit in milliseconds; 120000 if absent"},
        "description": {"type": "string", "description": "Purpose of the command, in a few words"},
    })
}

async fn bash(mut arguments: Arguments, call: Call<'_>) -> ToolOutput {
    let command = arguments.required("command")?;
    arguments.text("description")?;
    let timeout = arguments.count("timeout", 1)?.map_or(TIMEOUT, Duration::from_millis).min(call.tool_context.time);
    if command.contains('\0') {
        return Err("Invalid arguments: `command` contains a NUL character".to_owned());
    }
    // Both streams are merged, so that their lines stay in order. The redirection is on the command's first line, so
    // that line numbers in the shell's messages match the model's command.
    let script = format!("exec 2>&1; {command}");
    let sandbox = &call.tool_context.sandbox;
    let process = sandbox.command(sandbox.shell().as_ref(), &["-c".as_ref(), script.as_ref()], &[]);
    let output = supervise::run(process, timeout, MAX_BUFFERED_BYTES)
        .await
        .map_err(|error| format!("the command could not be started: {error}"))?;
    let mut text = output.stdout.text();
    text.push_str(&output.stderr.text());
    let text =
        model::text::middle(text.trim_end().to_owned(), MAX_OUTPUT_CHARS - MAX_OUTPUT_CHARS / 2, MAX_OUTPUT_CHARS);
    if output.timed_out {
        return Err(join(&format!("The command timed out after {} s.", seconds(timeout)), &text));
    }
    match output.status.code() {
        Some(0) if text.is_empty() => Ok("(no output)".to_owned()),
        Some(0) => Ok(text),
        Some(code) if code == i32::from(SUPERVISOR_FAILED) && text.contains(MESSAGE_PREFIX) => {
            Err(join("The command could not be run.", &text))
        }
        Some(code) => Err(join(&format!("Exit code {code}"), &text)),
        None => Err(join("The command was killed.", &text)),
    }
}

fn join(head: &str, text: &str) -> String {
    if text.is_empty() { head.to_owned() } else { format!("{head}\n{text}") }
}

fn seconds(time: Duration) -> f64 {
    time.as_millis() as f64 / 1000.0
}

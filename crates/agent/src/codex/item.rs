//! Maps Codex's own tools to the canonical ones.

use model::ToolCall;
use serde_json::{Value, json};

use super::command;
use crate::json::{arguments, plain, text, texts};

/// Tools that run a command, in the known versions.
const SHELLS: [&str; 5] = ["exec_command", "shell", "shell_command", "local_shell", "container.exec"];

/// Other tools that have a canonical name.
const NAMES: [(&str, &str); 5] = [
    ("view_image", "Read"),
    ("update_plan", "TodoWrite"),
    ("request_user_input", "AskUserQuestion"),
    ("spawn_agent", "Agent"),
    ("web_search", "WebSearch"),
];

/// Tools that keep their own name.
pub(super) const OWN: &[&str] = &[
    "apply_patch",
    "close_agent",
    "create_goal",
    "exec",
    "get_goal",
    "list_mcp_resources",
    "list_mcp_resource_templates",
    "read_mcp_resource",
    "resume_agent",
    "send_input",
    "update_goal",
    "wait_agent",
    "write_stdin",
];

/// Returns `true` if the tool with this name runs a command.
pub(super) fn is_shell(name: &str) -> bool {
    SHELLS.contains(&name)
}

/// Converts a call as made by the model.
pub(crate) fn call(id: &str, namespace: Option<&str>, name: &str, input: Value, message: &str) -> ToolCall {
    let (canonical, input) = match namespace {
        Some(server) if server.starts_with("mcp__") => (format!("{server}__{name}"), input),
        _ if is_shell(name) => ("Bash".to_owned(), shell_input(input)),
        _ => match NAMES.iter().find(|(own, _)| *own == name) {
            Some((_, "Read")) => ("Read".to_owned(), file_input(input)),
            Some((_, canonical)) => ((*canonical).to_owned(), input),
            None => (name.to_owned(), input),
        },
    };
    let mut call = ToolCall::new(id, canonical, input, message);
    call.raw_name = match namespace {
        Some(namespace) => format!("{namespace}.{name}"),
        None => name.to_owned(),
    };
    call
}

/// Returns a shell call for which only the command is known.
pub(super) fn command(id: &str, line: &str, message: &str) -> ToolCall {
    let mut call = ToolCall::new(id, "Bash", json!({"command": command::unwrapped(line)}), message);
    call.raw_name = "command_execution".to_owned();
    call
}

/// Converts a call to a tool of an MCP server.
pub(super) fn of_server(id: &str, item: &Value, message: &str) -> ToolCall {
    let text = |key: &str| text(item, key).unwrap_or_default();
    let name = format!("mcp__{}__{}", text("server"), text("tool"));
    ToolCall::new(id, name, arguments(item, "arguments"), message)
}

/// Returns the answer from a tool of an MCP server, and `true` if it is an error. The answer is its text blocks, or
/// the whole answer as JSON.
pub(super) fn server_answer(item: &Value) -> (String, bool) {
    let failed = item.get("status").and_then(Value::as_str) == Some("failed");
    let message = |error: &Value| error.get("message").unwrap_or(error).clone();
    if let Some(error) = item.get("error").filter(|error| !error.is_null()) {
        return (plain(&message(error)), true);
    }
    let result = item.get("result").unwrap_or(&Value::Null);
    let result = result.get("Ok").unwrap_or(result);
    if let Some(error) = result.get("Err") {
        return (plain(error), true);
    }
    let is_error = ["isError", "is_error"].iter().any(|key| result.get(key) == Some(&Value::Bool(true)));
    (result.get("content").map_or_else(|| plain(result), texts), failed || is_error)
}

/// Returns the command in the arguments of a shell call.
pub(super) fn asked_command(input: &Value) -> Option<String> {
    shell_input(input.clone())["command"].as_str().map(str::to_owned)
}

/// Moves the command in the arguments of a shell call to its canonical field.
fn shell_input(input: Value) -> Value {
    let Value::Object(mut input) = input else { return input };
    let line = match input.remove("cmd").or_else(|| input.get("command").cloned()) {
        Some(Value::String(line)) => line,
        Some(Value::Array(words)) => {
            let words: Vec<String> = words.iter().filter_map(Value::as_str).map(str::to_owned).collect();
            command::of_words(&words)
        }
        Some(_) | None => return Value::Object(input),
    };
    input.insert("command".to_owned(), Value::String(line));
    Value::Object(input)
}

/// Moves the file in a reading tool's arguments to its canonical field.
fn file_input(mut input: Value) -> Value {
    if let Value::Object(fields) = &mut input
        && let Some(path) = fields.remove("path")
    {
        fields.insert("file_path".to_owned(), path);
    }
    input
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_gets_its_canonical_name_and_keeps_its_raw_name() {
        let names = |namespace: Option<&str>, name: &str, input: Value| {
            let call = call("c", namespace, name, input, "m");
            (call.name, call.raw_name, call.input)
        };
        let own = |name: &str, raw: &str, input: Value| (name.to_owned(), raw.to_owned(), input);
        assert_eq!(
            names(None, "exec_command", json!({"cmd": "ls", "workdir": "/w"})),
            own("Bash", "exec_command", json!({"command": "ls", "workdir": "/w"}))
        );
        assert_eq!(
            names(None, "shell", json!({"command": ["bash", "-lc", "ls"]})),
            own("Bash", "shell", json!({"command": "ls"}))
        );
        assert_eq!(names(None, "exec_command", json!({"x": 1})), own("Bash", "exec_command", json!({"x": 1})));
        assert_eq!(names(None, "exec_command", json!("x")), own("Bash", "exec_command", json!("x")));
        assert_eq!(
            names(Some("mcp__db"), "query", json!({"q": 1})),
            own("mcp__db__query", "mcp__db.query", json!({"q": 1}))
        );
        assert_eq!(
            names(Some("multi_agent_v1"), "spawn_agent", json!({"message": "go"})),
            own("Agent", "multi_agent_v1.spawn_agent", json!({"message": "go"}))
        );
        assert_eq!(
            names(None, "view_image", json!({"path": "a.png"})),
            own("Read", "view_image", json!({"file_path": "a.png"}))
        );
        assert_eq!(names(None, "no_such_tool", json!({})), own("no_such_tool", "no_such_tool", json!({})));
    }

    #[test]
    fn the_result_of_an_mcp_server_becomes_text() {
        let answer = |item: Value| server_answer(&item);
        let content = json!([{"type": "text", "text": "a"}, {"type": "image", "data": "AAAA"}]);
        assert_eq!(
            answer(json!({"status": "completed", "result": {"content": content}})),
            ("a\n[image]".into(), false)
        );
        assert_eq!(answer(json!({"status": "failed", "error": {"message": "no"}})), ("no".into(), true));
        assert_eq!(answer(json!({"status": "completed", "result": {"Err": "no"}})), ("no".into(), true));
        assert_eq!(answer(json!({"result": {"Ok": {"content": [], "isError": true}}})), (String::new(), true));
        assert_eq!(answer(json!({})), (String::new(), false));
    }
}

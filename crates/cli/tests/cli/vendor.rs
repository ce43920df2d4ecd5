//! Real agent CLIs with a provider on loopback that knows nothing about trialrun.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use serde_json::{Value, json};
use testkit::real::{CLAUDE_CODE, CODEX, OPENCODE, RealAgent};
use testkit::{Answer, Project, Ran, ReceivedRequest, ScriptedProvider};

const TRIALRUN: &str = env!("CARGO_BIN_EXE_trialrun");

/// Key of the user.
pub const KEY: &str = "sk-dummy-0123456789abcdef";

/// Returns the arguments of the next tool call, given the request and its number of results; `None` for the final
/// answer.
type Next<'a> = &'a dyn Fn(&str, usize) -> Option<Value>;

fn event(data: &Value) -> String {
    let kind = data["type"].as_str().map(|kind| format!("event: {kind}\n")).unwrap_or_default();
    format!("{kind}data: {data}\n\n")
}

fn events(events: &[Value]) -> String {
    events.iter().map(event).collect()
}

/// Answers in the Anthropic Messages format: a call to `tool`, then a text.
fn anthropic(request: &ReceivedRequest, answer: &mut Answer, tool: &str, next: Next<'_>) {
    let asked: Value = serde_json::from_str(&request.body).unwrap_or_default();
    if !request.line.split('?').next().unwrap_or_default().ends_with("/messages") {
        return answer.json(200, "", r#"{"input_tokens": 1}"#);
    }
    let results = request.body.matches("\"tool_result\"").count();
    let has_tools = asked["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    let call = if has_tools { next(&request.body, results) } else { None };
    let calls = results;
    let (block, delta, stop) = match call {
        Some(input) => (
            json!({"type": "tool_use", "id": format!("toolu_asked_{results}"), "name": tool, "input": {}}),
            json!({"type": "input_json_delta", "partial_json": input.to_string()}),
            "tool_use",
        ),
        None => (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": "Done."}), "end_turn"),
    };
    let usage = json!({"input_tokens": 100, "output_tokens": 1});
    let message = json!({"id": format!("msg_{calls}"), "type": "message", "role": "assistant", "model": "claude-x",
        "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage});
    if asked["stream"] != true {
        let mut message = message;
        message["content"] = json!([{"type": "text", "text": "Done."}]);
        message["stop_reason"] = json!("end_turn");
        message["usage"]["output_tokens"] = json!(10);
        return answer.json(200, "", &message.to_string());
    }
    answer.events(&events(&[
        json!({"type": "message_start", "message": message}),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 10}}),
        json!({"type": "message_stop"}),
    ]));
}

/// Answers in the Responses format.
fn responses(request: &ReceivedRequest, answer: &mut Answer, tool: &str, next: Next<'_>) {
    if !request.line.ends_with("/responses") {
        return answer.json(404, "", r#"{"error": {"message": "no"}}"#);
    }
    let results = request.body.matches("\"function_call_output\"").count();
    let item = match next(&request.body, results) {
        None => json!({"type": "message", "id": "item_1", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": "Done.", "annotations": []}]}),
        Some(input) => json!({"type": "function_call", "id": format!("fc_{results}"), "name": tool,
            "call_id": format!("call_asked_{results}"), "status": "completed", "arguments": input.to_string()}),
    };
    let usage = json!({"input_tokens": 100, "input_tokens_details": {"cached_tokens": 40}, "output_tokens": 10,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 110});
    let response = |status: &str, output: Value, usage: &Value| {
        json!({"id": "resp_1", "object": "response", "model": "gpt-x", "status": status, "output": output,
            "usage": usage})
    };
    answer.events(&events(&[
        json!({"type": "response.created", "response": response("in_progress", json!([]), &Value::Null)}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": item}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": response("completed", json!([item]), &usage)}),
    ]));
}

/// Answers in the Chat Completions format.
fn completions(request: &ReceivedRequest, answer: &mut Answer, tool: &str, next: Next<'_>) {
    if !request.line.ends_with("/chat/completions") {
        return answer.json(404, "", r#"{"error": {"message": "no"}}"#);
    }
    let chunk = |delta: Value, stop: Value, usage: Value| {
        json!({"id": "c_1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-x",
            "choices": [{"index": 0, "delta": delta, "finish_reason": stop}], "usage": usage})
    };
    let usage = json!({"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110});
    let results = request.body.matches("\"role\":\"tool\"").count();
    let call = if request.body.contains("\"tools\"") { next(&request.body, results) } else { None };
    let (delta, stop) = match call {
        Some(input) => {
            let function = json!({"name": tool, "arguments": input.to_string()});
            let id = format!("call_asked_{results}");
            let call = json!({"index": 0, "id": id, "type": "function", "function": function});
            (json!({"role": "assistant", "tool_calls": [call]}), "tool_calls")
        }
        None => (json!({"role": "assistant", "content": "Done."}), "stop"),
    };
    let text = events(&[chunk(delta, Value::Null, Value::Null), chunk(json!({}), json!(stop), usage)]);
    answer.events(&format!("{text}data: [DONE]\n\n"));
}

/// A real agent, its model, and the format of its provider.
#[derive(Clone, Copy)]
pub struct Vendor {
    pub agent: RealAgent,
    pub model: &'static str,
    tool: &'static str,
    argument: &'static str,
    variable: &'static str,
    /// Version path in the address that the user sets.
    version: &'static str,
    answers: fn(&ReceivedRequest, &mut Answer, &str, Next<'_>),
}

pub const CLAUDE: Vendor = Vendor {
    agent: CLAUDE_CODE,
    model: "claude-sonnet-4-6",
    tool: "Bash",
    argument: "command",
    variable: "ANTHROPIC_API_KEY",
    version: "",
    answers: anthropic,
};
pub const CODEX_CLI: Vendor = Vendor {
    agent: CODEX,
    model: "gpt-5.5",
    tool: "exec_command",
    argument: "cmd",
    variable: "OPENAI_API_KEY",
    version: "/v1",
    answers: responses,
};
pub const OPENCODE_CLI: Vendor = Vendor {
    agent: OPENCODE,
    model: "local-model",
    tool: "bash",
    argument: "command",
    variable: "OPENAI_API_KEY",
    version: "/v1",
    answers: completions,
};

impl Vendor {
    /// Returns a project with the real agent.
    pub fn project(self) -> Project {
        Project::new(TRIALRUN).path_first(&self.agent.installed()).env(self.variable, KEY)
    }

    /// Starts a provider whose model runs `command` once.
    pub fn provider(self, command: &str) -> ScriptedProvider {
        let command = command.to_owned();
        self.provider_of(move |_, results| (results == 0).then(|| command.clone()))
    }

    /// Starts a provider whose model runs the commands that `next` returns, given a request and its number of results.
    pub fn provider_of(self, next: impl Fn(&str, usize) -> Option<String> + Send + Sync + 'static) -> ScriptedProvider {
        let next = move |body: &str, results: usize| {
            next(body, results).map(|command| json!({self.argument: command, "description": "Works"}))
        };
        ScriptedProvider::start(move |request, answer| (self.answers)(request, answer, self.tool, &next))
    }

    /// Runs `case.yaml` with the agent and its provider at `address`.
    pub fn run(self, project: &Project, address: &str, more: &[&str]) -> Ran {
        let base_url = format!("{address}{}", self.version);
        let own = ["run", "case.yaml", "--agent", self.agent.name, "--model", self.model, "--base-url", &base_url];
        let arguments = [&own[..], &["--retries", "0", "--report", "json"], more].concat();
        let ran = project.run(&arguments);
        assert!(!ran.output().contains(KEY), "the key is shown");
        ran
    }
}

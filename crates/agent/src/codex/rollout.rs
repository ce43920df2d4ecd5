//! Reads the file in which Codex stores a thread, line by line while Codex is working: every item of the conversation
//! with the model's own call ids, the results of calls, and the usage of each model response. The file is complete,
//! whereas stdout has only a part. But its format is not documented as stable, so nothing in it is assumed to exist.

use std::collections::HashMap;

use model::{Step, Tokens, ToolCall, ToolResult, foreign_json};
use serde_json::{Map, Value, json};

use super::{item, meter};
use crate::apply_patch::{self, APPLY_PATCH, Change, Kind};
use crate::call_ids::MENTIONED;
use crate::json::{items, text, texts};
use crate::lines::Content;

/// Tool that runs a script. The script's calls have their own ids.
pub(super) const SCRIPT: &str = "exec";

/// Meaning of a line.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ThreadEvent {
    /// A step of the agent.
    Step(Step),
    /// Name of the model.
    Model(String),
    /// Version of the agent.
    Version(String),
    /// A model response is complete and used these tokens.
    Used(Tokens),
    /// A call has started another agent, which has its own file.
    Spawned {
        /// Id of the other thread.
        thread: String,
        /// Id of the call.
        call: String,
    },
    /// Every call in the model's last response has a result, so the model is called again.
    Answered,
    /// A line that cannot be read.
    Damaged,
    /// A line with more levels than can be read.
    TooDeep,
}

/// Interprets the file of one thread.
#[derive(Debug, Default)]
pub(super) struct Rollout {
    /// Call that started this thread as a sub-agent; prefix of its messages' ids.
    parent: Option<String>,
    /// Number of model responses that have started.
    answers: u64,
    /// True if the next item belongs to the last of them.
    goes_on: bool,
    /// The agent's working directory.
    work: Option<String>,
    /// Calls that are not fully recorded yet.
    open: HashMap<String, OpenCall>,
    /// Number of calls in the last response that have no result yet.
    unanswered: usize,
    /// Number of skills that were added to the conversation.
    skills: usize,
}

/// A call that is not fully recorded yet.
#[derive(Debug)]
struct OpenCall {
    message: String,
    kind: CallKind,
    /// True if its result was recorded.
    is_reported: bool,
}

#[derive(Debug)]
enum CallKind {
    /// A command. If it continues in the background, its output so far.
    Shell { so_far: Option<String> },
    /// A patch, which is recorded once its effect is known.
    Patch(String),
    /// A script that calls other tools. The script itself is recorded only if it called none.
    Script { input: Value, acted: bool },
    /// Any other call.
    Other,
}

impl Rollout {
    /// Creates the reader for the file of a sub-agent that `call` has started.
    pub(super) fn of_subagent(call: &str) -> Self {
        Self { parent: Some(call.to_owned()), ..Self::default() }
    }

    /// Interprets `line`; returns nothing for an unknown entry, or a line that is not an entry.
    pub(super) fn read(&mut self, line: &str) -> Vec<ThreadEvent> {
        let line = match Content::parse(line) {
            Content::Event(line) => line,
            Content::Other => return Vec::new(),
            Content::Damaged => return vec![ThreadEvent::Damaged],
            Content::TooDeep => return vec![ThreadEvent::TooDeep],
        };
        self.entry(&line)
    }

    /// Interprets an entry.
    pub(super) fn entry(&mut self, line: &Value) -> Vec<ThreadEvent> {
        let payload = line.get("payload").unwrap_or(&Value::Null);
        match text(line, "type").unwrap_or_default() {
            "session_meta" => named(payload, "cli_version", ThreadEvent::Version),
            "turn_context" => {
                if let Some(work) = text(payload, "cwd") {
                    self.work = Some(work.to_owned());
                }
                named(payload, "model", ThreadEvent::Model)
            }
            "response_item" if is_damaged(payload) => vec![ThreadEvent::Damaged],
            "response_item" => self.item(payload),
            "event_msg" => match text(payload, "type") {
                Some("item_completed") => self.effect(payload.get("item").unwrap_or(&Value::Null)),
                Some("task_complete" | "turn_aborted") => self.settle(),
                _ => Vec::new(),
            },
            "token_usage_record" => {
                self.goes_on = false;
                payload.get("usage").and_then(meter::tokens).map(ThreadEvent::Used).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns what is left at the end of the file: results of commands that were left running, and patches and
    /// scripts whose effect was never reported.
    pub(super) fn settle(&mut self) -> Vec<ThreadEvent> {
        let mut left: Vec<(String, OpenCall)> = self.open.drain().filter(|(_, open)| !open.is_reported).collect();
        left.sort_by(|one, other| one.0.cmp(&other.0));
        self.unanswered = 0;
        let mut events = Vec::new();
        for (id, open) in left {
            match open.kind {
                CallKind::Shell { so_far: Some(content) } => events.push(result(id, content, false)),
                CallKind::Patch(patch) => events.extend(self.asked(&id, &patch, &open.message).into_iter().map(call)),
                CallKind::Script { input, acted: false } => events.push(call(self.script(&id, input, &open.message))),
                CallKind::Shell { so_far: None } | CallKind::Script { .. } | CallKind::Other => {}
            }
        }
        events
    }

    /// Reads an item of the conversation.
    fn item(&mut self, item: &Value) -> Vec<ThreadEvent> {
        match text(item, "type").unwrap_or_default() {
            "message" if text(item, "role") == Some("assistant") => {
                let message = self.message();
                let spoken: String = parts(item, "content");
                let parent = self.parent.clone();
                (!spoken.is_empty())
                    .then(|| ThreadEvent::Step(Step::Text { message, text: spoken, parent }))
                    .into_iter()
                    .collect()
            }
            "message" if text(item, "role") == Some("user") => self.skill(&parts(item, "content")),
            "reasoning" => {
                let message = self.message();
                let thoughts = summary(item);
                let parent = self.parent.clone();
                let has_text = !thoughts.is_empty();
                has_text
                    .then(|| ThreadEvent::Step(Step::Thinking { message, text: thoughts, parent }))
                    .into_iter()
                    .collect()
            }
            "function_call" => {
                let input = arguments(text(item, "arguments").unwrap_or_default());
                self.call(item, text(item, "name").unwrap_or_default(), input)
            }
            "custom_tool_call" => self.custom(item),
            "local_shell_call" => {
                let action = item.get("action").cloned().unwrap_or_default();
                self.call(item, "local_shell", action)
            }
            "web_search_call" => {
                let message = self.message();
                let query = item.pointer("/action/query").cloned().unwrap_or_default();
                let id = text(item, "id").unwrap_or(&message).to_owned();
                vec![self.report(item::call(&id, None, "web_search", json!({"query": query}), &message))]
            }
            "function_call_output" | "custom_tool_call_output" => {
                let content = item.get("output").map(output).unwrap_or_default();
                self.output(text(item, "call_id").unwrap_or_default(), content)
            }
            _ => Vec::new(),
        }
    }

    /// Reads a call to a function.
    fn call(&mut self, item: &Value, name: &str, input: Value) -> Vec<ThreadEvent> {
        let message = self.message();
        let id = text(item, "call_id").or(text(item, "id")).unwrap_or(&message).to_owned();
        let kind = if item::is_shell(name) { CallKind::Shell { so_far: None } } else { CallKind::Other };
        self.open(&id, kind, &message);
        vec![self.report(item::call(&id, text(item, "namespace"), name, input, &message))]
    }

    /// Reads a call to a tool that takes text.
    fn custom(&mut self, item: &Value) -> Vec<ThreadEvent> {
        let message = self.message();
        let id = text(item, "call_id").unwrap_or(&message).to_owned();
        let input = text(item, "input").unwrap_or_default();
        match text(item, "name").unwrap_or_default() {
            APPLY_PATCH => {
                self.open(&id, CallKind::Patch(input.to_owned()), &message);
                Vec::new()
            }
            SCRIPT => {
                self.open(&id, CallKind::Script { input: json!({"code": input}), acted: false }, &message);
                Vec::new()
            }
            name => {
                self.open(&id, CallKind::Other, &message);
                vec![self.report(item::call(&id, text(item, "namespace"), name, json!({"input": input}), &message))]
            }
        }
    }

    /// Reads an effect of a call, as reported by Codex itself.
    fn effect(&mut self, item: &Value) -> Vec<ThreadEvent> {
        let id = text(item, "id").unwrap_or_default();
        match text(item, "type").unwrap_or_default() {
            "CommandExecution" => {
                let content = text(item, "aggregated_output").unwrap_or_default().to_owned();
                let failed = text(item, "status") != Some("completed");
                self.answered(id, content, failed, |message| {
                    let words: Vec<&str> = items(item, "command").iter().filter_map(Value::as_str).collect();
                    item::call(id, None, "exec_command", json!({"command": words}), message)
                })
            }
            "FileChange" => self.changed(id, item),
            "McpToolCall" => {
                let (content, is_error) = item::server_answer(item);
                self.answered(id, content, is_error, |message| item::of_server(id, item, message))
            }
            "CollabAgentToolCall" if text(item, "tool") == Some("spawn_agent") => {
                let threads = items(item, "receiver_thread_ids").iter();
                let spawned = |thread: &str| ThreadEvent::Spawned { thread: thread.to_owned(), call: id.to_owned() };
                threads.filter_map(Value::as_str).map(spawned).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Reads the effect of the call `id`. If a script may have made the call, `made` returns that call.
    fn answered(
        &mut self,
        id: &str,
        content: String,
        is_error: bool,
        made: impl FnOnce(&str) -> ToolCall,
    ) -> Vec<ThreadEvent> {
        let by_script = self.open.values().any(|open| matches!(open.kind, CallKind::Script { .. }));
        match self.open.get_mut(id) {
            Some(open) if open.is_reported => Vec::new(),
            Some(open) => {
                open.is_reported = true;
                vec![result(id.to_owned(), content, is_error)]
            }
            None if by_script => {
                let message = self.script_acts();
                vec![self.report(made(&message)), result(id.to_owned(), content, is_error)]
            }
            None => Vec::new(),
        }
    }

    /// Reads changes to files: by a patch, by a command that applies one, or by a script.
    fn changed(&mut self, id: &str, item: &Value) -> Vec<ThreadEvent> {
        let is_error = text(item, "status") != Some("completed");
        let entries = item.get("changes").and_then(Value::as_object).into_iter().flatten();
        let mut changes: Vec<Change> = entries.filter_map(|(path, change)| read_change(path, change)).collect();
        changes.sort_by(|one, other| one.path.cmp(&other.path));
        let mut events = Vec::new();
        let message = match self.open.get_mut(id) {
            Some(open) => {
                open.is_reported = true;
                if matches!(open.kind, CallKind::Shell { .. }) {
                    let output: String = ["stdout", "stderr"].iter().filter_map(|key| text(item, key)).collect();
                    events.push(result(id.to_owned(), output, is_error));
                }
                open.message.clone()
            }
            None => self.script_acts(),
        };
        for change in &changes {
            events.push(self.report(change.call(id, &message)));
            events.push(result(change.id(id), change.done(), is_error));
        }
        events
    }

    /// Reads the result of a call as the model receives it.
    fn output(&mut self, id: &str, content: String) -> Vec<ThreadEvent> {
        self.goes_on = false;
        let mut events = Vec::new();
        if let Some(mut open) = self.open.remove(id) {
            self.unanswered = self.unanswered.saturating_sub(1);
            if !open.is_reported {
                let message = open.message.clone();
                match &mut open.kind {
                    CallKind::Shell { so_far } => match outcome(&content) {
                        CommandOutcome::Running(output) => {
                            *so_far = Some(output);
                            self.open.insert(id.to_owned(), open);
                        }
                        CommandOutcome::Ended { output, failed } => events.push(result(id.to_owned(), output, failed)),
                        CommandOutcome::NotRun => events.push(result(id.to_owned(), content, true)),
                    },
                    CallKind::Patch(patch) => {
                        let is_error = !(content.starts_with("Exit code: 0") || content.starts_with("Success"));
                        for made in self.asked(id, patch, &message) {
                            let call_id = made.id.clone();
                            events.extend([call(made), result(call_id, content.clone(), is_error)]);
                        }
                    }
                    CallKind::Script { acted: true, .. } => {}
                    CallKind::Script { input, .. } => {
                        let is_error = !content.starts_with("Script ") || content.starts_with("Script failed");
                        events.push(call(self.script(id, std::mem::take(input), &message)));
                        events.push(result(id.to_owned(), content, is_error));
                    }
                    CallKind::Other => {
                        let is_error = is_refusal(&content);
                        events.push(result(id.to_owned(), content, is_error));
                    }
                }
            }
        }
        if self.unanswered == 0 {
            events.push(ThreadEvent::Answered);
        }
        events
    }

    /// Reads a skill that was added to the conversation because the user named it with `$`.
    fn skill(&mut self, message: &str) -> Vec<ThreadEvent> {
        let Some(rest) = message.strip_prefix("<skill>\n<name>") else { return Vec::new() };
        let Some((name, rest)) = rest.split_once("</name>\n<path>") else { return Vec::new() };
        let Some((path, body)) = rest.split_once("</path>\n") else { return Vec::new() };
        self.skills += 1;
        let message = self.message();
        let id = format!("{message}-skill-{}", self.skills);
        let mut invoked = ToolCall::new(&id, "Skill", json!({"skill": name, "path": path}), &message);
        invoked.raw_name = MENTIONED.to_owned();
        let body = body.trim_end().strip_suffix("</skill>").unwrap_or(body).to_owned();
        vec![self.report(invoked), result(id, body, false)]
    }

    /// Returns the changes that a patch requests as calls. A patch without changes is still a call.
    fn asked(&self, id: &str, patch: &str, message: &str) -> Vec<ToolCall> {
        let mut calls: Vec<ToolCall> =
            apply_patch::parse(patch, self.work.as_deref()).iter().map(|change| change.call(id, message)).collect();
        if calls.is_empty() {
            calls.push(ToolCall::new(id, APPLY_PATCH, json!({"patch": patch}), message));
        }
        calls.iter_mut().for_each(|call| call.parent.clone_from(&self.parent));
        calls
    }

    fn script(&self, id: &str, input: Value, message: &str) -> ToolCall {
        let mut call = ToolCall::new(id, "exec", input, message);
        call.parent.clone_from(&self.parent);
        call
    }

    fn report(&self, mut made: ToolCall) -> ThreadEvent {
        made.parent.clone_from(&self.parent);
        call(made)
    }

    fn open(&mut self, id: &str, kind: CallKind, message: &str) {
        self.unanswered += 1;
        self.open.insert(id.to_owned(), OpenCall { message: message.to_owned(), kind, is_reported: false });
    }

    /// Returns the message of the script that has just acted, and marks that script.
    fn script_acts(&mut self) -> String {
        let mut message = None;
        for open in self.open.values_mut() {
            if let CallKind::Script { acted, .. } = &mut open.kind {
                *acted = true;
                message = Some(open.message.clone());
            }
        }
        message.unwrap_or_else(|| self.message())
    }

    /// Returns the id of the response to which an item belongs. A new response begins when the previous one is
    /// complete.
    fn message(&mut self) -> String {
        if !self.goes_on {
            self.answers += 1;
            self.goes_on = true;
            self.unanswered = 0;
        }
        match &self.parent {
            Some(parent) => format!("{parent}-message-{}", self.answers),
            None => format!("message-{}", self.answers),
        }
    }
}

/// Returns `true` if an item of the conversation lacks the information about what the agent did.
fn is_damaged(item: &Value) -> bool {
    match text(item, "type") {
        None => true,
        Some("message") => text(item, "role") == Some("assistant") && !item.get("content").is_some_and(Value::is_array),
        Some("function_call" | "custom_tool_call") => text(item, "name").is_none(),
        Some("local_shell_call") => !item.get("action").is_some_and(Value::is_object),
        Some(_) => false,
    }
}

/// Outcome of a command, as the model receives it.
enum CommandOutcome {
    /// It is still running and has printed this so far.
    Running(String),
    /// It has ended.
    Ended { output: String, failed: bool },
    /// It did not run.
    NotRun,
}

fn outcome(content: &str) -> CommandOutcome {
    let (head, output) = match content.split_once("\nOutput:\n") {
        Some((head, output)) => (head, output.to_owned()),
        None => (content, String::new()),
    };
    let code = ["Process exited with code ", "Exit code: "].iter().find_map(|words| {
        let line = head.lines().find_map(|line| line.strip_prefix(words))?;
        line.trim().parse::<i64>().ok()
    });
    match code {
        Some(code) => CommandOutcome::Ended { output, failed: code != 0 },
        None if head.contains("Process running with session ID") => CommandOutcome::Running(output),
        // Output of a different tool that ran instead.
        None if head.starts_with("Wall time: ") && !output.is_empty() => outcome(&output),
        None => CommandOutcome::NotRun,
    }
}

/// Returns `true` if the result of an unknown tool says that the tool did not run.
fn is_refusal(content: &str) -> bool {
    let starts = ["unsupported ", "unable to ", "failed to parse function arguments"];
    let first = content.lines().next().unwrap_or_default();
    // For example `write_stdin failed: …` and `request_user_input is unavailable in …`.
    let says = |words: &str| first.split_once(words).is_some_and(|(tool, _)| !tool.contains(' '));
    starts.iter().any(|start| first.starts_with(start)) || says(" failed: ") || says(" is unavailable in ")
}

/// Reads a completed change.
fn read_change(path: &str, change: &Value) -> Option<Change> {
    let kind = Kind::parse(text(change, "type")?)?;
    let key = if kind == Kind::Update { "unified_diff" } else { "content" };
    let text = text(change, key).filter(|_| kind != Kind::Delete).map(str::to_owned);
    Some(Change { path: path.to_owned(), kind, text })
}

/// Parses the arguments of a function; text that is not JSON stays a string.
fn arguments(written: &str) -> Value {
    match written.trim() {
        "" => Value::Object(Map::new()),
        _ => foreign_json::parse(written).unwrap_or_else(|_| Value::String(written.to_owned())),
    }
}

/// Returns the output of a tool as text.
fn output(output: &Value) -> String {
    match output {
        Value::Array(blocks) => {
            let texts = blocks.iter().filter_map(|block| text(block, "text"));
            texts.collect()
        }
        Value::Object(fields) => fields.get("content").map(texts).unwrap_or_else(|| output.to_string()),
        other => texts(other),
    }
}

/// Returns the texts of a message.
fn parts(item: &Value, key: &str) -> String {
    let parts = items(item, key).iter();
    parts.filter_map(|part| text(part, "text").or(text(part, "refusal"))).collect()
}

/// Returns the visible part of the model's reasoning.
fn summary(item: &Value) -> String {
    let thoughts = |key: &str| -> Vec<&str> {
        let parts = items(item, key).iter();
        parts.filter_map(|part| text(part, "text")).collect()
    };
    let summary = thoughts("summary");
    if summary.is_empty() { thoughts("content").join("\n") } else { summary.join("\n") }
}

fn named(payload: &Value, key: &str, event: fn(String) -> ThreadEvent) -> Vec<ThreadEvent> {
    text(payload, key).map(|name| event(name.to_owned())).into_iter().collect()
}

fn call(call: ToolCall) -> ThreadEvent {
    ThreadEvent::Step(Step::ToolCall(call))
}

fn result(id: String, content: String, is_error: bool) -> ThreadEvent {
    ThreadEvent::Step(Step::ToolResult(ToolResult { id, content, is_error }))
}

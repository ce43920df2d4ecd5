//! Reads the file in which Codex stores a thread, line by line while it works: every item of the conversation with the
//! model's own call ids, the results of calls, and the usage of each model answer. The file is complete, whereas stdout
//! has only a part. But its format is not documented as stable, so no part of it is required to be there.

use std::collections::HashMap;

use model::{Step, Tokens, ToolCall, ToolResult};
use serde_json::{Map, Value, json};

use super::change::{self, APPLY_PATCH, Change, Kind};
use super::{item, meter};
use crate::lines::Content;

/// Meaning of a line.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Noted {
    /// A step of the agent.
    Act(Step),
    /// Name of the model.
    Model(String),
    /// Version of the agent.
    Version(String),
    /// An answer of the model is complete and used these tokens.
    Used(Tokens),
    /// A call has started another agent, which has its own file.
    Spawned {
        /// Id of the other thread.
        thread: String,
        /// Id of the call.
        call: String,
    },
    /// Every call of the model's last answer has a result, so the model is called again.
    Answered,
    /// A line that cannot be read.
    Damaged,
}

/// Interprets the file of one thread.
#[derive(Debug, Default)]
pub(super) struct Rollout {
    /// Call that started this thread as a sub-agent; prefix of its messages' ids.
    parent: Option<String>,
    /// Number of model answers that have begun.
    answers: u64,
    /// True if the next item belongs to the last of them.
    goes_on: bool,
    /// The agent's working directory.
    work: Option<String>,
    /// Calls that are not fully recorded yet.
    open: HashMap<String, Open>,
    /// Number of calls of the last answer that have no result yet.
    unanswered: usize,
    /// Number of skills that were added to the conversation.
    skills: usize,
}

/// A call that is not fully recorded yet.
#[derive(Debug)]
struct Open {
    message: String,
    kind: What,
    /// True if its result was recorded.
    told: bool,
}

#[derive(Debug)]
enum What {
    /// A command. If it continues in the background, its output up to then.
    Shell { so_far: Option<String> },
    /// A patch, which is recorded when its effect is known.
    Patch(String),
    /// A script that calls other tools. It is recorded itself only if it has called none.
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
    pub(super) fn read(&mut self, line: &str) -> Vec<Noted> {
        let line = match Content::of(line) {
            Content::Event(line) => line,
            Content::Other => return Vec::new(),
            Content::Damaged => return vec![Noted::Damaged],
        };
        let payload = line.get("payload").unwrap_or(&Value::Null);
        match text(&line, "type").unwrap_or_default() {
            "session_meta" => named(payload, "cli_version", Noted::Version),
            "turn_context" => {
                if let Some(work) = text(payload, "cwd") {
                    self.work = Some(work.to_owned());
                }
                named(payload, "model", Noted::Model)
            }
            "response_item" => self.item(payload),
            "event_msg" => match text(payload, "type") {
                Some("item_completed") => self.effect(payload.get("item").unwrap_or(&Value::Null)),
                Some("task_complete" | "turn_aborted") => self.settle(),
                _ => Vec::new(),
            },
            "token_usage_record" => {
                self.goes_on = false;
                payload.get("usage").and_then(meter::tokens).map(Noted::Used).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns what is left when the file has ended: results of commands that were left running, and patches and
    /// scripts whose effect was never reported.
    pub(super) fn settle(&mut self) -> Vec<Noted> {
        let mut left: Vec<(String, Open)> = self.open.drain().filter(|(_, open)| !open.told).collect();
        left.sort_by(|one, other| one.0.cmp(&other.0));
        self.unanswered = 0;
        let mut noted = Vec::new();
        for (id, open) in left {
            match open.kind {
                What::Shell { so_far: Some(content) } => noted.push(result(id, content, false)),
                What::Patch(patch) => noted.extend(self.asked(&id, &patch, &open.message).into_iter().map(call)),
                What::Script { input, acted: false } => noted.push(call(self.script(&id, input, &open.message))),
                What::Shell { so_far: None } | What::Script { .. } | What::Other => {}
            }
        }
        noted
    }

    /// Reads an item of the conversation.
    fn item(&mut self, item: &Value) -> Vec<Noted> {
        match text(item, "type").unwrap_or_default() {
            "message" if text(item, "role") == Some("assistant") => {
                let message = self.message();
                let said: String = parts(item, "content");
                let parent = self.parent.clone();
                (!said.is_empty()).then(|| Noted::Act(Step::Text { message, text: said, parent })).into_iter().collect()
            }
            "message" if text(item, "role") == Some("user") => self.skill(&parts(item, "content")),
            "reasoning" => {
                let message = self.message();
                let thoughts = summary(item);
                let parent = self.parent.clone();
                let told = !thoughts.is_empty();
                told.then(|| Noted::Act(Step::Thinking { message, text: thoughts, parent })).into_iter().collect()
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
                vec![self.told(item::call(&id, None, "web_search", json!({"query": query}), &message))]
            }
            "function_call_output" | "custom_tool_call_output" => {
                let content = item.get("output").map(output).unwrap_or_default();
                self.output(text(item, "call_id").unwrap_or_default(), content)
            }
            _ => Vec::new(),
        }
    }

    /// Reads a call of a function.
    fn call(&mut self, item: &Value, name: &str, input: Value) -> Vec<Noted> {
        let message = self.message();
        let id = text(item, "call_id").or(text(item, "id")).unwrap_or(&message).to_owned();
        let kind = if item::is_shell(name) { What::Shell { so_far: None } } else { What::Other };
        self.open(&id, kind, &message);
        vec![self.told(item::call(&id, text(item, "namespace"), name, input, &message))]
    }

    /// Reads a call of a tool that takes text.
    fn custom(&mut self, item: &Value) -> Vec<Noted> {
        let message = self.message();
        let id = text(item, "call_id").unwrap_or(&message).to_owned();
        let input = text(item, "input").unwrap_or_default();
        match text(item, "name").unwrap_or_default() {
            APPLY_PATCH => {
                self.open(&id, What::Patch(input.to_owned()), &message);
                Vec::new()
            }
            "exec" => {
                self.open(&id, What::Script { input: json!({"code": input}), acted: false }, &message);
                Vec::new()
            }
            name => {
                self.open(&id, What::Other, &message);
                vec![self.told(item::call(&id, text(item, "namespace"), name, json!({"input": input}), &message))]
            }
        }
    }

    /// Reads an effect of a call, as reported by Codex itself.
    fn effect(&mut self, item: &Value) -> Vec<Noted> {
        let id = text(item, "id").unwrap_or_default();
        let by_script = self.has_script();
        match text(item, "type").unwrap_or_default() {
            "CommandExecution" => {
                let content = text(item, "aggregated_output").unwrap_or_default().to_owned();
                let failed = text(item, "status") != Some("completed");
                match self.open.get_mut(id) {
                    Some(open) if open.told => Vec::new(),
                    Some(open) => {
                        open.told = true;
                        vec![result(id.to_owned(), content, failed)]
                    }
                    None if by_script => {
                        let words = item.get("command").and_then(Value::as_array).into_iter().flatten();
                        let words: Vec<&str> = words.filter_map(Value::as_str).collect();
                        let message = self.script_acts();
                        let made = item::call(id, None, "exec_command", json!({"command": words}), &message);
                        vec![self.told(made), result(id.to_owned(), content, failed)]
                    }
                    None => Vec::new(),
                }
            }
            "FileChange" => self.changed(id, item),
            "McpToolCall" => {
                let (content, is_error) = item::server_answer(item);
                match self.open.get_mut(id) {
                    Some(open) if open.told => Vec::new(),
                    Some(open) => {
                        open.told = true;
                        vec![result(id.to_owned(), content, is_error)]
                    }
                    None if by_script => {
                        let message = self.script_acts();
                        vec![self.told(item::of_server(id, item, &message)), result(id.to_owned(), content, is_error)]
                    }
                    None => Vec::new(),
                }
            }
            "CollabAgentToolCall" if text(item, "tool") == Some("spawn_agent") => {
                let threads = item.get("receiver_thread_ids").and_then(Value::as_array).into_iter().flatten();
                let spawned = |thread: &str| Noted::Spawned { thread: thread.to_owned(), call: id.to_owned() };
                threads.filter_map(Value::as_str).map(spawned).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Reads a change of files: by a patch, by a command that applies one, or by a script.
    fn changed(&mut self, id: &str, item: &Value) -> Vec<Noted> {
        let is_error = text(item, "status") != Some("completed");
        let entries = item.get("changes").and_then(Value::as_object).into_iter().flatten();
        let mut changes: Vec<Change> = entries.filter_map(|(path, change)| made(path, change)).collect();
        changes.sort_by(|one, other| one.path.cmp(&other.path));
        let mut noted = Vec::new();
        let message = match self.open.get_mut(id) {
            Some(open) => {
                open.told = true;
                if matches!(open.kind, What::Shell { .. }) {
                    let said: String = ["stdout", "stderr"].iter().filter_map(|key| text(item, key)).collect();
                    noted.push(result(id.to_owned(), said, is_error));
                }
                open.message.clone()
            }
            None => self.script_acts(),
        };
        for change in &changes {
            noted.push(self.told(change.call(id, &message)));
            noted.push(result(change.id(id), change.done(), is_error));
        }
        noted
    }

    /// Reads the result of a call as the model gets it.
    fn output(&mut self, id: &str, content: String) -> Vec<Noted> {
        self.goes_on = false;
        let mut noted = Vec::new();
        if let Some(mut open) = self.open.remove(id) {
            self.unanswered = self.unanswered.saturating_sub(1);
            if !open.told {
                let message = open.message.clone();
                match &mut open.kind {
                    What::Shell { so_far } => match ran(&content) {
                        Ran::On(said) => {
                            *so_far = Some(said);
                            self.open.insert(id.to_owned(), open);
                        }
                        Ran::Through { said, failed } => noted.push(result(id.to_owned(), said, failed)),
                        Ran::Never => noted.push(result(id.to_owned(), content, true)),
                    },
                    What::Patch(patch) => {
                        let is_error = !(content.starts_with("Exit code: 0") || content.starts_with("Success"));
                        for made in self.asked(id, patch, &message) {
                            let of = made.id.clone();
                            noted.extend([call(made), result(of, content.clone(), is_error)]);
                        }
                    }
                    What::Script { acted: true, .. } => {}
                    What::Script { input, .. } => {
                        let is_error = !content.starts_with("Script ") || content.starts_with("Script failed");
                        noted.push(call(self.script(id, std::mem::take(input), &message)));
                        noted.push(result(id.to_owned(), content, is_error));
                    }
                    What::Other => {
                        let is_error = is_refusal(&content);
                        noted.push(result(id.to_owned(), content, is_error));
                    }
                }
            }
        }
        if self.unanswered == 0 {
            noted.push(Noted::Answered);
        }
        noted
    }

    /// Reads a skill that was added to the conversation because the user named it with `$`.
    fn skill(&mut self, said: &str) -> Vec<Noted> {
        let Some(rest) = said.strip_prefix("<skill>\n<name>") else { return Vec::new() };
        let Some((name, rest)) = rest.split_once("</name>\n<path>") else { return Vec::new() };
        let Some((path, body)) = rest.split_once("</path>\n") else { return Vec::new() };
        self.skills += 1;
        let message = self.message();
        let id = format!("{message}-skill-{}", self.skills);
        let mut invoked = ToolCall::new(&id, "Skill", json!({"skill": name, "path": path}), &message);
        invoked.raw_name = "$".to_owned();
        let body = body.trim_end().strip_suffix("</skill>").unwrap_or(body).to_owned();
        vec![self.told(invoked), result(id, body, false)]
    }

    /// Returns the requested changes of a patch as calls. A patch without changes is still a call.
    fn asked(&self, id: &str, patch: &str, message: &str) -> Vec<ToolCall> {
        let mut calls: Vec<ToolCall> =
            change::asked(patch, self.work.as_deref()).iter().map(|change| change.call(id, message)).collect();
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

    fn told(&self, mut made: ToolCall) -> Noted {
        made.parent.clone_from(&self.parent);
        call(made)
    }

    fn open(&mut self, id: &str, kind: What, message: &str) {
        self.unanswered += 1;
        self.open.insert(id.to_owned(), Open { message: message.to_owned(), kind, told: false });
    }

    fn has_script(&self) -> bool {
        self.open.values().any(|open| matches!(open.kind, What::Script { .. }))
    }

    /// Returns the message of the script that has just acted, and marks that script.
    fn script_acts(&mut self) -> String {
        let mut of = None;
        for open in self.open.values_mut() {
            if let What::Script { acted, .. } = &mut open.kind {
                *acted = true;
                of = Some(open.message.clone());
            }
        }
        of.unwrap_or_else(|| self.message())
    }

    /// Returns the id of the answer that an item belongs to. A new answer begins when the previous one is complete.
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

/// Outcome of a command, as the model gets it.
enum Ran {
    /// It is still running and has printed this so far.
    On(String),
    /// It has ended.
    Through { said: String, failed: bool },
    /// It did not run.
    Never,
}

fn ran(content: &str) -> Ran {
    let (head, said) = match content.split_once("\nOutput:\n") {
        Some((head, said)) => (head, said.to_owned()),
        None => (content, String::new()),
    };
    let code = ["Process exited with code ", "Exit code: "].iter().find_map(|words| {
        let line = head.lines().find_map(|line| line.strip_prefix(words))?;
        line.trim().parse::<i64>().ok()
    });
    match code {
        Some(code) => Ran::Through { said, failed: code != 0 },
        None if head.contains("Process running with session ID") => Ran::On(said),
        // Output of another tool that ran instead.
        None if head.starts_with("Wall time: ") && !said.is_empty() => ran(&said),
        None => Ran::Never,
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
fn made(path: &str, change: &Value) -> Option<Change> {
    let kind = Kind::read(text(change, "type")?)?;
    let key = if kind == Kind::Update { "unified_diff" } else { "content" };
    let text = text(change, key).filter(|_| kind != Kind::Delete).map(str::to_owned);
    Some(Change { path: path.to_owned(), kind, text })
}

/// Parses the arguments of a function; text that is not JSON stays a string.
fn arguments(written: &str) -> Value {
    match written.trim() {
        "" => Value::Object(Map::new()),
        _ => serde_json::from_str(written).unwrap_or_else(|_| Value::String(written.to_owned())),
    }
}

/// Returns the answer of a tool as text.
fn output(output: &Value) -> String {
    match output {
        Value::Array(blocks) => {
            let texts = blocks.iter().filter_map(|block| text(block, "text"));
            texts.collect()
        }
        Value::Object(fields) => fields.get("content").map(item::texts).unwrap_or_else(|| output.to_string()),
        other => item::texts(other),
    }
}

/// Returns the texts of a message.
fn parts(item: &Value, key: &str) -> String {
    let parts = item.get(key).and_then(Value::as_array).into_iter().flatten();
    parts.filter_map(|part| text(part, "text").or(text(part, "refusal"))).collect()
}

/// Returns the visible part of the model's reasoning.
fn summary(item: &Value) -> String {
    let thoughts = |key: &str| -> Vec<&str> {
        let parts = item.get(key).and_then(Value::as_array).into_iter().flatten();
        parts.filter_map(|part| text(part, "text")).collect()
    };
    let summary = thoughts("summary");
    if summary.is_empty() { thoughts("content").join("\n") } else { summary.join("\n") }
}

fn named(payload: &Value, key: &str, noted: fn(String) -> Noted) -> Vec<Noted> {
    text(payload, key).map(|name| noted(name.to_owned())).into_iter().collect()
}

fn call(call: ToolCall) -> Noted {
    Noted::Act(Step::ToolCall(call))
}

fn result(id: String, content: String, is_error: bool) -> Noted {
    Noted::Act(Step::ToolResult(ToolResult { id, content, is_error }))
}

fn text<'a>(from: &'a Value, key: &str) -> Option<&'a str> {
    from.get(key).and_then(Value::as_str)
}

//! Reads events on Codex's stdout, one JSON object per line. Unknown events are ignored, and damaged ones are reported.
//! The caller keeps every line unchanged.
//!
//! The events are incomplete: they lack the model's name, the grouping of steps into messages, and refused calls. The
//! agent's steps are read from them only if there is no [`rollout`](super::rollout).

use std::collections::HashSet;

use model::{Ending, Step, Tokens, ToolResult};
use serde_json::Value;

use super::item;
use super::meter::UsageMeter;
use crate::apply_patch::{Change, Kind};
use crate::json::{items, text};
use crate::lines::Content;

/// Meaning of a line.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum StreamEvent {
    /// Id of the thread, new or resumed.
    Thread(String),
    /// A step of the agent.
    Step(Step),
    /// Another event that no other source reports.
    StdoutOnly(Step),
    /// A turn begins.
    TurnStarted,
    /// A turn has ended: with an answer and, if it is reported, its usage, or with an error.
    Done(Result<Option<Tokens>, Ending>),
    /// A line that should be an event but cannot be read; with a description.
    Unreadable(&'static str),
    /// An event with more levels than can be read.
    TooDeep,
}

/// Returns `true` for the id of a call that was read from stdout: the numbers of the process and of its item. Stdout does
/// not contain the model's ids.
pub(super) fn is_id(id: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    id.split_once("-item_").is_some_and(|(process, item)| {
        // If one call changes several files, each id has the file appended.
        number(process) && number(item.split_once(':').map_or(item, |(item, _)| item))
    })
}

/// Interprets the events of a thread, across all its processes.
#[derive(Debug, Default)]
pub(super) struct Stream {
    meter: UsageMeter,
    /// Number of processes so far; each restarts the numbers of its items.
    process: usize,
    /// Number of model messages that have started.
    messages: u64,
    /// True if the next event belongs to the last of them.
    goes_on: bool,
    /// True if that message already has a call, so that only further calls can belong to it.
    has_called: bool,
    /// Calls already recorded, by item id.
    begun: HashSet<String>,
}

impl Stream {
    /// Interprets `line`; returns nothing for an unknown event or other output.
    pub(super) fn read(&mut self, line: &str) -> Vec<StreamEvent> {
        let line = match Content::parse(line) {
            Content::Event(line) => line,
            Content::Other => return Vec::new(),
            Content::Damaged => return vec![StreamEvent::Unreadable("an event that is not valid JSON")],
            Content::TooDeep => return vec![StreamEvent::TooDeep],
        };
        if let Some(what) = defect(&line) {
            return vec![StreamEvent::Unreadable(what)];
        }
        let item = line.get("item").unwrap_or(&Value::Null);
        match text(&line, "type").unwrap_or_default() {
            "thread.started" => {
                self.process += 1;
                text(&line, "thread_id").map(|id| StreamEvent::Thread(id.to_owned())).into_iter().collect()
            }
            "turn.started" => {
                self.goes_on = false;
                vec![StreamEvent::TurnStarted]
            }
            "item.started" => self.started(item),
            "item.completed" => self.completed(item),
            "error" => text(&line, "message").and_then(retry).map(StreamEvent::StdoutOnly).into_iter().collect(),
            "turn.completed" => {
                vec![StreamEvent::Done(Ok(self.meter.read(line.get("usage").unwrap_or(&Value::Null))))]
            }
            "turn.failed" => {
                vec![StreamEvent::Done(Err(failure(line.pointer("/error/message").and_then(Value::as_str))))]
            }
            _ => Vec::new(),
        }
    }

    fn started(&mut self, item: &Value) -> Vec<StreamEvent> {
        let id = self.id(item);
        let message = match text(item, "type") {
            Some("command_execution" | "mcp_tool_call" | "collab_tool_call") => self.calls(),
            _ => return Vec::new(),
        };
        let call = match text(item, "type") {
            Some("command_execution") => item::command(&id, text(item, "command").unwrap_or_default(), &message),
            Some("mcp_tool_call") => item::of_server(&id, item, &message),
            _ => item::call(&id, None, text(item, "tool").unwrap_or_default(), with_prompt(item), &message),
        };
        self.begun.insert(id);
        vec![StreamEvent::Step(Step::ToolCall(call))]
    }

    fn completed(&mut self, item: &Value) -> Vec<StreamEvent> {
        let id = self.id(item);
        let failed = text(item, "status").is_some_and(|status| status != "completed");
        match text(item, "type").unwrap_or_default() {
            "agent_message" => {
                let message = self.speaks();
                let spoken = text(item, "text").filter(|text| !text.is_empty());
                spoken
                    .map(|spoken| StreamEvent::Step(Step::Text { message, text: spoken.to_owned(), parent: None }))
                    .into_iter()
                    .collect()
            }
            "reasoning" => {
                let message = self.speaks();
                let text = text(item, "text").unwrap_or_default().to_owned();
                vec![StreamEvent::Step(Step::Thinking { message, text, parent: None })]
            }
            "command_execution" => {
                let content = text(item, "aggregated_output").unwrap_or_default().to_owned();
                self.answered(item, id, content, failed)
            }
            "mcp_tool_call" => {
                let (content, is_error) = item::server_answer(item);
                self.answered(item, id, content, is_error)
            }
            "collab_tool_call" => {
                let states =
                    item.get("agents_states").filter(|states| states.as_object().is_some_and(|s| !s.is_empty()));
                let content = states.map(Value::to_string).unwrap_or_default();
                self.answered(item, id, content, failed)
            }
            "file_change" => self.changed(item, &id, failed),
            "web_search" => {
                let query = serde_json::json!({"query": text(item, "query").unwrap_or_default()});
                let call = item::call(&id, None, "web_search", query, &self.calls());
                self.goes_on = false;
                vec![StreamEvent::Step(Step::ToolCall(call))]
            }
            // Only a warning: the agent continues.
            "error" => {
                let text = text(item, "message").unwrap_or_default().to_owned();
                vec![StreamEvent::StdoutOnly(Step::Notice { from: "agent".into(), text })]
            }
            _ => Vec::new(),
        }
    }

    /// Reads a completed call. If its start was not reported, the call is recorded now.
    fn answered(&mut self, item: &Value, id: String, content: String, is_error: bool) -> Vec<StreamEvent> {
        let mut events = if self.begun.contains(&id) { Vec::new() } else { self.started(item) };
        self.goes_on = false;
        events.push(StreamEvent::Step(Step::ToolResult(ToolResult { id, content, is_error })));
        events
    }

    fn changed(&mut self, item: &Value, id: &str, is_error: bool) -> Vec<StreamEvent> {
        let message = self.calls();
        self.goes_on = false;
        let mut changes: Vec<Change> = items(item, "changes").iter().filter_map(change).collect();
        changes.sort_by(|one, other| one.path.cmp(&other.path));
        let acts = changes.iter().flat_map(|change| {
            let result = ToolResult { id: change.id(id), content: change.done(), is_error };
            [Step::ToolCall(change.call(id, &message)), Step::ToolResult(result)]
        });
        acts.map(StreamEvent::Step).collect()
    }

    fn id(&self, item: &Value) -> String {
        format!("{}-{}", self.process, text(item, "id").unwrap_or_default())
    }

    /// Returns the message to which a call belongs. A result is always followed by a new message.
    fn calls(&mut self) -> String {
        self.begin();
        self.has_called = true;
        self.message()
    }

    /// Returns the message to which text belongs. Text precedes calls.
    fn speaks(&mut self) -> String {
        if self.has_called {
            self.goes_on = false;
        }
        self.begin();
        self.message()
    }

    fn begin(&mut self) {
        if !self.goes_on {
            self.messages += 1;
            (self.goes_on, self.has_called) = (true, false);
        }
    }

    fn message(&self) -> String {
        format!("message-{}", self.messages)
    }
}

/// Describes what is missing in a known event that does not say what the agent did; `None` if it is complete.
fn defect(line: &Value) -> Option<&'static str> {
    let item = line.get("item").unwrap_or(&Value::Null);
    let lacks = |keys: &[&str]| keys.iter().any(|key| text(item, key).is_none());
    let is_completed = match text(line, "type")? {
        "thread.started" => return text(line, "thread_id").is_none().then_some("a thread without an id"),
        "item.started" => false,
        "item.completed" => true,
        _ => return None,
    };
    match text(item, "type") {
        None => Some("an item without a type"),
        Some("agent_message") if is_completed && lacks(&["text"]) => Some("a message without text"),
        Some("command_execution") if lacks(&["id", "command"]) => Some("a command without an id or text"),
        Some("mcp_tool_call") if lacks(&["id", "server", "tool"]) => Some("a tool call without an id or a name"),
        Some("collab_tool_call") if lacks(&["id", "tool"]) => Some("a tool call without an id or a name"),
        Some("file_change") if is_completed && !has_changes(item) => Some("a change without its files"),
        Some(_) => None,
    }
}

/// Returns `true` if every change in a patch can be read.
fn has_changes(item: &Value) -> bool {
    let changes = item.get("changes").and_then(Value::as_array);
    changes.is_some_and(|changes| changes.iter().all(|one| change(one).is_some()))
}

fn change(change: &Value) -> Option<Change> {
    Some(Change { path: text(change, "path")?.to_owned(), kind: Kind::parse(text(change, "kind")?)?, text: None })
}

/// Returns the known arguments of a call between agents.
fn with_prompt(item: &Value) -> Value {
    let known = ["prompt", "receiver_thread_ids"].into_iter().filter_map(|key| {
        let value =
            item.get(key).filter(|value| !value.is_null() && value.as_array().is_none_or(|all| !all.is_empty()))?;
        Some((key.to_owned(), value.clone()))
    });
    Value::Object(known.collect())
}

/// Parses `Reconnecting... 1/5 (why)`. The last error is reported again when the message has failed.
fn retry(message: &str) -> Option<Step> {
    let rest = message.strip_prefix("Reconnecting...")?.trim_start();
    let (count, error) = rest
        .split_once('(')
        .map_or((rest, rest), |(count, error)| (count.trim(), error.strip_suffix(')').unwrap_or(error)));
    let attempt = count.split('/').next().and_then(|count| count.trim().parse().ok()).unwrap_or(0);
    Some(Step::Retry { attempt, status: status(error), error: error.to_owned(), delay_ms: None })
}

/// Returns the HTTP status in an error message.
fn status(error: &str) -> Option<u16> {
    let mut rest = error;
    while let Some((_, after)) = rest.split_once("status") {
        let number: String = after.trim_start_matches([':', ' ']).chars().take_while(char::is_ascii_digit).collect();
        if number.len() == 3 {
            return number.parse().ok();
        }
        rest = after;
    }
    None
}

/// Returns the ending for a failure. A conversation that its model cannot take and an answer that reaches its token limit
/// are the agent's fault; any other failure is the provider's.
fn failure(message: Option<&str>) -> Ending {
    let message = message.unwrap_or("no reason given");
    let reason = serde_json::from_str::<Value>(message)
        .ok()
        .and_then(|error| Some(error.pointer("/error/message")?.as_str()?.to_owned()))
        .unwrap_or_else(|| message.to_owned());
    if message.contains("max_output_tokens") || llm::is_agents_doing(status(message), message) {
        Ending::GaveUp { reason }
    } else {
        Ending::ProviderFailed { reason }
    }
}

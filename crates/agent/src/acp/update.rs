//! Reads the updates of a session as steps. Updates arrive in small pieces: the texts of a model message are joined, and
//! a call is recorded when its arguments are known. Unknown updates are ignored; the caller keeps every line unchanged.

use std::collections::{BTreeMap, HashSet};

use model::{Step, Tokens, ToolCall, ToolResult, Usage};
use serde_json::Value;

use super::tool::Reported;
use crate::json::{items, owned, plain, text};

/// Kinds of updates without a step: they describe the session, or repeat what the user or the agent sent elsewhere. The
/// record has them as lines of output.
const SILENT: [&str; 11] = [
    "compaction_summary_chunk",
    "session_message",
    "session_message_chunk",
    "available_commands_update",
    "config_option_update",
    "current_mode_update",
    "current_model_update",
    "session_info_update",
    "usage_update",
    "user_message_chunk",
    "plan_removed",
];

/// Interprets the updates of a whole conversation.
#[derive(Debug, Default)]
pub(super) struct Interpreter {
    /// Number of the model message in progress.
    message: usize,
    /// Id of that message, if the agent reports one.
    message_id: Option<String>,
    /// True if the next text or call begins a new model message.
    begins: bool,
    text: String,
    thinking: String,
    /// Sub-agent that wrote the text in progress.
    parent: Option<String>,
    /// Calls of the message to which the agent replies, with their ids in the record, in the order in which they began.
    calls: Vec<(String, Call)>,
    /// Text of the last model message.
    answer: String,
    tokens: Option<Tokens>,
    /// True if a part of the tokens could not be read.
    miscounts: bool,
    /// Cost of the session so far.
    cost_usd: Option<f64>,
    /// Cost of the session at the start of the reply.
    cost_before: f64,
    hides_cost: bool,
    /// True if a call was reported without the name of its tool, or without its arguments.
    is_incomplete: bool,
    /// Unknown kinds of updates, with their number.
    unknown: BTreeMap<String, usize>,
    /// True if the text of an update could not be read.
    has_unreadable_text: bool,
    /// Ids of all calls of the conversation.
    ids: HashSet<String>,
    /// Calls that started sub-agents, by the session of the sub-agent.
    children: BTreeMap<String, String>,
}

#[derive(Debug, Default)]
struct Call {
    /// Id that the agent gave it; empty if it gave none.
    given_id: String,
    reported: Reported,
    message: usize,
    parent: Option<String>,
    is_recorded: bool,
    is_over: bool,
}

impl Interpreter {
    /// Prepares for the reply to a user message.
    pub(super) fn begin(&mut self) {
        self.calls.clear();
        self.answer.clear();
        (self.begins, self.message_id, self.tokens, self.is_incomplete) = (true, None, None, false);
        (self.miscounts, self.has_unreadable_text) = (false, false);
        self.cost_before = self.cost_usd.unwrap_or_default();
    }

    /// Prepares for a session that is resumed. Some agents then count its cost from zero and some do not, so the cost of
    /// the following replies is unknown.
    pub(super) fn resume(&mut self) {
        self.hides_cost = true;
    }

    /// Reads an update. `child` is the session of the sub-agent that it is about, if it is not the agent's own. `terminal`
    /// returns the output of a terminal.
    pub(super) fn read(
        &mut self,
        update: &Value,
        child: Option<&str>,
        terminal: impl Fn(&str) -> Option<String>,
    ) -> Vec<Step> {
        if child.is_none() {
            self.meter(update);
        }
        let parent = update.pointer("/_meta/claudeCode/parentToolUseId").and_then(Value::as_str).map(str::to_owned);
        // A sub-agent need not have been started by a call.
        let parent = parent.or_else(|| {
            let child = child?;
            Some(self.children.get(child).map_or(child, String::as_str).to_owned())
        });
        match text(update, "sessionUpdate").unwrap_or_default() {
            "agent_message_chunk" => self.write(update, parent, false),
            "agent_thought_chunk" => self.write(update, parent, true),
            "tool_call" | "tool_call_update" => self.call(update, parent, terminal),
            "plan" | "plan_update" => vec![plan(update)],
            kind @ ("notice" | "compaction_update" | "subagent_update") => {
                notice(kind, update).map(|text| Step::Notice { from: "agent".to_owned(), text }).into_iter().collect()
            }
            silent if SILENT.contains(&silent) => Vec::new(),
            unknown => {
                // It may have been a call.
                let may_be_call = ["tool", "call"].iter().any(|word| unknown.to_ascii_lowercase().contains(word));
                self.is_incomplete |= unknown.is_empty() || may_be_call || update.get("toolCallId").is_some();
                *self.unknown.entry(unknown.to_owned()).or_default() += 1;
                Vec::new()
            }
        }
    }

    /// Reads the call for which the agent asks permission, and records it. Some agents report it only there. Returns
    /// its id.
    pub(super) fn asks(&mut self, call: &Value) -> (String, Vec<Step>) {
        let (index, mut steps) = self.merge(call);
        steps.extend(self.record(index));
        (self.calls[index].0.clone(), steps)
    }

    /// Returns `true` if a call of the reply may have one of these kinds.
    pub(super) fn may_have_called(&self, kinds: &[&str]) -> bool {
        let is_open = |kind: &str| matches!(kind, "" | "other") || kinds.contains(&kind);
        self.calls.iter().any(|(_, call)| is_open(&call.reported.kind))
    }

    /// Returns `true` if the text of an update could not be read.
    pub(super) fn has_unreadable_text(&self) -> bool {
        self.has_unreadable_text
    }

    /// Returns the recorded call with this id.
    pub(super) fn reported(&self, id: &str) -> Option<&Reported> {
        self.calls.iter().rev().find(|(known, _)| known == id).map(|(_, call)| &call.reported)
    }

    /// Returns the steps that were not recorded yet, at the end of a reply.
    pub(super) fn end(&mut self) -> Vec<Step> {
        let mut steps = self.flush();
        for index in 0..self.calls.len() {
            steps.extend(self.record(index));
        }
        if self.is_incomplete {
            steps.push(Step::CallsUnreported);
        }
        steps
    }

    /// Returns the text of the last model message.
    pub(super) fn answer(&self) -> Option<String> {
        Some(self.answer.clone()).filter(|answer| !answer.is_empty())
    }

    /// Returns the usage of the reply. `response` is the response to the prompt.
    pub(super) fn usage(&mut self, response: &Value) -> Usage {
        let reported = response.get("usage").and_then(tokens);
        let quota = || response.pointer("/_meta/quota/token_count").and_then(tokens);
        let tokens = reported.or_else(quota).or(self.tokens.filter(|_| !self.miscounts));
        let cost = self.cost_usd.filter(|_| !self.hides_cost).map(|cost| (cost - self.cost_before).max(0.0));
        Usage { tokens, cost_usd: cost }
    }

    /// Returns the unknown kinds of updates, with their number.
    pub(super) fn unknown(&self) -> impl Iterator<Item = (&str, usize)> {
        self.unknown.iter().map(|(kind, count)| (kind.as_str(), *count))
    }

    fn meter(&mut self, update: &Value) {
        if let Some(usage) = update.pointer("/_meta/usage").filter(|usage| !usage.is_null()) {
            match tokens(usage) {
                Some(usage) => *self.tokens.get_or_insert_default() += usage,
                None => self.miscounts = true,
            }
        }
        let is_dollars = update.pointer("/cost/currency").and_then(Value::as_str).is_none_or(|name| name == "USD");
        if let Some(cost) = update.pointer("/cost/amount").and_then(Value::as_f64).filter(|_| is_dollars) {
            self.cost_usd = Some(cost);
        }
    }

    /// Begins a new model message if the last one is over.
    fn open(&mut self, message: Option<String>) -> Vec<Step> {
        let is_another = message.is_some() && self.message_id.is_some() && message != self.message_id;
        if message.is_some() {
            self.message_id = message;
        }
        if !(self.begins || is_another) {
            return Vec::new();
        }
        let steps = self.flush();
        self.begins = false;
        self.message += 1;
        self.answer.clear();
        steps
    }

    fn write(&mut self, update: &Value, parent: Option<String>, is_thought: bool) -> Vec<Step> {
        let Some(piece) = piece(update.get("content").unwrap_or(&Value::Null)) else {
            self.has_unreadable_text = true;
            return Vec::new();
        };
        if piece.is_empty() {
            return Vec::new();
        }
        let mut steps = self.open(owned(update, "messageId"));
        let other = if is_thought { &self.text } else { &self.thinking };
        if !other.is_empty() || parent != self.parent {
            steps.extend(self.flush());
        }
        self.parent = parent;
        if is_thought {
            self.thinking.push_str(&piece);
        } else {
            self.text.push_str(&piece);
            if self.parent.is_none() {
                self.answer.push_str(&piece);
            }
        }
        steps
    }

    fn call(&mut self, update: &Value, parent: Option<String>, terminal: impl Fn(&str) -> Option<String>) -> Vec<Step> {
        let (index, mut steps) = self.merge(update);
        let id = self.calls[index].0.clone();
        steps.extend(self.flush());
        if let Some((_, call)) = self.calls.get_mut(index) {
            call.parent = call.parent.take().or(parent);
        }
        for session in items(update, "content").iter().filter(|part| text(part, "type") == Some("session")) {
            self.children.extend(owned(session, "sessionId").map(|session| (session, id.clone())));
        }
        let (status, is_over) = (text(update, "status").unwrap_or_default(), is_over(update));
        let Some((_, call)) = self.calls.get(index) else { return steps };
        if is_over || (status == "in_progress" && call.reported.has_input()) {
            steps.extend(self.record(index));
        }
        if let Some((id, call)) = self.calls.get_mut(index).filter(|(_, call)| is_over && !call.is_over) {
            call.is_over = true;
            let (content, is_error) = call.reported.result(status == "failed", terminal);
            steps.push(Step::ToolResult(ToolResult { id: id.clone(), content, is_error }));
            self.begins = true;
        }
        steps
    }

    /// Returns the call that an update is about; `None` if it begins a new one. Some agents use an id again.
    fn known(&self, given_id: &str, update: &Value) -> Option<usize> {
        let index = self.calls.iter().rposition(|(_, call)| call.given_id == given_id)?;
        let call = &self.calls[index].1;
        let has_same_input =
            || update.get("rawInput").is_none_or(|input| input.is_null() || *input == call.reported.input);
        let repeats = || is_over(update) && has_same_input();
        let begins = text(update, "sessionUpdate") == Some("tool_call");
        let is_another = begins && (given_id.is_empty() || call.is_over && !repeats());
        (!is_another).then_some(index)
    }

    /// Adds the content of an update to its call. Returns the place of the call, and the steps before it.
    fn merge(&mut self, update: &Value) -> (usize, Vec<Step>) {
        let given_id = plain(update.get("toolCallId").unwrap_or(&Value::Null));
        // Updates of such calls cannot be told apart.
        self.is_incomplete |= given_id.is_empty();
        let (index, steps) = match self.known(&given_id, update) {
            Some(index) => (index, Vec::new()),
            None => {
                let steps = self.open(None);
                let mut id = if given_id.is_empty() { "call".to_owned() } else { given_id.clone() };
                if self.ids.contains(&id) {
                    id = format!("{id}#{}", self.ids.len() + 1);
                }
                self.ids.insert(id.clone());
                let call = Call { given_id: given_id.clone(), message: self.message, ..Call::default() };
                self.calls.push((id, call));
                (self.calls.len() - 1, steps)
            }
        };
        self.calls[index].1.reported.merge(update, &given_id);
        (index, steps)
    }

    /// Returns the step of a call, once.
    fn record(&mut self, index: usize) -> Vec<Step> {
        let mut steps = self.flush();
        let Some((id, call)) = self.calls.get_mut(index).filter(|(_, call)| !call.is_recorded) else { return steps };
        call.is_recorded = true;
        let canonical = call.reported.canonical();
        self.is_incomplete |= !canonical.is_named || !canonical.has_arguments;
        let mut step = ToolCall::new(id.as_str(), canonical.name, canonical.input, message(call.message));
        step.raw_name = canonical.raw_name;
        step.parent.clone_from(&call.parent);
        steps.push(Step::ToolCall(step));
        steps
    }

    /// Returns the texts of the message in progress.
    fn flush(&mut self) -> Vec<Step> {
        let (message, parent) = (message(self.message), self.parent.clone());
        let mut steps = Vec::new();
        if !self.thinking.is_empty() {
            let text = std::mem::take(&mut self.thinking);
            steps.push(Step::Thinking { message: message.clone(), text, parent: parent.clone() });
        }
        if !self.text.is_empty() {
            steps.push(Step::Text { message, text: std::mem::take(&mut self.text), parent });
        }
        steps
    }
}

fn message(number: usize) -> String {
    format!("message-{number}")
}

/// Returns `true` if a call is over after this update.
fn is_over(update: &Value) -> bool {
    matches!(text(update, "status"), Some("completed" | "failed"))
}

/// Returns the text in the content of a piece of a message; `None` if it cannot be read. Some agents send the text itself,
/// or a list of blocks.
fn piece(content: &Value) -> Option<String> {
    match content {
        Value::Null => Some(String::new()),
        Value::String(text) => Some(text.clone()),
        Value::Array(blocks) => blocks.iter().map(piece).collect(),
        Value::Object(block) => match text(content, "type") {
            Some("text") | None => {
                block.get("text").map_or(Some(String::new()), |text| text.as_str().map(str::to_owned))
            }
            Some("resource_link") => Some(owned(content, "uri").unwrap_or_default()),
            Some(other) => Some(format!("[{other}]")),
        },
        Value::Bool(_) | Value::Number(_) => None,
    }
}

/// Reads the counts of tokens. The counts of the protocol do not overlap; agents whose total shows that the input
/// includes what was cached are corrected.
fn tokens(usage: &Value) -> Option<Tokens> {
    let found = |names: [&str; 2]| names.iter().find_map(|name| usage.get(name)).filter(|count| !count.is_null());
    let count = |names: [&str; 2]| found(names).and_then(Value::as_u64);
    // A count that cannot be read is not 0.
    let optional = |names: [&str; 2]| found(names).map_or(Some(0), Value::as_u64);
    let (input, output) = (count(["inputTokens", "input_tokens"])?, count(["outputTokens", "output_tokens"])?);
    let cache_read = optional(["cachedReadTokens", "cached_read_tokens"])?;
    let cache_write = optional(["cachedWriteTokens", "cached_write_tokens"])?;
    let total = count(["totalTokens", "total_tokens"]);
    let includes_cache = total == Some(input.saturating_add(output));
    Some(Tokens {
        input: if includes_cache { input.saturating_sub(cache_read.saturating_add(cache_write)) } else { input },
        output,
        cache_read,
        cache_write,
        reasoning: count(["thoughtTokens", "thought_tokens"]),
    })
}

/// Returns the text of an update that is for the user.
fn notice(kind: &str, update: &Value) -> Option<String> {
    let (title, more) = (text(update, "title"), text(update, "description"));
    let described = match (title, more) {
        (Some(title), Some(more)) => Some(format!("{title}: {more}")),
        (title, more) => title.or(more).map(str::to_owned),
    };
    match kind {
        "subagent_update" => described.map(|described| format!("sub-agent: {described}")),
        "compaction_update" => match text(update, "status") {
            Some("in_progress") => None,
            Some("completed") => Some("the conversation was compacted".to_owned()),
            status => {
                let reason = text(update, "error").map(|error| format!(": {error}")).unwrap_or_default();
                Some(format!("the compaction of the conversation ended as {}{reason}", status.unwrap_or("unknown")))
            }
        },
        _ => described.or_else(|| owned(update, "text")).or_else(|| owned(update, "message")),
    }
}

fn plan(update: &Value) -> Step {
    let plan = update.get("plan").unwrap_or(update);
    if let Some(written) = text(plan, "content") {
        return Step::Notice { from: "agent".to_owned(), text: format!("plan: {written}") };
    }
    let entry = |entry: &Value| {
        format!("[{}] {}", text(entry, "status").unwrap_or("pending"), text(entry, "content").unwrap_or_default())
    };
    let entries: Vec<String> = items(plan, "entries").iter().map(entry).collect();
    Step::Notice { from: "agent".to_owned(), text: format!("plan: {}", entries.join("; ")) }
}

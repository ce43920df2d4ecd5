//! Reads the file in which Claude Code keeps a session: `projects/FOLDER/ID.jsonl` in its configuration folder. Its
//! format is not documented, so nothing in it is assumed to exist.

use std::collections::{HashMap, HashSet};

use model::{Effect, Ending, Source, Span, Step, Tokens, Usage};
use serde_json::{Map, Value};

use super::event::{SYNTHETIC, step, tool_result};
use super::meter::parse_usage;
use crate::conversation::Conversation;
use crate::json::{items, owned, text, texts};
use crate::json_lines::JsonLines;

/// Beginning of the text that the CLI adds when the user interrupts the agent.
const INTERRUPTION: &str = "[Request interrupted by user";

/// Types of blocks that are neither text nor part of a call.
const OTHER_BLOCKS: [&str; 4] = ["image", "document", "container_upload", "compaction"];

/// Returns `true` if `line` is a line of such a file.
pub(crate) fn is_line(line: &Map<String, Value>) -> bool {
    let is_text = |key: &str| line.get(key).is_some_and(Value::is_string);
    is_text("type") && (is_text("sessionId") || (is_text("summary") && is_text("leafUuid")))
}

/// Reads the session.
pub(crate) fn read(lines: &mut JsonLines<'_>) -> Conversation {
    let mut rows = Rows::default();
    for line in lines.by_ref() {
        rows.add(line.span, Value::Object(line.value));
    }
    SessionReader {
        source: lines.source,
        rows: &rows,
        read: Conversation::of_agent("claude-code"),
        state: State::default(),
    }
    .read()
}

/// Rows of the file, which form a tree: going back to an earlier message begins another branch.
#[derive(Default)]
struct Rows {
    rows: Vec<Row>,
    nodes: HashMap<String, Node>,
}

struct Row {
    span: Span,
    value: Value,
}

/// Place of a row in the tree. Parents come before their children.
#[derive(Default)]
struct Node {
    parent: Option<String>,
    /// Nearest row with a message of the user, which may be this one.
    prompt: Option<usize>,
    /// First row of the sub-agent.
    root: usize,
}

impl Rows {
    fn add(&mut self, span: Span, value: Value) {
        let index = self.rows.len();
        if let Some(id) = text(&value, "uuid") {
            let parent = owned(&value, "parentUuid").or_else(|| owned(&value, "logicalParentUuid"));
            let before = parent.as_ref().and_then(|parent| self.nodes.get(parent));
            let has_prompt = text(&value, "type") == Some("user") && prompt(&value).is_some();
            let node = Node {
                prompt: if has_prompt { Some(index) } else { before.and_then(|node| node.prompt) },
                root: before.map_or(index, |node| node.root),
                parent,
            };
            self.nodes.insert(id.to_owned(), node);
        }
        self.rows.push(Row { span, value });
    }

    fn node(&self, row: &Value) -> Option<&Node> {
        self.nodes.get(text(row, "uuid")?)
    }

    /// Returns the rows with messages of the user in the branch that was used last.
    fn last_branch(&self) -> HashSet<usize> {
        let is_said = |row: &&Row| matches!(text(&row.value, "type"), Some("user" | "assistant"));
        let last = self.rows.iter().rev().filter(is_said).find(|row| !is_sub_agents(&row.value));
        let mut prompts = HashSet::new();
        let mut next = last.and_then(|row| self.node(&row.value));
        // A damaged file may have a circle.
        for _ in 0..self.rows.len() {
            let Some(node) = next else { break };
            prompts.extend(node.prompt);
            next = node.parent.as_ref().and_then(|parent| self.nodes.get(parent));
        }
        prompts
    }

    /// Returns the first message to the sub-agent to which a row belongs.
    fn order_of(&self, row: &Value) -> Option<String> {
        prompt(&self.rows.get(self.node(row)?.root)?.value)
    }
}

/// Reads the rows in order.
struct SessionReader<'a> {
    source: &'a Source,
    rows: &'a Rows,
    read: Conversation,
    state: State,
}

#[derive(Default)]
struct State {
    /// Calls without a result.
    open: Vec<String>,
    /// Calls that start a sub-agent, by its first message.
    orders: HashMap<String, String>,
    /// Calls that start a sub-agent whose rows have not been seen.
    started: HashMap<String, Span>,
    /// Usage of each message of the model, with the message of the user. Every row of it contains the usage.
    usage: HashMap<String, (usize, Tokens)>,
    /// Cost of the session so far.
    cost_usd: f64,
    /// Why the last message ended.
    ended: Ended,
}

/// Last event of a session.
#[derive(Default)]
enum Ended {
    /// The user sent a message.
    #[default]
    Asked,
    /// The model wrote a message and stopped for this reason, if it is known.
    Stopped(Option<String>),
    /// The user interrupted the agent.
    Interrupted,
    /// The model could not be reached.
    Failed(String),
}

impl SessionReader<'_> {
    fn read(mut self) -> Conversation {
        let branch = self.rows.last_branch();
        let mut abandoned: Option<Span> = None;
        for row in &self.rows.rows {
            let prompt = self.rows.node(&row.value).and_then(|node| node.prompt);
            if prompt.is_some_and(|prompt| !branch.contains(&prompt)) && !is_sub_agents(&row.value) {
                abandoned.get_or_insert(row.span);
                continue;
            }
            self.row(row);
        }
        if let Some(span) = abandoned {
            let what = "the user went back to an earlier message; the conversation that was given up is not read";
            self.read.note(self.source, span, what.to_owned());
        }
        let started: Vec<Span> = self.state.started.values().copied().collect();
        if let Some(span) = started.into_iter().min_by_key(|span| span.start()) {
            let what = "the steps of a sub-agent are in a file of their own, which is not read";
            self.read.is_incomplete(self.source, span, what.to_owned());
        }
        self.read.ending = self.ending();
        for (message, used) in self.state.usage.values() {
            self.read.spend(*message, Usage { tokens: Some(*used), cost_usd: None });
        }
        self.read.close();
        self.read
    }

    fn ending(&self) -> Ending {
        let reason = match &self.state.ended {
            Ended::Failed(reason) => return Ending::ProviderFailed { reason: reason.clone() },
            Ended::Interrupted => "its user interrupted the agent".to_owned(),
            Ended::Asked if self.read.messages.is_empty() => "the file has no message of a user".to_owned(),
            Ended::Asked => "the session ends before the agent has answered the last message".to_owned(),
            Ended::Stopped(_) if !self.state.open.is_empty() => {
                "the session ends before a tool call has a result".to_owned()
            }
            Ended::Stopped(reason) => match reason.as_deref() {
                Some("tool_use" | "pause_turn") => "the session ends before the agent has answered".to_owned(),
                Some("max_tokens") => {
                    let reason = "its answer is longer than the model's limit".to_owned();
                    return Ending::GaveUp { reason };
                }
                Some("refusal") => return Ending::GaveUp { reason: "the model refused to answer".to_owned() },
                _ => return Ending::Finished,
            },
        };
        Ending::Aborted { reason }
    }

    fn row(&mut self, row: &Row) {
        let value = &row.value;
        match text(value, "type").unwrap_or_default() {
            "user" => self.user(row),
            "assistant" => self.assistant(row),
            "attachment" => self.attachment(value),
            "cost-state" => self.cost(value),
            "system" => {}
            // Requests to the model repeat the conversation.
            kind if kind == "progress" || kind.starts_with("api-request") => {}
            kind if value.get("message").is_some_and(|message| message.get("content").is_some()) => {
                self.read.is_incomplete(self.source, row.span, format!("rows of the type `{kind}` are not known"));
            }
            _ => {}
        }
    }

    /// Reads the cost of the session so far, which a process of some versions counts from 0.
    fn cost(&mut self, value: &Value) {
        let Some(total) = value.get("totalCostUSD").and_then(Value::as_f64) else { return };
        let since = if total >= self.state.cost_usd { total - self.state.cost_usd } else { total };
        self.state.cost_usd = total;
        self.read.spend(self.read.message(), Usage { tokens: None, cost_usd: Some(since) });
    }

    /// Remembers where the session began.
    fn begin(&mut self, value: &Value) {
        let origin = &mut self.read.origin;
        if origin.begun_at.is_none() {
            origin.begun_at = owned(value, "timestamp");
            origin.directory = owned(value, "cwd");
            origin.branch = owned(value, "gitBranch").filter(|branch| !branch.is_empty() && branch != "HEAD");
            self.read.session_id = owned(value, "sessionId");
            self.read.agent_version = owned(value, "version");
        }
    }

    /// Reads the state of the repository at the beginning of the session.
    fn attachment(&mut self, value: &Value) {
        let status = value.pointer("/attachment/context/gitStatus").and_then(Value::as_str);
        let Some(status) = status.filter(|_| self.read.origin.commit.is_none()) else { return };
        let after = |heading: &str| status.lines().skip_while(|line| *line != heading).nth(1);
        self.read.origin.is_clean = after("Status:").map(|line| line == "(clean)");
        let commit = after("Recent commits:").and_then(|line| line.split_whitespace().next());
        let is_hash = |word: &&str| word.len() >= 7 && word.chars().all(|letter| letter.is_ascii_hexdigit());
        self.read.origin.commit = commit.filter(is_hash).map(str::to_owned);
    }

    /// Reads a message of the user, or results of calls.
    fn user(&mut self, row: &Row) {
        let value = &row.value;
        let results = items(&value["message"], "content").iter();
        for block in results.filter(|block| text(block, "type") == Some("tool_result")) {
            match tool_result(block) {
                Some(result) => {
                    self.state.open.retain(|id| *id != result.id);
                    let denied =
                        value.get("permissionDecision").is_some_and(|it| text(it, "decision") == Some("reject"));
                    if denied {
                        self.denied(&result.id, &result.content);
                    }
                    self.read.push(Step::ToolResult(result));
                }
                None => {
                    let what = "a result of a tool does not name its call".to_owned();
                    self.read.is_incomplete(self.source, row.span, what);
                }
            }
        }
        if is_sub_agents(value) {
            return;
        }
        let Some(prompt) = prompt(value) else { return };
        if prompt.starts_with(INTERRUPTION) {
            self.state.ended = Ended::Interrupted;
            return;
        }
        self.begin(value);
        self.state.ended = Ended::Asked;
        self.state.open.clear();
        self.read.user(prompt);
    }

    fn denied(&mut self, id: &str, message: &str) {
        let called = self.read.steps.iter().rev().find_map(|(_, step)| match step {
            Step::ToolCall(call) if call.id == id => Some((call.name.clone(), call.effect)),
            _ => None,
        });
        // Asking the user does not count as a denied permission.
        if let Some((tool, effect)) = called
            && effect != Effect::Ask
        {
            let (call_id, message) = (Some(id.to_owned()), message.to_owned());
            self.read.push(Step::PermissionDenied { tool, call_id, message });
        }
    }

    fn assistant(&mut self, row: &Row) {
        let value = &row.value;
        let message = value.get("message").unwrap_or(&Value::Null);
        let Some(blocks) = message.get("content").and_then(Value::as_array) else {
            return self.read.is_incomplete(self.source, row.span, "a message of the model has no content".to_owned());
        };
        if text(message, "model") == Some(SYNTHETIC) || value.get("isApiErrorMessage") == Some(&Value::Bool(true)) {
            let said = blocks.iter().filter_map(|block| text(block, "text")).collect::<Vec<_>>().join("\n");
            if value.get("isApiErrorMessage") == Some(&Value::Bool(true)) || value.get("error").is_some() {
                self.state.ended = Ended::Failed(said.clone());
            }
            return self.read.push(Step::Notice { from: "agent".into(), text: said });
        }
        let is_sub_agents = is_sub_agents(value);
        let parent = is_sub_agents.then(|| self.parent(value));
        let id = text(message, "id").or_else(|| text(value, "uuid")).unwrap_or_default();
        if let Some(used) = message.get("usage").and_then(parse_usage) {
            self.state.usage.insert(id.to_owned(), (self.read.message(), used));
        }
        if !is_sub_agents {
            self.read.model = owned(message, "model").or(self.read.model.take());
            self.state.ended = Ended::Stopped(owned(message, "stop_reason"));
        }
        for block in blocks {
            let kind = text(block, "type").unwrap_or_default();
            let read = match kind {
                _ if kind.ends_with("tool_result") => tool_result(block).map(Step::ToolResult),
                _ => step(block, id, parent.as_ref()),
            };
            match read {
                Some(step) => self.step(step, row.span),
                None if kind == "text" || OTHER_BLOCKS.contains(&kind) => {}
                None => {
                    let what = format!("a block of the type `{kind}` is not understood");
                    self.read.is_incomplete(self.source, row.span, what);
                }
            }
        }
    }

    fn step(&mut self, step: Step, span: Span) {
        match &step {
            Step::ToolCall(call) if call.parent.is_none() => {
                self.state.open.push(call.id.clone());
                if let Some(order) = call.input.get("prompt").and_then(Value::as_str)
                    && ["Agent", "Task"].contains(&call.name.as_str())
                {
                    self.state.orders.insert(order.to_owned(), call.id.clone());
                    self.state.started.insert(call.id.clone(), span);
                }
            }
            Step::ToolResult(result) => self.state.open.retain(|id| *id != result.id),
            _ => {}
        }
        self.read.push(step);
    }

    /// Returns the call that started the sub-agent to which a row belongs.
    fn parent(&mut self, value: &Value) -> String {
        let call = self.rows.order_of(value).and_then(|order| self.state.orders.get(&order));
        match call {
            Some(call) => {
                self.state.started.remove(call);
                call.clone()
            }
            None => "sub-agent".to_owned(),
        }
    }
}

/// Returns `true` if a row belongs to a sub-agent.
fn is_sub_agents(row: &Value) -> bool {
    row.get("isSidechain") == Some(&Value::Bool(true))
}

/// Returns the message of the user in a row; `None` if the row has none: the CLI adds messages of its own, and results
/// of calls.
fn prompt(row: &Value) -> Option<String> {
    let is_set = |key: &str| row.get(key) == Some(&Value::Bool(true));
    if is_set("isMeta") || is_set("isCompactSummary") {
        return None;
    }
    let content = row.get("message")?.get("content")?;
    let said = match content {
        Value::Array(blocks) => {
            let own: Vec<Value> =
                blocks.iter().filter(|block| text(block, "type") != Some("tool_result")).cloned().collect();
            if own.is_empty() {
                return None;
            }
            texts(&Value::Array(own))
        }
        other => texts(other),
    };
    let between = |tag: &str| {
        let (_, rest) = said.split_once(&format!("<{tag}>"))?;
        rest.split_once(&format!("</{tag}>")).map(|(inner, _)| inner.trim())
    };
    if let Some(command) = between("command-name") {
        let arguments = between("command-args").unwrap_or_default();
        return Some(format!("{command} {arguments}").trim().to_owned());
    }
    let of_cli = ["<local-command-", "<bash-", "Caveat: The messages below were generated"];
    (!said.is_empty() && !of_cli.iter().any(|start| said.starts_with(start))).then_some(said)
}

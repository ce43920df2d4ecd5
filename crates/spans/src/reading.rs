//! What one span says, in terms that all conventions share.

use model::Tokens;
use serde_json::{Map, Value};

use crate::chat_message::{ChatMessage, GivenResult};

/// Kind of work that a span reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A request to a model.
    Model,
    /// A tool call.
    Tool,
    /// The work of an agent.
    Agent,
    /// Another part of an agent's work, such as a step of a chain or a retrieval.
    Part,
}

/// What a span says; absent parts are not recorded.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Reading {
    pub(crate) kind: Option<Kind>,
    /// Conventions that it follows, by name.
    pub(crate) conventions: Vec<&'static str>,
    /// Name of the agent or the tool.
    pub(crate) name: Option<String>,
    pub(crate) model: Option<String>,
    /// Id that the provider gave to the answer of the model.
    pub(crate) response_id: Option<String>,
    pub(crate) tokens: Count,
    pub(crate) cost_usd: Option<f64>,
    /// Answer of the model.
    pub(crate) output: Option<ChatMessage>,
    /// Reasons for which the model stopped.
    pub(crate) finish: Vec<String>,
    /// Results of earlier calls in the request to the model.
    pub(crate) results: Vec<GivenResult>,
    /// Calls in the request to the model after the last message of the user.
    pub(crate) earlier_calls: Vec<EarlierCall>,
    /// Last message of the user in the request to the model.
    pub(crate) question: Option<String>,
    pub(crate) call_id: Option<String>,
    pub(crate) arguments: Option<Value>,
    pub(crate) result: Option<String>,
    /// True if the tool reports an error in its result.
    pub(crate) failed: bool,
}

/// Call that a request to a model contains, itself or by its result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EarlierCall {
    pub(crate) id: Option<String>,
    /// Name of the tool; results may have none.
    pub(crate) name: Option<String>,
}

/// Token counts as spans report them: all input, of which some was cached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) input: Option<u64>,
    pub(crate) output: Option<u64>,
    pub(crate) cache_read: Option<u64>,
    pub(crate) cache_write: Option<u64>,
    pub(crate) reasoning: Option<u64>,
}

impl Count {
    /// Returns the tokens; `None` unless input and output are known.
    pub(crate) fn tokens(&self) -> Option<Tokens> {
        let (read, write) = (self.cache_read.unwrap_or(0), self.cache_write.unwrap_or(0));
        let (all, output) = (self.input?, self.output?);
        // Some libraries leave cached tokens out of the input, which cannot be smaller than its parts.
        let input = all.checked_sub(read.saturating_add(write)).unwrap_or(all);
        Some(Tokens { input, cache_read: read, cache_write: write, output, reasoning: self.reasoning })
    }
}

impl Reading {
    /// Takes over what `other` says and this reading does not.
    pub(crate) fn complete(&mut self, other: Self) {
        // A span that one convention calls a part of the work may be a tool call or a model request in another one.
        if self.kind.is_none_or(|kind| kind == Kind::Part) {
            self.kind = other.kind.or(self.kind);
        }
        keep(&mut self.name, other.name);
        keep(&mut self.model, other.model);
        keep(&mut self.response_id, other.response_id);
        keep(&mut self.cost_usd, other.cost_usd);
        keep(&mut self.question, other.question);
        keep(&mut self.call_id, other.call_id);
        keep(&mut self.arguments, other.arguments);
        keep(&mut self.result, other.result);
        keep(&mut self.tokens.input, other.tokens.input);
        keep(&mut self.tokens.output, other.tokens.output);
        keep(&mut self.tokens.cache_read, other.tokens.cache_read);
        keep(&mut self.tokens.cache_write, other.tokens.cache_write);
        keep(&mut self.tokens.reasoning, other.tokens.reasoning);
        let says_more = |ours: &ChatMessage, theirs: &ChatMessage| ours.calls.len() < theirs.calls.len();
        match (&mut self.output, other.output) {
            (Some(ours), Some(theirs)) if says_more(ours, &theirs) => *ours = theirs,
            (ours, theirs) => keep(ours, theirs),
        }
        if self.finish.is_empty() {
            self.finish = other.finish;
        }
        if self.results.is_empty() {
            self.results = other.results;
        }
        if self.earlier_calls.is_empty() {
            self.earlier_calls = other.earlier_calls;
        }
        self.failed |= other.failed;
    }

    /// Takes over what the messages of the request to the model say.
    pub(crate) fn hear(&mut self, input: Vec<ChatMessage>) {
        for message in input {
            let is_users = message.role.as_deref() == Some("user");
            // Some interfaces give the model its results in the name of the user.
            if is_users && message.results.is_empty() {
                self.earlier_calls.clear();
            }
            if is_users && !message.text.trim().is_empty() {
                self.question = Some(message.text);
            }
            let asked = message.calls.into_iter().map(|call| EarlierCall { id: call.id, name: Some(call.name) });
            self.earlier_calls.extend(asked);
            for GivenResult { id, name, .. } in &message.results {
                let is_it = |call: &EarlierCall| call.id == *id;
                if id.is_some() && !self.earlier_calls.iter().any(is_it) {
                    self.earlier_calls.push(EarlierCall { id: id.clone(), name: name.clone() });
                }
            }
            self.results.extend(message.results);
        }
    }

    /// Returns `true` if the model asked for tools according to the reason for which it stopped; `None` if there is no
    /// reason.
    pub(crate) fn asks_for_tools(&self) -> Option<bool> {
        let asks = |reason: &String| {
            let reason = reason.to_ascii_lowercase().replace('-', "_");
            matches!(reason.as_str(), "tool_calls" | "tool_call" | "tool_use" | "function_call")
        };
        // Gemini gives the reason `stop` also for calls.
        let is_silent = self.model.as_ref().is_some_and(|model| model.contains("gemini"));
        let asks = self.finish.iter().any(asks);
        (asks || !self.finish.is_empty() && !is_silent).then_some(asks)
    }
}

fn keep<T>(ours: &mut Option<T>, theirs: Option<T>) {
    if ours.is_none() {
        *ours = theirs;
    }
}

/// Access to attributes by several names, of which the first that exists counts.
pub(crate) struct Attributes<'a>(pub(crate) &'a Map<String, Value>);

impl<'a> Attributes<'a> {
    pub(crate) fn value(&self, names: &[&str]) -> Option<&'a Value> {
        names.iter().find_map(|name| self.0.get(*name)).filter(|value| !value.is_null())
    }

    pub(crate) fn text(&self, names: &[&str]) -> Option<&'a str> {
        names.iter().find_map(|name| self.0.get(*name)?.as_str()).filter(|text| !text.is_empty())
    }

    pub(crate) fn string(&self, names: &[&str]) -> Option<String> {
        self.text(names).map(str::to_owned)
    }

    /// Returns a count, which some libraries write as a floating-point number or as text.
    pub(crate) fn count(&self, names: &[&str]) -> Option<u64> {
        let read = |value: &Value| match value {
            Value::Number(number) => model::decode::as_whole(number),
            Value::String(text) => text.parse().ok(),
            _ => None,
        };
        names.iter().find_map(|name| read(self.0.get(*name)?))
    }

    pub(crate) fn number(&self, names: &[&str]) -> Option<f64> {
        let number = names.iter().find_map(|name| self.0.get(*name)?.as_f64());
        number.filter(|number| number.is_finite() && *number >= 0.0)
    }

    /// Returns the attributes whose names begin with `prefix` and a dot, as a tree: `a.0.b` is the key `b` in the key
    /// `0`. `None` if there are none.
    pub(crate) fn tree(&self, prefix: &str) -> Option<Value> {
        let mut tree = Map::new();
        for (name, value) in self.0 {
            let Some(path) = name.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('.')) else { continue };
            put(&mut tree, path, value);
        }
        (!tree.is_empty()).then_some(Value::Object(tree))
    }
}

/// Maximum number of parts of an attribute's name.
const MAX_PARTS: usize = 16;

fn put(tree: &mut Map<String, Value>, path: &str, value: &Value) {
    let mut parts = path.splitn(MAX_PARTS, '.').peekable();
    let mut at = tree;
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            at.entry(part).or_insert_with(|| value.clone());
            return;
        }
        let Value::Object(inner) = at.entry(part).or_insert_with(|| Value::Object(Map::new())) else { return };
        at = inner;
    }
}

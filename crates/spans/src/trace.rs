//! From spans to the steps of a trace.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use model::text::shortened;
use model::{Step, Tokens, ToolCall, ToolResult, Usage};
use serde_json::{Map, Value};

use crate::chat_message::{AskedCall, GivenResult};
use crate::convention;
use crate::reading::{EarlierCall, Kind, Reading};
use crate::span::{Span, SpanId, TraceId};

/// Maximum number of ancestors of a span that are looked at.
const MAX_DEPTH: usize = 200;

/// How much earlier a span may seem to end than its parts. In JavaScript, spans begin at whole milliseconds.
const CLOCK_STEP_NS: u64 = 2_000_000;

/// Arguments of a call that no span contains. They are not an object, so nothing is concluded from them.
const NO_ARGUMENTS: &str = "(not in the spans)";

/// Tool with which an agent delegates a task to another one that its spans show without a call.
const DELEGATION: &str = "Agent";

/// What an agent did, according to the spans of its program.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SpanTrace {
    /// Texts, tool calls and results, in order. Each request to a model is a message of its own, and a turn of the trace.
    pub steps: Vec<Step>,
    /// Usage of all model requests; a part is absent unless all of them report it.
    pub usage: Usage,
    /// Model, if all requests went to the same one.
    pub model: Option<String>,
    /// Last message of the user in the first request to a model.
    pub question: Option<String>,
    /// Text of the last answer of a model, other than those of sub-agents.
    pub answer: Option<String>,
    /// Number of requests to models, including those of sub-agents.
    pub model_requests: usize,
    /// Span that shows each tool call, in order.
    pub sources: Vec<CallSource>,
    /// Conventions that the spans follow, and the libraries that created them.
    pub conventions: Vec<(&'static str, Arc<str>)>,
    /// Names of the spans that follow no known convention, without duplicates.
    pub unknown: Vec<String>,
    /// Reason why there may be tool calls that the spans do not show; `None` if they show all.
    pub incomplete: Option<String>,
    /// Further remarks on what the spans do not say.
    pub notes: Vec<String>,
}

/// Span that shows a tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct CallSource {
    /// Id of the call in the steps.
    pub call: String,
    /// Name of the tool.
    pub tool: String,
    /// Span of the call, or of the request to the model that asked for it.
    pub span: SpanId,
    /// Name of that span.
    pub span_name: String,
}

/// Returns what an agent did, according to `spans`. They may come in any order, and several times. All of them are taken
/// to belong to the same conversation.
pub fn trace_from_spans(spans: &[Span]) -> SpanTrace {
    let forest = Forest::of(spans);
    let mut builder = Builder::default();
    for at in 0..forest.nodes.len() {
        match forest.kind(at) {
            Some(Kind::Model) => builder.model(&forest, at),
            Some(Kind::Tool) => builder.tool(&forest, at),
            Some(Kind::Agent) => builder.agent(&forest, at),
            Some(Kind::Part) | None => {}
        }
    }
    builder.finish(&forest)
}

/// Returns the span that contains all others in time, unless it is a model request or a tool call, which further ones may
/// follow.
pub fn whole_of(spans: &[Span]) -> Option<&Span> {
    let (first, last) = (spans.iter().map(|span| span.start_ns).min()?, spans.iter().map(|span| span.end_ns).max()?);
    let kind = |span: &Span| convention::read(span).and_then(|reading| reading.kind);
    let contains_all = |span: &&Span| {
        span.start_ns.saturating_sub(first) <= CLOCK_STEP_NS && last.saturating_sub(span.end_ns) <= CLOCK_STEP_NS
    };
    spans.iter().filter(contains_all).find(|span| !matches!(kind(span), Some(Kind::Model | Kind::Tool)))
}

/// Returns `true` if one of `spans` is a model request or a tool call.
pub fn shows_work<'a>(spans: impl IntoIterator<Item = &'a Span>) -> bool {
    let kind = |span: &Span| convention::read(span).and_then(|reading| reading.kind);
    spans.into_iter().any(|span| matches!(kind(span), Some(Kind::Model | Kind::Tool)))
}

/// Spans in the order of their beginnings, without duplicates, and what they say.
struct Forest<'a> {
    nodes: Vec<Node<'a>>,
    /// Ids of the calls that have a span.
    executed: HashSet<String>,
    index: HashMap<(&'a TraceId, &'a SpanId), usize>,
}

struct Node<'a> {
    span: &'a Span,
    reading: Option<Reading>,
}

impl<'a> Forest<'a> {
    fn of(spans: &'a [Span]) -> Self {
        let mut seen = HashSet::new();
        // A program may use an id twice, or none.
        let key = |span: &'a Span| (&span.trace, &span.id, span.start_ns, span.name.as_str());
        let mut spans: Vec<&Span> = spans.iter().filter(|span| span.id.is_empty() || seen.insert(key(span))).collect();
        // A span begins no later than its parts, and of spans that begin together, the longest is the whole.
        spans.sort_by_key(|span| (span.start_ns, std::cmp::Reverse(span.end_ns)));
        let index = spans.iter().enumerate().map(|(at, span)| ((&span.trace, &span.id), at)).collect();
        let nodes = spans.into_iter().map(|span| Node { span, reading: convention::read(span) }).collect();
        let mut forest = Self { nodes, executed: HashSet::new(), index };
        forest.join_layers();
        let readings = forest.nodes.iter().filter_map(|node| node.reading.as_ref());
        forest.executed =
            readings.filter(|it| it.kind == Some(Kind::Tool)).filter_map(|it| it.call_id.clone()).collect();
        forest
    }

    fn kind(&self, at: usize) -> Option<Kind> {
        self.nodes[at].reading.as_ref()?.kind
    }

    fn parent(&self, at: usize) -> Option<usize> {
        let span = self.nodes[at].span;
        self.index.get(&(&span.trace, span.parent.as_ref()?)).copied()
    }

    /// Returns the spans that contain a span, from the inside.
    fn ancestors(&self, at: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(self.parent(at), |at| self.parent(*at)).take(MAX_DEPTH)
    }

    /// Returns the nearest span around a span that is more than a part of the work.
    fn around(&self, at: usize) -> Option<usize> {
        self.ancestors(at).find(|at| matches!(self.kind(*at), Some(Kind::Model | Kind::Tool | Kind::Agent)))
    }

    /// Makes one span of those that several libraries created for the same request or call, one within the other.
    fn join_layers(&mut self) {
        for inner in (0..self.nodes.len()).rev() {
            let Some(kind @ (Kind::Model | Kind::Tool)) = self.kind(inner) else { continue };
            let around = self.around(inner).filter(|outer| self.kind(*outer) == Some(kind));
            let Some(outer) = around.or_else(|| self.twin(inner)) else { continue };
            let name = |at: usize| self.nodes[at].reading.as_ref().and_then(|reading| reading.name.clone());
            // A tool may call another tool. The innermost model request is the one that was sent.
            let (kept, given_up) = match kind {
                Kind::Model => (inner, outer),
                _ if name(inner) == name(outer) => (outer, inner),
                _ => continue,
            };
            let Some(layer) = self.nodes[given_up].reading.as_mut() else { continue };
            let layer =
                Reading { kind: None, ..std::mem::replace(layer, Reading { kind: Some(Kind::Part), ..layer.clone() }) };
            if let Some(kept) = &mut self.nodes[kept].reading {
                kept.complete(layer);
            }
        }
    }

    /// Returns the span that another library created for the same model request, without making it the parent: it takes
    /// as long, and has the same answer.
    fn twin(&self, at: usize) -> Option<usize> {
        let Node { span, reading: Some(reading) } = &self.nodes[at] else { return None };
        let is_twin = |other: &usize| {
            let Node { span: whole, reading: Some(of_whole) } = &self.nodes[*other] else { return false };
            let is_same_answer = match (&reading.response_id, &of_whole.response_id) {
                (Some(id), Some(other)) => id == other,
                _ => reading.model == of_whole.model,
            };
            of_whole.kind == Some(Kind::Model)
                && whole.scope != span.scope
                && whole.end_ns >= span.end_ns
                && is_same_answer
        };
        // Only few requests are sent at the same time.
        (at.saturating_sub(MAX_DEPTH)..at).rev().find(is_twin).filter(|_| reading.kind == Some(Kind::Model))
    }
}

/// A tool call.
struct Call {
    id: String,
    name: String,
    arguments: Option<Value>,
    message: String,
    parent: Option<String>,
    at_ns: u64,
    /// True if a model asked for it.
    is_asked: bool,
    /// True if there is a span for its execution.
    is_executed: bool,
    result: Option<(u64, ToolResult)>,
    source: usize,
}

/// A request to a model.
struct Request {
    at: usize,
    message: String,
    parent: Option<String>,
}

#[derive(Default)]
struct Builder {
    /// Texts, with the time of each.
    texts: Vec<(u64, Step)>,
    calls: Vec<Call>,
    requests: Vec<Request>,
    /// Call that started a sub-agent, by the span of the sub-agent or of the call.
    starts: HashMap<usize, String>,
    ids: HashSet<String>,
    question: Option<String>,
    answer: Option<String>,
}

impl Builder {
    /// Returns the call that started the sub-agent whose work a span is part of.
    fn owner(&self, forest: &Forest<'_>, at: usize) -> Option<String> {
        forest.ancestors(at).find_map(|at| self.starts.get(&at)).cloned()
    }

    fn model(&mut self, forest: &Forest<'_>, at: usize) {
        let (span, Some(reading)) = (forest.nodes[at].span, &forest.nodes[at].reading) else { return };
        let (parent, message) = (self.owner(forest, at), format!("span-{}", span.id));
        reading.results.iter().for_each(|result| self.given(result, span.start_ns));
        if self.requests.is_empty() {
            self.question.clone_from(&reading.question);
        }
        let output = reading.output.clone().unwrap_or_default();
        if !output.thinking.is_empty() {
            let step = Step::Thinking { message: message.clone(), text: output.thinking, parent: parent.clone() };
            self.texts.push((span.end_ns, step));
        }
        if parent.is_none() && !output.text.trim().is_empty() {
            self.answer = Some(output.text.clone());
        }
        // A request that failed is not a turn.
        if reading.output.is_some() || span.error.is_none() {
            let step = Step::Text { message: message.clone(), text: output.text, parent: parent.clone() };
            self.texts.push((span.end_ns, step));
        }
        for asked in output.calls {
            let AskedCall { id, name, arguments } = asked;
            let id = self.unique(id.unwrap_or_else(|| format!("{message}-call")));
            let (message, parent) = (message.clone(), parent.clone());
            let (is_asked, is_executed, result) = (true, false, None);
            self.calls.push(Call {
                id,
                name,
                arguments,
                message,
                parent,
                at_ns: span.end_ns,
                is_asked,
                is_executed,
                result,
                source: at,
            });
        }
        self.requests.push(Request { at, message, parent });
    }

    /// Takes in the result of a call, as a later request to the model contains it.
    fn given(&mut self, given: &GivenResult, at_ns: u64) {
        let is_it = |call: &&mut Call| match (&given.id, &given.name) {
            (Some(id), _) => is_id(&call.id, id),
            (None, name) => name.as_deref() == Some(call.name.as_str()) && call.result.is_none(),
        };
        if let Some(call) = self.calls.iter_mut().rev().find(is_it).filter(|call| call.result.is_none()) {
            let (content, is_error) = (given.content.clone(), given.is_error);
            call.result = Some((at_ns, ToolResult { id: call.id.clone(), content, is_error }));
        }
    }

    fn tool(&mut self, forest: &Forest<'_>, at: usize) {
        let (span, Some(reading)) = (forest.nodes[at].span, &forest.nodes[at].reading) else { return };
        let parent = self.owner(forest, at);
        let name = reading.name.clone().unwrap_or_else(|| span.name.clone());
        let found = self.asked(reading, &name, parent.as_ref(), &forest.executed).unwrap_or_else(|| {
            let id = self.unique(reading.call_id.clone().unwrap_or_else(|| format!("span-{}", span.id)));
            // The request whose answer is not recorded, or a turn of its own.
            let before = self.requests.iter().rev().find(|request| request.parent == parent);
            let message = before.map_or_else(|| format!("trace-{}", span.trace), |request| request.message.clone());
            let (is_asked, is_executed, result) = (false, false, None);
            let parent = parent.clone();
            let arguments = None;
            let at_ns = span.start_ns;
            self.calls.push(Call {
                id,
                name,
                arguments,
                message,
                parent,
                at_ns,
                is_asked,
                is_executed,
                result,
                source: at,
            });
            self.calls.len() - 1
        });
        let call = &mut self.calls[found];
        (call.is_executed, call.source) = (true, at);
        if call.arguments.as_ref().is_none_or(|arguments| !arguments.is_object()) {
            // Some libraries record arguments as they are printed, which is not JSON.
            call.arguments = reading.arguments.clone().or(call.arguments.take());
        }
        if let Some(result) = result(span, reading, &call.id) {
            call.result = Some((span.end_ns, result));
        }
        self.starts.insert(at, call.id.clone());
    }

    /// Returns the call that a model asked for and that a span executes. `executed` are the ids of calls that have a span.
    fn asked(
        &self,
        reading: &Reading,
        name: &str,
        parent: Option<&String>,
        executed: &HashSet<String>,
    ) -> Option<usize> {
        let open = |call: &Call| call.is_asked && !call.is_executed;
        let of_id = |id: &String| self.calls.iter().rposition(|call| open(call) && is_id(&call.id, id));
        if let Some(found) = reading.call_id.as_ref().and_then(of_id) {
            return Some(found);
        }
        // Some frameworks give calls other ids than the model did.
        let is_same = |call: &Call| {
            open(call)
                && call.name == name
                && call.parent.as_ref() == parent
                && !executed.contains(call.id.split('#').next().unwrap_or_default())
        };
        let arguments = reading.arguments.as_ref();
        let exact = self.calls.iter().position(|call| is_same(call) && call.arguments.as_ref() == arguments);
        exact.or_else(|| self.calls.iter().position(is_same))
    }

    /// Takes in the work of an agent within that of another one, to which no tool span leads: a delegation.
    fn agent(&mut self, forest: &Forest<'_>, at: usize) {
        let reading =
            |at: usize| forest.nodes[at].reading.as_ref().filter(|it| it.conventions.contains(&"OpenTelemetry GenAI"));
        let Some(outer) = forest.around(at).filter(|outer| forest.kind(*outer) == Some(Kind::Agent)) else { return };
        let (Some(inner), Some(outer)) = (reading(at), reading(outer)) else { return };
        let Some(name) = inner.name.clone().filter(|name| outer.name.as_ref() != Some(name)) else { return };
        let (span, parent) = (forest.nodes[at].span, self.owner(forest, at));
        let names_it = |call: &&Call| {
            let mut values = call.arguments.iter().filter_map(Value::as_object).flat_map(Map::values);
            call.parent == parent && values.any(|value| value.as_str() == Some(&name))
        };
        if let Some(call) = self.calls.iter().rev().find(names_it) {
            self.starts.insert(at, call.id.clone());
            return;
        }
        let id = self.unique(format!("span-{}", span.id));
        let before = self.requests.iter().rev().find(|request| request.parent == parent);
        let message = before.map_or_else(|| format!("trace-{}", span.trace), |request| request.message.clone());
        self.starts.insert(at, id.clone());
        self.calls.push(Call {
            id,
            name: DELEGATION.to_owned(),
            arguments: Some(serde_json::json!({ "subagent_type": name })),
            message,
            parent,
            at_ns: span.start_ns,
            is_asked: false,
            is_executed: true,
            result: span.error.clone().map(|error| {
                (span.end_ns, ToolResult { id: format!("span-{}", span.id), content: error, is_error: true })
            }),
            source: at,
        });
    }

    /// Returns an id that no other call has.
    fn unique(&mut self, id: String) -> String {
        let numbered = (2..).map(|number| format!("{id}#{number}"));
        let mut free = std::iter::once(id.clone()).chain(numbered).filter(|id| !self.ids.contains(id));
        let id = free.next().unwrap_or(id);
        self.ids.insert(id.clone());
        id
    }

    fn finish(self, forest: &Forest<'_>) -> SpanTrace {
        let incomplete = self.incomplete(forest);
        let readings = || self.requests.iter().filter_map(|request| forest.nodes[request.at].reading.as_ref());
        let models: HashSet<&str> = readings().filter_map(|reading| reading.model.as_deref()).collect();
        let model = models.iter().next().copied();
        let mut notes = Vec::new();
        // The request that asked for a call that no span shows used tokens, too.
        let usage = match self.unshown_call(forest) {
            Some(_) => Usage::default(),
            None => usage(forest, &self.requests, &mut notes),
        };
        self.note_missing_content(&mut notes);
        let source = |call: &Call| CallSource {
            call: call.id.clone(),
            tool: call.name.clone(),
            span: forest.nodes[call.source].span.id.clone(),
            span_name: forest.nodes[call.source].span.name.clone(),
        };
        let (conventions, unknown) = forest.origins();
        SpanTrace {
            usage,
            model: model.filter(|_| models.len() == 1).map(str::to_owned),
            question: self.question.clone(),
            answer: self.answer.clone(),
            model_requests: self.requests.len(),
            sources: self.calls.iter().map(source).collect(),
            conventions,
            unknown,
            incomplete,
            notes,
            steps: self.steps(),
        }
    }

    /// Returns the reason why there may be calls that the spans do not show.
    fn incomplete(&self, forest: &Forest<'_>) -> Option<String> {
        let is_known = |at: usize| forest.kind(at).is_some_and(|kind| kind != Kind::Part);
        if self.requests.is_empty() {
            let reason = match (self.calls.is_empty(), (0..forest.nodes.len()).any(is_known)) {
                (false, _) => "the spans contain tool calls and no model requests, so other calls may have no span",
                (true, true) => "the spans of the agent contain neither a model request nor a tool call",
                (true, false) => "no span describes a model request or a tool call in a convention that trialrun reads",
            };
            return Some(reason.to_owned());
        }
        for request in &self.requests {
            let Node { span, reading: Some(reading) } = &forest.nodes[request.at] else { continue };
            let place = || format!("the span `{}` of a model request", shortened(&span.name, 100));
            if span.dropped_attributes {
                return Some(format!(
                    "the program dropped attributes of {}; raise OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT",
                    place()
                ));
            }
            if reading.output.is_some() || span.error.is_some() {
                continue;
            }
            match reading.asks_for_tools() {
                Some(false) => {}
                Some(true) if self.calls.iter().any(|call| call.message == request.message) => {}
                Some(true) => {
                    return Some(format!("{} does not contain the tool calls that the model asked for", place()));
                }
                None => return Some(format!("{} does not contain the answer", place())),
            }
        }
        self.unshown_call(forest)
    }

    /// Returns the reason why a span is missing: a request to a model contains a call of this reply that no span shows.
    fn unshown_call(&self, forest: &Forest<'_>) -> Option<String> {
        for request in &self.requests {
            let Node { span, reading: Some(reading) } = &forest.nodes[request.at] else { continue };
            let mut shown: Vec<&Call> = self.calls.iter().collect();
            let mut unknown = reading.earlier_calls.clone();
            let mut take = |fits: &dyn Fn(&EarlierCall, &Call) -> bool| {
                unknown.retain(|earlier| {
                    let found = shown.iter().position(|call| fits(earlier, call));
                    found.map(|at| shown.remove(at)).is_none()
                });
            };
            take(&|earlier, call| earlier.id.as_ref().is_some_and(|id| is_id(&call.id, id)));
            // Some frameworks give calls other ids than the model did, or none.
            take(&|earlier, call| {
                call.at_ns <= span.start_ns.saturating_add(CLOCK_STEP_NS)
                    && earlier.name.as_ref().is_none_or(|name| *name == call.name)
            });
            if let Some(EarlierCall { name, .. }) = unknown.first() {
                let what =
                    name.as_ref().map_or_else(|| "a tool".to_owned(), |name| format!("`{}`", shortened(name, 100)));
                return Some(format!(
                    "the span `{}` of a model request contains an earlier call of {what} that no span shows",
                    shortened(&span.name, 100)
                ));
            }
        }
        None
    }

    fn note_missing_content(&self, notes: &mut Vec<String>) {
        let count = |is_missing: fn(&&Call) -> bool| self.calls.iter().filter(is_missing).count();
        for (what, missing) in [
            ("arguments", count(|call| call.arguments.is_none())),
            ("result", count(|call| call.is_executed && call.result.is_none())),
        ] {
            if missing > 0 {
                notes.push(format!("the {what} of {missing} tool calls are not in the spans"));
            }
        }
    }

    fn steps(self) -> Vec<Step> {
        let mut timed = self.texts;
        for call in self.calls {
            let arguments = call.arguments.unwrap_or_else(|| NO_ARGUMENTS.into());
            let mut step = ToolCall::new(call.id, call.name, arguments, call.message);
            step.parent = call.parent;
            timed.push((call.at_ns, Step::ToolCall(step)));
            // A tool may run before the answer of the model is complete.
            timed.extend(call.result.map(|(at_ns, result)| (at_ns.max(call.at_ns), Step::ToolResult(result))));
        }
        timed.sort_by_key(|(at_ns, _)| *at_ns);
        timed.into_iter().map(|(_, step)| step).collect()
    }
}

impl Forest<'_> {
    /// Returns the conventions with the libraries that follow them, and the names of the spans that follow none.
    fn origins(&self) -> (Vec<(&'static str, Arc<str>)>, Vec<String>) {
        let (mut conventions, mut unknown) = (BTreeMap::new(), Vec::new());
        for Node { span, reading } in &self.nodes {
            match reading {
                Some(reading) => {
                    for convention in &reading.conventions {
                        conventions.entry((*convention, Arc::clone(&span.scope))).or_insert(());
                    }
                }
                None if unknown.contains(&span.name) => {}
                None => unknown.push(span.name.clone()),
            }
        }
        (conventions.into_keys().collect(), unknown)
    }
}

/// Returns `true` if `id` is the id of a call, which has a number after it if it is not the first with this id.
fn is_id(of_call: &str, id: &str) -> bool {
    of_call.strip_prefix(id).is_some_and(|rest| rest.is_empty() || rest.starts_with('#'))
}

/// Returns the result of the call that a span executes; `None` if it is not recorded.
fn result(span: &Span, reading: &Reading, id: &str) -> Option<ToolResult> {
    let text = |map: &Map<String, Value>, key: &str| map.get(key).and_then(Value::as_str).map(str::to_owned);
    let exception = span.events.iter().find(|event| event.name == "exception");
    let error = exception.and_then(|event| text(&event.attributes, "exception.message"));
    let error = error.or_else(|| span.error.clone().filter(|error| !error.is_empty()));
    let kind = text(&span.attributes, "error.type").or_else(|| span.error.as_ref().map(|_| "it failed".to_owned()));
    let error = error.or(kind);
    let is_error = reading.failed || span.error.is_some() || error.is_some();
    let content = reading.result.clone().or(error)?;
    Some(ToolResult { id: id.to_owned(), content, is_error })
}

/// Returns the usage of the requests to models. A failed request without a count used no tokens.
fn usage(forest: &Forest<'_>, requests: &[Request], notes: &mut Vec<String>) -> Usage {
    let mut tokens = Tokens::default();
    let (mut cost, mut without_tokens, mut has_cost) = (0.0, 0_usize, !requests.is_empty());
    for Request { at, .. } in requests {
        let Node { span, reading: Some(reading) } = &forest.nodes[*at] else { continue };
        match reading.tokens.tokens() {
            Some(more) => tokens += more,
            None if span.error.is_some() => {}
            None => without_tokens += 1,
        }
        match reading.cost_usd {
            Some(more) => cost += more,
            None => has_cost = has_cost && span.error.is_some(),
        }
    }
    if without_tokens == 0 && !requests.is_empty() {
        return Usage { tokens: Some(tokens), cost_usd: has_cost.then_some(cost) };
    }
    if without_tokens < requests.len() {
        notes.push(format!("{without_tokens} of {} model requests report no tokens", requests.len()));
        return Usage::default();
    }
    // The outermost agents report the sum.
    let is_outermost = |at: &usize| forest.kind(*at) == Some(Kind::Agent) && forest.around(*at).is_none();
    let agents = (0..forest.nodes.len()).filter(is_outermost);
    let mut counts = agents.filter_map(|at| forest.nodes[at].reading.as_ref()).map(|reading| reading.tokens.tokens());
    let whole = counts.try_fold(Tokens::default(), |mut whole, more| {
        whole += more?;
        Some(whole)
    });
    Usage { tokens: whole.filter(|whole| *whole != Tokens::default()), cost_usd: None }
}

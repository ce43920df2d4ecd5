//! `mcp`: tests of a server that speaks the Model Context Protocol. The checks of trialrun are a case each, and so is each
//! call, or each sequence of calls in one session.
//!
//! A message to the server is JSON that the agent `mcp` understands: `{"call": "add", "arguments": {}}`.

use std::sync::Arc;

use model::decode::{self, Fields, Problems};
use model::{
    Arguments, AssertionScope, AssertionSpec, Case, Diagnostic, DiagnosticKind, Node, NodeKind, Spanned, UserMessage,
    nearest,
};
use serde_json::{Map, Value, json};

use super::assertions::Assertions;
use super::scenario::{checked_id, refuse_tags, skip, with_common_fields};
use super::{Format, SuiteFile};
use crate::fixture_settings::field::is_reason;
use crate::library::Library;

/// The `mcp` format.
pub const MCP: Format = Format {
    name: NAME,
    tool: None,
    mark: "a YAML or JSON map with `suite: mcp`",
    fails_alone: false,
    is_meant,
    resembles: recognises,
    recognises,
    read,
};

/// Name of the format, which is also that of the agent.
const NAME: &str = "mcp";

fn is_meant(text: &str) -> bool {
    if let Some(keys) = super::json_keys(text) {
        return keys.contains(&"suite") && CASES.iter().any(|case| keys.contains(case));
    }
    text.lines().any(|line| line.replace(['"', '\'', ' ', ',', '{', '}'], "") == "suite:mcp")
}

/// Time limit of a call that has no `timeout`, in milliseconds.
const TIMEOUT_MS: u64 = 30_000;

/// Keys of the checks of trialrun, in the order of their cases.
const CHECKS: [&str; 4] = ["contract", "protocol", "safety", "fuzz"];

/// Keys of which a suite has at least one.
const CASES: [&str; 5] = ["calls", "contract", "protocol", "safety", "fuzz"];

/// Keys of a call, which are those of a step too.
const OF_CALLS: [&str; 11] = [
    "call",
    "arguments",
    "timeout",
    "cancel_after",
    "fails",
    "error",
    "returns",
    "within",
    "max_bytes",
    "progress",
    "expect",
];

/// Keys of calls in other programs.
const SYNONYMS: [(&str, &str); 6] = [
    ("tool", "call"),
    ("args", "arguments"),
    ("input", "arguments"),
    ("output", "returns"),
    ("id", "name"),
    ("assertions", "expect"),
];

/// Returns `true` also for a misspelt name, next to keys that only such a suite has, and without a name if the calls are
/// those of such a suite.
fn recognises(file: &SuiteFile<'_>) -> bool {
    let has_check = || CASES.iter().any(|key| file.root.get(key).is_some());
    let Some(name) = file.root.get("suite") else { return is_without_name(file.root) };
    let is_near = |name: &str| nearest(name, [NAME]).is_some() && has_check();
    name.as_str().is_some_and(|name| name == NAME || is_near(name) || has_calls(file.root))
}

/// Returns `true` if the name is under a misspelt key, or the suite has calls and no name.
fn is_without_name(root: &Node) -> bool {
    let NodeKind::Map(entries) = &root.kind else { return false };
    let is_name = |(key, value): &(Spanned<String>, Node)| {
        value.as_str() == Some(NAME) && nearest(&key.value, ["suite"]).is_some()
    };
    entries.iter().any(is_name) || has_calls(root)
}

/// Returns `true` if `root` has calls of tools with what is expected of them.
fn has_calls(root: &Node) -> bool {
    let calls = |node: Option<&Node>| match node.map(|node| &node.kind) {
        Some(NodeKind::List(items)) => items.iter().any(is_call),
        _ => false,
    };
    let is_item = |item: &Node| is_call(item) || calls(item.get("steps"));
    matches!(root.get("calls").map(|calls| &calls.kind), Some(NodeKind::List(items)) if items.iter().any(is_item))
}

/// Returns `true` if `item` is a call of a tool and what is expected of it.
fn is_call(item: &Node) -> bool {
    const OTHERS: [&str; 5] = ["arguments", "returns", "fails", "error", "expect"];
    item.get("call").is_some_and(|call| call.as_str().is_some()) && OTHERS.iter().any(|key| item.get(key).is_some())
}

fn read(file: &SuiteFile<'_>, library: &Library, problems: &mut Problems) -> Vec<Arc<Case>> {
    refuse_tags(file.root, problems);
    let Some(mut fields) = Fields::of(file.root, "the suite", problems) else { return Vec::new() };
    let help = format!("write `suite: {NAME}`");
    match fields.get("suite") {
        None => problems.push(file.root.error("the suite has no `suite`").of_missing(&["suite"]).help(help)),
        Some(name) if name.as_str() != Some(NAME) => {
            problems.push(name.error(format!("`suite` must be `{NAME}`")).help(help));
        }
        Some(_) => {}
    }
    let shared = with_common_fields(Case::new(NAME, file.root.excerpt()), &mut fields, file, library, problems);
    let mut runner = shared.runner.as_ref().clone();
    // Only this agent understands the messages. The command line and the project can name another one.
    runner.agent.get_or_insert_with(|| (NAME.to_owned(), file.root.excerpt()));
    let skip = skip(&mut fields, problems);
    let shared = Case { runner: Arc::new(runner), skip, ..shared };
    let mut cases = Vec::new();
    for key in CHECKS {
        let Some(node) = fields.get(key) else { continue };
        let case = check(key, node, &shared, problems);
        cases.extend(case);
    }
    for (index, item) in fields.list("calls", problems).unwrap_or_default().iter().enumerate() {
        cases.extend(call(index, item, &shared, problems));
    }
    if cases.is_empty() && problems.is_empty() {
        let problem = file.root.error("the suite has no cases").of_missing(&CASES);
        problems.push(
            problem.help(format!("write `calls`, or one of {}", CHECKS.map(|key| format!("`{key}`")).join(", "))),
        );
    }
    fields.finish(problems);
    cases.into_iter().map(Arc::new).collect()
}

/// Reads one of the checks. Returns `None` if it is turned off.
fn check(key: &'static str, node: &Node, shared: &Case, problems: &mut Problems) -> Option<Case> {
    let mut message = json!({"check": key});
    let mut rules = Map::new();
    match &node.kind {
        NodeKind::Bool(false) => return None,
        NodeKind::Bool(true) if key != "contract" => {}
        NodeKind::String(_) if key == "contract" => {
            let file = decode::text(node, "`contract`", problems)?;
            message["file"] = file.into();
        }
        NodeKind::String(_) => {
            let problem = node.error(format!("`{key}` must be true, false or a map, not {}", decode::described(node)));
            problems.push(decode::boolean_help(node, problem));
            return None;
        }
        _ => {
            let what = format!("`{key}`");
            let mut fields = Fields::of(node, &what, problems)?;
            if key == "contract"
                && let Some(file) = fields.required_text("file", problems)
            {
                message["file"] = file.into();
            }
            let mut number = |name: &'static str, fields: &mut Fields<'_>, problems: &mut Problems| {
                if let Some(value) = fields.whole(name, 1, problems) {
                    message[name] = value.into();
                }
            };
            match key {
                "safety" => {
                    for name in ["calls", "max_tools", "max_tokens"] {
                        number(name, &mut fields, problems);
                    }
                    if let Some(tools) = fields.texts("except", problems) {
                        message["except"] = tools.into();
                    }
                }
                "fuzz" => {
                    number("seed", &mut fields, problems);
                    number("inputs", &mut fields, problems);
                    for name in ["only", "except"] {
                        if let Some(tools) = fields.texts(name, problems) {
                            message[name] = tools.into();
                        }
                    }
                    problems.extend(tests_nothing(node));
                    if let Some(ms) = fields.duration_ms("call_timeout", problems) {
                        message["timeout_ms"] = ms.into();
                    }
                }
                _ => {}
            }
            if let Some(ignored) = fields.texts("ignore", problems) {
                rules.insert("ignore".to_owned(), ignored.into());
            }
            if let Some(advisory) = fields.boolean("advisory", problems) {
                rules.insert("advisory".to_owned(), advisory.into());
            }
            fields.finish(problems);
        }
    }
    rules.insert("type".to_owned(), "mcp_rules".into());
    let spec = spec(&at(node, &Value::Object(rules)), "rules", "mcp_rules", AssertionScope::Trial);
    Some(Case {
        id: key.to_owned(),
        source: node.excerpt(),
        messages: vec![UserMessage::text(message.to_string())],
        assertions: vec![spec],
        ..shared.clone()
    })
}

/// Reports an `except` in `node` that has every tool of `only`.
fn tests_nothing(node: &Node) -> Option<Diagnostic> {
    let (NodeKind::List(only), NodeKind::List(except)) = (&node.get("only")?.kind, &node.get("except")?.kind) else {
        return None;
    };
    let is_left_out = |tool: &Node| except.iter().any(|other| other.as_str() == tool.as_str());
    (!only.is_empty() && only.iter().all(is_left_out)).then(|| {
        let problem = Diagnostic::error("`except` has every tool of `only`, so no tool is tested");
        problem.at(node.get("except").unwrap_or(node).excerpt()).help("remove `except`")
    })
}

/// Reads an item of `calls`: a call, or several as its `steps`.
fn call(index: usize, item: &Node, shared: &Case, problems: &mut Problems) -> Option<Case> {
    let mut fields = Fields::of(item, "a call", problems)?.with_synonyms(&SYNONYMS);
    let name = fields.text("name", problems);
    let id = fields.get("name").filter(|_| name.is_some()).and_then(|node| checked_id(node, "name", problems));
    let mut assertions = Assertions::default();
    let mut specs = Vec::new();
    let mut messages = Vec::new();
    let description = fields.any_text("description", problems);
    let skip = skip(&mut fields, problems).or_else(|| shared.skip.clone());
    let steps = fields.list("steps", problems);
    let title = match steps {
        Some(steps) => {
            for (number, step) in steps.iter().enumerate() {
                let mut fields = Fields::of(step, "a step", problems)?.with_synonyms(&SYNONYMS);
                messages.extend(message(number + 1, &mut fields, &mut assertions, &mut specs, problems));
                fields.finish(problems);
            }
            if let Some(node) = fields.get("steps").filter(|_| messages.is_empty() && steps.is_empty()) {
                problems.push(node.error("`steps` has no calls"));
                return None;
            }
            let beside: Vec<_> = OF_CALLS.into_iter().filter(|key| fields.get(key).is_some()).collect();
            if let Some((key, span)) = beside.first().and_then(|key| Some((key, fields.key_span(key)?))) {
                let problem = Diagnostic::error(format!("`{key}` cannot be combined with `steps`"));
                problems.push(problem.at(item.source.excerpt(span)).help("write it in an item of `steps`"));
            }
            format!("steps-{}", index + 1)
        }
        None => {
            messages.extend(message(1, &mut fields, &mut assertions, &mut specs, problems));
            let tool = fields.get("call").and_then(Node::as_str).unwrap_or("call");
            format!("{tool}-{}", index + 1)
        }
    };
    fields.finish(problems);
    let must_assert = !assertions.has_unread();
    specs.extend(assertions.finish());
    Some(Case {
        id: id.unwrap_or(title),
        source: item.excerpt(),
        description: description.or_else(|| shared.description.clone()),
        messages,
        must_assert,
        assertions: specs,
        skip,
        ..shared.clone()
    })
}

/// Reads a call, the message `number` of its case. What it expects of the answer is added to `specs` and `assertions`.
fn message(
    number: usize,
    fields: &mut Fields<'_>,
    assertions: &mut Assertions,
    specs: &mut Vec<AssertionSpec>,
    problems: &mut Problems,
) -> Option<UserMessage> {
    let place = fields.node();
    let tool = fields.required_text("call", problems);
    if let Some(DiagnosticKind::MissingKey(keys)) =
        problems.last_mut().filter(|_| tool.is_none()).map(|one| &mut one.kind)
    {
        keys.push("steps".to_owned());
    }
    if let Some((name, _)) = tool.as_deref().filter(|tool| tool.ends_with(')')).and_then(|tool| tool.split_once('('))
        && !name.contains(char::is_whitespace)
        && let Some(node) = fields.get("call")
    {
        let problem = node.warning("`call` is the name of a tool, without its arguments");
        problems.push(problem.help(format!("write `call: {name}` and `arguments: {{ … }}`")));
    }
    let mut call = json!({"call": tool.clone().unwrap_or_default(), "arguments": {}});
    if let Some(arguments) = fields.get("arguments") {
        // A call with other arguments than a map is a test too, if it has to fail.
        let may_fail = ["fails", "error", "cancel_after"].iter().any(|key| place.get(key).is_some());
        if !may_fail && !matches!(arguments.kind, NodeKind::Map(_) | NodeKind::Null) {
            let kind = arguments.kind_name();
            let problem = arguments.warning(format!("`arguments` is {kind}, so the call cannot succeed"));
            let problem = problem.help("write a map of the arguments: `{ NAME: VALUE }`");
            problems.push(problem.help("to test what a server answers to such a call, write `error` or `fails`"));
        }
        call["arguments"] = arguments.to_json();
    }
    if let Some(ms) = fields.duration_ms("timeout", problems) {
        call["timeout_ms"] = ms.into();
    }
    let scope = AssertionScope::Reply(number);
    let name = |part: &str| if number == 1 { part.to_owned() } else { format!("{part}-{number}") };
    let mut expect = |part: &str, place: &Node, expectation: Node| {
        let entries = vec![(Spanned::new("expect".to_owned(), place.span), expectation)];
        specs.push(spec(&Node { kind: NodeKind::Map(entries), ..place.clone() }, &name(part), "expect", scope));
    };
    let of = |key: &str, value: Node| Node {
        kind: NodeKind::Map(vec![(Spanned::new(key.to_owned(), value.span), value.clone())]),
        ..value
    };
    let cancelled = fields.duration_ms("cancel_after", problems);
    let (fails, error) = (fields.get("fails"), fields.get("error"));
    match (cancelled, fails, error) {
        (Some(ms), None, None) => {
            call["cancel_after_ms"] = ms.into();
            let node = fields.get("cancel_after").unwrap_or(place);
            expect("cancelled", node, at(node, &json!({"cancelled": true, "alive": true})));
        }
        (None, Some(node), None) => {
            report_flag_word("fails", node, problems);
            let mut parts = vec![(Spanned::new("isError".to_owned(), node.span), at(node, &json!(true)))];
            match &node.kind {
                NodeKind::Bool(true) => {}
                _ => parts.push((Spanned::new("text".to_owned(), node.span), node.clone())),
            }
            expect("fails", node, Node { kind: NodeKind::Map(parts), ..node.clone() });
        }
        (None, None, Some(node)) => {
            report_flag_word("error", node, problems);
            let expectation = match &node.kind {
                NodeKind::Bool(true) => at(node, &json!({"$exists": true})),
                NodeKind::Number(_) => of("code", node.clone()),
                _ => node.clone(),
            };
            expect("error", node, of("error", expectation));
        }
        (None, None, None) => {
            let fine = json!({"isError": false, "error": {"$exists": false}, "schemaErrors": {"$exists": false}});
            expect("succeeds", place, at(place, &fine));
        }
        _ => {
            let problem = place.error("a call can have only one of `cancel_after`, `fails` and `error`");
            problems.push(problem);
        }
    }
    let refused = ["error", "cancel_after"].into_iter().find(|key| fields.key_span(key).is_some());
    let returns = fields.get("returns");
    if let (Some(key), Some(span)) = (refused, fields.key_span("returns")) {
        let message = format!("a call with `{key}` returns nothing, so `returns` must not be beside it");
        problems.push(Diagnostic::error(message).at(place.source.excerpt(span)));
    } else if let Some(node) = returns {
        expect("returns", node, of("output", node.clone()));
    }
    if let Some(ms) = fields.duration_ms("within", problems) {
        let node = fields.get("within").unwrap_or(place);
        let limit = call["timeout_ms"].as_u64().unwrap_or(TIMEOUT_MS);
        if ms > limit && cancelled.is_none() {
            let message = format!("the call ends after {} s at most, which is its `timeout`", limit as f64 / 1000.0);
            problems.push(node.warning(message).help("set a longer `timeout` beside `within`"));
        }
        expect("within", node, at(node, &json!({"durationMs": {"$lte": ms}})));
    }
    if let Some(bytes) = fields.whole("max_bytes", 1, problems) {
        let node = fields.get("max_bytes").unwrap_or(place);
        expect("max-bytes", node, at(node, &json!({"bytes": {"$lte": bytes}})));
    }
    if let Some(count) = fields.whole("progress", 1, problems) {
        call["progress"] = true.into();
        let node = fields.get("progress").unwrap_or(place);
        expect("progress", node, at(node, &json!({"progress": {"$gte": count}})));
    }
    if let Some(items) = fields.list("expect", problems) {
        assertions.read(items, scope, problems);
    }
    tool.map(|_| UserMessage::text(call.to_string()))
}

/// Reports a word that many programs read as true or false, where an error is described.
fn report_flag_word(key: &str, node: &Node, problems: &mut Problems) {
    let is_word = node.as_str().is_some_and(|text| !is_reason(text));
    if is_word || matches!(node.kind, NodeKind::Bool(false)) {
        let problem = node.error(format!("`{key}` must be true or what the error says, not {}", decode::shown(node)));
        problems.push(problem.help("write `true` for any error, or nothing for a call that succeeds"));
    }
}

fn spec(node: &Node, id: &str, kind: &str, about: AssertionScope) -> AssertionSpec {
    AssertionSpec {
        node: node.clone(),
        arguments: Arguments::Fields,
        about,
        id: id.to_owned(),
        kind: Spanned::new(kind.to_owned(), node.span),
        weight: 1.0,
    }
}

/// Returns a value as if it were written at `place`.
fn at(place: &Node, value: &Value) -> Node {
    let kind = match value {
        Value::Null => NodeKind::Null,
        Value::Bool(value) => NodeKind::Bool(*value),
        Value::Number(number) => NodeKind::Number(number.clone()),
        Value::String(text) => NodeKind::String(text.clone()),
        Value::Array(items) => NodeKind::List(items.iter().map(|item| at(place, item)).collect()),
        Value::Object(entries) => NodeKind::Map(
            entries.iter().map(|(key, value)| (Spanned::new(key.clone(), place.span), at(place, value))).collect(),
        ),
    };
    Node { kind, tag: None, ..place.clone() }
}

//! Requests of the host.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use expect::{Budget, Data, Expectation, FUNCTION_TAG, Found, Function, Host, Pass, REGEX_TAG, Rules, Shares, Strict};
use expect::{context, diff};
use model::decode::Problems;
use model::{Diagnostic, Node, NodeKind, Scoring, Severity, Source, Spanned};
use serde_json::{Value, json};
use template::{Ambient, Format, Variables};

use crate::host::JavaScript;

thread_local! {
    /// Compiled expectations by their number, with the data that code sees.
    static COMPILED: RefCell<(u64, HashMap<u64, Arc<(Expectation, Data)>>)> = RefCell::default();
}

/// Key of a map that stands for a regular expression: `/source/flags`.
const REGEX: &str = "\u{1}regex";
/// Key of a map that stands for a function, by its name at the host.
const FUNCTION: &str = "\u{1}function";

/// Answers a request.
pub fn answer(text: &[u8]) -> Value {
    let request: Value = match serde_json::from_slice(text) {
        Ok(request) => request,
        Err(error) => return json!({ "error": error.to_string() }),
    };
    let get = |key: &str| request.get(key);
    match get("do").and_then(Value::as_str) {
        Some("compile") => compile(&request),
        Some("judge") => {
            let id = get("id").and_then(Value::as_u64).unwrap_or_default();
            let found = COMPILED.with_borrow(|(_, all)| all.get(&id).cloned());
            let Some(compiled) = found else { return json!({ "error": "the expectation has been released" }) };
            let (expectation, data) = &*compiled;
            found_as_json(&expectation.judge(get("actual"), data))
        }
        Some("release") => {
            let id = get("id").and_then(Value::as_u64).unwrap_or_default();
            COMPILED.with_borrow_mut(|(_, all)| all.remove(&id));
            json!({})
        }
        Some("render") => render(&request),
        Some("wants_scoring") => {
            json!({ "value": get("expected").map(node).is_some_and(|node| Scoring::is_wanted_by(&node)) })
        }
        Some("diff") => text_diff(&request),
        Some("context") => in_context(&request),
        _ => json!({ "error": "unknown request" }),
    }
}

fn compile(request: &Value) -> Value {
    let host: Arc<dyn Host> = Arc::new(JavaScript);
    let mut problems = Problems::new();
    let rules = rules(request.get("rules").unwrap_or(&Value::Null), &host, &mut problems);
    let expected = node(request.get("expected").unwrap_or(&Value::Null));
    let diff = request.get("diff").map(node);
    let diff = diff.as_ref();
    let expectation = match request.get("about").and_then(Value::as_str) {
        Some("result") => Expectation::from_result(&expected, rules, &host, diff, &mut problems),
        Some("schema") => Expectation::from_schema(&expected, rules, &host, &mut problems),
        _ => Expectation::from_value(&expected, rules, &host, diff, &mut problems),
    };
    let of_data = |key: &str| request.get("data").and_then(|data| data.get(key)).cloned();
    let data = Data {
        variables: of_data("variables").unwrap_or_else(|| json!({})),
        input: of_data("input"),
        fixture: of_data("fixture").unwrap_or_default(),
    };
    let id = COMPILED.with_borrow_mut(|(last, all)| {
        *last += 1;
        all.insert(*last, Arc::new((expectation, data)));
        *last
    });
    json!({ "id": id, "problems": problems_as_json(problems) })
}

fn rules(written: &Value, host: &Arc<dyn Host>, problems: &mut Problems) -> Rules {
    let usual = Rules::default();
    let flag = |key: &str| written.get(key).and_then(Value::as_bool);
    let number = |key: &str| written.get(key).and_then(Value::as_f64);
    let strict = written.get("strict").map(|strict| Strict::read(&node(strict), problems)).unwrap_or_default();
    let budget = Budget {
        max_score: number("maxScore").unwrap_or(usual.budget.max_score),
        unassigned: number("unassignedWeight").unwrap_or(usual.budget.unassigned),
        shares: match written.get("autoConfidence") {
            Some(Value::Bool(false)) => Shares::Never,
            Some(Value::String(word)) if word == "force" => Shares::Always,
            _ => Shares::Guessed,
        },
    };
    let mut operators = Vec::new();
    for (name, function) in written.get("operators").and_then(Value::as_object).into_iter().flatten() {
        let found = host.function(function.as_str().unwrap_or_default(), name, "".as_ref());
        let function = found.unwrap_or_else(|invalid| {
            problems.push(invalid.diagnostic(&node(function)));
            Function::missing()
        });
        operators.push((name.clone(), function));
    }
    Rules {
        strict,
        heuristic_schema: flag("disableHeuristicSchema") != Some(true),
        scoring: flag("scoring").unwrap_or_default(),
        pass_score: number("passScore").unwrap_or(budget.max_score),
        budget,
        denied: flag("not").unwrap_or_default(),
        diff_permissive: flag("diffPermissive"),
        operators,
        allow_override: flag("allowOperatorOverride").unwrap_or_default(),
        ..usual
    }
}

/// Resolves the templates in `value` with the variables in the list of maps `layers`, of which later ones come first.
fn render(request: &Value) -> Value {
    let mut variables = Variables::new();
    for layer in request.get("layers").and_then(Value::as_array).into_iter().flatten() {
        variables = variables.layer(&node(layer));
    }
    let number = |key: &str| request.get(key).and_then(Value::as_i64);
    variables = variables
        .ambient(Ambient {
            now_ms: number("now"),
            utc_offset_minutes: number("offset").and_then(|minutes| minutes.try_into().ok()).unwrap_or_default(),
            seed: number("seed").unwrap_or_default().unsigned_abs(),
        })
        .keeping_unread();
    let mut problems = Problems::new();
    let format = match request.get("format").map(|format| Format::from_node(&node(format))) {
        Some(Ok(format)) => format,
        Some(Err(problem)) => {
            problems.push(*problem);
            Format::default()
        }
        None => Format::default(),
    };
    let value = node(request.get("value").unwrap_or(&Value::Null));
    let resolved = template::resolve_as(format, &value, &variables, &mut problems);
    json!({ "value": json_of(&resolved), "problems": problems_as_json(problems) })
}

fn text_diff(request: &Value) -> Value {
    let text = |key: &str| request.get(key).and_then(Value::as_str).unwrap_or_default();
    let wanted = request.get("kind").and_then(Value::as_str).unwrap_or("auto");
    let Some((_, kind)) = diff::KINDS.iter().find(|(name, _)| *name == wanted) else {
        let names: Vec<&str> = diff::KINDS.iter().map(|(name, _)| *name).collect();
        return json!({ "error": format!("`{wanted}` is not a kind of diff; the kinds are {}", names.join(", ")) });
    };
    let found = diff::diff(text("expected"), text("actual"), *kind, &diff::Options::default());
    let part = |part: &diff::Part| {
        let mut written = json!({ "value": part.value, "added": part.added, "removed": part.removed });
        if let Some(path) = &part.path {
            written["path"] = json!(path);
            written["val"] = json!(part.val);
        }
        written
    };
    json!({ "value": found.parts.iter().map(part).collect::<Vec<Value>>() })
}

/// Runs one of the functions of an operator's context.
fn in_context(request: &Value) -> Value {
    let empty = Value::Null;
    let values = request.get("values").unwrap_or(&empty);
    let argument = |index: usize| request.get("arguments").and_then(|all| all.get(index)).filter(|it| !it.is_null());
    let list = |index: usize| argument(index).and_then(Value::as_array).cloned().unwrap_or_default();
    let value = match request.get("function").and_then(Value::as_str) {
        Some("sub") => context::sub(values, argument(0).and_then(Value::as_str).unwrap_or_default(), argument(1)),
        Some("child") => {
            let count = argument(1).and_then(Value::as_u64).and_then(|count| count.try_into().ok()).unwrap_or_default();
            context::child(values, argument(0).unwrap_or(&empty), count, argument(2))
        }
        Some("distribute") => context::distribute(values, &list(0)),
        _ => context::aggregate(values, &list(0), &list(1)),
    };
    json!({ "value": value })
}

fn found_as_json(found: &Found) -> Value {
    let flaws = found.flaws.iter().map(|flaw| {
        json!({
            "key": flaw.key.as_deref().unwrap_or_default(),
            "message": flaw.message,
            "expected": flaw.expected,
            "actual": flaw.actual,
            "diff": flaw.diff,
            "critical": flaw.critical,
            "undecided": flaw.undecided,
        })
    });
    json!({
        "pass": match found.pass {
            Pass::Yes => Some(true),
            Pass::No => Some(false),
            Pass::Unknown => None,
        },
        "score": found.score,
        "most": found.most,
        "critical": found.critical,
        "flaws": flaws.collect::<Vec<Value>>(),
        "details": found.details,
    })
}

fn problems_as_json(problems: Problems) -> Vec<Value> {
    let described = |problem: &Diagnostic| {
        let is_error = problem.severity == Severity::Error;
        json!({ "isError": is_error, "message": problem.message, "help": problem.help })
    };
    problems.into_iter().map(|problem| described(&problem)).collect()
}

/// Converts a value to a tree. Maps with one of the keys above are regular expressions and functions.
fn node(value: &Value) -> Node {
    let source = Source::new("expectation", "");
    tagged(Node::from_json(value, &source))
}

fn tagged(mut node: Node) -> Node {
    let marked = match &node.kind {
        NodeKind::Map(entries) => match entries.as_slice() {
            [(key, value)] if key.value == REGEX => value.as_str().map(|text| (REGEX_TAG, text.to_owned())),
            [(key, value)] if key.value == FUNCTION => value.as_str().map(|text| (FUNCTION_TAG, text.to_owned())),
            _ => None,
        },
        _ => None,
    };
    if let Some((tag, text)) = marked {
        return Node { kind: NodeKind::String(text), tag: Some(tag.into()), ..node };
    }
    node.kind = match node.kind {
        NodeKind::List(items) => NodeKind::List(items.into_iter().map(tagged).collect()),
        NodeKind::Map(entries) => NodeKind::Map(entries.into_iter().map(|(key, value)| (key, tagged(value))).collect()),
        other => other,
    };
    node
}

/// Converts a tree to JSON, with the marks of [`tagged`].
fn json_of(node: &Node) -> Value {
    let mark = match node.tag.as_deref() {
        Some(REGEX_TAG) => Some(REGEX),
        Some(FUNCTION_TAG) => Some(FUNCTION),
        _ => None,
    };
    match (&node.kind, mark) {
        (NodeKind::String(text), Some(mark)) => json!({ mark: text }),
        (NodeKind::List(items), _) => Value::Array(items.iter().map(json_of).collect()),
        (NodeKind::Map(entries), _) => {
            let entry = |(key, value): &(Spanned<String>, Node)| (key.value.clone(), json_of(value));
            Value::Object(entries.iter().map(entry).collect())
        }
        _ => node.to_json(),
    }
}

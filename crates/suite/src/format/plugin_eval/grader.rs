//! Reads graders, each of which becomes an assertion.

use std::sync::Arc;

use model::decode::{self, Fields};
use model::{Arguments, AssertionScope, AssertionSpec, Node, NodeKind, Spanned};

use super::reading::{self, Reading};
use crate::coverage::Unknown;

/// A grader.
pub(super) struct Grader {
    /// Its assertion.
    pub(super) spec: AssertionSpec,
    /// True if it only shows whether the plug-in was used, when the case also runs without the plug-in.
    pub(super) is_indicator: bool,
    /// True if it is about calls to mocks and does not say for which arm. It is an indicator if only the plug-in has
    /// mocked servers.
    pub(super) is_about_mocks: bool,
    /// True if it requires that no skill is used.
    pub(super) forbids_skill: bool,
}

/// Number of judges there.
const JUDGES: u64 = 3;

/// Tool with which Claude Code loads a skill.
const SKILL: &str = "Skill";

/// A type of grader, and the function that reads its assertion: a type and its fields.
type Read =
    for<'a> fn(&mut Fields<'a>, &Entry<'a>, &mut Reading<'_>) -> Option<(&'static str, Vec<(&'static str, Node)>)>;

/// All types of graders.
const TYPES: [(&str, Read); 6] = [
    ("regex", regex),
    ("tool_order", tool_order),
    ("tool_used", tool_used),
    ("file_exists", file_exists),
    ("llm", llm),
    ("baseline", baseline),
];

/// A grader while it is read.
struct Entry<'a> {
    node: &'a Node,
    /// Text after the front matter, if it has a file of its own.
    body: Option<String>,
}

impl Entry<'_> {
    /// Creates a node at the place of the grader.
    fn node(&self, kind: NodeKind) -> Node {
        at(self.node, kind)
    }
}

/// Creates a node at the place of `node`.
fn at(node: &Node, kind: NodeKind) -> Node {
    Node { kind, span: node.span, tag: None, source: Arc::clone(&node.source) }
}

fn text(place: &Node, text: impl Into<String>) -> Node {
    at(place, NodeKind::String(text.into()))
}

fn map(place: &Node, entries: Vec<(&'static str, Node)>) -> Node {
    let entries = entries.into_iter().map(|(key, value)| (Spanned::new(key.to_owned(), place.span), value));
    at(place, NodeKind::Map(entries.collect()))
}

/// Reads the grader `node`, which is called `fallback` if it has no name. `body` is the text of its file.
pub(super) fn read(node: &Node, body: Option<String>, fallback: &str, reading: &mut Reading<'_>) -> Option<Grader> {
    let entry = Entry { node, body };
    let mut fields = Fields::of(node, "a grader", &mut reading.found)?;
    let id = fields.text("name", &mut reading.found).unwrap_or_else(|| fallback.to_owned());
    let kind = match fields.get("type") {
        // A Markdown file without a type is a rubric.
        None if entry.body.is_some() => "llm".to_owned(),
        _ => fields.required_text("type", &mut reading.found)?,
    };
    let Some((_, read)) = TYPES.iter().find(|(name, _)| *name == kind) else {
        let choices: Vec<(&'static str, ())> = TYPES.iter().map(|(name, _)| (*name, ())).collect();
        decode::choice(fields.get("type")?, "`type`", &choices, &mut reading.found);
        return None;
    };
    let weight = fields.get("weight").map_or(1.0, |node| weight(node, reading));
    let arms = [("with-only", true), ("both", false)];
    let arm = fields.choice("arm", &arms, &mut reading.found);
    let is_of_skill = kind == "tool_used" && node.get("tool").and_then(Node::as_str) == Some(SKILL);
    let is_zero = |key: &str| {
        node.get(key).is_some_and(|node| matches!(&node.kind, NodeKind::Number(number) if number.as_f64() == Some(0.0)))
    };
    let about_mocks = ["target", "focus"].iter().any(|key| node.get(key).and_then(Node::as_str) == Some("mock_calls"));
    let assertion = read(&mut fields, &entry, reading);
    let unknown = |_: &str, _: &Node| Unknown::Refused("trialrun does not know what it checks".to_owned());
    reading.close(&fields, "graders[]", &[], unknown);
    let (assertion, mut entries) = assertion?;
    entries.insert(0, ("type", entry.node(NodeKind::String(assertion.to_owned()))));
    entries.insert(0, ("id", entry.node(NodeKind::String(id.clone()))));
    Some(Grader {
        spec: AssertionSpec {
            node: map(node, entries),
            arguments: Arguments::Fields,
            about: AssertionScope::Trial,
            id,
            kind: Spanned::new(assertion.to_owned(), node.span),
            weight,
        },
        is_indicator: arm.unwrap_or(is_of_skill),
        is_about_mocks: arm.is_none() && about_mocks,
        forbids_skill: is_of_skill && is_zero("max"),
    })
}

/// Reads a weight, which is not below 0.
fn weight(node: &Node, reading: &mut Reading<'_>) -> f64 {
    let number = match &node.kind {
        NodeKind::Number(number) => number.as_f64(),
        _ => None,
    };
    number.filter(|weight| *weight >= 0.0 && weight.is_finite()).unwrap_or_else(|| {
        let written = number.map_or_else(|| node.kind_name().to_owned(), |weight| weight.to_string());
        reading.found.push(node.error(format!("`weight` must be a number of at least 0, not {written}")));
        1.0
    })
}

type Assertion = Option<(&'static str, Vec<(&'static str, Node)>)>;

fn regex<'a>(fields: &mut Fields<'a>, entry: &Entry<'a>, reading: &mut Reading<'_>) -> Assertion {
    let flags = fields.any_text("flags", &mut reading.found).unwrap_or_default();
    let pattern = match (fields.get("pattern"), &entry.body) {
        (None, Some(body)) if !body.is_empty() => body.clone(),
        _ => fields.required_text("pattern", &mut reading.found)?,
    };
    let place = fields.get("pattern").unwrap_or(entry.node);
    if model::is_in_slashes(&pattern) {
        let problem = place.warning(format!("the slashes of `{pattern}` are part of the expression here"));
        reading.found.push(problem.help("write the expression without them, and its flags under `flags`"));
    }
    let mut entries = vec![("pattern", text(place, format!("/{pattern}/{flags}")))];
    if let Some(node) = fields.get("target") {
        entries.push(target("target", node, reading)?);
    }
    if let Some(node) = fields.get("match") {
        let written = decode::text(node, "`match`", &mut reading.found)?;
        let count = match written.as_str() {
            "contains" => None,
            "not_contains" => Some(0),
            other => match other.strip_prefix("count:").and_then(|count| count.trim().parse::<u64>().ok()) {
                Some(count) => Some(count),
                None => {
                    let message = format!("`match` must be `contains`, `not_contains` or `count:N`, not `{other}`");
                    reading.found.push(node.error(message));
                    return None;
                }
            },
        };
        entries.extend(count.map(|count| ("count", at(node, NodeKind::Number(count.into())))));
    }
    if asserts_nothing(&pattern, &flags, &entries) {
        reading.found.push(place.error(format!("`/{pattern}/{flags}` matches every text, so it asserts nothing")));
        return None;
    }
    Some(("matches", entries))
}

/// Returns `true` if every text that the fields of `matches` mean matches `pattern`.
fn asserts_nothing(pattern: &str, flags: &str, entries: &[(&str, Node)]) -> bool {
    let field = |name: &str| entries.iter().find(|(key, _)| *key == name).map(|(_, node)| node);
    let Ok(regex) = script::Regex::literal(pattern, flags) else { return false };
    let is_enough = match (field("path"), field("in").and_then(Node::as_str)) {
        // The file must exist.
        (Some(_), _) => false,
        (None, Some("created_files" | "mock_calls")) => regex.is_match("").unwrap_or(false),
        (None, _) => true,
    };
    is_enough && field("count").is_none() && regex.matches_every_text()
}

/// Returns the field of `matches` that stands for the target under `key`.
fn target(key: &str, node: &Node, reading: &mut Reading<'_>) -> Option<(&'static str, Node)> {
    let what = format!("`{key}`");
    if matches!(node.kind, NodeKind::Map(_)) {
        let mut fields = Fields::of(node, &what, &mut reading.found)?;
        fields.choice("source", &[("file", ())], &mut reading.found);
        let path = fields.required_text("path", &mut reading.found);
        let place = fields.get("path");
        reading.close(&fields, &format!("graders[].{key}"), &[], reading::unknown);
        return Some(("path", text(place?, path?)));
    }
    let known =
        [("last_message", "answer"), ("trace", "trace"), ("files", "created_files"), ("mock_calls", "mock_calls")];
    let known = decode::choice(node, &what, &known, &mut reading.found)?;
    Some(("in", text(node, known)))
}

/// Returns the fields of `tool_called` for a tool and a pattern for its input.
fn call<'a>(fields: &mut Fields<'a>, reading: &mut Reading<'_>) -> Option<Vec<(&'static str, Node)>> {
    let tool = fields.required_text("tool", &mut reading.found)?;
    let mut entries = vec![("tool", text(fields.get("tool")?, tool))];
    if let Some(pattern) = fields.text("input_match", &mut reading.found) {
        entries.push(("args_match", text(fields.get("input_match")?, pattern)));
    }
    Some(entries)
}

fn tool_used<'a>(fields: &mut Fields<'a>, entry: &Entry<'a>, reading: &mut Reading<'_>) -> Assertion {
    let mut entries = call(fields, reading)?;
    let written = fields.whole("min", 0, &mut reading.found);
    let min = written.unwrap_or(1);
    entries.push(("min", entry.node(NodeKind::Number(min.into()))));
    if let Some(max) = fields.whole("max", 0, &mut reading.found) {
        entries.push(("max", entry.node(NodeKind::Number(max.into()))));
        if max < min {
            let message = format!("`max` is {max}, which is less than `min`, {min}");
            let problem = fields.get("max").unwrap_or(entry.node).error(message);
            reading.found.push(match written {
                None => problem.help("without `min`, one call is needed: add `min: 0`"),
                Some(_) => problem,
            });
        }
    } else if min == 0 {
        let place = fields.get("min").unwrap_or(entry.node);
        reading.found.push(place.error("`min` is 0 and there is no `max`, so any number of calls is enough"));
    }
    Some(("tool_called", entries))
}

fn tool_order<'a>(fields: &mut Fields<'a>, entry: &Entry<'a>, reading: &mut Reading<'_>) -> Assertion {
    let mut steps = Vec::new();
    for key in ["before", "after"] {
        let node = fields.require(key, &mut reading.found)?;
        if node.as_str().is_some() {
            steps.push(map(node, vec![("tool", node.clone())]));
            continue;
        }
        let mut part = Fields::of(node, "a call", &mut reading.found)?;
        let entries = call(&mut part, reading);
        reading.close(&part, &format!("graders[].{key}"), &[], reading::unknown);
        steps.push(map(node, entries?));
    }
    let first = entry.node(NodeKind::Bool(true));
    Some(("tool_call_sequence", vec![("sequence", entry.node(NodeKind::List(steps))), ("first_calls", first)]))
}

fn file_exists<'a>(fields: &mut Fields<'a>, entry: &Entry<'a>, reading: &mut Reading<'_>) -> Assertion {
    let path = fields.required_text("path", &mut reading.found)?;
    let exists = fields.boolean("exists", &mut reading.found).unwrap_or(true);
    let entries = vec![("path", text(fields.get("path")?, path)), ("created", entry.node(NodeKind::Bool(true)))];
    Some((if exists { "file_exists" } else { "file_not_exists" }, entries))
}

/// Returns the criteria of a judged grader, which may be the text of its file.
fn criteria<'a>(fields: &mut Fields<'a>, entry: &Entry<'a>, reading: &mut Reading<'_>) -> Option<Node> {
    match (fields.get("criteria"), &entry.body) {
        (None, Some(body)) if !body.is_empty() => Some(text(entry.node, body.clone())),
        _ => {
            let written = fields.required_text("criteria", &mut reading.found)?;
            Some(text(fields.get("criteria")?, written))
        }
    }
}

/// Returns the fields of `rubric` for one criterion.
fn rubric(entry: &Entry<'_>, criterion: Node, has_files: bool) -> Vec<(&'static str, Node)> {
    let mut entries = vec![
        ("criteria", at(entry.node, NodeKind::List(vec![criterion]))),
        ("judges", entry.node(NodeKind::Number(JUDGES.into()))),
    ];
    if has_files {
        entries.push(("files", entry.node(NodeKind::Bool(true))));
    }
    entries
}

fn llm<'a>(fields: &mut Fields<'a>, entry: &Entry<'a>, reading: &mut Reading<'_>) -> Assertion {
    let criterion = criteria(fields, entry, reading)?;
    // A judge always sees the whole conversation.
    let mut file = None;
    let mut has_files = false;
    if let Some(node) = fields.get("focus") {
        match target("focus", node, reading)? {
            ("path", path) => file = path.as_str().map(str::to_owned),
            (_, text) => has_files = text.as_str() == Some("created_files"),
        }
    }
    let criterion = match &file {
        None => criterion,
        Some(path) => {
            let written = criterion.as_str().unwrap_or_default();
            text(&criterion, format!("{written}\n\nJudge the content of the file `{path}`."))
        }
    };
    Some(("rubric", rubric(entry, criterion, has_files || file.is_some())))
}

fn baseline<'a>(fields: &mut Fields<'a>, entry: &Entry<'a>, reading: &mut Reading<'_>) -> Assertion {
    let file = fields.required_text("baseline_file", &mut reading.found)?;
    let place = fields.get("baseline_file")?;
    let criterion = match fields.get("criteria").is_some() || entry.body.as_ref().is_some_and(|body| !body.is_empty()) {
        true => criteria(fields, entry, reading)?,
        false => text(entry.node, "The result fulfils the task."),
    };
    let reference = reading.text_of(&file, place)?;
    let Some(answer) = last_answer(&reference) else {
        reading.found.push(place.error(format!("`{file}` has no answer of the agent")));
        return None;
    };
    let written = criterion.as_str().unwrap_or_default();
    let criterion = text(
        &criterion,
        format!("The result is at least as good as the reference, judged by this criterion: {written}"),
    );
    let mut entries = rubric(entry, criterion, false);
    entries.push(("expected", text(place, format!("The reference:\n{answer}"))));
    Some(("rubric", entries))
}

/// Returns the last text of the agent in a transcript with one JSON object per line, or the whole text if it is not one.
fn last_answer(transcript: &str) -> Option<String> {
    let mut is_transcript = false;
    let mut last = None;
    for line in transcript.lines().filter(|line| !line.trim().is_empty()) {
        let Ok(row) = serde_json::from_str::<serde_json::Value>(line) else { continue };
        let Some(kind) = row.get("type").and_then(|kind| kind.as_str()) else { continue };
        is_transcript = true;
        let content = row.pointer("/message/content").filter(|_| kind == "assistant");
        let texts: Vec<&str> = match content {
            Some(serde_json::Value::String(text)) => vec![text],
            Some(serde_json::Value::Array(blocks)) => {
                blocks.iter().filter_map(|block| block.get("text")?.as_str()).collect()
            }
            _ => Vec::new(),
        };
        if !texts.is_empty() {
            last = Some(texts.join("\n"));
        }
    }
    if is_transcript { last } else { Some(transcript.trim().to_owned()).filter(|text| !text.is_empty()) }
}

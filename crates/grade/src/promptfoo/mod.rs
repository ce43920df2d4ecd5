//! Assertions of promptfoo, for suites that are read in place. The reader of the format creates them; they are not a
//! type that users write. Each has the meaning and the score that it has there. What promptfoo would decide without
//! evidence is undecided.
//!
//! An entry has `assertion`, the assertion with its templates resolved; `prompt` and `vars`, which code receives; and
//! `transforms`, which change the answer first.

mod code;
mod hosted;
mod judged;
mod markup;
mod overlap;
mod set;
mod text;
mod trajectory;

use std::sync::Arc;

use expect::SourceLocation;
use model::decode::Problems;
use model::{AssertionSpec, Diagnostic, Evidence, Need, Node, NodeKind, Status};
use serde_json::Value;

use self::code::{Code, Transform};
use crate::context::Context;
use crate::given;
use crate::matcher::{Judgement, Matcher};
use crate::verdict::Verdict;

/// Type of these assertions.
pub(crate) const KIND: &str = "promptfoo";

/// Tag of their entries, which distinguishes them from those that a user writes.
const TAG: &str = "!promptfoo";

/// Returns `true` if `spec` was created by the reader of the format.
pub(crate) fn is_meant(spec: &AssertionSpec) -> bool {
    spec.kind.value == KIND && spec.node.tag.as_deref() == Some(TAG)
}

/// Compiles the assertion in `spec`. Problems are reported.
pub(crate) fn compile(
    spec: &AssertionSpec,
    context: &Context<'_>,
    problems: &mut Problems,
) -> Option<Arc<dyn Matcher>> {
    let entry = Entry { node: &spec.node, context };
    let assertion = spec.node.get("assertion")?;
    let known = problems.len();
    let matcher: Option<Arc<dyn Matcher>> = match judged::read(assertion, &entry, problems) {
        Some(judged) => judged.map(crate::matcher::judged),
        None if hosted::is_hosted(assertion) => {
            hosted::read(assertion, &entry, problems).flatten().map(|hosted| Arc::new(hosted) as Arc<dyn Matcher>)
        }
        None => Single::read(assertion, &entry, problems).map(|single| Arc::new(single) as Arc<dyn Matcher>),
    };
    matcher.filter(|_| problems[known..].iter().all(|problem| !problem.is_error()))
}

/// An entry while it is compiled.
struct Entry<'a> {
    node: &'a Node,
    context: &'a Context<'a>,
}

impl Entry<'_> {
    fn prompt(&self) -> &str {
        self.node.get("prompt").and_then(Node::as_str).unwrap_or_default()
    }
}

/// Result of an assertion.
#[derive(Debug, Clone, PartialEq)]
struct Graded {
    pass: bool,
    score: f64,
    reason: String,
}

impl Graded {
    /// Creates a result whose score is all or nothing.
    fn plain(pass: bool, reason: impl Into<String>) -> Self {
        Self { pass, score: if pass { 1.0 } else { 0.0 }, reason: reason.into() }
    }
}

/// Answer of the agent, as an assertion sees it.
struct Answer<'e> {
    /// Value of the answer.
    value: Value,
    /// The value as text.
    text: String,
    evidence: &'e Evidence,
}

impl<'e> Answer<'e> {
    fn new(value: Value, evidence: &'e Evidence) -> Self {
        let text = match &value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        Self { value, text, evidence }
    }
}

/// What an assertion decides.
#[derive(Debug)]
enum Test {
    Text(text::Text),
    Calls(trajectory::Calls),
    Code(Box<Code>),
    Set(set::Set),
    /// Reason why it cannot be decided here.
    Undecided(String),
}

/// Assertion that no judge decides.
#[derive(Debug)]
struct Single {
    test: Test,
    /// Changes of the answer, in order.
    transforms: Vec<Transform>,
    place: SourceLocation,
}

impl Single {
    fn read(assertion: &Node, entry: &Entry<'_>, problems: &mut Problems) -> Option<Self> {
        let place = SourceLocation::from_node(assertion.get("type").unwrap_or(assertion));
        let (kind, inverse) = kind_of(assertion)?;
        let mut transforms = Vec::new();
        let given = entry.node.get("transforms").map(|node| &node.kind);
        let of_test = if let Some(model::NodeKind::List(items)) = given { items.as_slice() } else { &[] };
        for node in of_test.iter().chain(assertion.get("transform")) {
            transforms.push(Transform::read(node, entry, problems)?);
        }
        let test = if let Some(reason) = assertion.get("undecided").and_then(Node::as_str) {
            Test::Undecided(reason.to_owned())
        } else if kind == "assert-set" {
            Test::Set(set::Set::read(assertion, entry, problems)?)
        } else if let Some(code) = Code::read(kind, inverse, assertion, entry, problems) {
            Test::Code(Box::new(code?))
        } else if let Some(calls) = trajectory::Calls::read(kind, inverse, assertion, problems) {
            Test::Calls(calls?)
        } else {
            Test::Text(text::Text::read(kind, inverse, assertion, problems)?)
        };
        Some(Self { test, transforms, place })
    }

    fn grade(&self, evidence: &Evidence) -> Result<Graded, String> {
        match &self.test {
            Test::Undecided(reason) => return Err(reason.clone()),
            Test::Set(set) => return set.grade(evidence),
            _ => {}
        }
        let mut value = match given::output(&evidence.trace) {
            Some(value) => value,
            // Calls are known without a reply.
            None if matches!(self.test, Test::Calls(_)) && evidence.trace.has_answered() => Value::Null,
            None => return Err("the agent gave no answer".to_owned()),
        };
        for transform in &self.transforms {
            value = transform.apply(&value)?;
        }
        let answer = Answer::new(value, evidence);
        match &self.test {
            Test::Text(text) => text.grade(&answer),
            Test::Calls(calls) => calls.grade(&answer),
            Test::Code(code) => code.grade(&answer),
            Test::Set(set) => set.grade(evidence),
            Test::Undecided(reason) => Err(reason.clone()),
        }
    }

    fn needs(&self) -> Vec<Need> {
        match &self.test {
            Test::Code(code) => code.need().into_iter().collect(),
            Test::Set(set) => set.needs(),
            _ => Vec::new(),
        }
    }
}

impl Matcher for Single {
    fn needs(&self) -> Vec<Need> {
        self.needs()
    }

    fn judge(&self, evidence: &Evidence) -> Judgement {
        Ok(match self.grade(evidence) {
            Ok(graded) => verdict(graded, evidence),
            Err(reason) => Verdict::undecided(reason),
        }
        .place(&self.place))
    }
}

/// Returns the verdict for a result.
fn verdict(graded: Graded, evidence: &Evidence) -> Verdict {
    let Graded { pass, score, reason } = graded;
    let verdict = match pass {
        true => Verdict::met(reason),
        false => {
            let actual = evidence.trace.answer.as_deref().map_or_else(|| "no text".to_owned(), crate::format::quoted);
            Verdict { status: Status::Unmet, actual: Some(actual), ..Verdict::met(reason) }
        }
    };
    verdict.scored(score)
}

/// Returns the type of `assertion` without `not-`, and `true` if it has that.
fn kind_of(assertion: &Node) -> Option<(&str, bool)> {
    let kind = assertion.get("type").and_then(Node::as_str)?;
    Some(kind.strip_prefix("not-").map_or((kind, false), |kind| (kind, true)))
}

/// Returns the number under `key`, if there is one.
fn number(assertion: &Node, key: &str) -> Option<f64> {
    match &assertion.get(key)?.kind {
        model::NodeKind::Number(number) => number.as_f64(),
        _ => None,
    }
}

/// Reports keys of a map of limits that have no effect, so that a limit would be missing.
fn only_limits(node: &Node, problems: &mut Problems) {
    let NodeKind::Map(entries) = &node.kind else { return };
    for (key, value) in entries.iter().filter(|(key, _)| !matches!(key.value.as_str(), "min" | "max")) {
        let problem = Diagnostic::error(format!("unknown key `{}` in `value`", key.value));
        problems.push(problem.at(value.source.excerpt(key.span)).help("known keys: min, max"));
    }
}

/// Returns the strings of `value`, which is a string or a list. Other values are reported.
fn strings(assertion: &Node, problems: &mut Problems) -> Option<Vec<String>> {
    let value = value(assertion, problems)?;
    let text = |node: &Node| match &node.kind {
        model::NodeKind::String(text) => Some(text.clone()),
        model::NodeKind::Number(_) | model::NodeKind::Bool(_) => Some(node.to_json().to_string()),
        _ => None,
    };
    let found = match &value.kind {
        model::NodeKind::List(items) if !items.is_empty() => items.iter().map(text).collect(),
        _ => text(value).map(|text| vec![text]),
    };
    if found.is_none() {
        problems.push(value.error("`value` must be a string or a list of strings"));
    }
    found
}

/// Returns `value`, which must not be missing, null or empty.
fn value<'a>(assertion: &'a Node, problems: &mut Problems) -> Option<&'a Node> {
    let value = assertion
        .get("value")
        .filter(|value| !matches!(&value.kind, model::NodeKind::Null) && value.as_str() != Some(""));
    if value.is_none() {
        let kind = assertion.get("type").and_then(Node::as_str).unwrap_or_default();
        problems.push(assertion.error(format!("`{kind}` needs a `value`")).of_missing(&["value"]));
    }
    value
}

/// Returns the text of `value`, which must be a string. Other values are reported.
fn text_value(assertion: &Node, problems: &mut Problems) -> Option<String> {
    let value = value(assertion, problems)?;
    match value.as_str() {
        Some(text) => Some(text.to_owned()),
        None => {
            problems.push(value.error(format!("`value` must be a string, not {}", value.kind_name())));
            None
        }
    }
}

#[cfg(test)]
mod tests;

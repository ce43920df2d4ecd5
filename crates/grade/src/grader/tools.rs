//! The metric `ToolCorrectness` of DeepEval: which of the expected calls the agent made.

use model::{Node, Trace};
use serde_json::{Map, Value};

use super::{Held, flag, items, number, text};
use crate::call_pattern::unknown_calls;

/// Expected calls, and how they are compared with those of the agent.
#[derive(Debug)]
pub(super) struct ToolCorrectness {
    expected: Vec<Call>,
    is_exact: bool,
    is_ordered: bool,
    compares_input: bool,
    compares_output: bool,
    threshold: f64,
    /// True if a score below the threshold counts as 0.
    is_strict: bool,
}

/// Call of a tool.
#[derive(Debug, Clone, PartialEq)]
struct Call {
    name: String,
    input: Option<Value>,
    output: Option<Value>,
}

impl ToolCorrectness {
    pub(super) fn read(node: &Node) -> Option<Self> {
        let is_strict = flag(node, "strict");
        let expected = items(node.get("expected")).iter().map(|item| {
            Some(Call {
                name: text(item, "name")?.to_owned(),
                input: item.get("input").map(Node::to_json),
                output: item.get("output").map(Node::to_json),
            })
        });
        Some(Self {
            expected: expected.collect::<Option<Vec<_>>>()?,
            is_exact: flag(node, "exact"),
            is_ordered: flag(node, "ordered"),
            compares_input: flag(node, "input"),
            compares_output: flag(node, "output"),
            threshold: if is_strict { 1.0 } else { number(node, "threshold").unwrap_or(0.5) },
            is_strict,
        })
    }

    pub(super) fn test(&self, trace: &Trace) -> Result<Held, String> {
        if let Some(reason) = unknown_calls(trace) {
            return Err(reason);
        }
        let call = |name: &str, traced: &model::TracedCall| Call {
            name: name.to_owned(),
            input: match &traced.call.input {
                Value::Object(input) if !input.is_empty() => Some(traced.call.input.clone()),
                _ => None,
            },
            output: traced.result.as_ref().map(|result| Value::String(result.content.clone())),
        };
        // A suite may name a tool as the agent does, or by its canonical name.
        let called: Vec<Call> = trace
            .calls
            .iter()
            .map(|traced| {
                let own = &traced.call.raw_name;
                let is_own = self.expected.iter().any(|expected| expected.name == *own);
                call(if is_own { own } else { &traced.call.name }, traced)
            })
            .collect();
        let score = self.score(&called);
        let score = if self.is_strict && score < self.threshold { 0.0 } else { score };
        let names = |calls: &[Call]| calls.iter().map(|call| call.name.as_str()).collect::<Vec<_>>().join(", ");
        let reason = format!("expected [{}], called [{}]: {score:.2}", names(&self.expected), names(&called));
        Ok(Held { holds: score >= self.threshold, score, reason })
    }

    fn score(&self, called: &[Call]) -> f64 {
        let expected = &self.expected;
        if expected.is_empty() {
            return if called.is_empty() { 1.0 } else { 0.0 };
        }
        if self.is_exact {
            let same = |(one, other): (&Call, &Call)| {
                one.name == other.name
                    && (!self.compares_input || one.input == other.input)
                    && (!self.compares_output || one.output == other.output)
            };
            let holds = expected.len() == called.len() && expected.iter().zip(called).all(same);
            return if holds { 1.0 } else { 0.0 };
        }
        let total = if self.is_ordered { self.ordered(called) } else { self.unordered(called) };
        total / expected.len() as f64
    }

    /// Returns the score of one call for an expected one with the same name.
    fn likeness(&self, expected: &Call, called: &Call) -> f64 {
        if self.compares_output && expected.output != called.output {
            return 0.0;
        }
        if !self.compares_input || expected.input == called.input {
            return 1.0;
        }
        compared(expected.input.as_ref(), called.input.as_ref())
    }

    /// Returns the sum of the scores of the best calls. Equal calls count once.
    fn unordered(&self, called: &[Call]) -> f64 {
        let mut taken: Vec<&Call> = Vec::new();
        let mut total = 0.0;
        for expected in &self.expected {
            let mut best: Option<(f64, &Call)> = None;
            for call in called.iter().filter(|call| call.name == expected.name) {
                let score = self.likeness(expected, call);
                if !taken.contains(&call) && score > best.map_or(0.0, |(score, _)| score) {
                    best = Some((score, call));
                }
            }
            if let Some((score, call)) = best {
                total += score;
                taken.push(call);
            }
        }
        total
    }

    /// Returns the weight of the best common subsequence.
    fn ordered(&self, called: &[Call]) -> f64 {
        let mut above = vec![0.0_f64; called.len() + 1];
        for expected in &self.expected {
            let mut row = vec![0.0_f64; called.len() + 1];
            for (at, call) in called.iter().enumerate() {
                let score = if call.name == expected.name { self.likeness(expected, call) } else { 0.0 };
                let matched = if score > 0.0 { above[at] + score } else { 0.0 };
                row[at + 1] = above[at + 1].max(row[at]).max(matched);
            }
            above = row;
        }
        above[called.len()]
    }
}

/// Returns the share of the keys that two maps have in common with the same value.
fn compared(one: Option<&Value>, other: Option<&Value>) -> f64 {
    let empty = Map::new();
    let map = |value: Option<&Value>| value.and_then(Value::as_object).cloned().unwrap_or_else(|| empty.clone());
    let (one, other) = (map(one), map(other));
    let total = one.len() + other.keys().filter(|key| !one.contains_key(*key)).count();
    if total == 0 {
        return 1.0;
    }
    let score = |(key, value): (&String, &Value)| match other.get(key) {
        Some(same) if same == value => 1.0,
        Some(inner) if inner.is_object() && value.is_object() => compared(Some(value), Some(inner)),
        _ => 0.0,
    };
    one.iter().map(score).sum::<f64>() / total as f64
}

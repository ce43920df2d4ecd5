//! Graders of other tools, for suites that are read in place. The readers of the formats create them; they are not a
//! type that users write. What another tool would decide without evidence is undecided.
//!
//! An entry has `checks`, a list of maps with `check`. The grader is met if all checks hold. Its score is all or
//! nothing or, with `share`, the mean score of the checks.

mod call;
mod command;
mod dataset;
mod file;
mod tools;

use std::sync::Arc;

use expect::SourceLocation;
use model::decode::Problems;
use model::{AssertionSpec, Ending, Evidence, Need, Node, NodeKind, Probed, Status};

use self::call::{Calls, Sequence, Skills};
use self::command::CommandCheck;
use self::dataset::Scorer;
use self::file::Files;
use self::tools::ToolCorrectness;
use crate::as_written;
use crate::call_pattern::unknown_calls;
use crate::matcher::{Judgement, Matcher};
use crate::pattern::{Pattern, RegexBudget};
use crate::verdict::Verdict;

/// Type of these assertions.
pub(crate) const KIND: &str = "grader";

/// Tag of their entries, which distinguishes them from those that a user writes.
const TAG: &str = "!grader";

/// Returns `true` if `spec` was created by the reader of a format.
pub(crate) fn is_meant(spec: &AssertionSpec) -> bool {
    spec.kind.value == KIND && spec.node.tag.as_deref() == Some(TAG)
}

/// Compiles the grader in `spec`. Problems are reported.
pub(crate) fn compile(spec: &AssertionSpec, problems: &mut Problems) -> Option<Arc<dyn Matcher>> {
    let known = problems.len();
    let items = items(spec.node.get("checks"));
    let checks: Vec<Check> = items.iter().filter_map(|item| Check::read(item, problems)).collect();
    if items.is_empty() {
        problems.push(spec.node.error("this grader asserts nothing"));
    } else if checks.len() < items.len() && problems.len() == known {
        problems.push(spec.node.error("a check of this grader cannot be read"));
    }
    let is_usable = problems[known..].iter().all(|problem| !problem.is_error());
    let place = SourceLocation::from_node(&spec.node);
    let is_share = flag(&spec.node, "share");
    is_usable.then(|| Arc::new(Grader { checks, is_share, place }) as Arc<dyn Matcher>)
}

/// Grader of another tool.
#[derive(Debug)]
struct Grader {
    checks: Vec<Check>,
    /// True if the score is the mean of the scores of the checks.
    is_share: bool,
    place: SourceLocation,
}

/// One of the conditions of a grader.
#[derive(Debug)]
enum Check {
    Answer(Text),
    Files(Files),
    Calls(Calls),
    Sequence(Sequence),
    Skills(Skills),
    Command(CommandCheck),
    AtMost {
        quantity: Quantity,
        most: u64,
    },
    /// The agent gave an answer. With `true`, it also ended normally.
    Answered(bool),
    Scorer(Scorer),
    Tools(ToolCorrectness),
    /// Reason why it is never decided.
    Undecided(String),
}

/// Quantity that a grader limits.
#[derive(Debug, Clone, Copy)]
enum Quantity {
    Calls,
    Errors,
    Milliseconds,
}

/// Result of a check.
#[derive(Debug, Clone, PartialEq)]
struct Held {
    holds: bool,
    score: f64,
    reason: String,
}

impl Held {
    /// Creates a result whose score is all or nothing.
    fn plain(holds: bool, reason: impl Into<String>) -> Self {
        Self { holds, score: if holds { 1.0 } else { 0.0 }, reason: reason.into() }
    }
}

impl Check {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        Some(match text(node, "check")? {
            "answer" => {
                let text = Text::read(node, problems)?;
                if let (Find::Matches(pattern), true) = (&text.find, text.is_wanted) {
                    match pattern.asserts_nothing().filter(|_| pattern.matches_empty()) {
                        Some(message) => {
                            problems.push(node.get("matches").unwrap_or(node).error(message));
                            return None;
                        }
                        // Others ask for an answer, such as `\S`.
                        None => pattern.warn_if_every_answer_matches(problems),
                    }
                }
                Self::Answer(text)
            }
            "files" => Self::Files(Files::read(node, problems)?),
            "calls" => Self::Calls(Calls::read(node, problems)?),
            "sequence" => Self::Sequence(Sequence::read(node, problems)?),
            "skills" => Self::Skills(Skills::read(node)),
            "command" => Self::Command(CommandCheck::read(node, problems)?),
            "at_most" => {
                let quantity = match text(node, "of")? {
                    "calls" => Quantity::Calls,
                    "errors" => Quantity::Errors,
                    "milliseconds" => Quantity::Milliseconds,
                    _ => return None,
                };
                Self::AtMost { quantity, most: whole(node, "max")? }
            }
            "answered" => Self::Answered(flag(node, "ended")),
            "scorer" => Self::Scorer(Scorer::read(node, problems)?),
            "tools" => Self::Tools(ToolCorrectness::read(node)?),
            "undecided" => Self::Undecided(text(node, "reason")?.to_owned()),
            _ => return None,
        })
    }

    /// Tests the evidence.
    ///
    /// # Errors
    /// Returns the reason if it cannot be decided.
    fn test(&self, evidence: &Evidence) -> Result<Held, String> {
        match self {
            Self::Answer(text) => text.test_answer(evidence),
            Self::Files(files) => files.test(evidence),
            Self::Calls(calls) => calls.test(&evidence.trace),
            Self::Sequence(sequence) => sequence.test(&evidence.trace),
            Self::Skills(skills) => skills.test(&evidence.trace),
            Self::Command(command) => command.test(evidence),
            Self::AtMost { quantity, most } => at_most(*quantity, *most, evidence),
            Self::Answered(must_end) => {
                let is_there = evidence.trace.answer.as_deref().is_some_and(|answer| !answer.trim().is_empty());
                let has_ended = !must_end || matches!(evidence.ending, Ending::Finished);
                let reason = match (is_there, has_ended) {
                    (false, _) => "the agent gave no answer",
                    (true, false) => "the agent did not end normally",
                    (true, true) => "the agent answered",
                };
                Ok(Held::plain(is_there && has_ended, reason))
            }
            Self::Scorer(scorer) => scorer.test(evidence),
            Self::Tools(tools) => tools.test(&evidence.trace),
            Self::Undecided(reason) => Err(reason.clone()),
        }
    }

    fn needs(&self) -> Vec<Need> {
        match self {
            Self::Files(files) => vec![files.need()],
            Self::Command(command) => command.needs(),
            _ => Vec::new(),
        }
    }
}

fn at_most(quantity: Quantity, most: u64, evidence: &Evidence) -> Result<Held, String> {
    let (count, unit) = match quantity {
        Quantity::Calls => {
            let count = evidence.trace.calls.len() as u64;
            if let Some(reason) = unknown_calls(&evidence.trace).filter(|_| count <= most) {
                return Err(reason);
            }
            (count, "tool calls")
        }
        // Failures of the provider break a trial, and are never graded.
        Quantity::Errors => (u64::from(matches!(evidence.ending, Ending::GaveUp { .. })), "errors"),
        Quantity::Milliseconds => (evidence.agent_ms().ok_or("the time of the agent was not measured")?, "ms"),
    };
    Ok(Held::plain(count <= most, format!("{count} {unit} of {most}")))
}

impl Matcher for Grader {
    fn needs(&self) -> Vec<Need> {
        self.checks.iter().flat_map(Check::needs).collect()
    }

    fn is_met_by(&self, need: &Need, found: &Probed) -> bool {
        self.checks.iter().any(|check| matches!(check, Check::Command(command) if command.is_met_by(need, found)))
    }

    fn judge(&self, evidence: &Evidence) -> Judgement {
        let results: Vec<Result<Held, String>> = self.checks.iter().map(|check| check.test(evidence)).collect();
        let held: Vec<&Held> = results.iter().flatten().collect();
        let mean = held.iter().map(|held| held.score).sum::<f64>() / (results.len().max(1) as f64);
        let failed: Vec<&str> = held.iter().filter(|held| !held.holds).map(|held| held.reason.as_str()).collect();
        let unknown = results.iter().find_map(|result| result.as_ref().err());
        let verdict = match (failed.as_slice(), unknown) {
            ([first, others @ ..], _) => {
                let is_about_answer = self.checks.iter().zip(&results).any(|(check, result)| {
                    let fails = result.as_ref().is_ok_and(|held| !held.holds);
                    fails && matches!(check, Check::Answer(_) | Check::Scorer(_))
                });
                let answer = evidence.trace.answer.as_deref().filter(|_| is_about_answer);
                let lines = others.iter().map(|reason| (*reason).to_owned());
                let actual = answer.map(crate::format::quoted);
                Verdict { status: Status::Unmet, actual, ..Verdict::met(*first) }.evidence(lines)
            }
            ([], Some(reason)) => Verdict::undecided(reason.as_str()),
            ([], None) => Verdict::met(held.iter().map(|held| held.reason.as_str()).collect::<Vec<_>>().join("; ")),
        };
        let score = match (self.is_share, &verdict.status) {
            (true, _) => mean,
            (false, Status::Met) => 1.0,
            (false, _) => 0.0,
        };
        Ok(verdict.scored(score).place(&self.place))
    }
}

/// Condition on a text.
#[derive(Debug)]
struct Text {
    find: Find,
    is_wanted: bool,
}

#[derive(Debug)]
enum Find {
    /// Text, and `true` if case matters.
    Contains(String, bool),
    Matches(Pattern),
    /// The whole text. Without `true`, white space around it does not matter.
    Equals(String, bool),
}

impl Text {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        let is_wanted = !flag(node, "not");
        if let Some(text) = node.get("contains") {
            as_written::report(text, is_wanted, "use a grader for regular expressions", problems);
        }
        let find = match (text(node, "contains"), node.get("matches"), text(node, "equals")) {
            (Some(text), ..) => Find::Contains(text.to_owned(), flag(node, "case")),
            (None, Some(pattern), _) => Find::Matches(Pattern::from_node(pattern, problems)?),
            (None, None, Some(text)) => Find::Equals(text.to_owned(), flag(node, "case")),
            (None, None, None) => return None,
        };
        Some(Self { find, is_wanted })
    }

    /// Returns `true` if `text` has what is looked for.
    ///
    /// # Errors
    /// Returns the reason if it cannot be decided.
    fn is_in(&self, text: &str) -> Result<bool, String> {
        match &self.find {
            Find::Contains(wanted, true) => Ok(text.contains(wanted.as_str())),
            Find::Contains(wanted, false) => Ok(crate::folded::find(text, wanted).is_some()),
            Find::Matches(pattern) => pattern.test(text, &RegexBudget::new()),
            Find::Equals(wanted, true) => Ok(text == wanted),
            Find::Equals(wanted, false) => Ok(text.trim() == wanted.trim()),
        }
    }

    fn test_answer(&self, evidence: &Evidence) -> Result<Held, String> {
        let Some(answer) = evidence.trace.answer.as_deref() else {
            return match self.is_wanted {
                true => Ok(Held::plain(false, "the agent gave no answer")),
                false => Err("the agent gave no answer".to_owned()),
            };
        };
        let is_in = self.is_in(answer)?;
        Ok(Held::plain(is_in == self.is_wanted, format!("the answer {}", self.says(is_in))))
    }

    /// Says that a text has what is looked for, or that it does not.
    fn says(&self, is_in: bool) -> String {
        let (verb, what) = match &self.find {
            Find::Contains(text, _) => ("contain", crate::format::quoted(text)),
            Find::Matches(pattern) => ("match", pattern.to_string()),
            Find::Equals(text, _) => ("equal", crate::format::quoted(text)),
        };
        match (is_in, verb) {
            (true, "match") => format!("matches {what}"),
            (true, _) => format!("{verb}s {what}"),
            (false, _) => format!("does not {verb} {what}"),
        }
    }
}

/// Returns the items of a list; none for any other value.
fn items(node: Option<&Node>) -> &[Node] {
    match node.map(|node| &node.kind) {
        Some(NodeKind::List(items)) => items,
        _ => &[],
    }
}

/// Returns the strings of the list under `key`.
fn texts(node: &Node, key: &str) -> Vec<String> {
    items(node.get(key)).iter().filter_map(Node::as_str).map(str::to_owned).collect()
}

fn text<'a>(node: &'a Node, key: &str) -> Option<&'a str> {
    node.get(key).and_then(Node::as_str)
}

fn flag(node: &Node, key: &str) -> bool {
    matches!(node.get(key).map(|node| &node.kind), Some(NodeKind::Bool(true)))
}

fn whole(node: &Node, key: &str) -> Option<u64> {
    match &node.get(key)?.kind {
        NodeKind::Number(number) => model::decode::as_whole(number),
        _ => None,
    }
}

fn number(node: &Node, key: &str) -> Option<f64> {
    match &node.get(key)?.kind {
        NodeKind::Number(number) => number.as_f64(),
        _ => None,
    }
}

#[cfg(test)]
mod tests;

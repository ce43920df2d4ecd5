//! Assertions about the agent's calls of tools and the skills that it used.

use std::collections::BTreeSet;

use model::decode::Problems;
use model::{Node, NodeKind, Trace};
use serde_json::Value;

use super::{Answer, Graded, number, strings};
use crate::call_pattern::unknown_calls;
use crate::skill_use;

/// Names of tools that run commands. Their calls are steps of the type `command` there.
const COMMAND_TOOLS: [&str; 3] = ["exec_command", "local_shell", "shell"];

/// Assertion about calls.
#[derive(Debug)]
pub(super) struct Calls {
    rule: Rule,
    inverse: bool,
}

#[derive(Debug)]
enum Rule {
    /// Each of the tools is called.
    Tools(Vec<Step>),
    /// Steps that match occur this often.
    Count {
        step: Step,
        least: Option<f64>,
        most: Option<f64>,
    },
    /// The tools are called in this order.
    Sequence {
        steps: Vec<Step>,
        is_exact: bool,
    },
    /// A call has these arguments.
    Arguments {
        step: Step,
        wanted: Value,
        is_exact: bool,
        defaults: Value,
        ignored: Vec<String>,
    },
    /// Each of the skills is used.
    Skills(Vec<Step>),
    SkillCount {
        step: Step,
        least: f64,
        most: Option<f64>,
    },
    /// The set of called tools resembles this one.
    F1 {
        tools: BTreeSet<String>,
        threshold: f64,
    },
}

/// Pattern of a step.
#[derive(Debug, Clone, Default)]
struct Step {
    /// Types of steps; any if empty.
    kinds: Vec<String>,
    /// Name, in which `*` and `?` stand for other characters; any if absent.
    pattern: Option<String>,
}

/// Step that the agent took.
struct Taken<'t> {
    kind: &'static str,
    names: Vec<&'t str>,
    input: Option<&'t Value>,
}

impl Step {
    fn of(pattern: &str, kind: &str) -> Self {
        Self { kinds: vec![kind.to_owned()], pattern: Some(pattern.to_owned()) }
    }

    /// Reads a step, which is a pattern or a map. `kind` is its type if it has none.
    fn read(node: &Node, kind: Option<&str>, problems: &mut Problems) -> Option<Self> {
        if let Some(pattern) = node.as_str() {
            return Some(Self {
                kinds: kind.iter().map(|kind| (*kind).to_owned()).collect(),
                pattern: Some(pattern.to_owned()),
            });
        }
        if !matches!(node.kind, NodeKind::Map(_)) {
            problems.push(node.error(format!("a step must be a string or a map, not {}", node.kind_name())));
            return None;
        }
        let text = |key: &str| node.get(key).and_then(Node::as_str).map(str::to_owned);
        let kinds = match node.get("type").map(|node| &node.kind) {
            Some(NodeKind::String(kind)) => vec![kind.clone()],
            Some(NodeKind::List(kinds)) => kinds.iter().filter_map(Node::as_str).map(str::to_owned).collect(),
            _ => kind.iter().map(|kind| (*kind).to_owned()).collect(),
        };
        Some(Self { kinds, pattern: text("pattern").or_else(|| text("name")) })
    }

    /// Like `read`, for a step that needs a name.
    fn named(node: &Node, problems: &mut Problems) -> Option<Self> {
        let step = Self::read(node, Some("tool"), problems)?;
        if step.pattern.is_none() {
            problems.push(node.error("a step needs a `name` or a `pattern`"));
            return None;
        }
        Some(step)
    }

    fn matches(&self, taken: &Taken<'_>) -> bool {
        (self.kinds.is_empty() || self.kinds.iter().any(|kind| kind == taken.kind))
            && self.pattern.as_ref().is_none_or(|pattern| taken.names.iter().any(|name| is_like(name, pattern)))
    }

    fn shown(&self) -> &str {
        self.pattern.as_deref().unwrap_or("*")
    }
}

/// Returns `true` if `name` matches `pattern` as a whole, regardless of case.
fn is_like(name: &str, pattern: &str) -> bool {
    let (name, pattern): (Vec<char>, Vec<char>) =
        (name.to_lowercase().chars().collect(), pattern.to_lowercase().chars().collect());
    let (mut at, mut next) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while at < name.len() {
        match pattern.get(next) {
            Some('*') => {
                star = Some((next, at));
                next += 1;
            }
            Some('?') => (at, next) = (at + 1, next + 1),
            Some(wanted) if *wanted == name[at] => (at, next) = (at + 1, next + 1),
            _ => {
                let Some((from, taken)) = star else { return false };
                star = Some((from, taken + 1));
                (at, next) = (taken + 1, from + 1);
            }
        }
    }
    pattern[next..].iter().all(|rest| *rest == '*')
}

impl Calls {
    /// Reads an assertion of the type `kind`; `None` if it is not about calls. Problems are reported.
    pub(super) fn read(kind: &str, inverse: bool, assertion: &Node, problems: &mut Problems) -> Option<Option<Self>> {
        let rule = match kind {
            "trajectory:tool-used" => tools(assertion, problems),
            "trajectory:tool-sequence" => sequence(assertion, problems),
            "trajectory:tool-args-match" => arguments(assertion, problems),
            "trajectory:step-count" => count(assertion, problems),
            "skill-used" => skills(inverse, assertion, problems),
            "tool-call-f1" => f1(assertion, problems),
            _ => return None,
        };
        Some(rule.map(|rule| Self { rule, inverse }))
    }

    /// Grades the calls.
    ///
    /// # Errors
    /// Returns the reason if it cannot be decided.
    pub(super) fn grade(&self, answer: &Answer<'_>) -> Result<Graded, String> {
        let (graded, is_certain) = self.graded(answer);
        let trace = &answer.evidence.trace;
        match unknown_calls(trace).or_else(|| self.unreported_arguments(trace)).filter(|_| !is_certain) {
            Some(reason) => Err(reason),
            None => Ok(graded),
        }
    }

    /// Returns the reason why the arguments of a call that matters are not known.
    fn unreported_arguments(&self, trace: &Trace) -> Option<String> {
        let Rule::Arguments { step, .. } = &self.rule else { return None };
        let steps = steps(trace);
        let mut silent = steps.iter().filter(|taken| taken.input.is_some_and(Value::is_null) && step.matches(taken));
        let name = silent.find_map(|taken| taken.names.first().copied())?;
        Some(format!("the agent does not report with which arguments it called {name}"))
    }

    /// Returns the result for the known calls, and `true` if further calls could not change it.
    fn graded(&self, answer: &Answer<'_>) -> (Graded, bool) {
        let trace = &answer.evidence.trace;
        let steps = steps(trace);
        let found = |step: &Step| steps.iter().filter(|taken| step.matches(taken)).count();
        let tools: Vec<&Taken<'_>> = steps.iter().filter(|taken| taken.kind == "tool").collect();
        let counted = |count: usize, least: f64, most: Option<f64>, step: &Step, verb: &str| {
            let count = count as f64;
            let exceeds = most.is_some_and(|most| count > most);
            let holds = count >= least && !exceeds;
            (holds, format!("{count} {verb} {}", step.shown()), exceeds || (holds && most.is_none()))
        };
        let (holds, reason, is_certain) = match &self.rule {
            Rule::Tools(wanted) => return self.each(wanted, |step| found(step) > 0, "called"),
            Rule::Skills(wanted) => {
                let used = skill_use::used(trace);
                let is_used = |step: &Step| used.iter().any(|name| step.pattern.as_deref() == Some(name.as_str()));
                return self.each(wanted, is_used, "used");
            }
            Rule::F1 { tools, threshold } => return self.f1(tools, *threshold, answer),
            Rule::SkillCount { step, least, most } => {
                let pattern = step.pattern.as_deref().unwrap_or("*");
                let count = skill_calls(trace).into_iter().filter(|name| is_like(name, pattern)).count();
                counted(count, *least, *most, step, "uses of")
            }
            Rule::Count { step, least, most } => counted(found(step), least.unwrap_or(0.0), *most, step, "steps match"),
            Rule::Sequence { steps: wanted, is_exact: true } => {
                let pairs = tools.iter().zip(wanted);
                let holds = tools.len() == wanted.len() && pairs.into_iter().all(|(taken, step)| step.matches(taken));
                (holds, format!("the agent called {}", names(&tools)), false)
            }
            Rule::Sequence { steps: wanted, is_exact: false } => {
                let mut rest = wanted.iter();
                let mut next = rest.next();
                for taken in &tools {
                    if next.is_some_and(|step| step.matches(taken)) {
                        next = rest.next();
                    }
                }
                (next.is_none(), format!("the agent called {}", names(&tools)), next.is_none())
            }
            Rule::Arguments { step, wanted, is_exact, defaults, ignored } => {
                let holds =
                    tools.iter().filter(|taken| step.matches(taken)).filter_map(|taken| taken.input).any(|input| {
                        let own = without(&without_ignored(input, ignored), defaults);
                        let wanted = without_ignored(wanted, ignored);
                        if *is_exact { expect::same(&own, &wanted) } else { includes(&own, &wanted) }
                    });
                let reason = if holds { "a call has" } else { "no call has" };
                (holds, format!("{reason} the arguments {wanted} (called: {})", names(&tools)), holds)
            }
        };
        (Graded::plain(holds != self.inverse, reason), is_certain)
    }

    /// Returns the result for a list, all of whose items must be found; if inverse, none.
    fn each(&self, wanted: &[Step], is_found: impl Fn(&Step) -> bool, verb: &str) -> (Graded, bool) {
        let (found, missing): (Vec<&Step>, Vec<&Step>) = wanted.iter().partition(|step| is_found(step));
        let list = |steps: &[&Step]| steps.iter().map(|step| step.shown()).collect::<Vec<_>>().join(", ");
        let reason = match (found.is_empty(), missing.is_empty()) {
            (false, true) => format!("{verb}: {}", list(&found)),
            (true, _) => format!("not {verb}: {}", list(&missing)),
            (false, false) => format!("{verb}: {}; not {verb}: {}", list(&found), list(&missing)),
        };
        let pass = if self.inverse { found.is_empty() } else { missing.is_empty() };
        (Graded::plain(pass, reason), pass != self.inverse)
    }

    fn f1(&self, tools: &BTreeSet<String>, threshold: f64, answer: &Answer<'_>) -> (Graded, bool) {
        let mut called = BTreeSet::new();
        collect_names(&answer.value, &mut called);
        // Calls in the answer are complete.
        let is_certain = !called.is_empty();
        called.extend(answer.evidence.trace.calls.iter().map(|traced| traced.call.raw_name.clone()));
        let both = tools.intersection(&called).count() as f64;
        let share = |of: usize| if of > 0 { both / of as f64 } else { 0.0 };
        let (precision, recall) = (share(called.len()), share(tools.len()));
        let score = if both > 0.0 { 2.0 * precision * recall / (precision + recall) } else { 0.0 };
        let list = called.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let reason = format!("F1 is {score:.3}, with a threshold of {threshold} (called: {list})");
        (Graded { pass: (score >= threshold) != self.inverse, score, reason }, is_certain)
    }
}

fn names(tools: &[&Taken<'_>]) -> String {
    let names: Vec<&str> = tools.iter().filter_map(|taken| taken.names.first().copied()).collect();
    if names.is_empty() { "no tools".to_owned() } else { names.join(", ") }
}

/// Returns the steps of the agent in order.
fn steps(trace: &Trace) -> Vec<Taken<'_>> {
    let mut steps = Vec::new();
    let call = |index: usize, steps: &mut Vec<_>| {
        let Some(traced) = trace.calls.get(index) else { return };
        let call = &traced.call;
        let command = call.input.get("command").or_else(|| call.input.get("cmd")).and_then(Value::as_str);
        let is_command = COMMAND_TOOLS.contains(&call.raw_name.to_lowercase().as_str());
        let mut names = vec![call.raw_name.as_str()];
        match command.filter(|_| is_command) {
            Some(command) => {
                names.insert(0, command);
                names.extend(command.split_whitespace().next());
                steps.push(Taken { kind: "command", names, input: Some(&call.input) });
            }
            None => {
                names.extend(Some(call.name.as_str()).filter(|name| *name != call.raw_name));
                steps.push(Taken { kind: "tool", names, input: Some(&call.input) });
            }
        }
    };
    if trace.turns.is_empty() {
        (0..trace.calls.len()).for_each(|index| call(index, &mut steps));
    }
    for turn in &trace.turns {
        if !turn.thinking.is_empty() {
            steps.push(Taken { kind: "reasoning", names: vec!["reasoning"], input: None });
        }
        if !turn.text.is_empty() {
            steps.push(Taken { kind: "message", names: vec!["message", "agent response"], input: None });
        }
        turn.calls.iter().for_each(|index| call(*index, &mut steps));
    }
    steps
}

/// Returns the skill of each call that used one.
fn skill_calls(trace: &Trace) -> Vec<String> {
    let own = |index: usize| {
        let mut part = Trace::default();
        part.calls.extend(trace.calls.get(index).cloned());
        skill_use::used(&part)
    };
    (0..trace.calls.len()).flat_map(own).collect()
}

fn tools(assertion: &Node, problems: &mut Problems) -> Option<Rule> {
    let node = super::value(assertion, problems)?;
    if !matches!(node.kind, NodeKind::Map(_)) {
        let tools = strings(assertion, problems)?;
        return Some(Rule::Tools(tools.iter().map(|tool| Step::of(tool, "tool")).collect()));
    }
    let step = Step::named(node, problems)?;
    let (least, most) = (number(node, "min").unwrap_or(1.0), number(node, "max"));
    is_possible(node, least, most, problems).then_some(Rule::Count { step, least: Some(least), most })
}

/// Reports limits that hold for any number, or for none.
fn is_possible(node: &Node, least: f64, most: Option<f64>, problems: &mut Problems) -> bool {
    let wrong = match most {
        None if least <= 0.0 => "`min` is not above 0, so any number is within the limits".to_owned(),
        Some(most) if most < least => format!("`max` is {most}, which is less than `min`, {least}"),
        _ => return true,
    };
    problems.push(node.error(wrong));
    false
}

fn count(assertion: &Node, problems: &mut Problems) -> Option<Rule> {
    let node = super::value(assertion, problems)?;
    let (least, most) = (number(node, "min"), number(node, "max"));
    if least.is_none() && most.is_none() {
        problems.push(node.error("`value` needs `min` or `max`"));
        return None;
    }
    let step = Step::read(node, None, problems)?;
    is_possible(node, least.unwrap_or(0.0), most, problems).then_some(Rule::Count { step, least, most })
}

fn sequence(assertion: &Node, problems: &mut Problems) -> Option<Rule> {
    let node = super::value(assertion, problems)?;
    let (list, is_exact) = match &node.kind {
        NodeKind::List(items) => (Some(items), false),
        _ => {
            let mode = node.get("mode").and_then(Node::as_str);
            let steps = node.get("steps").map(|node| &node.kind);
            let list = if let Some(NodeKind::List(items)) = steps { Some(items) } else { None };
            if let Some(mode) = mode.filter(|mode| !matches!(*mode, "exact" | "in_order")) {
                problems.push(node.error(format!("`mode` must be `in_order` or `exact`, not `{mode}`")));
                return None;
            }
            (list, mode == Some("exact"))
        }
    };
    let Some(list) = list.filter(|list| !list.is_empty()) else {
        problems.push(node.error("`value` must be a list of steps, or a map with `steps`"));
        return None;
    };
    let steps: Option<Vec<Step>> = list.iter().map(|step| Step::named(step, problems)).collect();
    Some(Rule::Sequence { steps: steps?, is_exact })
}

fn arguments(assertion: &Node, problems: &mut Problems) -> Option<Rule> {
    let node = super::value(assertion, problems)?;
    let step = Step::named(node, problems)?;
    let Some(wanted) = node.get("args").or_else(|| node.get("arguments")) else {
        problems.push(node.error("`value` needs `args`"));
        return None;
    };
    let is_exact = match node.get("mode").and_then(Node::as_str) {
        None | Some("partial") => false,
        Some("exact") => true,
        Some(mode) => {
            problems.push(node.error(format!("`mode` must be `partial` or `exact`, not `{mode}`")));
            return None;
        }
    };
    let ignored = match node.get("ignore").map(|node| &node.kind) {
        Some(NodeKind::String(name)) => vec![name.clone()],
        Some(NodeKind::List(names)) => names.iter().filter_map(Node::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    let defaults = node.get("defaults").map(Node::to_json).unwrap_or_default();
    Some(Rule::Arguments { step, wanted: wanted.to_json(), is_exact, defaults, ignored })
}

fn skills(inverse: bool, assertion: &Node, problems: &mut Problems) -> Option<Rule> {
    let node = super::value(assertion, problems)?;
    if !matches!(node.kind, NodeKind::Map(_)) {
        let skills = strings(assertion, problems)?;
        return Some(Rule::Skills(skills.iter().map(|skill| Step::of(skill.trim(), "skill")).collect()));
    }
    let step = Step::named(node, problems)?;
    let (least, most) = (number(node, "min"), number(node, "max"));
    if inverse {
        if least.is_some() || most.is_some_and(|most| most > 0.0) {
            problems.push(node.error("`not-skill-used` has no `min`, and no `max` other than 0"));
            return None;
        }
        return Some(Rule::SkillCount { step, least: 1.0, most: None });
    }
    let least = least.unwrap_or(if most.is_some() { 0.0 } else { 1.0 });
    is_possible(node, least, most, problems).then_some(Rule::SkillCount { step, least, most })
}

fn f1(assertion: &Node, problems: &mut Problems) -> Option<Rule> {
    let node = super::value(assertion, problems)?;
    let tools: BTreeSet<String> = strings(assertion, problems)?
        .iter()
        .flat_map(|text| if node.as_str().is_some() { text.split(',').collect() } else { vec![text.as_str()] })
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .collect();
    if tools.is_empty() {
        problems.push(node.error("`value` must name at least one tool"));
        return None;
    }
    Some(Rule::F1 { tools, threshold: number(assertion, "threshold").unwrap_or(1.0) })
}

/// Returns `value` without the members that `ignored` names.
fn without_ignored(value: &Value, ignored: &[String]) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.iter()
                .filter(|(key, _)| {
                    !ignored
                        .iter()
                        .any(|pattern| *key == pattern || pattern.contains(['*', '?']) && is_like(key, pattern))
                })
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
        ),
        other => other.clone(),
    }
}

/// Returns `value` without the members that have their default.
fn without(value: &Value, defaults: &Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.iter()
                .filter(|(key, value)| !defaults.get(key).is_some_and(|default| expect::same(default, value)))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
        ),
        other => other.clone(),
    }
}

/// Returns `true` if `own` has all members of `wanted`. Lists must have the same length.
fn includes(own: &Value, wanted: &Value) -> bool {
    match (own, wanted) {
        (Value::Array(own), Value::Array(wanted)) => {
            own.len() == wanted.len() && own.iter().zip(wanted).all(|(own, wanted)| includes(own, wanted))
        }
        (Value::Object(own), Value::Object(wanted)) => {
            wanted.iter().all(|(key, wanted)| own.get(key).is_some_and(|own| includes(own, wanted)))
        }
        (own, wanted) => expect::same(own, wanted),
    }
}

/// Adds the names of the calls in an answer that is JSON in the form of a vendor's API.
fn collect_names(value: &Value, names: &mut BTreeSet<String>) {
    let parsed = value.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok()).filter(|it| !it.is_string());
    if let Some(parsed) = parsed {
        return collect_names(&parsed, names);
    }
    let name = |value: &Value| value.get("name").and_then(Value::as_str).map(str::to_owned);
    let calls = |value: &Value| value.as_array().cloned().unwrap_or_default();
    if let Some(list) = value.get("tool_calls") {
        for call in calls(list) {
            names.extend(call.get("function").and_then(name));
            names.extend(name(&call));
        }
    } else if matches!(value.get("type").and_then(Value::as_str), Some("tool_use" | "function_call")) {
        names.extend(name(value));
    } else if let Some(call) = value.get("functionCall") {
        names.extend(name(call));
    } else if let Some(call) = value.get("toolCall") {
        let list = call.get("functionCalls").map(calls).unwrap_or_default();
        names.extend(list.iter().filter_map(name));
    } else if value.is_array() {
        for item in calls(value) {
            let inner = item.get("functionCall").or_else(|| item.get("function")).and_then(name);
            names.extend(inner.or_else(|| name(&item)));
        }
    }
}

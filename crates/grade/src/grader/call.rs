//! Checks of tool calls and skills. Other tools name the agent's tools as GitHub Copilot does, so a name in a suite is
//! compared with the agent's own name, the canonical name, and the names that Copilot has for such a tool.

use model::decode::Problems;
use model::text::counted;
use model::{Node, NodeKind, Trace, TracedCall};
use serde_json::Value;

use super::{Held, flag, items, number, text, texts, whole};
use crate::call_pattern::{unknown_arguments, unknown_calls};
use crate::pattern::{Pattern, RegexBudget};
use crate::skill_use;

/// Names that Copilot gives to tools, by their canonical name.
const COPILOT: [(&str, &[&str]); 12] = [
    ("Bash", &["bash", "shell"]),
    ("Read", &["view"]),
    ("Write", &["create"]),
    ("Edit", &["edit", "str_replace_editor"]),
    ("Grep", &["grep", "rg"]),
    ("Glob", &["glob"]),
    ("WebFetch", &["web_fetch"]),
    ("WebSearch", &["web_search"]),
    ("Agent", &["task"]),
    ("Task", &["task"]),
    ("Skill", &["skill"]),
    ("AskUserQuestion", &["ask_user"]),
];

/// Arguments that name a file.
const PATHS: [&str; 5] = ["path", "file_path", "filePath", "notebook_path", "filename"];

/// Arguments that are a command line.
const COMMANDS: [&str; 2] = ["command", "cmd"];

/// Arguments that name a skill.
const SKILLS: [&str; 2] = ["skill", "name"];

/// Pattern of a call.
#[derive(Debug)]
pub(super) struct CallPattern {
    shown: String,
    /// Conditions, all of which must hold for the same call.
    conditions: Vec<(Part, Rule)>,
}

/// Part of a call.
#[derive(Debug)]
enum Part {
    Name,
    Command,
    Path,
    Skill,
    /// All arguments, as JSON.
    Arguments,
    Argument(String),
    Result,
}

#[derive(Debug)]
enum Rule {
    /// Compared without regard to case.
    Is(String),
    Matches(Pattern),
    Contains(String),
    Equals(Value),
    Range {
        least: Option<f64>,
        most: Option<f64>,
        above: Option<f64>,
        below: Option<f64>,
    },
}

impl CallPattern {
    /// Reads a pattern. `tool` is an exact name, and `name` an expression.
    pub(super) fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        let mut conditions = Vec::new();
        if let Some(tool) = text(node, "tool") {
            conditions.push((Part::Name, Rule::Is(tool.to_owned())));
        }
        let parts = [
            ("name", Part::Name),
            ("command", Part::Command),
            ("path", Part::Path),
            ("skill", Part::Skill),
            ("arguments", Part::Arguments),
            ("result", Part::Result),
        ];
        for (key, part) in parts {
            if let Some(pattern) = node.get(key) {
                conditions.push((part, Rule::Matches(Pattern::from_node(pattern, problems)?)));
            }
        }
        if let Some(NodeKind::Map(args)) = node.get("args").map(|args| &args.kind) {
            for (name, rule) in args {
                conditions.push((Part::Argument(name.value.clone()), Rule::read(rule, problems)?));
            }
        }
        let name = text(node, "tool").or_else(|| text(node, "name")).unwrap_or("any tool");
        let rest = if conditions.len() > 1 { " with these arguments" } else { "" };
        Some(Self { shown: format!("`{name}`{rest}"), conditions })
    }

    fn matches(&self, traced: &TracedCall) -> Result<bool, String> {
        let mut unknown = None;
        for (part, rule) in &self.conditions {
            if traced.call.input.is_null() && !matches!(part, Part::Name | Part::Result) {
                unknown = unknown_arguments(&traced.call);
                continue;
            }
            let mut holds = false;
            for value in part.values(traced) {
                if rule.holds(&value)? {
                    holds = true;
                    break;
                }
            }
            if !holds {
                return Ok(false);
            }
        }
        unknown.map_or(Ok(true), Err)
    }
}

impl Part {
    /// Returns the values of which one must meet the rule.
    fn values(&self, traced: &TracedCall) -> Vec<Value> {
        let input = &traced.call.input;
        let any = |keys: &[&str]| keys.iter().filter_map(|key| input.get(key)).map(plain).collect();
        match self {
            Self::Name => names(traced).into_iter().map(Value::String).collect(),
            Self::Command => any(&COMMANDS),
            Self::Path => any(&PATHS),
            Self::Skill => any(&SKILLS),
            Self::Arguments => vec![Value::String(input.to_string())],
            Self::Argument(name) => input.get(name).cloned().into_iter().collect(),
            Self::Result => traced.result.iter().map(|result| Value::String(result.content.clone())).collect(),
        }
    }
}

/// Returns the names of the tool that was called.
fn names(traced: &TracedCall) -> Vec<String> {
    let call = &traced.call;
    let mut names = vec![call.name.clone(), call.raw_name.clone()];
    let copilot = COPILOT.iter().find(|(canonical, _)| *canonical == call.name);
    names.extend(copilot.iter().flat_map(|(_, names)| names.iter().map(|name| (*name).to_owned())));
    // Copilot joins the names of an MCP server and of its tool with a hyphen.
    if let Some((server, tool)) = call.name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")) {
        names.push(format!("{server}-{tool}"));
        names.push(tool.to_owned());
    }
    names
}

/// Returns an argument as text. The words of a command are joined.
fn plain(value: &Value) -> Value {
    match value {
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            Value::String(words.join(" "))
        }
        other => other.clone(),
    }
}

impl Rule {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        if node.as_str().is_some() {
            return Pattern::from_node(node, problems).map(Self::Matches);
        }
        if let Some(pattern) = node.get("regex") {
            return Pattern::from_node(pattern, problems).map(Self::Matches);
        }
        if let Some(value) = node.get("equals") {
            return Some(Self::Equals(value.to_json()));
        }
        if let Some(text) = text(node, "contains") {
            return Some(Self::Contains(text.to_owned()));
        }
        let range = node.get("range")?;
        let [least, most, above, below] = ["gte", "lte", "gt", "lt"].map(|key| number(range, key));
        Some(Self::Range { least, most, above, below })
    }

    fn holds(&self, value: &Value) -> Result<bool, String> {
        let text = || value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Ok(match self {
            Self::Is(name) => text().eq_ignore_ascii_case(name),
            Self::Matches(pattern) => pattern.test(&text(), &RegexBudget::new())?,
            Self::Contains(wanted) => text().contains(wanted.as_str()),
            Self::Equals(wanted) => expect::same(value, wanted),
            Self::Range { least, most, above, below } => value.as_f64().is_some_and(|number| {
                least.is_none_or(|least| number >= least)
                    && most.is_none_or(|most| number <= most)
                    && above.is_none_or(|above| number > above)
                    && below.is_none_or(|below| number < below)
            }),
        })
    }
}

/// Condition on the number of calls that match.
#[derive(Debug)]
pub(super) struct Calls {
    patterns: Vec<CallPattern>,
    least: u64,
    most: Option<u64>,
    /// True if the last call of the agent must be such a call.
    is_final: bool,
    /// True if every call must match one of the patterns.
    is_only: bool,
}

impl Calls {
    pub(super) fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        let list = items(node.get("patterns"));
        let patterns: Vec<CallPattern> = list.iter().filter_map(|item| CallPattern::read(item, problems)).collect();
        if patterns.len() < list.len() {
            return None;
        }
        let (least, most) = (whole(node, "min").unwrap_or(0), whole(node, "max"));
        let (is_final, is_only) = (flag(node, "final"), flag(node, "only"));
        if least == 0 && most.is_none() && !is_final && !is_only {
            problems.push(node.error("any number of calls is enough, so it asserts nothing"));
            return None;
        }
        Some(Self { patterns, least, most, is_final, is_only })
    }

    pub(super) fn test(&self, trace: &Trace) -> Result<Held, String> {
        let mut count: usize = 0;
        let mut last = false;
        let mut other = None;
        for traced in &trace.calls {
            let mut is_match = false;
            for pattern in &self.patterns {
                is_match |= pattern.matches(traced)?;
            }
            count += usize::from(is_match);
            last = is_match;
            if !is_match && other.is_none() {
                other = Some(&traced.call.name);
            }
        }
        let shown = self.patterns.iter().map(|pattern| pattern.shown.as_str()).collect::<Vec<_>>().join(" or ");
        let unknown = || unknown_calls(trace).map_or(Ok(()), Err);
        if self.is_only {
            return match other {
                Some(other) => Ok(Held::plain(false, format!("the agent called `{other}`, which is not allowed"))),
                None => unknown().map(|()| Held::plain(true, "the agent called only allowed tools")),
            };
        }
        if self.is_final {
            unknown()?;
            let reason = if last { "the last call is" } else { "the last call is not" };
            return Ok(Held::plain(last, format!("{reason} {shown}")));
        }
        let reason = format!("{} of {shown}", counted(count, "call"));
        let count = count as u64;
        if self.most.is_some_and(|most| count > most) {
            return Ok(Held::plain(false, reason));
        }
        if count < self.least || self.most.is_some() {
            unknown()?;
        }
        Ok(Held::plain(count >= self.least, reason))
    }
}

/// Condition on the order of calls.
#[derive(Debug)]
pub(super) struct Sequence {
    steps: Vec<CallPattern>,
    order: Order,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// The same items, and no others.
    Exact,
    /// In this order, with others in between.
    Within,
    Any,
}

impl Order {
    fn read(node: &Node) -> Self {
        match text(node, "order") {
            Some("exact") => Self::Exact,
            Some("any") => Self::Any,
            _ => Self::Within,
        }
    }
}

impl Sequence {
    pub(super) fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        let list = items(node.get("steps"));
        let steps: Vec<CallPattern> = list.iter().filter_map(|item| CallPattern::read(item, problems)).collect();
        (steps.len() == list.len()).then(|| Self { steps, order: Order::read(node) })
    }

    pub(super) fn test(&self, trace: &Trace) -> Result<Held, String> {
        let (steps, calls) = (&self.steps, &trace.calls);
        let holds = match self.order {
            Order::Exact => {
                let mut same = steps.len() == calls.len();
                for (step, traced) in steps.iter().zip(calls) {
                    same &= step.matches(traced)?;
                }
                same
            }
            Order::Within => {
                let mut next = 0;
                for traced in calls {
                    if next < steps.len() && steps[next].matches(traced)? {
                        next += 1;
                    }
                }
                next == steps.len()
            }
            Order::Any => {
                let mut taken = vec![false; calls.len()];
                let mut found = 0;
                for step in steps {
                    for (at, traced) in calls.iter().enumerate() {
                        if !taken[at] && step.matches(traced)? {
                            taken[at] = true;
                            found += 1;
                            break;
                        }
                    }
                }
                found == steps.len()
            }
        };
        if let Some(reason) = unknown_calls(trace).filter(|_| !holds || self.order == Order::Exact) {
            return Err(reason);
        }
        let called: Vec<String> = calls.iter().map(|traced| format!("`{}`", traced.call.name)).collect();
        let called = if called.is_empty() { "no tool".to_owned() } else { crate::format::few(called, 8).join(", ") };
        Ok(Held::plain(holds, format!("the agent called {called}")))
    }
}

/// Condition on the skills that were used.
#[derive(Debug)]
pub(super) struct Skills {
    required: Vec<String>,
    forbidden: Vec<String>,
    order: Order,
    /// True if no skills but the required ones may be used.
    is_only: bool,
}

impl Skills {
    pub(super) fn read(node: &Node) -> Self {
        let order = if node.get("order").is_some() { Order::read(node) } else { Order::Any };
        Self {
            required: texts(node, "required"),
            forbidden: texts(node, "forbidden"),
            order,
            is_only: flag(node, "only"),
        }
    }

    pub(super) fn test(&self, trace: &Trace) -> Result<Held, String> {
        // A skill of a plug-in may be named with the plug-in.
        let mut used: Vec<String> = Vec::new();
        for name in skill_use::used(trace) {
            let bare = name.rsplit(':').next().unwrap_or_default();
            if !used.iter().any(|known| known == bare) {
                used.push(bare.to_owned());
            }
        }
        let shown = if used.is_empty() { "no skill".to_owned() } else { format!("`{}`", used.join("`, `")) };
        let reason = format!("the agent used {shown}");
        if self.forbidden.iter().any(|skill| used.contains(skill)) {
            return Ok(Held::plain(false, reason));
        }
        let has_all = match self.order {
            Order::Any => self.required.iter().all(|skill| used.contains(skill)),
            Order::Within => {
                let mut rest = used.iter();
                self.required.iter().all(|skill| rest.any(|own| own == skill))
            }
            Order::Exact => used == self.required,
        };
        let has_others = self.is_only && used.iter().any(|skill| !self.required.contains(skill));
        if has_all && !has_others && (self.forbidden.is_empty() && !self.is_only) {
            return Ok(Held::plain(true, reason));
        }
        unknown_calls(trace).map_or(Ok(()), Err)?;
        Ok(Held::plain(has_all && !has_others, reason))
    }
}

//! An assertion's entry while it is read.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use model::decode::{self, Fields, Problems};
use model::{Diagnostic, Node, NodeKind, nearest};

use crate::call_pattern::{ArgumentPattern, CallPattern, ExpectedValue, Wanted};
use crate::check::Context;
use crate::pattern::Pattern;
use crate::place::Place;

/// How much of a captured value is shown unless the user says otherwise, in UTF-16 units.
const SHOWN_CHARS: usize = 2000;

/// An assertion's entry, field by field. What is wrong is collected; a part that is wrong reads as absent.
pub(crate) struct Reading<'a> {
    pub fields: Fields<'a>,
    pub problems: &'a mut Problems,
    pub context: &'a Context<'a>,
    /// What people call it, where that is written as `text`.
    pub title: Option<String>,
}

impl<'a> Reading<'a> {
    /// The entry `node`. Its keys may be written in either case: files have `args_match`, and code `argsMatch`.
    pub fn of(node: &'a Node, what: &'a str, problems: &'a mut Problems, context: &'a Context<'a>) -> Option<Self> {
        let fields = Fields::of(node, what, problems)?.in_either_case();
        Some(Self { fields, problems, context, title: None })
    }

    /// A part of the entry.
    pub fn part<'b>(&'b mut self, node: &'b Node, what: &'b str) -> Option<Reading<'b>> {
        Reading::of(node, what, self.problems, self.context)
    }

    /// Reads `text` as what people call the assertion: for types whose `text` is not what they look for.
    pub fn caption(&mut self) {
        self.title = self.fields.text("text", self.problems);
    }

    /// A value that must be there, as text that is not empty, and where it is written.
    pub fn required_text(&mut self, key: &'static str) -> Option<(String, Place)> {
        let node = self.fields.require(key, self.problems)?;
        if node.tag.as_deref() == Some(expect::REGEX_TAG) {
            self.problems.push(node.error(format!("`{key}` must be a text, not a regular expression")));
            return None;
        }
        Some((decode::text(node, &format!("`{key}`"), self.problems)?, Place::of(node)))
    }

    /// The regular expression under `key`, which must be there.
    pub fn pattern(&mut self, key: &'static str) -> Option<Pattern> {
        let node = self.fields.require(key, self.problems)?;
        decode::text(node, &format!("`{key}`"), self.problems)?;
        Pattern::of(node, self.problems)
    }

    /// The same, where it may also be written with slashes and flags: `/a/i`.
    pub fn literal(&mut self, key: &'static str) -> Option<Pattern> {
        let node = self.fields.require(key, self.problems)?;
        decode::text(node, &format!("`{key}`"), self.problems)?;
        Pattern::of_literal(node, self.problems)
    }

    /// `tool` and `args_match`.
    pub fn call_pattern(&mut self) -> Option<CallPattern> {
        let tool = self.required_text("tool");
        let arguments = self.argument_patterns();
        let (tool, place) = tool?;
        self.know_tool(&tool, &place);
        self.know_arguments(&tool);
        Some(CallPattern { tool, place, arguments: arguments? })
    }

    /// `args_match`; empty when it is not written, absent when it is wrong.
    fn argument_patterns(&mut self) -> Option<Vec<ArgumentPattern>> {
        let Some(node) = self.fields.get("args_match") else { return Some(Vec::new()) };
        match &node.kind {
            NodeKind::String(_) => {
                decode::text(node, "`args_match`", self.problems)?;
                Some(vec![ArgumentPattern { name: None, wanted: Wanted::Text(Pattern::of(node, self.problems)?) }])
            }
            NodeKind::Map(entries) => {
                let read: Vec<_> =
                    entries.iter().map(|(key, value)| self.argument_pattern(&key.value, value)).collect();
                read.into_iter().collect()
            }
            _ => {
                let message = format!("`args_match` must be a map or a regular expression, not {}", node.kind_name());
                self.problems.push(node.error(message));
                None
            }
        }
    }

    /// What the argument `name` must be: a text is a regular expression, anything else an expectation.
    fn argument_pattern(&mut self, name: &str, value: &Node) -> Option<ArgumentPattern> {
        let wanted = match &value.kind {
            NodeKind::String(_) => Wanted::Text(Pattern::of(value, self.problems)?),
            NodeKind::Null => {
                let message =
                    format!("`args_match.{name}` must be a regular expression or a value, not nothing (null)");
                self.problems.push(value.error(message).help("`\"^$\"` matches an argument that is missing or null"));
                return None;
            }
            _ => Wanted::Value(Box::new(self.expectation(value)?)),
        };
        Some(ArgumentPattern { name: Some(name.to_owned()), wanted })
    }

    /// An expectation of the `$operator` engine.
    fn expectation(&mut self, node: &Node) -> Option<ExpectedValue> {
        let known = self.problems.len();
        let (scripts, code) = self.context.scripts.cloned().unwrap_or_default().for_one();
        let host: Arc<dyn expect::Host> = Arc::new(scripts);
        let directory = self.context.directory.map(PathBuf::from).unwrap_or_default();
        let rules = expect::Rules { directory, ..expect::Rules::default() };
        let expectation = expect::Expectation::of_value(node, rules, &host, None, self.problems);
        let is_wrong = self.problems[known..].iter().any(Diagnostic::is_error);
        let runs_code = code.load(Ordering::Relaxed);
        let shown = node.to_json().to_string();
        (!is_wrong).then(|| ExpectedValue { expectation, shown, place: Place::of(node), runs_code })
    }

    /// Reports arguments that the tool does not take, because `no_tool_called` would always pass. One whose name is near to
    /// that of a known argument is an error.
    fn know_arguments(&mut self, tool: &str) {
        let (Some(_), Some(known)) = (self.context.known_tools, model::tool::arguments(tool)) else { return };
        let Some(NodeKind::Map(entries)) = self.fields.get("args_match").map(|node| &node.kind) else { return };
        for (key, value) in entries.iter().filter(|(key, _)| !known.contains(&key.value.as_str())) {
            let message = format!("`{tool}` is not known to take an argument `{}`", key.value);
            let problem = match nearest(&key.value, known.iter().copied()) {
                Some(near) => Diagnostic::error(message).suggest(Some(near)),
                None => Diagnostic::warning(message).help(format!("its arguments: {}", known.join(", "))),
            };
            self.problems.push(problem.at(value.source.excerpt(key.span)));
        }
    }

    /// A number under `key`.
    pub fn number(&mut self, key: &'static str) -> Option<f64> {
        let node = self.fields.get(key)?;
        let number = if let NodeKind::Number(number) = &node.kind { number.as_f64() } else { None };
        if number.is_none() {
            self.problems.push(node.error(format!("`{key}` must be a number, not {}", node.kind_name())));
        }
        number
    }

    /// `capture`.
    pub fn capture(&mut self) -> Vec<String> {
        self.fields.texts("capture", self.problems).unwrap_or_default()
    }

    /// `capture_max_chars`, in UTF-16 units.
    pub fn shown_chars(&mut self) -> usize {
        let written = self.fields.whole("capture_max_chars", 1, self.problems);
        written.map_or(SHOWN_CHARS, |chars| usize::try_from(chars).unwrap_or(usize::MAX))
    }

    /// Reports a tool name that no tool of the agent has, because `no_tool_called` would always pass. A name that is near
    /// to a known one is an error, also to a canonical one where the agent's tools are not known.
    pub fn know_tool(&mut self, name: &str, place: &Place) {
        if name.starts_with("mcp__") {
            return;
        }
        let Some(known) = self.context.known_tools else {
            self.suspect_tool(name, place);
            return;
        };
        if known.contains(&name) {
            return;
        }
        let message = format!("`{name}` is not a tool that the agent is known to have");
        let bare = name.split_once('(').map_or(name, |(bare, _)| bare);
        let near = nearest(name, known.iter().copied());
        let problem = if bare != name && known.contains(&bare) {
            let help = format!("write `{bare}` here, and what its arguments must match in `args_match`");
            Diagnostic::error(message).help(help)
        } else if near.is_some() {
            Diagnostic::error(message).suggest(near)
        } else {
            Diagnostic::warning(message)
        };
        self.problems.push(problem.at(place.excerpt()));
    }

    /// Reports a name that is spelt nearly like that of a canonical tool, letter case included, unless the case brings a
    /// tool of that name.
    fn suspect_tool(&mut self, name: &str, place: &Place) {
        let names = || model::tool::TOOLS.iter().map(|tool| tool.name);
        if !name.starts_with(|first: char| first.is_ascii_uppercase()) || names().any(|known| known == name) {
            return;
        }
        let brings = |tool: &serde_json::Value| {
            let named = [tool.as_str(), tool.get("name").and_then(|name| name.as_str())];
            named.contains(&Some(name)) || tool.pointer("/function/name").and_then(|name| name.as_str()) == Some(name)
        };
        if self.context.case.is_some_and(|case| case.all_tools().any(brings)) {
            return;
        }
        let alike = names().filter(|known| known.len() == name.len());
        if let Some(near) = nearest(name, alike) {
            let message = format!("no tool is known by the name `{name}`");
            self.problems.push(Diagnostic::error(message).suggest(Some(near)).at(place.excerpt()));
        }
    }
}

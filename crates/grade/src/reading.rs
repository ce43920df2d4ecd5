//! Reads an assertion's entry.

use std::path::PathBuf;
use std::sync::Arc;

use expect::SourceLocation;
use model::decode::{self, Fields, Problems};
use model::{Diagnostic, MockedServer, Node, NodeKind, Spanned, listed_arguments, nearest};
use serde_json::Value;

use crate::as_written;
use crate::call_pattern::{ArgumentPattern, ArgumentRule, CallPattern, ExpectedValue};
use crate::context::{Context, KnownTools};
use crate::pattern::Pattern;

/// Default length at which a displayed captured value is cut, in UTF-16 units.
const SHOWN_CHARS: usize = 2000;

/// Keys that people write for fields of assertions. The first [`FOR_ALL`] are for any of them, and the others for those
/// in which `text` is not the title.
pub(crate) const SYNONYMS: [(&str, &str); 20] = [
    ("file", "path"),
    ("filename", "path"),
    ("file_path", "path"),
    ("cmd", "command"),
    ("cmd", "run"),
    ("limit", "max"),
    ("name", "tool"),
    ("tool_name", "tool"),
    ("arguments", "args_match"),
    ("input", "args_match"),
    ("value", "text"),
    ("value", "contains"),
    ("value", "pattern"),
    ("expected", "text"),
    ("string", "text"),
    ("substring", "text"),
    ("contains", "text"),
    ("regex", "pattern"),
    ("regexp", "pattern"),
    ("match", "pattern"),
];

/// Arguments of canonical tools that are texts, among those that assertions are often about.
const TEXTS: [&str; 10] =
    ["command", "file_path", "content", "old_string", "new_string", "path", "pattern", "url", "prompt", "query"];

/// Number of [`SYNONYMS`] for any assertion.
const FOR_ALL: usize = 10;

/// Reader of an assertion's entry, field by field. Problems are collected, and a field with a problem reads as absent.
pub(crate) struct Reading<'a> {
    pub fields: Fields<'a>,
    pub problems: &'a mut Problems,
    pub context: &'a Context<'a>,
    /// Title of the assertion, if it is written as `text`.
    pub title: Option<String>,
    /// True if it is known which arguments the tool has.
    pub knows_arguments: bool,
}

impl<'a> Reading<'a> {
    /// Creates a reader for the entry `node`. Keys may be in snake case or camel case: files have `args_match`, and
    /// code has `argsMatch`.
    pub fn new(node: &'a Node, what: &'a str, problems: &'a mut Problems, context: &'a Context<'a>) -> Option<Self> {
        let fields = Fields::of(node, what, problems)?.in_either_case().with_synonyms(SYNONYMS.split_at(FOR_ALL).0);
        Some(Self { fields, problems, context, title: None, knows_arguments: false })
    }

    /// Creates a reader for a part of the entry.
    pub fn part<'b>(&'b mut self, node: &'b Node, what: &'b str) -> Option<Reading<'b>> {
        Reading::new(node, what, self.problems, self.context)
    }

    /// Returns `true` if a key that was not read probably means one of `keys`; it is reported, so they are not missing.
    pub fn has_misspelt(&self, keys: &[&'static str]) -> bool {
        let means = |name: &str| {
            SYNONYMS.iter().any(|(other, key)| *other == name && keys.contains(key))
                || nearest(name, keys.iter().copied()).is_some()
        };
        self.fields.unread().any(|(name, _)| means(&name.value))
    }

    /// Reads `text` as the title, for types that do not search for `text`.
    pub fn caption(&mut self) {
        self.title = self.fields.text("text", self.problems);
    }

    /// Reads a required non-empty string, and its location.
    pub fn required_text(&mut self, key: &'static str) -> Option<(String, SourceLocation)> {
        let node = self.fields.require(key, self.problems)?;
        if node.tag.as_deref() == Some(expect::REGEX_TAG) {
            self.problems.push(node.error(format!("`{key}` must be a string, not a regular expression")));
            return None;
        }
        let text = decode::text(node, &format!("`{key}`"), self.problems)?;
        if let Some(control) = text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t' | '\u{1b}')) {
            let message = format!("`{key}` contains the control character U+{:04X}", u32::from(control));
            let help = "in double quotes, `\\b` is a backspace; single quotes keep it as written";
            self.problems.push(node.error(message).help(help));
            return None;
        }
        Some((text, SourceLocation::from_node(node)))
    }

    /// Like [`required_text`](Self::required_text), for a name that is compared exactly. Reports a character that no name has.
    pub fn required_name(&mut self, key: &'static str) -> Option<(String, SourceLocation)> {
        if let Some(node) = self.fields.get(key).filter(|node| matches!(node.kind, NodeKind::Bool(_))) {
            let problem = node.error(format!("`{key}` must be a string, not a boolean"));
            self.problems.push(problem.help("write one name, in one assertion for each"));
            return None;
        }
        let (name, place) = self.required_text(key)?;
        match stray_character(&name) {
            Some(problem) => self.problems.push(problem.at(place.excerpt())),
            None => return Some((name, place)),
        }
        None
    }

    /// Reads the required text under `key`, which is looked for as it is written. Warns with `help` if it is written like
    /// a regular expression, because what forbids such a text could never fail.
    pub fn exact_text(&mut self, key: &'static str, help: &str) -> Option<(String, SourceLocation)> {
        let known = self.problems.len();
        let Some((text, place)) = self.required_text(key) else {
            let is_regex = self.fields.get(key).is_some_and(|node| node.tag.as_deref() == Some(expect::REGEX_TAG));
            if let Some(problem) = self.problems.get_mut(known).filter(|_| is_regex) {
                problem.help.push(help.to_owned());
            }
            return None;
        };
        self.problems.extend(as_written::expression(&text, place.excerpt(), help));
        Some((text, place))
    }

    /// Like `exact_text`, for a text that is searched for. What does not show in it causes a warning.
    pub fn searched_text(&mut self, key: &'static str, help: &str) -> Option<(String, SourceLocation)> {
        let (text, place) = self.exact_text(key, help)?;
        self.problems.extend(as_written::unseen(&text, place.excerpt()));
        Some((text, place))
    }

    /// Like `searched_text`, for a text that must not occur. Whatever looks like a pattern causes a warning.
    pub fn forbidden_text(&mut self, key: &'static str, help: &str) -> Option<(String, SourceLocation)> {
        let (text, place) = self.searched_text(key, help)?;
        self.problems.extend(as_written::forbidden(&text, place.excerpt(), help));
        Some((text, place))
    }

    /// Reads the required regular expression under `key`.
    pub fn pattern(&mut self, key: &'static str) -> Option<Pattern> {
        let node = self.fields.require(key, self.problems)?;
        let written = decode::text(node, &format!("`{key}`"), self.problems)?;
        self.problems.extend(as_written::unseen(&written, node.excerpt()));
        Pattern::from_node(node, self.problems)
    }

    /// Like `pattern`, and also accepts slashes and flags: `/a/i`.
    pub fn literal(&mut self, key: &'static str) -> Option<Pattern> {
        let node = self.fields.require(key, self.problems)?;
        let written = decode::text(node, &format!("`{key}`"), self.problems)?;
        self.problems.extend(as_written::unseen(&written, node.excerpt()));
        Pattern::from_literal(node, self.problems)
    }

    /// Reads `tool` and `args_match`.
    pub fn call_pattern(&mut self) -> Option<CallPattern> {
        let tool = self.required_name("tool");
        let arguments = self.argument_patterns();
        let (tool, place) = tool?;
        let known = self.problems.len();
        self.know_tool(&tool, &place);
        if self.problems.len() == known
            && (tool.contains(['*', '?', '^', '$', '|', '(', '[', '\\', ','])
                || tool.contains(" or ")
                || ["any", "all", "none"].contains(&&*tool))
        {
            let message = format!("no tool is called `{tool}`, because names are compared exactly");
            let help = "write the name of one tool, in one assertion for each";
            self.problems.push(Diagnostic::warning(message).at(place.excerpt()).help(help));
        }
        self.know_arguments(&tool);
        Some(CallPattern { tool, place, arguments: arguments? })
    }

    /// Reads `args_match`. Returns an empty list if it is not given, and `None` if it is invalid.
    pub fn argument_patterns(&mut self) -> Option<Vec<ArgumentPattern>> {
        let Some(node) = self.fields.get("args_match") else { return Some(Vec::new()) };
        match &node.kind {
            NodeKind::String(_) => {
                let text = decode::text(node, "`args_match`", self.problems)?;
                if self.is_tool(&text) {
                    let message = format!("`{text}` is an expression for the arguments here, not another tool");
                    self.problems.push(node.warning(message).help("write one assertion for each tool"));
                } else if serde_json::from_str::<serde_json::Map<_, Value>>(&text).is_ok() {
                    let problem = node.warning("this JSON is a regular expression for the arguments as text");
                    self.problems.push(problem.help("write a map of arguments: `{ NAME: VALUE }`"));
                } else {
                    self.problems.extend(as_written::argument(&text, node.excerpt()));
                }
                Some(vec![ArgumentPattern {
                    name: None,
                    wanted: ArgumentRule::Text(Pattern::from_node(node, self.problems)?),
                }])
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

    /// Reads the requirement on the argument called `name`: a string is a regular expression, anything else is an
    /// expectation.
    fn argument_pattern(&mut self, name: &str, value: &Node) -> Option<ArgumentPattern> {
        if expect::OPERATORS.iter().any(|operator| operator.name == name) {
            let problem = value.warning(format!("`{name}` is the name of an argument here, not an operator"));
            self.problems.push(problem.help(format!("write it below the argument: `{{ NAME: {{ {name}: … }} }}`")));
        }
        let wanted = match &value.kind {
            NodeKind::String(_) => ArgumentRule::Text(Pattern::from_node(value, self.problems)?),
            NodeKind::Null => {
                let message = format!("`args_match.{name}` must be a regular expression or a value, not null");
                self.problems.push(value.error(message).help("`\"^$\"` matches an argument that is missing or null"));
                return None;
            }
            _ => ArgumentRule::Value(Box::new(self.expectation(value)?)),
        };
        Some(ArgumentPattern { name: Some(name.to_owned()), wanted })
    }

    /// Reads an expectation of the `$operator` engine.
    fn expectation(&mut self, node: &Node) -> Option<ExpectedValue> {
        let known = self.problems.len();
        let host: Arc<dyn expect::Host> = Arc::new(self.context.scripts.cloned().unwrap_or_default());
        let directory = self.context.directory.map(PathBuf::from).unwrap_or_default();
        let rules = expect::Rules { directory, ..expect::Rules::default() };
        let expectation = expect::Expectation::from_value(node, rules, &host, None, self.problems);
        let is_wrong = self.problems[known..].iter().any(Diagnostic::is_error);
        let shown = node.to_json().to_string();
        (!is_wrong).then(|| ExpectedValue { expectation, shown, place: SourceLocation::from_node(node) })
    }

    /// Reports arguments that the tool does not take, because `no_tool_called` would always pass with them. A name
    /// similar to that of a known argument is an error.
    fn know_arguments(&mut self, tool: &str) {
        let mut mocked = self.context.mocks.into_iter().flat_map(|mocks| mocks.mocked());
        let of_mock = tool.strip_prefix("mcp__").and_then(|name| name.split_once("__"));
        if let Some((server, tool)) = of_mock
            && let Some((_, mock)) = mocked.find(|(known, _)| *known == server)
        {
            return self.know_mocked_arguments(mock, tool);
        }
        let (KnownTools::Only(_), Some(known)) = (self.context.known_tools, model::tool::arguments(tool)) else {
            return;
        };
        self.knows_arguments = true;
        let Some(NodeKind::Map(entries)) = self.fields.get("args_match").map(|node| &node.kind) else { return };
        for (key, value) in entries {
            if key.value.starts_with('$') {
                continue;
            }
            if known.contains(&key.value.as_str()) {
                if TEXTS.contains(&key.value.as_str()) {
                    self.know_type(&key.value, value, "string");
                }
                continue;
            }
            let message = format!("`{tool}` has no known argument `{}`", key.value);
            let problem = match nearest(&key.value, known.iter().copied()) {
                Some(near) => Diagnostic::error(message).suggest(Some(near)),
                None => Diagnostic::warning(message).help(format!("its arguments: {}", known.join(", "))),
            };
            self.problems.push(problem.at(value.source.excerpt(key.span)));
        }
    }

    /// Reports arguments that `tool` of the server `mock` does not list, and values that they cannot have. A name
    /// similar to that of a listed one is an error.
    pub fn know_mocked_arguments(&mut self, mock: &MockedServer, tool: &str) {
        let Some(tool) = mock.tools.iter().find(|known| known.name == tool) else { return };
        let Some(schema) = &tool.input_schema else { return };
        let Some(listed) = schema.get("properties").and_then(Value::as_object) else { return };
        self.knows_arguments = true;
        let Some(NodeKind::Map(entries)) = self.fields.get("args_match").map(|node| &node.kind) else { return };
        let guards = || tool.expect.iter().chain(tool.answers.iter().flat_map(|answer| &answer.when));
        for (key, value) in entries {
            let name = key.value.as_str();
            if let Some(schema) = listed.get(name) {
                let kind = schema.get("type").and_then(Value::as_str);
                kind.into_iter().for_each(|kind| self.know_type(name, value, kind));
                continue;
            }
            let message = format!("`input_schema` of the mocked tool has no argument `{name}`");
            let known = listed.keys().map(String::as_str);
            let problem = match nearest(name, known.clone()) {
                Some(near) => Diagnostic::error(message).suggest(Some(near)),
                None if listed_arguments(schema).is_none()
                    || name.starts_with('$')
                    || guards().any(|guard| guard.path.split('.').next() == Some(name)) =>
                {
                    continue;
                }
                None => Diagnostic::warning(message).help(format!("it has {}", known.collect::<Vec<_>>().join(", "))),
            };
            self.problems.push(problem.at(value.source.excerpt(key.span)));
        }
    }

    /// Warns about a `value` that the argument `name` never has, because it is of the type `kind` of JSON Schema. Texts
    /// are regular expressions for any type.
    fn know_type(&mut self, name: &str, value: &Node, kind: &str) {
        let is_data = |entries: &[(Spanned<String>, Node)]| {
            value.tag.is_none() && entries.iter().all(|(key, _)| !key.value.starts_with('$') && key.value != "type")
        };
        let wanted: &[&str] = match &value.kind {
            NodeKind::Map(entries) if is_data(entries) => &["object"],
            NodeKind::List(_) => &["array"],
            NodeKind::Number(_) => &["number", "integer"],
            NodeKind::Bool(_) => &["boolean"],
            _ => return,
        };
        if !wanted.contains(&kind) {
            let message = format!("`{name}` is of the type `{kind}`, so it cannot be {}", value.kind_name());
            let help = "write a regular expression, or an operator such as `{ $contains: … }`";
            self.problems.push(value.warning(message).help(help));
        }
    }

    /// Reads a number.
    pub fn number(&mut self, key: &'static str) -> Option<f64> {
        let node = self.fields.get(key)?;
        let number = if let NodeKind::Number(number) = &node.kind { number.as_f64() } else { None };
        if number.is_none() {
            self.problems.push(node.error(format!("`{key}` must be a number, not {}", node.kind_name())));
        }
        number
    }

    /// Reads `min`, which is 1 if it is not given, and `max`. Returns `None` if one of them is invalid. Warns if `min` is
    /// above `max`.
    pub fn range(&mut self) -> Option<(u64, Option<u64>)> {
        let min = match self.fields.get("min") {
            Some(_) => self.fields.whole("min", 0, self.problems)?,
            None => 1,
        };
        let Some(node) = self.fields.get("max") else {
            if let Some(least) = self.fields.get("min").filter(|_| min == 0) {
                let problem =
                    least.warning("`min: 0` without `max` accepts every number of calls, so it asserts nothing");
                self.problems
                    .push(problem.help("write `max: 0` beside it to accept no call, or remove `min` to expect one"));
            }
            return Some((min, None));
        };
        let max = self.fields.whole("max", 0, self.problems)?;
        if min > max {
            let problem = match self.fields.get("min") {
                Some(least) => {
                    let later = if least.span.start() > node.span.start() { least } else { node };
                    later.warning(format!("`min` is {min} and `max` is {max}, so no number of calls is accepted"))
                }
                None => node.warning("`max` is 0 and `min` is 1 by default, so no number of calls is accepted"),
            };
            self.problems.push(match max {
                0 => problem.help("to accept no call, write `min: 0` beside `max: 0`, or use the negation"),
                _ => problem.help("`min` must not be above `max`"),
            });
        }
        Some((min, Some(max)))
    }

    /// Reads `capture`.
    pub fn capture(&mut self) -> Vec<String> {
        self.fields.texts("capture", self.problems).unwrap_or_default()
    }

    /// Reads `capture_max_chars`, in UTF-16 units.
    pub fn shown_chars(&mut self) -> usize {
        let written = self.fields.whole("capture_max_chars", 1, self.problems);
        written.map_or(SHOWN_CHARS, |chars| usize::try_from(chars).unwrap_or(usize::MAX))
    }

    /// Reports a tool name that is not one of the agent's tools, because `no_tool_called` would always pass with it. A
    /// name similar to a known one is an error. If the agent may have other tools, a name similar to a canonical tool
    /// is an error too, and so is a name that differs from one of the agent's tools only in case.
    pub fn know_tool(&mut self, name: &str, place: &SourceLocation) {
        if let Some((server, tool)) = name.strip_prefix("mcp__").and_then(|name| name.split_once("__")) {
            return self.know_mocked_tool(name, server, tool, place);
        }
        let with_canonical: Vec<&str>;
        let known = match self.context.known_tools {
            // The whole assertion is reported.
            KnownTools::Only([]) => return,
            KnownTools::Only(known) => known,
            KnownTools::Canonical(own) => {
                let canonical = model::tool::TOOLS.iter().map(|tool| tool.name);
                with_canonical = canonical.chain(own.iter().copied()).collect();
                &with_canonical
            }
            KnownTools::AtLeast(known) => return self.suspect_tool(name, known, place),
        };
        if known.contains(&name) {
            return;
        }
        let message = format!("`{name}` is not a tool that the agent is known to have");
        let bare = name.split_once('(').map_or(name, |(bare, _)| bare);
        let near = nearest(name, known.iter().copied()).map(str::to_owned).or_else(|| self.mocked_name(name));
        let problem = if bare != name && known.contains(&bare) {
            let help = format!("write `{bare}` here, and what its arguments must match in `args_match`");
            Diagnostic::error(message).help(help)
        } else if near.is_some() {
            Diagnostic::error(message).suggest(near.as_deref())
        } else {
            Diagnostic::warning(message)
        };
        self.problems.push(problem.at(place.excerpt()));
    }

    /// Returns `true` if `name` is the name of a canonical tool, of one of the agent's tools, or of one in the case.
    fn is_tool(&self, name: &str) -> bool {
        let (KnownTools::Only(known) | KnownTools::Canonical(known) | KnownTools::AtLeast(known)) =
            self.context.known_tools;
        known.contains(&name)
            || model::tool::TOOLS.iter().any(|tool| tool.name == name)
            || self.context.case.is_some_and(|case| case.all_tools().any(|own| may_be(own, name)))
            || self.mocked_name(name).is_some()
    }

    /// Returns the full name of the mocked tool that `name` names without its server, or as `server.tool`.
    fn mocked_name(&self, name: &str) -> Option<String> {
        let bare = name.rsplit(['.', '/', ':']).next()?;
        let mut mocked = self.context.mocks?.mocked();
        let (server, _) = mocked.find(|(_, mock)| mock.tools.iter().any(|tool| tool.name == bare))?;
        Some(format!("mcp__{server}__{bare}"))
    }

    /// Reports `name`, a `tool` of an MCP server, if it is similar to that of a mocked tool, or if the mock of the server does
    /// not have it. The tools of other servers are not known.
    fn know_mocked_tool(&mut self, name: &str, server: &str, tool: &str, place: &SourceLocation) {
        let Some(mocks) = self.context.mocks else { return };
        let of_mock = |(server, mock): (&str, &MockedServer)| {
            let names = mock.tools.iter().map(|tool| format!("mcp__{server}__{}", tool.name));
            names.collect::<Vec<_>>()
        };
        let is_mocked = mocks.mocked().any(|(known, _)| known == server);
        let is_real = !is_mocked && mocks.servers.iter().any(|known| known.name == server);
        let known: Vec<String> = mocks.mocked().flat_map(of_mock).collect();
        if is_real || known.iter().any(|known| known == name) {
            return;
        }
        let message = format!("the mock of `{server}` has no tool `{tool}`");
        self.problems.extend(match nearest(name, known.iter().map(String::as_str)) {
            Some(near) if is_mocked => Some(Diagnostic::error(message).suggest(Some(near)).at(place.excerpt())),
            Some(near) => {
                let message = format!("the agent is not given an MCP server `{server}`");
                Some(Diagnostic::error(message).suggest(Some(near)).at(place.excerpt()))
            }
            None => is_mocked.then(|| Diagnostic::warning(message).at(place.excerpt())),
        });
    }

    /// Reports a name that differs from one of the `certain` tools only in case, or is similar to that of a canonical
    /// tool, unless the case defines a tool with that name.
    fn suspect_tool(&mut self, name: &str, certain: &[&str], place: &SourceLocation) {
        let mut names = model::tool::TOOLS.iter().map(|tool| tool.name);
        if certain.contains(&name)
            || self.context.case.is_some_and(|case| case.all_tools().any(|own| may_be(own, name)))
        {
            return;
        }
        let in_other_case = certain.iter().copied().find(|known| known.eq_ignore_ascii_case(name));
        let canonical = || {
            let is_typo =
                name.starts_with(|first: char| first.is_ascii_uppercase()) && names.all(|known| known != name);
            let alike = model::tool::TOOLS.iter().map(|tool| tool.name).filter(|known| known.len() == name.len());
            is_typo.then(|| nearest(name, alike)).flatten()
        };
        if let Some(near) = in_other_case.or_else(canonical) {
            let message = format!("there is no known tool `{name}`");
            self.problems.push(Diagnostic::error(message).suggest(Some(near)).at(place.excerpt()));
        }
    }
}

/// Reports a pattern of tools. Its neighbour `tool` would take the pattern as a name, and `no_tool_called` would always
/// pass.
pub(crate) fn tool_pattern(node: &Node, what: &str) -> Option<Diagnostic> {
    node.get("tool_pattern").map(|pattern| pattern.error(format!("{what} has no `tool_pattern`")))
}

/// Reports a character of a name that is probably not meant.
pub(crate) fn stray_character(name: &str) -> Option<Diagnostic> {
    let quoted = ['"', '\'', '`'].iter().find_map(|quote| name.strip_prefix(*quote)?.strip_suffix(*quote));
    let (what, plain) = match (quoted, model::stray_character(name)) {
        (Some(inner), _) => ("is in quotes, which are".to_owned(), inner.to_owned()),
        (None, Some((stray, plain))) if name.trim() == name => (format!("has {stray}, which is"), plain),
        (None, Some((stray, plain))) => (format!("begins or ends with {stray}, which is"), plain),
        (None, None) => return None,
    };
    let message = format!("`{}` {what} compared like any other character", name.replace('\n', "\\n"));
    Some(Diagnostic::error(message).suggest(Some(plain.as_str()).filter(|plain| !plain.is_empty())))
}

/// Returns `true` if `tool`, as a case defines it, may have this name.
fn may_be(tool: &serde_json::Value, name: &str) -> bool {
    let named = [tool.as_str(), tool.get("name").and_then(|name| name.as_str())];
    named.contains(&Some(name)) || tool.pointer("/function/name").and_then(|name| name.as_str()) == Some(name)
}

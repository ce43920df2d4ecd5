//! Reads literal values from tokens: strings, lists, maps, calls and names. Everything else is skipped, so that a map
//! that contains a function can still be read.

use std::cell::Cell;
use std::collections::HashMap;

use super::literal::Literal;
use super::syntax::Family;
use super::token::{Token, TokenKind};

/// Maximum depth of nested values, and of names that refer to other names.
const DEEPEST: usize = 48;

/// Maximum number of values that are read in one file.
const MOST_VALUES: usize = 400_000;

/// A value in a source text.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Text(Literal),
    List(Vec<Value>),
    Map(Vec<Entry>),
    /// A name with the calls on it, such as `z.string().optional()`.
    Chain(Vec<Link>),
    /// Anything else.
    Other,
}

/// An entry in a map, or an argument of a call.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// Name; empty for an argument without a name.
    pub key: String,
    pub value: Value,
    /// Index of its first token.
    pub at: usize,
}

/// A part of a chain.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    pub name: String,
    /// Arguments, if it is called.
    pub arguments: Option<Vec<Entry>>,
}

impl Value {
    /// Returns the string, even if a conversion such as `.into()` follows it.
    pub fn as_text(&self) -> Option<&Literal> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the value for a key in a map.
    pub fn get(&self, key: &str) -> Option<&Value> {
        match self {
            Self::Map(entries) => find(entries, key),
            _ => None,
        }
    }

    /// Returns `true` if it is the number, keyword or variable `name`.
    pub fn is_name(&self, name: &str) -> bool {
        matches!(self, Self::Chain(links) if links.len() == 1 && links[0].arguments.is_none() && links[0].name == name)
    }
}

/// Returns the value of the entry with this key.
pub(crate) fn find<'e>(entries: &'e [Entry], key: &str) -> Option<&'e Value> {
    entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
}

/// Tokens of a file, with the locations where its names are defined.
pub(crate) struct Code<'t> {
    pub tokens: Vec<Token<'t>>,
    pub family: Family,
    /// For each variable and constant, the index of the first token of its value.
    definitions: HashMap<&'t str, usize>,
    left: Cell<usize>,
}

impl<'t> Code<'t> {
    pub fn new(tokens: Vec<Token<'t>>, family: Family) -> Self {
        let mut code = Self { tokens, family, definitions: HashMap::new(), left: Cell::new(MOST_VALUES) };
        // Inside round and square brackets, `name = value` is an argument.
        let mut inside_until = 0;
        for at in 0..code.tokens.len() {
            if matches!(code.mark(at), Some('(' | '[')) && at >= inside_until {
                inside_until = if code.holds_block(at) { at } else { code.after(at) };
            }
            if at >= inside_until
                && let Some((name, value)) = code.definition(at)
            {
                code.definitions.entry(name).or_insert(value);
            }
        }
        code
    }

    /// Returns `true` if a bracket contains a block of statements, such as the body of a function.
    fn holds_block(&self, open: usize) -> bool {
        let inside = open + 1..self.tokens[open].partner.max(open + 1);
        self.family != Family::Python && inside.into_iter().any(|at| matches!(self.mark(at), Some(';')))
    }

    /// Returns the name that is defined at `at`, and the first token of its value.
    fn definition(&self, at: usize) -> Option<(&'t str, usize)> {
        let name = self.word(at)?;
        let is_declared = at > 0 && self.word(at - 1).is_some_and(is_declaration);
        if !is_declared && self.tokens[at].indent.is_none() {
            return None;
        }
        if self.is_assignment(at + 1) {
            return Some((name, at + 2));
        }
        // A type may come between the name and the value.
        if self.mark(at + 1) != Some(':') {
            return None;
        }
        let sign = (at + 2..at + 24).find(|at| {
            !matches!(self.mark(*at), Some(':' | '<' | '>' | '&' | '\'' | '[' | ']' | '|' | '.' | ','))
                && self.word(*at).is_none()
        })?;
        self.is_assignment(sign).then_some((name, sign + 1))
    }

    /// Returns `true` if the token at `at` is a single `=` that assigns.
    pub fn is_assignment(&self, at: usize) -> bool {
        let is_part = |at: usize| matches!(self.mark(at), Some('=' | '>'));
        self.mark(at) == Some('=') && !is_part(at + 1)
    }

    pub fn word(&self, at: usize) -> Option<&'t str> {
        match self.tokens.get(at)?.kind {
            TokenKind::Word(word) => Some(word),
            _ => None,
        }
    }

    pub fn mark(&self, at: usize) -> Option<char> {
        match self.tokens.get(at)?.kind {
            TokenKind::Mark(mark) => Some(mark),
            _ => None,
        }
    }

    pub fn text(&self, at: usize) -> Option<&Literal> {
        match &self.tokens.get(at)?.kind {
            TokenKind::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the index after the bracket that matches the one at `at`, or after `at`.
    pub fn after(&self, at: usize) -> usize {
        self.tokens.get(at).map_or(at, |token| token.partner.max(at)) + 1
    }

    /// Returns the index of the comma or closing bracket that ends the value beginning at `at`.
    pub fn end_of_value(&self, at: usize) -> usize {
        let mut at = at;
        while at < self.tokens.len() && !matches!(self.mark(at), Some(',' | ';' | ')' | ']' | '}')) {
            at = self.after(at);
        }
        at
    }

    /// Returns the ranges between the commas inside the bracket at `open`. Commas inside angle brackets are ignored.
    pub fn parts(&self, open: usize) -> Vec<(usize, usize)> {
        let end = self.tokens[open].partner;
        let (mut found, mut start, mut depth, mut at) = (Vec::new(), open + 1, 0_usize, open + 1);
        while at < end {
            match self.mark(at) {
                Some('<') => depth += 1,
                Some('>') => depth = depth.saturating_sub(1),
                Some(',') if depth == 0 => {
                    found.push((start, at));
                    start = at + 1;
                }
                _ => {}
            }
            at = self.after(at);
        }
        if start < end {
            found.push((start, end));
        }
        found
    }

    /// Reads the value at `at`. Returns it and the index after it.
    pub fn value(&self, at: usize) -> (Value, usize) {
        self.nested(at, 0)
    }

    /// Returns the value of a name that is defined in the file; other values are returned unchanged.
    pub fn resolved(&self, value: Value) -> Value {
        let mut value = value;
        for _ in 0..DEEPEST {
            let Value::Chain(links) = &value else { break };
            let is_conversion = |link: &&Link| ["to_string", "to_owned", "into", "clone"].contains(&link.name.as_str());
            let names: Vec<&Link> = links.iter().filter(|link| !is_conversion(link)).collect();
            let Some(last) = names.last().filter(|_| names.iter().all(|link| link.arguments.is_none())) else { break };
            let Some(at) = self.definitions.get(last.name.as_str()) else { break };
            value = self.value(*at).0;
        }
        value
    }

    fn nested(&self, at: usize, depth: usize) -> (Value, usize) {
        if depth > DEEPEST || self.left.get() == 0 {
            return (Value::Other, self.after(at));
        }
        self.left.set(self.left.get() - 1);
        match self.tokens.get(at).map(|token| &token.kind) {
            Some(TokenKind::Text(_)) => self.joined_text(at),
            Some(TokenKind::Word(_)) => self.chain(at, depth),
            Some(TokenKind::Mark('{')) => (self.map(at, depth), self.after(at)),
            Some(TokenKind::Mark('[')) => self.list_or_text(at, depth),
            Some(TokenKind::Mark('(')) => self.in_brackets(at, depth),
            Some(TokenKind::Mark('&' | '*' | '@')) => self.nested(at + 1, depth + 1),
            _ => (Value::Other, self.after(at)),
        }
    }

    /// Reads strings that are adjacent or concatenated, and the conversions after them.
    fn joined_text(&self, at: usize) -> (Value, usize) {
        let (mut text, mut at) = (Literal::default(), at);
        while let Some(part) = self.text(at) {
            text.append(part, "");
            at = self.after_conversions(at + 1);
            if self.mark(at) == Some('+') && self.text(at + 1).is_some() {
                at += 1;
            }
        }
        // `" ".join([…])` of Python.
        if text.text.len() <= 4
            && self.mark(at) == Some('.')
            && self.word(at + 1) == Some("join")
            && let (Value::List(items), end) = self.nested(at + 3, 0)
        {
            return (joined(&items, &text.text).map_or(Value::Other, Value::Text), end + 1);
        }
        (Value::Text(text), at)
    }

    /// Skips `.into()`, `.strip()` and the like.
    fn after_conversions(&self, at: usize) -> usize {
        let mut at = at;
        while self.mark(at) == Some('.')
            && self.word(at + 1).is_some_and(|name| name != "join")
            && self.mark(at + 2) == Some('(')
        {
            at = self.after(at + 2);
        }
        at
    }

    /// Reads an expression in brackets. Several values form a list.
    fn in_brackets(&self, at: usize, depth: usize) -> (Value, usize) {
        let end = self.after(at);
        let mut items = self.entries(at, depth);
        let value = match items.len() {
            1 => items.remove(0).value,
            _ => Value::List(items.into_iter().map(|item| item.value).collect()),
        };
        (value, end)
    }

    fn list(&self, at: usize, depth: usize) -> Value {
        let entries = self.entries(at, depth);
        // Arrays in PHP may have keys.
        match entries.iter().any(|entry| !entry.key.is_empty()) {
            true => Value::Map(entries),
            false => Value::List(entries.into_iter().map(|entry| entry.value).collect()),
        }
    }

    /// Reads a list. `["…", "…"].join("\n")` is a text.
    fn list_or_text(&self, at: usize, depth: usize) -> (Value, usize) {
        let (value, end) = (self.list(at, depth), self.after(at));
        if let Value::List(items) = &value
            && self.mark(end) == Some('.')
            && self.word(end + 1) == Some("join")
            && let Some(text) = joined(items, self.text(end + 3).map_or("\n", |separator| &separator.text))
        {
            return (Value::Text(text), self.after(end + 2));
        }
        (value, end)
    }

    fn map(&self, at: usize, depth: usize) -> Value {
        let mut entries = self.entries(at, depth);
        for entry in entries.iter_mut().filter(|entry| entry.key.is_empty()) {
            // In `{ name, parameters }`, the values are the variables with these names.
            if let Value::Chain(links) = &entry.value
                && let [Link { name, arguments: None }] = links.as_slice()
            {
                entry.key.clone_from(name);
            }
        }
        Value::Map(entries)
    }

    /// Reads the content between the bracket at `open` and its partner: values separated by commas, some of them
    /// named.
    fn entries(&self, open: usize, depth: usize) -> Vec<Entry> {
        let end = self.tokens[open].partner;
        let mut entries = Vec::new();
        let mut at = open + 1;
        while at < end {
            if matches!(self.mark(at), Some(',' | ';' | '.')) || matches!(self.tokens[at].kind, TokenKind::Doc(_)) {
                at += 1;
                continue;
            }
            let (key, start) = self.key(at).unwrap_or((String::new(), at));
            let (value, _) = self.nested(start, depth + 1);
            entries.push(Entry { key, value, at });
            at = self.end_of_value(start).max(at + 1);
        }
        entries
    }

    /// Returns the key at `at` and the index of its value.
    fn key(&self, at: usize) -> Option<(String, usize)> {
        let key = self.word(at).or_else(|| self.text(at).map(|text| text.text.as_str()))?;
        let value = match (self.mark(at + 1), self.mark(at + 2)) {
            // `Type::name` is a value.
            (Some(':'), Some(':')) => return None,
            (Some(':'), _) => at + 2,
            (Some('='), Some('>')) => at + 3,
            (Some('='), Some('=')) => return None,
            (Some('='), _) => at + 2,
            _ => return None,
        };
        Some((key.to_owned(), value))
    }

    /// Reads a name with everything that is called on it. A macro is replaced by its argument: `json!({…})`.
    fn chain(&self, at: usize, depth: usize) -> (Value, usize) {
        let mut links: Vec<Link> = Vec::new();
        let mut at = at;
        while let Some(word) = self.word(at) {
            at += 1;
            if links.is_empty() && matches!(word, "new" | "await" | "async" | "lambda" | "mut" | "return") {
                continue;
            }
            if self.mark(at) == Some('!') && matches!(self.mark(at + 1), Some('(' | '[' | '{')) {
                return (self.of_macro(word, at + 1, depth), self.after_conversions(self.after(at + 1)));
            }
            at = self.after_type_arguments(at);
            let arguments = (self.mark(at) == Some('(')).then(|| self.entries(at, depth + 1));
            if arguments.is_some() {
                at = self.after(at);
            }
            links.push(Link { name: word.to_owned(), arguments });
            let is_struct = self.family != Family::Python
                && self.mark(at) == Some('{')
                && word.starts_with(char::is_uppercase)
                && links.last().is_some_and(|link| link.arguments.is_none());
            if is_struct {
                return (self.map(at, depth + 1), self.after(at));
            }
            // A line that begins with a dot continues the chain.
            at = match (self.mark(at), self.mark(at + 1)) {
                (Some('.'), _) => at + 1,
                (Some('?'), Some('.')) | (Some(':'), Some(':')) => at + 2,
                _ => break,
            };
        }
        (self.unwrapped(links), at)
    }

    /// Reads the arguments of a macro, which begin at `at`: the strings in `concat!`, the format string of `format!`,
    /// or a value.
    fn of_macro(&self, name: &str, at: usize, depth: usize) -> Value {
        let value = match self.mark(at) {
            Some('{') if self.text(at + 1).is_none() => self.map(at, depth + 1),
            Some('[') => self.list(at, depth + 1),
            _ => self.in_brackets(at, depth + 1).0,
        };
        match value {
            Value::List(items) if name == "concat" => joined(&items, "").map_or(Value::Other, Value::Text),
            Value::List(items) if name != "vec" && matches!(items.first(), Some(Value::Text(_))) => {
                items.into_iter().next().unwrap_or(Value::Other)
            }
            value => value,
        }
    }

    /// Returns the string in `String::from("…")`, `dedent("…")` and
    /// `["…", "…"].join("\n")`; other chains are returned unchanged.
    fn unwrapped(&self, links: Vec<Link>) -> Value {
        const WRAPPERS: [&str; 9] =
            ["from", "dedent", "cleandoc", "stripIndent", "stripIndents", "oneLine", "trim", "Some", "Cow"];
        let wrapped = links.iter().find(|link| WRAPPERS.contains(&link.name.as_str()) && link.arguments.is_some());
        let inner = wrapped.and_then(|link| link.arguments.as_deref()?.first());
        match inner.map(|entry| &entry.value) {
            Some(Value::Text(text)) => Value::Text(text.clone()),
            _ => Value::Chain(links),
        }
    }

    /// Skips `<T>` and `::<T>` before a call.
    fn after_type_arguments(&self, at: usize) -> usize {
        let start = if self.mark(at) == Some(':') && self.mark(at + 1) == Some(':') { at + 2 } else { at };
        if self.mark(start) != Some('<') {
            return at;
        }
        let mut depth = 0_usize;
        for inside in start..start + 40 {
            match self.mark(inside) {
                Some('<') => depth += 1,
                Some('>') => depth -= 1,
                Some(';' | '=') | None if self.word(inside).is_none() => return at,
                _ => {}
            }
            if depth == 0 {
                return if self.mark(inside + 1) == Some('(') { inside + 1 } else { at };
            }
        }
        at
    }
}

/// Joins the strings in a list.
pub(crate) fn joined(items: &[Value], separator: &str) -> Option<Literal> {
    let mut text = Literal::default();
    for item in items {
        text.append(item.as_text()?, separator);
    }
    (!items.is_empty()).then_some(text)
}

fn is_declaration(word: &str) -> bool {
    ["const", "let", "var", "static", "val", "mut", "final", "def"].contains(&word)
}

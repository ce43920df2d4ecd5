//! A map: each key must be found in the value and match there; the value may have others, unless it must not.

use std::borrow::Cow;
use std::sync::Arc;

use model::{Node, Spanned};
use serde_json::Value;

use crate::compile::{Compiler, refused, split_regex};
use crate::found::{Flaw, Found};
use crate::host::Pattern;
use crate::matcher::{At, Matcher, Rule};
use crate::path;
use crate::place::Place;
use crate::value;

/// Expectations by key.
#[derive(Debug)]
pub struct Fields {
    fields: Vec<Field>,
    place: Place,
}

#[derive(Debug)]
struct Field {
    key: Key,
    matcher: Matcher,
}

/// How the value of a field is found.
#[derive(Debug)]
enum Key {
    /// By a key, or by a path.
    Path(String),
    /// The first key that matches.
    Regex { written: String, pattern: Arc<dyn Pattern> },
    /// Every call in the list `messages`, or the list `tools` where there are no messages.
    Calls,
}

/// What a field is about.
struct Match<'v> {
    path: String,
    value: Option<Cow<'v, Value>>,
    /// The key of the value that is accounted for.
    named: Option<String>,
}

impl Fields {
    /// A map without keys.
    pub fn none(place: Place) -> Self {
        Self { fields: Vec::new(), place }
    }

    /// Reads the keys of `node`, which are `entries`.
    pub fn read(compiler: &mut Compiler<'_>, node: &Node, entries: &[(Spanned<String>, Node)]) -> Self {
        let mut fields = Vec::with_capacity(entries.len());
        for (name, value) in entries {
            let matcher = compiler.matcher(value);
            // Two slashes with nothing between are the expression that any key matches.
            let regex = split_regex(&name.value).or_else(|| (name.value == "//").then_some(("", "")));
            let key = match regex {
                None => Key::Path(name.value.clone()),
                Some((source, flags)) => match compiler.host.regex(source, flags) {
                    Ok(pattern) => Key::Regex { written: name.value.clone(), pattern },
                    Err(invalid) => {
                        let place = Node { span: name.span, ..value.clone() };
                        compiler.problems.push(refused(&place, &invalid));
                        continue;
                    }
                },
            };
            fields.push(Field { key, matcher });
        }
        Self { fields, place: Place::of(node) }
    }

    /// Adds what must hold of all tool calls together.
    pub fn add_calls(&mut self, matcher: Matcher) {
        self.fields.push(Field { key: Key::Calls, matcher });
    }

    /// Adds what must hold of the value under `key`, beside what is said of it already.
    pub fn add(&mut self, key: &str, matcher: Matcher) {
        self.fields.push(Field { key: Key::Path(key.to_owned()), matcher });
    }

    fn extra(&self, whole: &Value, named: &[String], at: &At<'_>) -> Vec<Flaw> {
        let flaw = |key: &str, value: &Value| Flaw {
            key: Some(path::below(&at.key, key)),
            ..Flaw::new(&self.place, format!("`{key}` is not asked for, and nothing else may be there"))
                .actual(Some(value))
        };
        let is_named = |key: &str| named.iter().any(|named| named == key);
        match whole {
            Value::Object(map) => {
                map.iter().filter(|(key, _)| !is_named(key)).map(|(key, value)| flaw(key, value)).collect()
            }
            Value::Array(items) => {
                let items = items.iter().enumerate().map(|(index, value)| (index.to_string(), value));
                items.filter(|(key, _)| !is_named(key)).map(|(key, value)| flaw(&key, value)).collect()
            }
            _ => Vec::new(),
        }
    }
}

impl Rule for Fields {
    fn judge(&self, actual: Option<&Value>, at: &At<'_>) -> Found {
        let Some(whole @ (Value::Object(_) | Value::Array(_))) = actual else {
            let message = format!("expected a map, not {}", value::kind(actual));
            return Found::flawed(Flaw::new(&self.place, message).actual(actual));
        };
        let weights: Vec<_> = self.fields.iter().map(|field| field.matcher.meta.weight).collect();
        let strategy = at.strategy.unwrap_or_default();
        let shares = strategy.distribute(&at.run.rules.budget, &weights);
        let mut named = Vec::new();
        let mut found = Vec::with_capacity(self.fields.len());
        for field in &self.fields {
            match field.key.find(whole) {
                Ok(place) => {
                    let below = At { present: place.value.is_some(), ..at.below(&place.path) };
                    found.push(field.matcher.judge(place.value.as_deref(), &below));
                    named.extend(place.named);
                }
                Err(stopped) => found.push(Found::unknown(Flaw::new(&field.matcher.place, stopped))),
            }
        }
        let mut whole_found = strategy.aggregate(found, &shares, &self.place);
        if at.run.rules.strict.object {
            let extra = self.extra(whole, &named, at);
            if !extra.is_empty() {
                whole_found.pass = crate::found::Pass::No;
                whole_found.flaws.extend(extra);
            }
        }
        whole_found
    }
}

impl Key {
    /// The value it names, and what to call it.
    fn find<'v>(&self, whole: &'v Value) -> Result<Match<'v>, String> {
        Ok(match self {
            Self::Path(key) => {
                let value = path::get(whole, key);
                let named = value.is_some().then(|| {
                    let is_own = matches!(whole, Value::Object(map) if map.contains_key(key));
                    if is_own { key.clone() } else { path::head(key).to_owned() }
                });
                Match { path: key.clone(), value, named }
            }
            Self::Regex { written, pattern } => match first_match(whole, pattern.as_ref())? {
                Some(key) => {
                    let value = path::get(whole, &key);
                    Match { path: key.clone(), value, named: Some(key) }
                }
                None => Match { path: written.clone(), value: None, named: None },
            },
            Self::Calls => Match { path: "tools".into(), value: calls(whole), named: Some("messages".into()) },
        })
    }
}

fn first_match(whole: &Value, pattern: &dyn Pattern) -> Result<Option<String>, String> {
    let keys: Box<dyn Iterator<Item = String>> = match whole {
        Value::Object(map) => Box::new(map.keys().cloned()),
        Value::Array(items) => Box::new((0..items.len()).map(|index| index.to_string())),
        _ => return Ok(None),
    };
    for key in keys {
        if pattern.is_match(&key)? {
            return Ok(Some(key));
        }
    }
    Ok(None)
}

/// Every call of every message in order.
fn calls(whole: &Value) -> Option<Cow<'_, Value>> {
    match whole.get("messages") {
        Some(Value::Array(messages)) => {
            let calls = messages.iter().filter_map(|message| message.get("tools")?.as_array());
            Some(Cow::Owned(calls.flatten().cloned().collect()))
        }
        _ => whole.get("tools").filter(|tools| tools.is_array()).map(Cow::Borrowed),
    }
}

//! A map: each key must exist in the value and match there. The value may have other keys, unless the match is strict.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use super::json_text;
use crate::host::{Host, Invalid, Pattern};
use crate::notation::split_regex;
use crate::path;
use crate::prelude::*;

/// Expectations by key.
#[derive(Debug)]
pub struct Keys {
    /// The keys, with the expectations for their values.
    pub entries: Vec<(Key, Matcher)>,
    /// Source position.
    pub place: SourceLocation,
}

/// How the value of an entry is found.
#[derive(Debug)]
pub enum Key {
    /// A key, or a path.
    Path(String),
    /// The first key that matches.
    Regex { written: String, pattern: Arc<dyn Pattern> },
    /// Replacement of `tools`.
    ResultKey(ResultKey),
}

/// Key that replaces `tools`, for an expectation about the agent's calls. No key in a file begins like this.
pub const ALL_CALLS: &str = "\0all calls";
/// Like [`ALL_CALLS`], for an expectation that no call may meet.
pub const NO_CALLS: &str = "\0no calls";
/// Key of the messages, for an expectation about the calls in them.
pub const CONVERSATION: &str = "\0conversation";
/// Key of the calls of one message.
pub const OWN_CALLS: &str = "\0own calls";

#[derive(Debug, Clone, Copy)]
pub enum ResultKey {
    /// Every call in `messages`, or the `tools` list if there are no messages. If `must_be_known` is true, a result
    /// with neither does not match.
    Calls {
        must_be_known: bool,
    },
    Conversation,
    OwnCalls,
}

/// Path and value of an entry.
struct Match<'v> {
    path: Cow<'v, str>,
    value: Option<Cow<'v, Value>>,
}

impl Keys {
    fn extra(&self, whole: &Value, named: &HashSet<Cow<'_, str>>, at: &Scope<'_>) -> Vec<Flaw> {
        let flaw = |key: &str, value: &Value| Flaw {
            key: Some(path::below(&at.key, key)),
            firm: true,
            ..Flaw::new(&self.place, format!("`{key}` is not expected, and other keys are not allowed"))
                .actual(Some(value))
        };
        let extra = entries(whole).into_iter().filter(|(key, _)| !named.contains(key));
        extra.map(|(key, value)| flaw(&key, value)).collect()
    }
}

impl Rule for Keys {
    fn judge(&self, actual: Option<&Value>, at: &Scope<'_>) -> Found {
        let Some(whole @ (Value::Object(_) | Value::Array(_))) = actual else {
            let message = format!("expected a map, not {}{}", value::kind(actual), json_text::remark(actual));
            let critical = self.entries.iter().any(|(_, matcher)| matcher.critical);
            return Found::flawed(Flaw { critical, ..Flaw::new(&self.place, message).actual(actual) });
        };
        let weights: Vec<_> = self.entries.iter().map(|(_, matcher)| matcher.meta.weight).collect();
        let strategy = at.strategy.unwrap_or_default();
        let shares = strategy.distribute(&at.run.rules.budget, &weights);
        let mut named = HashSet::new();
        let mut found = Vec::with_capacity(self.entries.len());
        for (key, matcher) in &self.entries {
            match key.find(whole) {
                Ok(value) => {
                    found.push(key.judge(&value, matcher, at));
                    if at.run.rules.strict.object {
                        named.extend(key.names(whole, value));
                    }
                }
                Err(stopped) => {
                    let critical = matcher.critical;
                    found.push(Found::unknown(Flaw { critical, ..Flaw::new(&matcher.place, stopped) }));
                }
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

    fn quick_score(&self, actual: Option<&Value>, at: &Scope<'_>) -> Option<QuickScore> {
        let Some(whole @ (Value::Object(_) | Value::Array(_))) = actual else {
            return Some(QuickScore::from_bool(false));
        };
        if at.strategy.is_some() {
            return None;
        }
        let mut score = QuickScore::mean(self.entries.iter().map(|(key, matcher)| match key {
            Key::Path(path) => matcher.quick_score(path::get(whole, path).as_deref(), at),
            Key::Regex { .. } | Key::ResultKey(_) => None,
        }))?;
        if at.run.rules.strict.object {
            let is_extra = |name: &str| !self.entries.iter().any(|(key, _)| key.is_path_of(name, whole));
            score.firm |= match whole {
                Value::Object(map) => map.keys().any(|name| is_extra(name)),
                _ => entries(whole).iter().any(|(name, _)| is_extra(name)),
            };
        }
        Some(score)
    }
}

impl Key {
    fn judge(&self, found: &Match<'_>, matcher: &Matcher, at: &Scope<'_>) -> Found {
        let below = Scope { present: found.value.is_some(), ..at.below(&found.path) };
        if found.value.is_none() && matches!(self, Self::ResultKey(ResultKey::Calls { must_be_known: true })) {
            let flaw = Flaw::new(&matcher.place, "no conversation was recorded, so the tool calls are unknown");
            return Found::flawed(Flaw { key: Some(below.key), critical: matcher.critical, ..flaw });
        }
        matcher.judge(found.value.as_deref(), &below)
    }

    /// Reads a key as written. Returns an error if it is not a valid regular expression.
    pub fn read(name: &str, host: &dyn Host) -> Result<Self, Invalid> {
        if let Some(made) = ResultKey::parse(name) {
            return Ok(Self::ResultKey(made));
        }
        // `//` is the empty expression, which any key matches.
        let regex = split_regex(name).or_else(|| (name == "//").then_some(("", "")));
        let Some((source, flags)) = regex else { return Ok(Self::Path(name.to_owned())) };
        Ok(Self::Regex { written: name.to_owned(), pattern: host.regex(source, flags)? })
    }

    /// Returns the value to which it refers, with its path.
    fn find<'v>(&'v self, whole: &'v Value) -> Result<Match<'v>, String> {
        Ok(match self {
            Self::Path(key) => Match { path: key.into(), value: path::get(whole, key) },
            Self::Regex { written, pattern } => match first_match(whole, pattern.as_ref())? {
                Some(key) => Match { value: path::get(whole, &key), path: key.into() },
                None => Match { path: written.into(), value: None },
            },
            Self::ResultKey(made) => made.find(whole),
        })
    }

    /// Returns `true` if this is a path that begins with the key `name` of `whole`.
    fn is_path_of(&self, name: &str, whole: &Value) -> bool {
        let Self::Path(path) = self else { return false };
        path == name || (path.contains(['.', '[']) && whole.get(path).is_none() && path::head(path) == name)
    }

    /// Returns the keys of `whole` that this entry covers, whether they exist or not.
    fn names<'v>(&'v self, whole: &Value, found: Match<'v>) -> Vec<Cow<'v, str>> {
        match self {
            Self::Path(key) => {
                let is_own = matches!(whole, Value::Object(map) if map.contains_key(key));
                vec![if is_own { key.into() } else { path::head(key) }]
            }
            Self::Regex { .. } => vec![found.path],
            // The user's expectation is only about the calls, so all other keys of the message are allowed.
            Self::ResultKey(ResultKey::OwnCalls) => {
                whole.as_object().into_iter().flat_map(|message| message.keys().cloned().map(Cow::Owned)).collect()
            }
            Self::ResultKey(ResultKey::Conversation | ResultKey::Calls { .. }) => {
                vec!["messages".into(), "tools".into()]
            }
        }
    }
}

impl ResultKey {
    fn parse(key: &str) -> Option<Self> {
        match key {
            ALL_CALLS => Some(Self::Calls { must_be_known: true }),
            NO_CALLS => Some(Self::Calls { must_be_known: false }),
            CONVERSATION => Some(Self::Conversation),
            OWN_CALLS => Some(Self::OwnCalls),
            _ => None,
        }
    }

    fn find(self, whole: &Value) -> Match<'_> {
        match self {
            Self::Calls { .. } => Match { path: "tools".into(), value: calls(whole) },
            Self::Conversation => Match { path: "messages".into(), value: whole.get("messages").map(Cow::Borrowed) },
            Self::OwnCalls => {
                // A message without calls counts as a message with an empty list.
                let none = || Cow::Owned(Value::Array(Vec::new()));
                let value = whole.get("tools").filter(|tools| !tools.is_null()).map_or_else(none, Cow::Borrowed);
                Match { path: "tools".into(), value: Some(value) }
            }
        }
    }
}

fn first_match(whole: &Value, pattern: &dyn Pattern) -> Result<Option<String>, String> {
    for (key, _) in entries(whole) {
        if pattern.is_match(&key)? {
            return Ok(Some(key.into_owned()));
        }
    }
    Ok(None)
}

/// Returns the entries of a map, or the items of a list by index.
fn entries(whole: &Value) -> Vec<(Cow<'_, str>, &Value)> {
    match whole {
        Value::Object(map) => map.iter().map(|(key, value)| (key.into(), value)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(index, item)| (index.to_string().into(), item)).collect(),
        _ => Vec::new(),
    }
}

/// Returns the calls in all messages, in order.
fn calls(whole: &Value) -> Option<Cow<'_, Value>> {
    match whole.get("messages") {
        Some(Value::Array(messages)) => {
            let calls = messages.iter().filter_map(|message| message.get("tools")?.as_array());
            Some(Cow::Owned(calls.flatten().cloned().collect()))
        }
        _ => whole.get("tools").filter(|tools| tools.is_array()).map(Cow::Borrowed),
    }
}

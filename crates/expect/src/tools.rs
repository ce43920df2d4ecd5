//! `tools` in an expectation for an agent's whole result: a requirement on its calls.
//!
//! | written | meaning |
//! | --- | --- |
//! | a list, or `{$all: list}` | each is among the calls of some message; an item `{$not: …}` forbids such calls |
//! | `{$sequence: list}` | each is among the calls of a separate message, in this order |
//! | an empty list | there is a conversation; no call is required |
//! | a map | some call has these keys |
//! | a string | some call has this name |
//! | `true` | there is a call |
//! | `{$in: list}`, `{$nin: list}` | some call is one of these; no call is |
//! | any other operator | it holds for the list of all calls; a string in it is the name of a call |
//!
//! It is checked in addition to `messages`, and a weight on an item counts. It has this meaning wherever a map stands
//! for the whole result: next to operators, and inside `$and`, `$or`, `$not` and `$expect`.

mod call;
mod denial;

use std::sync::Arc;

use model::{Node, NodeKind, Span, Spanned, nearest};

use self::denial::is_denial;
use crate::compile::Compiler;
use crate::matcher::Matcher;
use crate::meta::{self, is_meta};
use crate::path;
use crate::pattern::{ALL_CALLS, CONVERSATION, NO_CALLS, OWN_CALLS};

/// The key.
const TOOLS: &str = "tools";

/// Usual keys of an agent's result.
const USUAL: [&str; 5] = ["output", "messages", TOOLS, "state", "usage"];

/// Key and its value.
type Entry = (Spanned<String>, Node);

/// Compiles the expectation for an agent's whole result.
pub fn matcher(compiler: &mut Compiler<'_>, node: &Node) -> Matcher {
    let node = whole(compiler, node);
    compiler.matcher(&node)
}

/// Returns the expectation for the whole result, with `tools` rewritten to expectations for the calls.
fn whole(compiler: &mut Compiler<'_>, node: &Node) -> Node {
    let (NodeKind::Map(entries), None) = (&node.kind, &node.tag) else { return node.clone() };
    let mut rules = Vec::with_capacity(entries.len());
    for (key, value) in entries {
        let value = match key.value.as_str() {
            TOOLS if asks_for_something(value) => {
                rules.push(calls(compiler, key, value));
                continue;
            }
            name @ ("$not" | "$expect") if compiler.is_built_in(name) => whole(compiler, value),
            name @ ("$and" | "$or") if compiler.is_built_in(name) => each(value, |item| whole(compiler, item)),
            _ => {
                doubt(compiler, key, value);
                value.clone()
            }
        };
        rules.push((key.clone(), value));
    }
    Node { kind: NodeKind::Map(rules), ..node.clone() }
}

/// Reports a key that is similar to one in a result. A singular form may be one of the agent's own keys, so it only
/// causes a warning.
fn doubt(compiler: &mut Compiler<'_>, key: &Spanned<String>, value: &Node) {
    let name = path::head(&key.value);
    if name.starts_with(['$', '/']) || USUAL.contains(&&*name) {
        return;
    }
    if let Some(near) = nearest(&name, USUAL) {
        let is_singular = near.strip_suffix('s') == Some(&*name);
        let diagnostic = if is_singular { model::Diagnostic::warning } else { model::Diagnostic::error };
        let problem = diagnostic(format!("`{name}` is not a usual key of a result"));
        compiler.problems.push(problem.at(value.source.excerpt(key.span)).suggest(Some(near)));
    }
}

/// Returns the replacement for `tools`.
fn calls(compiler: &mut Compiler<'_>, key: &Spanned<String>, wanted: &Node) -> Entry {
    let marked = |marker: &str| Spanned::new(marker.to_owned(), key.span);
    let Some((operator, list)) = listed(wanted).filter(|(_, list)| !has_denial(compiler, list)) else {
        let marker = if is_denial(compiler, wanted) { NO_CALLS } else { ALL_CALLS };
        return (marked(marker), call::of_all(compiler, wanted));
    };
    let list = each(list, |item| in_a_message(compiler, item));
    (marked(CONVERSATION), described(wanted, operator, list))
}

/// Returns the list in a plain list, in `$all` or in `$sequence`, with the operator that applies to it.
fn listed(wanted: &Node) -> Option<(&'static str, &Node)> {
    let (operator, list) = match &wanted.kind {
        NodeKind::List(_) => ("$all", wanted),
        NodeKind::Map(entries) => {
            let mut others = entries.iter().filter(|(key, _)| !is_meta(&key.value));
            let (key, list) = others.next().filter(|_| others.next().is_none())?;
            (["$all", "$sequence"].into_iter().find(|operator| *operator == key.value)?, list)
        }
        _ => return None,
    };
    matches!(list.kind, NodeKind::List(_)).then_some((operator, list))
}

fn has_denial(compiler: &Compiler<'_>, list: &Node) -> bool {
    matches!(&list.kind, NodeKind::List(items) if items.iter().any(|item| is_denial(compiler, item)))
}

/// Requires `item` to be among the calls of a message. Its metadata is moved to the expectation for the message.
fn in_a_message(compiler: &mut Compiler<'_>, item: &Node) -> Node {
    let call = unweighted(call::of_one(compiler, item));
    described(item, OWN_CALLS, map_of(item, "$contains", call))
}

/// Returns a map with `key`, with the metadata of `node`.
fn described(node: &Node, key: &str, value: Node) -> Node {
    let own = std::iter::once(entry(key, value));
    with(node, NodeKind::Map(own.chain(said_about(node)).collect()))
}

/// Returns the metadata of `node`.
fn said_about(node: &Node) -> Vec<Entry> {
    let NodeKind::Map(entries) = &node.kind else { return Vec::new() };
    let is_said = |key: &str| key == meta::CONTAINER || (is_meta(key) && meta::has_shorthands(entries, false));
    entries.iter().filter(|(key, _)| is_said(&key.value)).cloned().collect()
}

/// Returns `node` without its weight, which is set on the enclosing expectation.
fn unweighted(node: Node) -> Node {
    let NodeKind::Map(entries) = &node.kind else { return node };
    let is_short = |key: &str| key == "$score" && meta::has_shorthands(entries, false);
    let without = |(key, value): &Entry| match &value.kind {
        NodeKind::Map(inner) if key.value == meta::CONTAINER => {
            let inner = inner.iter().filter(|(key, _)| key.value != "score").cloned().collect();
            (key.clone(), Node { kind: NodeKind::Map(inner), ..value.clone() })
        }
        _ => (key.clone(), value.clone()),
    };
    let rest = entries.iter().filter(|(key, _)| !is_short(&key.value)).map(without).collect();
    Node { kind: NodeKind::Map(rest), ..node }
}

/// Returns `false` for null, `false`, 0 and an empty string, which make no requirement on the calls and are compared
/// with the value directly.
fn asks_for_something(node: &Node) -> bool {
    match &node.kind {
        NodeKind::Null | NodeKind::Bool(false) => false,
        NodeKind::Number(number) => number.as_f64() != Some(0.0),
        NodeKind::String(text) => !text.is_empty(),
        _ => true,
    }
}

/// Returns a list with each item rewritten. Any other value is returned unchanged.
fn each(list: &Node, convert: impl FnMut(&Node) -> Node) -> Node {
    match &list.kind {
        NodeKind::List(items) => with(list, NodeKind::List(items.iter().map(convert).collect())),
        _ => list.clone(),
    }
}

fn entry(key: &str, value: Node) -> Entry {
    (Spanned::new(key.to_owned(), Span::new(value.span.start(), value.span.end())), value)
}

/// Returns a map with only this entry, at the location of a node.
fn map_of(place: &Node, key: &str, value: Node) -> Node {
    with(place, NodeKind::Map(vec![entry(key, value)]))
}

fn with(place: &Node, kind: NodeKind) -> Node {
    Node { kind, span: place.span, tag: None, source: Arc::clone(&place.source) }
}

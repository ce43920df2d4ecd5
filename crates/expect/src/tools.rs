//! `expect.tools`: what must hold of the calls that an agent made.
//!
//! | written | means |
//! | --- | --- |
//! | a list, or `{$all: list}` | each is among the calls of some message |
//! | `{$sequence: list}` | each is among the calls of a message of its own, in this order |
//! | a map | some call has these keys |
//! | a text | some call has this name |
//! | `true` | there is a call |
//! | any other operator | it holds of the list of all calls |
//!
//! It is checked beside `messages`, and a weight on an item counts.

use std::sync::Arc;

use model::{Node, NodeKind, Span, Spanned};

use crate::compile::Compiler;
use crate::matcher::{Matcher, Rule};
use crate::meta::{self, Meta};
use crate::operator::OPERATORS;
use crate::pattern::Fields;
use crate::place::Place;

/// The key.
const TOOLS: &str = "tools";

/// The matcher of everything an agent gave.
pub fn matcher(compiler: &mut Compiler<'_>, node: &Node) -> Matcher {
    let plain = match &node.kind {
        NodeKind::Map(entries) if node.tag.is_none() => {
            entries.iter().all(|(key, _)| !is_operator(compiler, &key.value))
        }
        _ => false,
    };
    let wanted = node.get(TOOLS).filter(|wanted| plain && asks_for_something(wanted));
    let (Some(wanted), NodeKind::Map(entries)) = (wanted, &node.kind) else { return compiler.matcher(node) };
    let meta = Meta::read(node, false, compiler.problems);
    let is_data = |key: &str| {
        key != TOOLS
            && key != meta::CONTAINER
            && !(meta::has_shorthands(entries, false) && meta::SHORTHANDS.contains(&key))
    };
    let rest = entries.iter().filter(|(key, _)| is_data(&key.value)).cloned().collect();
    let mut fields = compiler.fields(&Node { kind: NodeKind::Map(rest), ..node.clone() });
    add(compiler, wanted, &mut fields);
    let rule: Box<dyn Rule> = Box::new(fields);
    Matcher { meta, place: Place::of(node), rule }
}

fn add(compiler: &mut Compiler<'_>, wanted: &Node, fields: &mut Fields) {
    let items = match &wanted.kind {
        NodeKind::List(_) => Some(("$all", wanted)),
        NodeKind::Map(_) => match only_operator(wanted) {
            Some(("$all", list)) => Some(("$all", list)),
            Some(("$sequence", list)) => Some(("$sequence", list)),
            _ => None,
        },
        _ => None,
    };
    match items {
        Some((operator, list)) => {
            let list = match &list.kind {
                NodeKind::List(items) => with(list, NodeKind::List(items.iter().map(in_a_message).collect())),
                _ => list.clone(),
            };
            let around = if matches!(wanted.kind, NodeKind::Map(_)) { beside(wanted, operator) } else { Vec::new() };
            let mut entries = vec![entry(operator, list)];
            entries.extend(around);
            fields.add("messages", compiler.matcher(&with(wanted, NodeKind::Map(entries))));
        }
        None => fields.add_calls(compiler.matcher(&of_all_calls(compiler, wanted))),
    }
}

/// `item` is among the calls of a message; what is said about it is said about the message's whole.
fn in_a_message(item: &Node) -> Node {
    let call = if item.as_str().is_some() && item.tag.is_none() { named(item) } else { item.clone() };
    let contains = with(item, NodeKind::Map(vec![entry("$contains", call)]));
    let mut entries = vec![entry(TOOLS, contains)];
    if let NodeKind::Map(own) = &item.kind {
        let is_meta = |key: &str| key == meta::CONTAINER || meta::SHORTHANDS.contains(&key);
        entries.extend(own.iter().filter(|(key, _)| is_meta(&key.value)).cloned());
    }
    with(item, NodeKind::Map(entries))
}

/// What is asked of the list of all calls, where `node` is written as if it were one call.
fn of_all_calls(compiler: &Compiler<'_>, node: &Node) -> Node {
    match &node.kind {
        NodeKind::Bool(true) => {
            let any = with(node, NodeKind::Map(vec![entry("$exists", node.clone())]));
            let call = with(node, NodeKind::Map(vec![entry("name", any)]));
            with(node, NodeKind::Map(vec![entry("$contains", call)]))
        }
        NodeKind::String(_) if node.tag.is_none() => with(node, NodeKind::Map(vec![entry("$contains", named(node))])),
        NodeKind::List(_) => with(node, NodeKind::Map(vec![entry("$all", node.clone())])),
        NodeKind::Map(entries) => {
            if !entries.iter().any(|(key, _)| is_operator(compiler, &key.value)) {
                return with(node, NodeKind::Map(vec![entry("$contains", node.clone())]));
            }
            let around = entries.iter().map(|(key, value)| {
                let value = match (key.value.as_str(), &value.kind) {
                    ("$not" | "$expect", _) => of_all_calls(compiler, value),
                    ("$and" | "$or", NodeKind::List(items)) => {
                        with(value, NodeKind::List(items.iter().map(|item| of_all_calls(compiler, item)).collect()))
                    }
                    _ => value.clone(),
                };
                (key.clone(), value)
            });
            with(node, NodeKind::Map(around.collect()))
        }
        _ => node.clone(),
    }
}

/// A call by its name; a regular expression stays one.
fn named(node: &Node) -> Node {
    let is_regex = node.as_str().is_some_and(|text| crate::compile::split_regex(text).is_some());
    let name = if is_regex { node.clone() } else { with(node, NodeKind::Map(vec![entry("$eq", node.clone())])) };
    with(node, NodeKind::Map(vec![entry("name", name)]))
}

/// The operator of a map that has no other, and its operand.
fn only_operator(node: &Node) -> Option<(&str, &Node)> {
    let NodeKind::Map(entries) = &node.kind else { return None };
    let mut others = entries.iter().filter(|(key, _)| !meta::SHORTHANDS.contains(&key.value.as_str()));
    let (key, operand) = others.find(|(key, _)| key.value != meta::CONTAINER)?;
    others.all(|(key, _)| key.value == meta::CONTAINER).then_some((key.value.as_str(), operand))
}

/// What stands in the map `node` beside `operator`.
fn beside(node: &Node, operator: &str) -> Vec<(Spanned<String>, Node)> {
    let NodeKind::Map(entries) = &node.kind else { return Vec::new() };
    entries.iter().filter(|(key, _)| key.value != operator).cloned().collect()
}

fn is_operator(compiler: &Compiler<'_>, key: &str) -> bool {
    OPERATORS.iter().any(|operator| operator.name == key) || compiler.rules.operator(key).is_some()
}

/// Nothing, `false`, 0 and an empty text ask for nothing of the calls: they are compared with what stands there.
fn asks_for_something(node: &Node) -> bool {
    match &node.kind {
        NodeKind::Null | NodeKind::Bool(false) => false,
        NodeKind::Number(number) => number.as_f64() != Some(0.0),
        NodeKind::String(text) => !text.is_empty(),
        _ => true,
    }
}

fn entry(key: &str, value: Node) -> (Spanned<String>, Node) {
    (Spanned::new(key.to_owned(), Span::new(value.span.start, value.span.end)), value)
}

fn with(place: &Node, kind: NodeKind) -> Node {
    Node { kind, span: place.span, tag: None, source: Arc::clone(&place.source) }
}

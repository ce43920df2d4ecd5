//! Rewrites calls as written by users to plain maps: a string is the name of a call, a map contains some of its keys.

use model::{Node, NodeKind, Spanned};

use super::{Entry, described, each, entry, has_denial, is_denial, map_of, unweighted, with};
use crate::compile::Compiler;
use crate::meta::is_meta;
use crate::notation::{REGEX_TAG, split_regex};
use crate::schema::looks_like_schema;

/// Key of the name.
const NAME: &str = "name";

/// Returns the expectation for the list of all calls from `node`, which may be written as if there were only one call.
pub fn of_all(compiler: &mut Compiler<'_>, node: &Node) -> Node {
    match &node.kind {
        NodeKind::Bool(true) => {
            let any = map_of(node, "$exists", node.clone());
            map_of(node, "$contains", map_of(node, NAME, any))
        }
        _ if is_name(node) => map_of(node, "$contains", expect_name(node)),
        NodeKind::List(_) if node.tag.is_none() => {
            let all = every(compiler, node);
            with(node, NodeKind::Map(vec![all]))
        }
        NodeKind::Map(entries) if node.tag.is_none() => {
            if entries.iter().any(|(key, _)| compiler.is_operator(&key.value)) {
                refuse_keys_beside(compiler, entries);
                operators(compiler, node, entries)
            } else if is_schema_of_a_list(compiler, node) {
                node.clone()
            } else {
                described(node, "$contains", unweighted(node.clone()))
            }
        }
        _ => node.clone(),
    }
}

/// Returns the expectation for one call from `node`.
pub fn of_one(compiler: &mut Compiler<'_>, node: &Node) -> Node {
    match &node.kind {
        NodeKind::Bool(true) => with(node, NodeKind::Map(Vec::new())),
        _ if is_name(node) => expect_name(node),
        NodeKind::List(_) if node.tag.is_none() => {
            let problem = node.error("a list cannot describe one call");
            compiler
                .problems
                .push(problem.help("use `$or` if one of the calls is enough, `$all` if all of them are required"));
            node.clone()
        }
        NodeKind::Map(entries) if node.tag.is_none() => {
            let rules = entries.iter().map(|(key, value)| rule_of_one(compiler, key, value)).collect();
            Node { kind: NodeKind::Map(rules), ..node.clone() }
        }
        _ => node.clone(),
    }
}

fn rule_of_one(compiler: &mut Compiler<'_>, key: &Spanned<String>, value: &Node) -> Entry {
    let same = |value: Node| (key.clone(), value);
    if !compiler.is_built_in(&key.value) {
        return same(value.clone());
    }
    match (key.value.as_str(), &value.kind) {
        ("$not" | "$expect" | "$contains", _) => same(of_one(compiler, value)),
        ("$and" | "$or", _) => same(each(value, |item| of_one(compiler, item))),
        ("$in", NodeKind::List(_)) => renamed(key, "$or", one_of(compiler, value)),
        ("$nin", NodeKind::List(_)) => {
            let one = map_of(value, "$or", one_of(compiler, value));
            renamed(key, "$not", one)
        }
        ("$eq" | "$ne", NodeKind::String(_)) => {
            renamed(key, NAME, with(value, NodeKind::Map(vec![(key.clone(), value.clone())])))
        }
        _ => same(value.clone()),
    }
}

/// Rewrites a map that contains operators, which apply to the list of all calls.
fn operators(compiler: &mut Compiler<'_>, node: &Node, entries: &[Entry]) -> Node {
    let rules = entries.iter().map(|(key, value)| rule_of_all(compiler, key, value)).collect();
    Node { kind: NodeKind::Map(rules), ..node.clone() }
}

fn rule_of_all(compiler: &mut Compiler<'_>, key: &Spanned<String>, value: &Node) -> Entry {
    let same = |value: Node| (key.clone(), value);
    if !compiler.is_built_in(&key.value) {
        return same(value.clone());
    }
    match (key.value.as_str(), &value.kind) {
        ("$not" | "$expect", _) => same(of_all(compiler, value)),
        ("$and" | "$or", _) => same(each(value, |item| of_all(compiler, item))),
        ("$contains" | "$each" | "$first" | "$last" | "$nth", _) => same(of_one(compiler, value)),
        ("$all", NodeKind::List(_)) => {
            let (all, list) = every(compiler, value);
            renamed(key, &all.value, list)
        }
        ("$sequence", NodeKind::List(items)) => {
            items.iter().for_each(|step| refuse_denial(compiler, step));
            same(each(value, |step| of_one(compiler, step)))
        }
        ("$in", NodeKind::List(_)) | ("$eq", NodeKind::String(_)) => some(compiler, key, value),
        ("$nin", NodeKind::List(_)) | ("$ne", NodeKind::String(_)) => {
            let some = some(compiler, key, value);
            renamed(key, "$not", with(value, NodeKind::Map(vec![some])))
        }
        ("$sort", NodeKind::Map(rest)) => same(operators(compiler, value, rest)),
        _ => same(value.clone()),
    }
}

/// Requires that some call is `value`, or one in a list.
fn some(compiler: &mut Compiler<'_>, key: &Spanned<String>, value: &Node) -> Entry {
    let call = match &value.kind {
        NodeKind::List(_) => map_of(value, "$or", one_of(compiler, value)),
        _ => exactly(value),
    };
    renamed(key, "$contains", call)
}

/// Rewrites the calls in a list, any one of which is enough. Strings in it are compared exactly.
fn one_of(compiler: &mut Compiler<'_>, list: &Node) -> Node {
    each(list, |item| match item.kind {
        NodeKind::String(_) if item.tag.is_none() => exactly(item),
        _ => of_one(compiler, item),
    })
}

/// Requires each call in `list`, and no call that the list denies.
fn every(compiler: &mut Compiler<'_>, list: &Node) -> Entry {
    if !has_denial(compiler, list) {
        return entry("$all", each(list, |item| of_one(compiler, item)));
    }
    let rules = each(list, |item| {
        if is_denial(compiler, item) {
            return of_all(compiler, item);
        }
        described(item, "$contains", unweighted(of_one(compiler, item)))
    });
    entry("$and", rules)
}

/// Reports a step that any other call would meet, because it makes no requirement.
fn refuse_denial(compiler: &mut Compiler<'_>, step: &Node) {
    if is_denial(compiler, step) {
        let problem = step.error("a step of `$sequence` must say what the call is, not only what it is not");
        let help = "to require that no such call is made, write `$not` next to the sequence: `{$sequence: …, $not: …}`";
        compiler.problems.push(problem.help(help));
    }
}

/// Reports keys of a call next to operators, because they would be looked up in the list of all calls.
fn refuse_keys_beside(compiler: &mut Compiler<'_>, entries: &[Entry]) {
    let is_of_a_list =
        |key: &str| key == "length" || key.starts_with(|c: char| matches!(c, '[' | '/') || c.is_ascii_digit());
    let of_a_call = entries
        .iter()
        .find(|(Spanned { value: key, .. }, _)| !key.starts_with('$') && !is_meta(key) && !is_of_a_list(key));
    if let Some((key, value)) = of_a_call {
        let message =
            format!("`{}` is a key of a single call, but the operators next to it apply to all calls", key.value);
        let problem = model::Diagnostic::error(message).at(value.source.excerpt(key.span));
        compiler.problems.push(problem.help("wrap both in `$contains` to require that some call matches"));
    }
}

/// Returns `true` for a schema of the list, such as `{type: array, maxItems: 3}`, rather than of one call.
fn is_schema_of_a_list(compiler: &Compiler<'_>, node: &Node) -> bool {
    compiler.rules.heuristic_schema
        && node.get("type").and_then(Node::as_str) == Some("array")
        && looks_like_schema(node)
}

/// Returns `true` if it is a string that names a call.
fn is_name(node: &Node) -> bool {
    matches!(node.kind, NodeKind::String(_)) && node.tag.as_deref().is_none_or(|tag| tag == REGEX_TAG)
}

/// Returns a call by its name, which may be a regular expression.
fn expect_name(node: &Node) -> Node {
    let is_regex = node.tag.is_some() || node.as_str().is_some_and(|text| split_regex(text).is_some());
    if is_regex { map_of(node, NAME, node.clone()) } else { exactly(node) }
}

fn exactly(node: &Node) -> Node {
    map_of(node, NAME, map_of(node, "$eq", node.clone()))
}

fn renamed(key: &Spanned<String>, name: &str, value: Node) -> Entry {
    (Spanned::new(name.to_owned(), key.span), value)
}

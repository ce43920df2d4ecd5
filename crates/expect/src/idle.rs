//! Penalties that nobody reads: there is nothing beside them that they could take from, and what is not wanted would be
//! asked for.

use model::decode::Problems;
use model::{Diagnostic, Excerpt, Node, NodeKind};

use crate::compile::SCHEMA_TAG;
use crate::meta::{self, Meta};
use crate::rules::Rules;
use crate::schema;

/// The operators whose operand is an expectation that stands alone.
const OF_ONE: [&str; 8] = ["$not", "$contains", "$each", "$sort", "$nth", "$first", "$last", "$expect"];

/// The operators whose operand is a list of expectations that share.
const OF_MANY: [&str; 4] = ["$and", "$or", "$all", "$sequence"];

/// Tells of every penalty in `node`, as it is written, that has no effect. That of the whole is one only if it is
/// critical; the original asks for what stands there otherwise, and so it is no error.
pub fn tell(node: &Node, rules: &Rules, problems: &mut Problems) {
    if let Some((Meta { critical: false, .. }, place)) = penalty(node) {
        let problem = Diagnostic::warning("a penalty has no effect here: there is nothing that it could take from");
        problems.push(problem.at(place).help("write it into `$and`, or beside what else is expected"));
    }
    tell_inside(node, rules, problems);
}

fn tell_inside(node: &Node, rules: &Rules, problems: &mut Problems) {
    match &node.kind {
        NodeKind::List(items) => items.iter().for_each(|item| tell_inside(item, rules, problems)),
        NodeKind::Map(entries) if is_data(node, rules) => {
            for (key, value) in entries {
                let name = key.value.as_str();
                if rules.operator(name).is_some() || name == meta::CONTAINER || meta::SHORTHANDS.contains(&name) {
                    continue;
                }
                if OF_ONE.contains(&name) {
                    tell_alone(name, value, problems);
                    tell_inside(value, rules, problems);
                } else if OF_MANY.contains(&name) || !is_operator(name) {
                    tell_inside(value, rules, problems);
                }
            }
        }
        _ => {}
    }
}

/// Whether a map is matched key by key.
fn is_data(node: &Node, rules: &Rules) -> bool {
    node.tag.as_deref() != Some(SCHEMA_TAG) && !(rules.heuristic_schema && schema::looks_like_schema(node))
}

fn is_operator(name: &str) -> bool {
    crate::operator::OPERATORS.iter().any(|operator| operator.name == name)
}

fn tell_alone(operator: &str, operand: &Node, problems: &mut Problems) {
    if let Some((_, place)) = penalty(operand) {
        let message = format!("a penalty has no effect here: nothing stands in `{operator}` that it could take from");
        let help = format!("write it beside `{operator}`, where others stand");
        problems.push(Diagnostic::error(message).at(place).help(help));
    }
}

/// What `node` says about itself and where, if it is a penalty. What is wrong with that is told where it is read.
fn penalty(node: &Node) -> Option<(Meta, Excerpt)> {
    let NodeKind::Map(entries) = &node.kind else { return None };
    let has_operator = entries.iter().any(|(key, _)| is_operator(&key.value));
    let meta = Meta::read(node, has_operator, &mut Problems::new());
    meta.weight.filter(|weight| *weight < 0.0)?;
    let key = entries.iter().map(|(key, _)| key).find(|key| key.value == "$score" || key.value == meta::CONTAINER);
    Some((meta, node.source.excerpt(key.map_or(node.span, |key| key.span))))
}

//! Reports penalties without effect: penalties that have no siblings whose score they could reduce, so that the
//! unwanted value would be required instead.

use model::decode::Problems;
use model::{Diagnostic, Excerpt, Node, NodeKind};

use crate::meta::{self, Meta};
use crate::notation::SCHEMA_TAG;
use crate::rules::Rules;
use crate::schema;

/// Operators whose operand is a single expectation.
const OF_ONE: [&str; 8] = ["$not", "$contains", "$each", "$sort", "$nth", "$first", "$last", "$expect"];

/// Operators whose operand is a list of expectations that share the score.
const OF_MANY: [&str; 4] = ["$and", "$or", "$all", "$sequence"];

/// Reports every penalty in `node`, as written, that has no effect. A penalty on the whole expectation has an effect
/// only if it is critical. Otherwise, it only causes a warning, because @isdk/ai-test-runner requires the value in that
/// case.
pub fn warn(node: &Node, rules: &Rules, problems: &mut Problems) {
    if let Some((Meta { critical: false, .. }, place)) = penalty(node) {
        let problem = Diagnostic::warning("a penalty has no effect here: there is no score that it could reduce");
        problems.push(problem.at(place).help("write it in `$and`, or next to other expectations"));
    }
    tell_inside(node, rules, problems);
}

fn tell_inside(node: &Node, rules: &Rules, problems: &mut Problems) {
    match &node.kind {
        NodeKind::List(items) => items.iter().for_each(|item| tell_inside(item, rules, problems)),
        NodeKind::Map(entries) if is_data(node, rules) => {
            for (key, value) in entries {
                let name = key.value.as_str();
                if rules.operator(name).is_some() || meta::is_meta(name) {
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

/// Returns `true` if a map is matched key by key.
fn is_data(node: &Node, rules: &Rules) -> bool {
    node.tag.as_deref() != Some(SCHEMA_TAG) && !(rules.heuristic_schema && schema::looks_like_schema(node))
}

fn is_operator(name: &str) -> bool {
    crate::operator::OPERATORS.iter().any(|operator| operator.name == name)
}

fn tell_alone(operator: &str, operand: &Node, problems: &mut Problems) {
    if let Some((_, place)) = penalty(operand) {
        let message =
            format!("a penalty has no effect here: there is no other score in `{operator}` that it could reduce");
        let help = format!("write it next to `{operator}`, together with other expectations");
        problems.push(Diagnostic::error(message).at(place).help(help));
    }
}

/// Returns the metadata of `node` and its location, if it is a penalty. Problems with the metadata are reported
/// elsewhere, when it is read.
fn penalty(node: &Node) -> Option<(Meta, Excerpt)> {
    let NodeKind::Map(entries) = &node.kind else { return None };
    let has_operator = entries.iter().any(|(key, _)| is_operator(&key.value));
    let meta = Meta::read(node, has_operator, &mut Problems::new());
    meta.weight.filter(|weight| *weight < 0.0)?;
    let key = entries.iter().map(|(key, _)| key).find(|key| key.value == "$score" || key.value == meta::CONTAINER);
    Some((meta, node.source.excerpt(key.map_or(node.span, |key| key.span))))
}

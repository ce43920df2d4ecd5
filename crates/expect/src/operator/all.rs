//! `$all`: each expectation is met by some item, in any order.

use std::collections::HashSet;

use model::{Node, NodeKind};

use super::contains::one_of;
use crate::compile::Compiler;
use crate::prelude::*;
use crate::strategy::Strategy;

/// Number of comparisons from which literal expectations are first looked up among the items.
const MANY: usize = 10_000;

pub(super) fn read(compiler: &mut Compiler<'_>, operand: &Node, operator: &'static str) -> Option<Box<dyn Rule>> {
    let wanted = compiler.list(operand, operator)?;
    let NodeKind::List(items) = &operand.kind else { return None };
    let literals = items.iter().map(|item| is_literal(item).then(|| item.to_json().to_string())).collect();
    Some(Box::new(All { wanted, literals, place: SourceLocation::from_node(operand) }))
}

#[derive(Debug)]
struct All {
    wanted: Vec<Matcher>,
    /// JSON of each expectation that an equal item certainly meets.
    literals: Vec<Option<String>>,
    place: SourceLocation,
}

impl Rule for All {
    fn judge(&self, actual: Option<&Value>, at: &Scope<'_>) -> Found {
        let Some(whole @ Value::Array(items)) = actual else {
            let critical = self.wanted.iter().any(|wanted| wanted.critical);
            return Found::wrong_type("`$all` needs a list", actual, critical, &self.place);
        };
        let weights: Vec<_> = self.wanted.iter().map(|wanted| wanted.meta.weight).collect();
        let shares = Strategy::Weighted.distribute(&at.run.rules.budget, &weights);
        let is_long = self.wanted.len().saturating_mul(items.len()) >= MANY;
        let there: HashSet<String> =
            if is_long { items.iter().map(ToString::to_string).collect() } else { HashSet::new() };
        let found = self.wanted.iter().zip(&self.literals).enumerate().map(|(index, (wanted, literal))| {
            let here = at.item("$all", index, self.wanted.len());
            let mut found = match literal {
                Some(literal) if there.contains(literal) => Found::full(),
                _ => one_of(whole, items, wanted, &here, &wanted.place),
            };
            found.critical |= wanted.meta.critical;
            found.title.clone_from(&wanted.meta.title);
            for flaw in &mut found.flaws {
                flaw.key = Some(here.key.clone());
                flaw.critical |= here.critical;
            }
            found
        });
        Strategy::Weighted.aggregate(found, &shares, &self.place)
    }
}

/// Returns `true` if an equal value certainly meets the expectation: it has no patterns, operators, paths or schemas.
fn is_literal(node: &Node) -> bool {
    let is_plain = |text: &str| !text.starts_with(['/', '$']);
    if node.tag.is_some() {
        return false;
    }
    match &node.kind {
        NodeKind::Null | NodeKind::Bool(_) | NodeKind::Number(_) => true,
        NodeKind::String(text) => is_plain(text),
        NodeKind::List(items) => items.iter().all(is_literal),
        NodeKind::Map(entries) => entries.iter().all(|(key, value)| {
            let key = key.value.as_str();
            is_plain(key) && key != "type" && !key.contains(['.', '[']) && is_literal(value)
        }),
    }
}

#[cfg(test)]
mod tests {
    use model::Source;
    use serde_json::json;

    use super::*;

    #[test]
    fn only_values_without_a_meaning_of_their_own_are_literals() {
        let is_literal = |value: Value| is_literal(&Node::from_json(&value, &Source::new("a.yaml", "")));
        assert!([json!(1), json!("a"), json!([null]), json!({"id": 3, "name": "x"})].into_iter().all(is_literal));
        for special in [json!("/a/"), json!({"$gt": 1}), json!({"a.b": 1}), json!([{"type": "object"}]), json!("$x")] {
            assert!(!is_literal(special.clone()), "{special}");
        }
    }
}

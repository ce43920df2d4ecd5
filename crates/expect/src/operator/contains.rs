//! `$contains`: some item of a list matches.

use model::Node;

use crate::candidates::Candidates;
use crate::compile::Compiler;
use crate::found::Pass;
use crate::prelude::*;

pub(super) fn read(compiler: &mut Compiler<'_>, operand: &Node, _operator: &'static str) -> Option<Box<dyn Rule>> {
    let inner = compiler.matcher(operand);
    Some(Box::new(Contains { inner, place: SourceLocation::from_node(operand) }))
}

#[derive(Debug)]
struct Contains {
    inner: Matcher,
    place: SourceLocation,
}

impl Rule for Contains {
    fn judge(&self, actual: Option<&Value>, at: &Scope<'_>) -> Found {
        match actual {
            Some(whole @ Value::Array(items)) => one_of(whole, items, &self.inner, at, &self.place),
            Some(_) => self.inner.judge(actual, &at.below("")),
            None => {
                let critical = self.inner.critical;
                Found::flawed(Flaw { critical, ..Flaw::new(&self.place, "there is no value that could contain it") })
            }
        }
    }
}

/// Returns the result for the item that matches best. `items` are the items of `whole`.
pub(super) fn one_of(
    whole: &Value,
    items: &[Value],
    wanted: &Matcher,
    at: &Scope<'_>,
    place: &SourceLocation,
) -> Found {
    let inside = Scope { present: true, ..at.quietly() };
    let Some(explained) = unmatched(items, wanted, &inside) else { return Found::full() };
    let mut tried = Candidates::default();
    let mut pass = Pass::No;
    let mut stopped = None;
    for (index, item) in explained {
        let found = wanted.judge(Some(item), &inside);
        pass = pass.or(found.pass);
        if found.pass == Pass::Yes && found.score >= 1.0 {
            return Found::full();
        }
        if found.pass == Pass::Unknown {
            stopped = stopped.or_else(|| found.flaws.first().cloned());
        }
        tried.add(index, found, true);
    }
    let (score, most) = tried.scores();
    let best = Found { most, ..Found::scored(score, pass) };
    if pass == Pass::Yes {
        return best;
    }
    let flaw = stopped.unwrap_or_else(|| {
        let near = near(&tried, at);
        let message = match items.len() {
            0 => "the list is empty".to_owned(),
            1 => format!("the only item does not match{near}"),
            count => format!("none of {count} items matches{near}"),
        };
        Flaw::new(place, message).actual(Some(whole))
    });
    let flaw = Flaw { critical: wanted.meta.critical, ..flaw };
    Found { flaws: vec![tried.flaw(pass, flaw, wanted.critical)], ..best }
}

/// Returns the items that determine the result, or `None` if one matches. Of the items that have a quick score, that is
/// the first of the nearest: to explain every mismatch is slow if there are thousands.
fn unmatched<'v>(items: &'v [Value], wanted: &Matcher, inside: &Scope<'_>) -> Option<Vec<(usize, &'v Value)>> {
    let mut nearest: Option<(usize, QuickScore)> = None;
    let mut determining = Vec::new();
    for (index, item) in items.iter().enumerate() {
        match wanted.quick_score(Some(item), inside) {
            Some(score) if score.matches() => return None,
            Some(score) if nearest.is_none_or(|(_, best)| score.is_nearer(best)) => nearest = Some((index, score)),
            Some(_) => {}
            None => determining.push(index),
        }
    }
    determining.extend(nearest.map(|(index, _)| index));
    determining.sort_unstable();
    Some(determining.into_iter().filter_map(|index| Some((index, items.get(index)?))).collect())
}

/// Describes the mismatch of the nearest item.
fn near(tried: &Candidates, at: &Scope<'_>) -> String {
    let Some((index, _, [flaw, ..])) = tried.nearest() else { return String::new() };
    let message = flaw.message.as_deref().unwrap_or("it does not match");
    let key = flaw.key.as_deref().unwrap_or_default();
    let inside = key.strip_prefix(at.key.as_str()).unwrap_or(key).trim_start_matches('.');
    let colon = if inside.is_empty() { "" } else { ": " };
    format!("; closest match is item {index}: {inside}{colon}{message}")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use model::Source;
    use model::decode::Problems;
    use serde_json::json;

    use super::*;
    use crate::{Data, Expectation, Host, Rules, Strict, WithoutScripts};

    #[test]
    fn a_list_has_the_score_of_its_first_nearest_item() {
        let host: Arc<dyn Host> = Arc::new(WithoutScripts);
        let judge = |wanted: &Value, actual: &Value, strict: Strict| {
            let node = Node::from_json(wanted, &Source::new("a.yaml", ""));
            let rules = Rules { strict, ..Rules::default() };
            Expectation::from_value(&node, rules, &host, None, &mut Problems::new())
                .judge(Some(actual), &Data::default())
        };
        let items = [
            json!(null),
            json!(3),
            json!([3]),
            json!("a long sentence"),
            json!(" a  long\nsentence "),
            json!("{\"a\": 1}"),
            json!({"b": "y"}),
            json!({"a": "x", "b": "yes", "c": {"d": 4}}),
            json!({"a": "x", "b": "no", "c": {"d": 3, "e": "f"}}),
            json!({"a": "x", "b": "no", "c": {"d": 3, "e": "f"}, "extra": 1}),
            json!([3, {"d": 4, "e": 5}, "a long sentence"]),
            json!([3, {"d": 4}, "a  long sentence"]),
        ];
        let parts = json!({"a": "x", "b": "/^y/", "c": {"d": 3, "e": {"$exists": false}}});
        let plain = json!({"a": "x", "b": "/^n/", "c": {"d": 4, "e": "f"}});
        let weighted = json!({"a": {"$expect": "x", "$score": 90}, "b": {"$expect": "/^y/", "$critical": true}});
        let texts = [json!("a long sentence"), json!("{\"a\":1}"), json!("/long|x/"), json!("zz")];
        let operators = [json!({"$diff": "a long sentence"}), json!({"d": {"$gt": 3}}), json!({"b": {"$in": ["no"]}})];
        let list = json!([3, {"d": 4}, {"$diff": {"value": "a long sentence", "type": "words"}}]);
        let values = [json!(3), json!(null), json!({}), json!([3]), json!({"c.d": 3, "a": "x", "b": "no"})];
        let wanted = texts.into_iter().chain(values).chain(operators).chain([list, parts, plain, weighted]);
        for (wanted, all) in wanted.flat_map(|wanted| [(wanted.clone(), false), (wanted, true)]) {
            let strict = Strict { object: all, array: all, diff: all };
            for count in 1..=items.len() {
                let what = format!("{wanted} in {count} items, strict: {all}");
                let alone: Vec<Found> = items[..count].iter().map(|item| judge(&wanted, item, strict)).collect();
                let found = judge(&json!({"$contains": wanted}), &json!(items[..count]), strict);
                let most = alone.iter().map(|item| item.score).fold(0.0, f64::max);
                assert_eq!(found.score, most, "{what}");
                assert_eq!(found.pass, alone.iter().fold(Pass::No, |pass, item| pass.or(item.pass)), "{what}");
                let is_best = |item: &&Found| item.score == most;
                let firm = |item: &Found| item.flaws.iter().any(|flaw| flaw.firm);
                let is_firm = alone.iter().filter(is_best).all(firm);
                let nearest = alone.iter().position(|item| item.score == most && firm(item) == is_firm).unwrap();
                let closest = format!("closest match is item {nearest}:");
                let message = found.flaws.first().and_then(|flaw| flaw.message.clone()).unwrap_or_default();
                assert!(found.pass == Pass::Yes || message.contains(&closest), "{what}: {message}");
            }
        }
    }
}

//! Warnings about operators of one map that no value meets together.

use model::decode::Problems;
use model::{Node, NodeKind, Spanned};

/// Numbers below this are exact.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A bound of a number.
struct Bound {
    value: f64,
    /// True if the number itself is not accepted.
    is_open: bool,
    /// True if smaller numbers are accepted.
    is_upper: bool,
}

/// Warns at the later one of the first two of `operators` that exclude each other.
pub(crate) fn report(operators: &[&(Spanned<String>, Node)], problems: &mut Problems) {
    for (index, (name, operand)) in operators.iter().copied().enumerate() {
        let mut earlier = operators[..index].iter();
        if let Some((other, _)) = earlier.find(|(other, value)| excludes((other, value), (name, operand))) {
            let (name, other) = (&name.value, &other.value);
            problems.push(operand.warning(format!("no value meets both this `{name}` and `{other}` beside it")));
            return;
        }
    }
}

/// Returns `true` if no value meets both operators. This is only known of numbers, and of equal values.
fn excludes((one, value): (&Spanned<String>, &Node), (other, beside): (&Spanned<String>, &Node)) -> bool {
    let names = [one.value.as_str(), other.value.as_str()];
    if names == ["$eq", "$ne"] || names == ["$ne", "$eq"] {
        return value.to_json() == beside.to_json();
    }
    let bounds = |name: &Spanned<String>, node: &Node| bounds(&name.value, node);
    let beyond = |lower: &Bound, upper: &Bound| {
        let is_same = lower.value == upper.value && lower.value.abs() < EXACT;
        lower.value > upper.value || is_same && (lower.is_open || upper.is_open)
    };
    bounds(one, value).iter().any(|first| {
        bounds(other, beside).iter().any(|second| match (first.is_upper, second.is_upper) {
            (false, true) => beyond(first, second),
            (true, false) => beyond(second, first),
            _ => false,
        })
    })
}

/// Returns the bounds that the operator `name` sets, if its operand is a number.
fn bounds(name: &str, operand: &Node) -> Vec<Bound> {
    let NodeKind::Number(number) = &operand.kind else { return Vec::new() };
    let Some(value) = number.as_f64() else { return Vec::new() };
    let bound = |is_upper: bool, is_open: bool| Bound { value, is_open, is_upper };
    match name {
        "$gt" => vec![bound(false, true)],
        "$gte" => vec![bound(false, false)],
        "$lt" => vec![bound(true, true)],
        "$lte" => vec![bound(true, false)],
        "$eq" => vec![bound(false, false), bound(true, false)],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use model::Source;

    use super::*;
    use crate::{Expectation, Host, Rules, WithoutScripts};

    fn messages(expected: &str) -> Vec<String> {
        let json: serde_json::Value = serde_json::from_str(expected).unwrap();
        let node = Node::from_json(&json, &Source::new("a.yaml", ""));
        let mut problems = Problems::new();
        let host: Arc<dyn Host> = Arc::new(WithoutScripts);
        let _ = Expectation::from_value(&node, Rules::default(), &host, None, &mut problems);
        problems.into_iter().map(|problem| problem.message).collect()
    }

    #[test]
    fn operators_that_exclude_each_other_are_reported() {
        for expected in [
            r#"{"$gt": 5, "$lt": 3}"#,
            r#"{"$lte": 3, "$gte": 5}"#,
            r#"{"$gt": 5, "$lt": 5}"#,
            r#"{"$eq": "a", "$ne": "a"}"#,
            r#"{"a": {"$eq": 9, "$lt": 9}}"#,
        ] {
            let found = messages(expected);
            assert!(found.len() == 1 && found[0].starts_with("no value meets both this `$"), "{expected}: {found:?}");
        }
        for expected in [
            r#"{"$gt": 3, "$lt": 5}"#,
            r#"{"$gte": 5, "$lte": 5}"#,
            r#"{"$ne": 1, "$gt": 1}"#,
            r#"{"$gt": "5", "$lt": "3"}"#,
        ] {
            assert_eq!(messages(expected), Vec::<String>::new(), "{expected}");
        }
    }

    #[test]
    fn a_backspace_in_a_text_is_reported() {
        assert_eq!(messages(r#"{"$contains": "\bword"}"#), ["the text contains the control character U+0008"]);
        assert_eq!(messages(r#"{"$contains": "a\nb\tc"}"#), Vec::<String>::new());
    }
}

//! `$gt`, `$gte`, `$lt`, `$lte`: comparison with a value of the same type.

use std::cmp::Ordering;

use model::{Node, NodeKind, rounded_number};

use crate::compile::Compiler;
use crate::prelude::*;

#[derive(Debug)]
struct Compare {
    bound: Value,
    words: &'static str,
    holds: fn(Ordering) -> bool,
    place: SourceLocation,
}

pub(super) fn read(compiler: &mut Compiler<'_>, operand: &Node, operator: &'static str) -> Option<Box<dyn Rule>> {
    if !matches!(operand.kind, NodeKind::Number(_) | NodeKind::String(_)) {
        compiler.wrong_operand(operand, operator, "a number or a string");
        return None;
    }
    let (words, holds): (_, fn(Ordering) -> bool) = match operator {
        "$gt" => ("greater than", Ordering::is_gt),
        "$gte" => ("at least", Ordering::is_ge),
        "$lt" => ("less than", Ordering::is_lt),
        _ => ("at most", Ordering::is_le),
    };
    Some(Box::new(Compare { bound: operand.to_json(), words, holds, place: SourceLocation::from_node(operand) }))
}

impl Compare {
    /// Returns `true` if the value and the bound agree in their known digits, and one of them has more.
    fn is_unknown(&self, actual: Option<&Value>) -> bool {
        let Some(actual @ Value::Number(number)) = actual else { return false };
        number.as_f64() == self.bound.as_f64()
            && (rounded_number(actual).is_some() || rounded_number(&self.bound).is_some())
    }
}

impl Rule for Compare {
    fn judge(&self, actual: Option<&Value>, _at: &Scope<'_>) -> Found {
        let order = actual.and_then(|actual| value::compare(actual, &self.bound));
        if self.is_unknown(actual) {
            return Found::rounded(actual, &self.place);
        }
        if order.is_some_and(self.holds) {
            return Found::full();
        }
        let bound = value::shown(Some(&self.bound));
        let message = match order {
            Some(_) => format!("{} is not {} {bound}", value::shown(actual), self.words),
            None => format!("{} cannot be compared with {bound}", value::kind(actual)),
        };
        let words = if self.words == "greater than" { "more than" } else { self.words };
        let expected = format!("{words} {}", value::describe(&self.bound));
        Found::flawed(Flaw::new(&self.place, message).expected(expected.into()).actual(actual))
    }

    fn quick_score(&self, actual: Option<&Value>, _at: &Scope<'_>) -> Option<QuickScore> {
        let order = actual.and_then(|actual| value::compare(actual, &self.bound));
        (!self.is_unknown(actual)).then(|| QuickScore::from_bool(order.is_some_and(self.holds)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use model::decode::Problems;

    use crate::found::Pass;
    use crate::{Data, Expectation, Rules, WithoutScripts};

    #[test]
    fn digits_that_are_not_known_do_not_decide() {
        let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        let judge = |wanted: &str, actual: &str| {
            let node = model::Node::from_json(&json(wanted), &model::Source::new("a.yaml", ""));
            let host = Arc::new(WithoutScripts);
            Expectation::from_value(&node, Rules::default(), &(host as _), None, &mut Problems::new())
                .judge(Some(&json(actual)), &Data::default())
                .pass
        };
        let id = "123456789012345678901";
        for operator in ["$gt", "$gte", "$lt", "$lte"] {
            let wanted = format!("{{\"{operator}\": 123456789012345678902}}");
            assert_eq!(judge(&wanted, id), Pass::Unknown, "{operator}");
        }
        assert_eq!(judge("{\"$gt\": 18446744073709551615}", id), Pass::Yes);
        assert_eq!(judge("{\"$lt\": 223456789012345678901}", id), Pass::Yes);
        assert_eq!(judge("{\"$gt\": 9007199254740992}", "9007199254740993"), Pass::Yes);
        let diff =
            |expected: &str, actual: &str| judge(&format!("{{\"$diff\": {expected:?}}}"), &format!("{actual:?}"));
        assert_eq!(diff("{\"id\": 123456789012345678902}", "{\"id\": 123456789012345678901}"), Pass::Unknown);
        assert_eq!(diff("{\"id\": 123456789012345678902}", "{\"id\": 123456789012345678902}"), Pass::Yes);
        assert_eq!(diff("{\"id\": 1, \"n\": 123456789012345678902}", "{\"n\": 123456789012345678901}"), Pass::No);
        assert_eq!(diff("{\"id\": 18446744073709551615}", "{\"id\":18446744073709551614}"), Pass::No);
    }
}

//! `$contains`: some item of a list matches.

use serde_json::Value;

use super::{Example, Operator};
use crate::found::{Flaw, Found, Pass, Tried};
use crate::matcher::{At, Matcher, Rule};
use crate::place::Place;

/// The operator.
pub const CONTAINS: Operator = Operator {
    name: "$contains",
    summary: "Some item of the list matches; of a text, a part; of a map, some keys.",
    operand: "an expectation",
    details: "Of a value that is no list, the expectation itself must hold: a text must contain a text, a map must have \
              the keys. An empty list contains nothing, and nor does a missing value, whatever is asked for. All keys of a map in the operand must be found in the *same* item.",
    scoring: "The score of the item that matches best.",
    examples: &[
        Example {
            expectation: r#"{"$contains": {"role": "assistant", "content": "/Alice/"}}"#,
            matches: &[r#"[{"role": "user"}, {"role": "assistant", "content": "Hi Alice"}]"#],
            differs: &[r#"[{"role": "user", "content": "Alice"}, {"role": "assistant", "content": "Hi"}]"#, "[]"],
        },
        Example { expectation: r#"{"$contains": "lo"}"#, matches: &[r#""hello""#], differs: &[r#""help""#] },
    ],
    read: |compiler, operand| {
        let inner = compiler.matcher(operand);
        Some(Box::new(Contains { inner, place: Place::of(operand) }))
    },
};

#[derive(Debug)]
struct Contains {
    inner: Matcher,
    place: Place,
}

impl Rule for Contains {
    fn judge(&self, actual: Option<&Value>, at: &At<'_>) -> Found {
        match actual {
            Some(whole @ Value::Array(items)) => one_of(whole, items, &self.inner, at, &self.place),
            Some(_) => self.inner.judge(actual, &at.below("")),
            None => {
                let critical = self.inner.critical;
                Found::flawed(Flaw { critical, ..Flaw::new(&self.place, "there is nothing that could contain it") })
            }
        }
    }
}

/// What the item that matches best comes to, of `items`, which are those of the list `whole`.
pub(super) fn one_of(whole: &Value, items: &[Value], wanted: &Matcher, at: &At<'_>, place: &Place) -> Found {
    let mut best = Found::scored(0.0, Pass::No);
    let mut tried = Tried::default();
    let mut stopped = None;
    let mut nearest: Option<(usize, f64, Flaw)> = None;
    let inside = At { present: true, ..at.quietly() };
    for (index, item) in items.iter().enumerate() {
        let found = wanted.judge(Some(item), &inside);
        tried.add(&found, found.score);
        best.score = best.score.max(found.score);
        best.most = best.most.max(found.most);
        best.pass = best.pass.or(found.pass);
        let is_nearer = nearest.as_ref().is_none_or(|(_, score, _)| *score < found.score);
        match found.pass {
            Pass::Yes if found.score >= 1.0 => break,
            Pass::Yes => {}
            Pass::Unknown => stopped = stopped.or(found.flaws.into_iter().next()),
            Pass::No if is_nearer => {
                nearest = found.flaws.into_iter().next().map(|flaw| (index, found.score, flaw)).or(nearest);
            }
            Pass::No => {}
        }
    }
    if best.pass == Pass::Yes {
        return best;
    }
    let flaw = stopped.unwrap_or_else(|| {
        let near = nearest.map(|nearest| near(&nearest, at)).unwrap_or_default();
        let message = match items.len() {
            0 => "the list is empty".to_owned(),
            1 => format!("the only item does not match{near}"),
            count => format!("none of {count} items matches{near}"),
        };
        Flaw::new(place, message).actual(Some(whole))
    });
    let critical = wanted.meta.critical || (items.is_empty() && wanted.critical);
    best.flaws.push(tried.flaw(best.pass, Flaw { critical, ..flaw }));
    best
}

/// What is wrong with the item that comes nearest.
fn near((index, _, flaw): &(usize, f64, Flaw), at: &At<'_>) -> String {
    let message = flaw.message.as_deref().unwrap_or("it does not match");
    let key = flaw.key.as_deref().unwrap_or_default();
    let inside = key.strip_prefix(at.key.as_str()).unwrap_or(key).trim_start_matches('.');
    let colon = if inside.is_empty() { "" } else { ": " };
    format!("; item {index} is nearest: {inside}{colon}{message}")
}

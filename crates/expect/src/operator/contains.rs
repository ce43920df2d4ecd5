//! `$contains`: some item of a list matches.

use serde_json::Value;

use super::{Example, Operator};
use crate::found::{Flaw, Found, Pass};
use crate::matcher::{At, Matcher, Rule};
use crate::place::Place;

/// The operator.
pub const CONTAINS: Operator = Operator {
    name: "$contains",
    summary: "Some item of the list matches; of a text, a part; of a map, some keys.",
    operand: "an expectation",
    details: "Of a value that is no list, the expectation itself must hold: a text must contain a text, a map must have \
              the keys. An empty list contains nothing. All keys of a map in the operand must be found in the *same* item.",
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
            Some(Value::Array(items)) => one_of(items, &self.inner, at, &self.place),
            _ => self.inner.judge(actual, &at.below("")),
        }
    }
}

/// What the item of `items` that matches best comes to.
pub(super) fn one_of(items: &[Value], wanted: &Matcher, at: &At<'_>, place: &Place) -> Found {
    let mut best = Found::scored(0.0, Pass::No);
    let mut stopped = None;
    let mut nearest: Option<(usize, f64, Flaw)> = None;
    for (index, item) in items.iter().enumerate() {
        let found = wanted.judge(Some(item), &At { present: true, ..at.quietly() });
        best.score = best.score.max(found.score);
        if let Some(flaw) = found.flaws.first().filter(|_| found.pass == Pass::No)
            && nearest.as_ref().is_none_or(|(_, score, _)| *score < found.score)
        {
            nearest = Some((index, found.score, flaw.clone()));
        }
        match found.pass {
            Pass::Yes => best.pass = Pass::Yes,
            Pass::Unknown => stopped = stopped.or(found.flaws.into_iter().next()),
            Pass::No => {}
        }
        if best.pass == Pass::Yes && best.score >= 1.0 {
            break;
        }
    }
    if best.pass == Pass::Yes {
        return best;
    }
    if let Some(flaw) = stopped {
        return Found { score: best.score, ..Found::unknown(flaw) };
    }
    let near = nearest.map(|nearest| near(&nearest, at)).unwrap_or_default();
    let message = match items.len() {
        0 => "the list is empty".to_owned(),
        1 => format!("the only item does not match{near}"),
        count => format!("none of {count} items matches{near}"),
    };
    let flaw = Flaw { critical: wanted.meta.critical, ..Flaw::new(place, message) };
    let flaw = flaw.actual(Some(&Value::Array(items.to_vec())));
    Found { score: best.score, ..Found::flawed(flaw) }
}

/// What is wrong with the item that comes nearest.
fn near((index, _, flaw): &(usize, f64, Flaw), at: &At<'_>) -> String {
    let message = flaw.message.as_deref().unwrap_or("it does not match");
    let key = flaw.key.as_deref().unwrap_or_default();
    let inside = key.strip_prefix(at.key.as_str()).unwrap_or(key).trim_start_matches('.');
    let colon = if inside.is_empty() { "" } else { ": " };
    format!("; item {index} is nearest: {inside}{colon}{message}")
}

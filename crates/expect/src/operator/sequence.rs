//! `$sequence`: expectations are met by items in the same order.

use model::NodeKind;
use serde_json::Value;

use super::{Example, Operator};
use crate::found::{Flaw, Found, Pass};
use crate::matcher::{At, Matcher, Rule};
use crate::place::Place;
use crate::value;

/// The operator.
pub const SEQUENCE: Operator = Operator {
    name: "$sequence",
    summary: "The expectations are met by items of the list in the same order; others may stand between.",
    operand: "a list of expectations",
    details: "Each expectation is looked for after the item that met the one before it. One that is not met is told, and \
              the search goes on from the same place.",
    scoring: "The expectations share the score by their weights; one that is not met counts by the best item it was tried on.",
    examples: &[Example {
        expectation: r#"{"$sequence": [{"name": "get_user"}, {"name": "send_email"}]}"#,
        matches: &[r#"[{"name": "get_user"}, {"name": "log"}, {"name": "send_email"}]"#],
        differs: &[r#"[{"name": "send_email"}, {"name": "get_user"}]"#],
    }],
    read: |compiler, operand| {
        let NodeKind::List(items) = &operand.kind else {
            compiler.wrong_operand(operand, "$sequence", "a list of expectations");
            return None;
        };
        let steps = items.iter().map(|item| (compiler.matcher(item), Place::of(item))).collect();
        Some(Box::new(Sequence { steps, place: Place::of(operand) }))
    },
};

#[derive(Debug)]
struct Sequence {
    steps: Vec<(Matcher, Place)>,
    place: Place,
}

impl Rule for Sequence {
    fn judge(&self, actual: Option<&Value>, at: &At<'_>) -> Found {
        let Some(Value::Array(items)) = actual else {
            let message = format!("`$sequence` needs a list, not {}", value::kind(actual));
            return Found::flawed(Flaw::new(&self.place, message).actual(actual));
        };
        let weights: Vec<_> = self.steps.iter().map(|(step, _)| step.meta.weight).collect();
        let shares = at.strategy.unwrap_or_default().distribute(&at.run.rules.budget, &weights);
        let mut whole = Found::scored(if shares.iter().any(|share| *share > 0.0) { 0.0 } else { 1.0 }, Pass::Yes);
        let mut from = 0;
        for (number, ((step, place), share)) in self.steps.iter().zip(shares).enumerate() {
            let search = search(items, from, step, at);
            let is_penalty = share < 0.0;
            if let Some(found_at) = search.found {
                whole.score += share;
                from = found_at + 1;
                if is_penalty && step.meta.critical {
                    let message = format!("step {} is there and must not be", number + 1);
                    whole.pass = Pass::No;
                    whole.flaws.push(Flaw { critical: true, ..Flaw::new(place, message) });
                }
                continue;
            }
            whole.score += share * search.best;
            if is_penalty {
                continue;
            }
            whole.pass = whole.pass.and(if search.undecided { Pass::Unknown } else { Pass::No });
            let critical = step.meta.critical;
            whole
                .flaws
                .extend(search.flaws.into_iter().map(|flaw| Flaw { critical: critical || flaw.critical, ..flaw }));
            let after = if from == 0 { String::new() } else { format!(" after item {}", from - 1) };
            let message = format!("step {} of {} is not met by any item{after}", number + 1, self.steps.len());
            whole.flaws.push(Flaw { critical, ..Flaw::new(place, message).actual(actual) });
        }
        whole
    }
}

/// What looking for one step came to.
struct Search {
    found: Option<usize>,
    /// The best score of an item that does not match.
    best: f64,
    /// What is wrong with that item.
    flaws: Vec<Flaw>,
    undecided: bool,
}

fn search(items: &[Value], from: usize, step: &Matcher, at: &At<'_>) -> Search {
    let mut search = Search { found: None, best: 0.0, flaws: Vec::new(), undecided: false };
    for (index, item) in items.iter().enumerate().skip(from) {
        let found = step.judge(Some(item), &At { present: true, ..at.quietly() });
        match found.pass {
            Pass::Yes => {
                search.found = Some(index);
                break;
            }
            Pass::Unknown => search.undecided = true,
            Pass::No => {}
        }
        if found.score > search.best {
            search.best = found.score;
            search.flaws = found.flaws;
        }
    }
    search
}

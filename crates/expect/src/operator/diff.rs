//! `$diff`: a text equals another, except for listed changes.

use model::decode::Fields;
use model::{Node, NodeKind};
use serde_json::Value;

use super::{Example, Operator};
use crate::compile::Compiler;
use crate::found::{Flaw, Found};
use crate::matcher::{At, Rule};
use crate::place::Place;
use crate::text_diff::{TextDiff, text_of};
use crate::value;

/// The `$diff` operator.
pub const DIFF: Operator = Operator {
    name: "$diff",
    summary: "The text says the same as this one, but for the changes that are listed.",
    operand: "a text, or `{value, type, items, permissive, …}`",
    details: "`type` is `auto` (JSON, lines, words or characters, whichever suits the texts), `chars`, `words`, \
              `wordsWithSpace`, `lines`, `sentences` or `json`. `items` lists changes that are allowed, each with `value` \
              (a text or a regular expression), `added`, `removed`, for JSON `path` and `val`, and `required: true` \
              where it must be there. `permissive: true` allows other changes, too. `ignoreCase` and the other options of \
              the kinds may stand beside.",
    scoring: "Without `items` all or nothing. With them, they share the score by their weights, and that nothing else \
              changed is one item more, unless other changes are allowed.",
    examples: &[
        Example {
            expectation: r#"{"$diff": {"value": "{\"a\": 1, \"b\": 2}", "type": "json"}}"#,
            matches: &[r#""{\"b\":2,\"a\":1}""#],
            differs: &[r#""{\"b\":3,\"a\":1}""#],
        },
        Example {
            expectation: r#"{"$diff": {"value": "Hello", "items": [{"value": " there", "added": true}]}}"#,
            matches: &[r#""Hello there""#],
            differs: &[r#""Hello you""#],
        },
    ],
    read,
};

#[derive(Debug)]
struct Diff {
    expected: String,
    diff: TextDiff,
    place: Place,
}

fn read(compiler: &mut Compiler<'_>, operand: &Node) -> Option<Box<dyn Rule>> {
    let (expected, diff) = match &operand.kind {
        NodeKind::String(text) => (text.clone(), TextDiff::default()),
        NodeKind::Map(_) => {
            let mut problems = Vec::new();
            let mut fields = Fields::of(operand, "`$diff`", &mut problems)?;
            let value = fields.get("value");
            let other = fields.get("expected");
            let diff = TextDiff::of_fields(&mut fields, compiler);
            fields.finish(&mut problems);
            compiler.problems.extend(problems);
            let Some(text) = value.or(other) else {
                compiler.problems.push(operand.error("`$diff` has no `value` to compare with"));
                return None;
            };
            (model::decode::any_text(text, "`value`", compiler.problems)?, diff)
        }
        _ => {
            compiler.wrong_operand(operand, "$diff", "a text or a map with a `value`");
            return None;
        }
    };
    let diff = diff.or(compiler.diff);
    Some(Box::new(Diff { expected, diff, place: Place::of(operand) }))
}

impl Rule for Diff {
    fn judge(&self, actual: Option<&Value>, at: &At<'_>) -> Found {
        match text_of(actual) {
            Some(text) => self.diff.judge(text, &self.expected, at, &self.place),
            None => {
                let message = format!("expected a text, not {}", value::kind(actual));
                let flaw = Flaw::new(&self.place, message).expected(self.expected.as_str().into());
                Found::flawed(flaw.actual(actual))
            }
        }
    }
}
